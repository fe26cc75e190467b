"""What a change of a memory file was, taken back in the file as it is now, by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


@dataclass(frozen=True)
class Text:
    """A memory file's text in a layout."""

    source: str
    layout: Layout


def take_back(
    now: Text,
    before: Text,
    after: Text,
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
    if now == after and now.layout == before.layout:
        return Undone(before.source)
    new = tracing.read(after.source, after.layout)
    old, change = tracing.before(new, before.source, before.layout, is_paired)
    work = _Work(now, later, choice)
    for was, became in change.reworded:
        work.reword(became.text, _Place(old, was))
    for item in reversed(change.added):
        work.drop(item.text)
    for item in change.removed:
        work.bring(_Place(old, item))
    return Undone(work.source, work.in_the_way)


def bring(now: Text, origin: Text, text: str) -> str:
    """Bring an entry back as `origin` has it, in its place, where the text `now` lacks it."""
    old = tracing.read(origin.source, origin.layout)
    item = next(item for item in old.items if item.text == text)
    work = _Work(now, {}, None)
    work.bring(_Place(old, item))
    return work.source


def written(texts: Iterable[str], layout: Layout) -> str:
    """Return a memory file of some entries, as it is written in a layout."""
    if layout.delimiter is not None:
        return layout.delimiter.join(texts)
    return "".join(_item(text) for text in texts)


def _item(text: str) -> str:
    return "- " + text.replace("\n", "\n  ") + "\n"


class _Place:
    """An entry of an older version: its text, how it was written there, and what was before it."""

    def __init__(self, version: tracing.Version, item: tracing.Item) -> None:
        known = entries.split(version.source, version.layout)
        at = version.items.index(item)
        entry = known[at]
        before = version.items[:at]
        is_plain = version.layout.delimiter is None
        self.layout = version.layout
        self.text = item.text
        self.raw = version.source[entry.start : entry.end]
        self.chunk = version.source[entry.outer_start : entry.outer_end] if is_plain else self.raw
        self.count = sum(other.text == item.text for other in version.items)
        start = known[at - 1].outer_end if at else 0
        self.is_parted = version.source[: entry.outer_start].endswith("\n\n")
        self.heading = version.source[start : entry.outer_start].strip() if is_plain else ""
        """What stands between it and the entry before it."""

        self.neighbours = [
            (other.text, sum(twin.text == other.text for twin in before[: place + 1]))
            for place, other in reversed(list(enumerate(before)))
        ]
        """The entries before it, the nearest first, each with which one of its text it is."""


class _Work:
    """A memory file under change: one entry after the other is taken back in it."""

    def __init__(self, now: Text, later: Mapping[str, str], choice: Choice | None) -> None:
        self.source = now.source
        self.in_the_way: list[str] = []
        self._layout = now.layout
        self._later = later
        self._choice = choice

    def reword(self, text: str, place: _Place) -> None:
        known = self._known()
        if self._last(known, text) is None and self._last(known, place.text) is not None:
            return  # it was taken back before
        entry = self._present(text)
        if entry is not None:
            self._put(entry, place)

    def drop(self, text: str) -> None:
        entry = self._present(text)
        if entry is None:
            return
        known = self._known()
        wanted = [other.plain for other in known if other is not entry and other != entry]
        rest = _without(self.source, entry, self._layout)
        parted = self.source[: entry.outer_start] + "\n" + self.source[entry.outer_end :]
        self.source = self._as_wanted([rest, parted], wanted)

    def bring(self, place: _Place) -> None:
        known = self._known()
        if sum(entry.plain == place.text for entry in known) >= place.count:
            return
        if place.text in self._later and self._last(known, place.text) is None:
            changed = self._changed(known, place.text)
            if changed is not None:
                self._put(changed, place)
            if changed is not None or self._last(known, self._later[place.text]) is not None:
                return
        self._insert(place, known)

    def _put(self, entry: Entry, place: _Place) -> None:
        """Give an entry the words of another."""
        words = place.raw if place.layout == self._layout else place.text
        self.source = self.source[: entry.start] + words + self.source[entry.end :]

    def _insert(self, place: _Place, known: list[Entry]) -> None:
        neighbour = self._neighbour(place, known)
        at = 0 if neighbour is None else known.index(neighbour) + 1
        wanted = [entry.plain for entry in known]
        wanted.insert(at, place.text)
        if self._layout.delimiter is not None:
            words = place.raw if place.layout == self._layout else place.text
            self.source = _with_delimiter(self.source, words, at, known, self._layout.delimiter)
            return
        chunk = place.chunk if place.layout == self._layout else _item(place.text)
        ways = [
            _with(self.source, gap + chunk + end, position)
            for position in self._positions(place, at, known)
            for gap in self._gaps(place, position)
            for end in ("", "\n")
        ]
        self.source = self._as_wanted(ways, wanted)

    def _positions(self, place: _Place, at: int, known: list[Entry]) -> list[int]:
        """Return where an entry may go, the best first: behind its heading, else its neighbour."""
        start = known[at - 1].outer_end if at else 0
        end = known[at].outer_start if at < len(known) else len(self.source)
        found = self.source.find(place.heading, start, end) if place.heading else -1
        behind = [] if found < 0 else [_past_blank(self.source, found + len(place.heading), end)]
        return [*behind, *([start] if at or not known else []), end, start]

    def _gaps(self, place: _Place, position: int) -> tuple[str, str]:
        """Return what may go before an entry, the best first: a blank line where it had one."""
        is_parted = self.source[:position].endswith("\n\n")
        return ("\n", "") if place.is_parted and position and not is_parted else ("", "\n")

    def _as_wanted(self, ways: list[str], wanted: list[str]) -> str:
        """Return the first of some texts that has just the entries wanted, else the first."""
        for way in ways:
            if [entry.plain for entry in entries.split(way, self._layout)] == wanted:
                return way
        return ways[0]

    def _neighbour(self, place: _Place, known: list[Entry]) -> Entry | None:
        """Return the nearest entry before a place that is still there, in its words of now."""
        for text, which in place.neighbours:
            for words in (text, self._later.get(text, text)):
                same = [entry for entry in known if entry.plain == words]
                if same:
                    return same[min(which, len(same)) - 1]
        return None

    def _present(self, text: str) -> Entry | None:
        """Return the entry that has a text now; one that was changed since stands in the way."""
        known = self._known()
        return self._last(known, text) or self._changed(known, text)

    def _changed(self, known: list[Entry], text: str) -> Entry | None:
        """Return what an entry has become, where it is to be taken back all the same."""
        changed = self._last(known, self._later[text]) if text in self._later else None
        if changed is not None and self._choice is None:
            self.in_the_way.append(changed.plain)
        return changed if self._choice == "drop" else None

    def _known(self) -> list[Entry]:
        return entries.split(self.source, self._layout)

    @staticmethod
    def _last(known: list[Entry], text: str) -> Entry | None:
        return next((entry for entry in reversed(known) if entry.plain == text), None)


def _without(source: str, entry: Entry, layout: Layout) -> str:
    """Return a text without an entry, its bullet and line end, or its delimiter."""
    rest = source[: entry.outer_start] + source[entry.outer_end :]
    return rest if layout.delimiter is None else rest.removesuffix(layout.delimiter)


def _with(source: str, chunk: str, at: int) -> str:
    """Return a text with lines put in at a place between lines."""
    start = source[:at]
    if start and not start.endswith("\n"):
        start += "\n"
    return start + (chunk if chunk.endswith("\n") else chunk + "\n") + source[at:]


def _with_delimiter(source: str, words: str, at: int, known: list[Entry], delimiter: str) -> str:
    """Return a text with an entry put in as the one at a place, every other byte as it is."""
    if not known:
        return words
    if at == 0:
        return source[: known[0].start] + words + delimiter + source[known[0].start :]
    end = known[at - 1].end
    return source[:end] + delimiter + words + source[end:]


def _past_blank(source: str, at: int, end: int) -> int:
    """Return where the next line begins that is not blank, but not a place behind `end`."""
    rest = source[at:end]
    blank = rest[: len(rest) - len(rest.lstrip())]
    return at + blank.rfind("\n") + 1 if "\n" in blank else end
