"""What Hermes Agent makes of a home's memory files: how long it lets them be.

Source: Hermes Agent 0.19, `tools/memory_tool.py`. Its `config.yaml` can set other limits.
"""

from __future__ import annotations

from soulgit.core import entries
from soulgit.core.layout import HERMES, HERMES_DELIMITER, Layout, Target

LIMITS: dict[Target, int] = {"self": 2_200, "user": 1_375}
"""How many characters a memory file has at most, before Hermes refuses to add more."""


def passed_at(source: str, target: Target) -> tuple[int, int] | None:
    """Return where the entry begins that passes the limit, and the length of all; else None.

    The length is as Hermes counts it: each entry once, and what stands between two.
    """
    limit = LIMITS[target]
    if len(source) <= limit:  # as nearly always
        return None
    length, place = 0, None
    seen: set[str] = set()
    for entry in entries.split(source, HERMES):
        text = entry.text.strip()
        if not text or text in seen:
            continue
        length += len(text) + (len(HERMES_DELIMITER) if seen else 0)
        seen.add(text)
        if length > limit and place is None:
            place = entry.start
    return None if place is None else (place, length)


def over_limit(source: str, target: Target, layout: Layout) -> str | None:
    """Return what a person must know of a memory file that is longer than Hermes lets it be."""
    found = passed_at(source, target) if layout == HERMES else None
    if found is None:
        return None
    return (
        f"{HERMES.memory_path(target)} has {found[1]:,} characters; Hermes Agent keeps "
        f"{LIMITS[target]:,} and adds no more until some are removed"
    )
