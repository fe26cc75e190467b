"""Seared entries: memories that never change again, by a marker at their end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from soulgit.core import composition, entries
from soulgit.core.composition import SEARED_MARKER
from soulgit.core.entries import Entry
from soulgit.core.layout import Layout
from soulgit.errors import SearedRefused, TextAmbiguous, TextNotFound

_CANDIDATES_SHOWN = 5


def lost(before: bytes, layout_before: Layout, after: bytes, layout_after: Layout) -> list[str]:
    """Return the seared entries that a memory file had and no longer has as they were."""
    if SEARED_MARKER.encode() not in before:
        return []
    had, has = (Counter(_texts(*side)) for side in ((before, layout_before), (after, layout_after)))
    return list((had - has).elements())


def refuse_change(before: bytes, after: bytes, layout: Layout) -> None:
    """Raise SearedRefused where an edit changes, drops or makes a seared entry, its bullet too."""
    had, has = (Counter(_bulleted(data, layout)) for data in (before, after))
    for text in [*(had - has), *(has - had)]:
        raise SearedRefused(f"it would touch a seared entry: {_short(text.lstrip('-*+ '))}")


def refuse_marker(text: str) -> None:
    """Raise SearedRefused for a text that holds the marker, which only a person may set."""
    if SEARED_MARKER in text:
        raise SearedRefused(
            f"the text holds the marker {SEARED_MARKER}",
            hint="leave the marker out; a person sears an entry with `soulgit sear`",
        )


def find(source: str, text: str, layout: Layout, *, is_seared: bool) -> Entry:
    """Return the one entry that a text names: as its whole text, else as a part of it.

    Only entries that are seared, or are not, are looked at. Raises TextNotFound, and
    TextAmbiguous with the candidates.
    """
    wanted = text.strip()
    known = [entry for entry in entries.split(source, layout) if entry.seared == is_seared]
    found = [entry for entry in known if entry.plain == wanted]
    found = found or [entry for entry in known if wanted and wanted in entry.plain]
    if not found:
        kind = "seared entry" if is_seared else "entry that is not seared"
        raise TextNotFound(f"no {kind} reads like this: {_short(text)}", notes=())
    if len({entry.text for entry in found}) > 1:
        shown = tuple(_short(entry.text) for entry in found[:_CANDIDATES_SHOWN])
        raise TextAmbiguous(f"{len(found)} entries read like this: {_short(text)}", notes=shown)
    return found[0]


def mark(source: str, entry: Entry) -> str:
    """Return a memory file with one entry seared; raises SearedRefused for a code fence."""
    if source[entry.start : entry.end].rstrip().endswith(("```", "~~~")):
        raise SearedRefused(
            "a code fence has no place for the marker at its end",
            hint="make it part of a list item, then sear that",
        )
    return f"{source[: entry.end]} {SEARED_MARKER}{source[entry.end :]}"


def unmark(source: str, entry: Entry) -> str:
    """Return a memory file with the marker of one entry gone."""
    kept = source[entry.start : entry.end].removesuffix(SEARED_MARKER)
    return source[: entry.start] + kept.removesuffix(" ") + source[entry.end :]


def plain(text: str) -> str:
    """Return an entry's text without the marker."""
    return text.removesuffix(SEARED_MARKER).rstrip()


def _texts(data: bytes, layout: Layout) -> Iterator[str]:
    text = composition.decode(data)
    return (entry.text for entry in entries.split(text, layout) if entry.seared)


def _bulleted(data: bytes, layout: Layout) -> Iterator[str]:
    if SEARED_MARKER.encode() in data:
        source = composition.decode(data)
        for entry in entries.split(source, layout):
            if entry.seared:
                is_plain = layout.delimiter is None
                yield source[entry.outer_start : entry.end] if is_plain else entry.text


def _short(text: str) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= 80 else line[:79] + "…"
