"""Pure functions of soulgit: text and bytes in, values out; no disk, clock, environment or git."""
