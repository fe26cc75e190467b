"""What a change of a memory file was, taken back in the file as it is now, by entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from soulgit.core import entries, tracing
from soulgit.core.entries import Entry
from soulgit.core.layout import Layout

Choice = Literal["keep", "drop"]
"""What becomes of an entry that was changed since: it stays as it is, or is taken back anyway."""


@dataclass(frozen=True)
class Undone:
    """A memory file with a change taken back, and the entries, as they are now, that stood in
    the way because they were changed since.
    """

    source: str
    in_the_way: list[str] = field(default_factory=list)


def take_back(
    now: str,
    before: str,
    after: str,
    layout: Layout,
    *,
    is_paired: Callable[[], bool],
    later: Mapping[str, str],
    choice: Choice | None = None,
) -> Undone:
    """Take what led from `before` to `after` back in the text as it is `now`.

    `later` gives, for a text of an entry, the one that it has become since. What came goes, what
    went comes back in its place, what was reworded gets its old words; what came or went
    again since is left alone. Where nothing came after, the law holds that the result is
    `before`, byte for byte.
    """
    if now == after:
        return Undone(before)
    old, change = tracing.before(tracing.read(after, layout), before, layout, is_paired)
    work = _Work(now, layout, later, choice)
    for was, new in change.reworded:
        work.reword(new.text, was.text, _raw(old, was))
    for item in change.added:
        work.drop(item.text)
    for item in change.removed:
        work.bring(item.text, _chunk(old, item), _texts_before(old, item))
    return Undone(work.source, work.in_the_way)


def bring(now: str, origin: str, text: str, was: Layout, layout: Layout) -> str:
    """Bring an entry back as `origin` has it, in its place, where the text `now` lacks it."""
    old = tracing.read(origin, was)
    item = next(item for item in old.items if item.text == text)
    chunk = _chunk(old, item) if was == layout else _anew(text, layout)
    work = _Work(now, layout, {}, None)
    work.bring(text, chunk, _texts_before(old, item))
    return work.source


def _anew(text: str, layout: Layout) -> str:
    """Return an entry as it is written in a layout."""
    return text if layout.delimiter is not None else "- " + text.replace("\n", "\n  ") + "\n"


class _Work:
    """A memory file under change: one entry after the other is taken back in it."""

    def __init__(
        self, source: str, layout: Layout, later: Mapping[str, str], choice: Choice | None
    ) -> None:
        self.source = source
        self.in_the_way: list[str] = []
        self._layout = layout
        self._later = later
        self._choice = choice

    def reword(self, text: str, old_text: str, raw: str) -> None:
        entry = self._present(text)
        if entry is None or entry.plain == old_text:
            return
        self.source = self.source[: entry.start] + raw + self.source[entry.end :]

    def drop(self, text: str) -> None:
        entry = self._present(text)
        if entry is not None:
            self.source = _without(self.source, entry, self._layout)

    def bring(self, text: str, chunk: str, texts_before: list[str]) -> None:
        known = entries.split(self.source, self._layout)
        if any(entry.plain == text for entry in known):
            return
        by_text = {entry.plain: entry for entry in known}
        place = next((by_text[name] for name in texts_before if name in by_text), None)
        self.source = _with(self.source, chunk, place, known, self._layout)

    def _present(self, text: str) -> Entry | None:
        """Return the entry that has a text now; one that was changed since stands in the way."""
        known = entries.split(self.source, self._layout)
        found = next((entry for entry in reversed(known) if entry.plain == text), None)
        if found is not None or text not in self._later:
            return found
        changed = next((e for e in reversed(known) if e.plain == self._later[text]), None)
        if changed is None or self._choice == "keep":
            return None
        if self._choice is None:
            self.in_the_way.append(changed.plain)
            return None
        return changed


def _without(source: str, entry: Entry, layout: Layout) -> str:
    """Return a text without an entry, its bullet and line end, or its delimiter."""
    rest = source[: entry.outer_start] + source[entry.outer_end :]
    if layout.delimiter is not None:
        return rest.removesuffix(layout.delimiter)
    return rest


def _with(source: str, chunk: str, place: Entry | None, known: list[Entry], layout: Layout) -> str:
    """Return a text with an entry after another one, or as the first."""
    if layout.delimiter is not None:
        texts = [entry.text for entry in known]
        at = 0 if place is None else known.index(place) + 1
        return layout.delimiter.join([*texts[:at], chunk, *texts[at:]])
    first = known[0].outer_start if known else len(source)
    at = first if place is None else place.outer_end
    start = source[:at]
    if start and not start.endswith("\n"):
        start += "\n"
    if not chunk.endswith("\n"):
        chunk += "\n"
    return start + chunk + source[at:]


def _raw(version: tracing.Version, item: tracing.Item) -> str:
    """Return an entry's text as the source has it, without bullet and line end."""
    entry = _entry(version, item)
    return version.source[entry.start : entry.end]


def _chunk(version: tracing.Version, item: tracing.Item) -> str:
    """Return an entry as the source has it, with its bullet and line end; no delimiter."""
    entry = _entry(version, item)
    if version.layout.delimiter is not None:
        return version.source[entry.start : entry.end]
    return version.source[entry.outer_start : entry.outer_end]


def _entry(version: tracing.Version, item: tracing.Item) -> Entry:
    known = entries.split(version.source, version.layout)
    return known[version.items.index(item)]


def _texts_before(version: tracing.Version, item: tracing.Item) -> list[str]:
    """Return the texts of the entries before one, the nearest first."""
    at = version.items.index(item)
    return [known.text for known in reversed(version.items[:at])]
