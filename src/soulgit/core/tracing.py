"""Entries followed from one version of a memory file to the one before it.

Histories are long and a commit changes little, so only the part of a file that differs is split
anew. The law that holds: a version that was reached step by step has the entries that
`entries.split` gives for its text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from soulgit.core import entries
from soulgit.core.composition import SEARED_MARKER
from soulgit.core.layout import Layout

_LIKE = 0.5
"""From this share of common text on, what came where something went is its rewording."""

_COMPARED = 2_500
"""Not more pairs of texts than this are compared for likeness."""


@dataclass(eq=False, slots=True)
class Item:
    """One entry as long as its text stays the same; two of the same text are two."""

    text: str


@dataclass(slots=True)
class Version:
    """One version of a memory file: its entries in order, and where each begins in the text."""

    source: str
    layout: Layout
    items: list[Item]
    starts: list[int]


@dataclass(frozen=True, slots=True)
class Change:
    """What one version did to the one before: items that came, went, or were reworded."""

    added: list[Item] = field(default_factory=list)
    removed: list[Item] = field(default_factory=list)
    reworded: list[tuple[Item, Item]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether anything came, went or was reworded."""
        return bool(self.added or self.removed or self.reworded)

    @property
    def new(self) -> list[Item]:
        """The items whose text was not there before."""
        return [*self.added, *(item for _, item in self.reworded)]


def read(source: str, layout: Layout) -> Version:
    """Return a version, split as a whole."""
    found = entries.split(source, layout)
    items = [Item(entry.plain) for entry in found]
    return Version(source, layout, items, [entry.outer_start for entry in found])


def seared(version: Version) -> list[bool]:
    """Return which entries of a version are marked as never to change again."""
    if SEARED_MARKER not in version.source:  # most files have none, and splitting costs
        return [False] * len(version.items)
    return [entry.seared for entry in entries.split(version.source, version.layout)]


def before(
    after: Version, source: str, layout: Layout, is_paired: Callable[[], bool]
) -> tuple[Version, Change]:
    """Return the version before another, by its text, and what the other changed, as go_back()."""
    version = copy(after)
    return version, go_back(version, source, layout, is_paired)


def copy(version: Version) -> Version:
    """Return the same version with lists of its own; the items are the same objects."""
    return replace(version, items=list(version.items), starts=list(version.starts))


def go_back(version: Version, source: str, layout: Layout, is_paired: Callable[[], bool]) -> Change:
    """Make a version the one before it, by its text, and return what it had changed.

    Items that stay are the same objects in both. Where `is_paired` says so, what came is the
    rewording of what went, one for one and in order, as a replacement is; else texts must be
    alike. It is asked only where something came and something went.
    """
    if layout.delimiter is not None or layout != version.layout:
        known = read(source, layout)
        first, last = 0, len(version.items)
        texts, starts = [item.text for item in known.items], known.starts
    else:
        first, last, texts, starts = _split_anew(version, source)
    old, change = _follow(version.items[first:last], texts, is_paired)
    version.items[first:last] = old
    version.starts[first:last] = starts
    _move(version.starts, first + len(starts), len(source) - len(version.source))
    version.source, version.layout = source, layout
    return change


def _move(starts: list[int], first: int, shift: int) -> None:
    starts[first:] = [start + shift for start in starts[first:]]


def compare(old: Version, new: Version) -> Change:
    """Return how one version differs from another, with items of their own."""
    return _follow(new.items, [item.text for item in old.items], lambda: False)[1]


def _split_anew(after: Version, source: str) -> tuple[int, int, list[str], list[int]]:
    """Return which entries another text does not share, from and to, and what it has instead."""
    same = _common_start(after.source, source)
    first, start = _shared(after, source, same)
    if start == len(source):  # it is all in the other, as before an entry was added
        return first, len(after.starts), [], []
    same_end = _common_end(after.source, source, start)
    shift = len(source) - len(after.source)
    tail = bisect_left(after.starts, len(after.source) - same_end)
    last = len(after.starts)

    def is_known(place: int) -> bool:
        nonlocal last
        at = bisect_left(after.starts, place - shift, tail)
        if at == len(after.starts) or after.starts[at] != place - shift:
            return False
        last = at
        return True

    found = list(entries.split_from(source, start, is_known))
    texts, starts = [entry.plain for entry in found], [entry.outer_start for entry in found]
    # What could be counted to either end is compared too, so that of two alike the first stays.
    same_end = min(same_end, len(after.source) - same, len(source) - same)
    until = max(last, bisect_left(after.starts, len(after.source) - same_end))
    texts += [item.text for item in after.items[last:until]]
    starts += [place + shift for place in after.starts[last:until]]
    return first, until, texts, starts


def _shared(after: Version, source: str, same: int) -> tuple[int, int]:
    """Return how many entries another text shares in front, and where to split it from."""
    line = source.rfind("\n", 0, same) + 1
    first = bisect_left(after.starts, line)
    if _begins_entry(after, first, line) and _parts(after, first, source, line):
        return first, line
    first = max(bisect_right(after.starts, same) - 1, 0)
    while first > 0 and not _has_whole_line(after.source, after.starts[first], same):
        first -= 1
    if after.starts and _has_whole_line(after.source, after.starts[first], same):
        return first, after.starts[first]
    return 0, 0


def _begins_entry(after: Version, first: int, line: int) -> bool:
    """Whether a line is where an entry begins, or the end of all."""
    return line == (after.starts[first] if first < len(after.starts) else len(after.source))


def _parts(after: Version, first: int, source: str, line: int) -> bool:
    """Whether the entries before a line of another text end there, for it begins with a bullet.

    Only a fence would take such a line in, and what begins with a bullet itself is none.
    """
    if line == len(source):
        return True
    is_behind_bullet = first == 0 or source.startswith("- ", after.starts[first - 1])
    return is_behind_bullet and source.startswith("- ", line)


def _has_whole_line(source: str, start: int, end: int) -> bool:
    """Whether the line that begins at `start` ends before `end`."""
    return 0 <= source.find("\n", start) < end


def _common_start(one: str, other: str) -> int:
    """Return how many characters two texts share at their beginning."""
    if one.startswith(other):  # something was only added at the end
        return len(other)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, start: int) -> int:
    """Return how many characters two texts share at their end, behind what they share before."""
    low, high = 0, min(len(one), len(other)) - start
    if one.endswith(other[len(other) - high :]):  # something was only taken out or put in
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one.endswith(other[len(other) - middle : len(other) - low], 0, len(one) - low):
            low = middle
        else:
            high = middle - 1
    return low


def _follow(
    new: Sequence[Item], texts: Sequence[str], is_paired: Callable[[], bool]
) -> tuple[list[Item], Change]:
    """Return the items that some texts are, those of `new` where they stayed, and the change."""
    if not texts:
        return [], Change(added=list(new))
    staying: dict[str, list[Item]] = {}
    for item in reversed(new):
        staying.setdefault(item.text, []).append(item)
    old, removed = [], []
    for text in texts:
        if left := staying.get(text):
            old.append(left.pop())
        else:
            old.append(Item(text))
            removed.append(old[-1])
    came = {item for left in staying.values() for item in left}
    added = [item for item in new if item in came]
    pairs = list(_reworded(removed, added, is_paired)) if removed and added else []
    if pairs:
        told = {item for pair in pairs for item in pair}
        added = [item for item in added if item not in told]
        removed = [item for item in removed if item not in told]
    return old, Change(added, removed, pairs)


def _reworded(
    removed: Sequence[Item], added: Sequence[Item], is_paired: Callable[[], bool]
) -> Iterator[tuple[Item, Item]]:
    if len(removed) == len(added) and is_paired():
        yield from zip(removed, added, strict=True)
    elif len(removed) * len(added) <= _COMPARED:
        yield from _alike(removed, added)


def _alike(removed: Sequence[Item], added: Sequence[Item]) -> Iterator[tuple[Item, Item]]:
    """Yield the pairs that are most alike, each item once."""
    from difflib import SequenceMatcher

    found = []
    for place, new in enumerate(added):
        matcher = SequenceMatcher(None, b=new.text, autojunk=False)
        for other, old in enumerate(removed):
            matcher.set_seq1(old.text)
            if matcher.real_quick_ratio() >= _LIKE and matcher.quick_ratio() >= _LIKE:
                found.append((-matcher.ratio(), other, place))
    used: set[tuple[str, int]] = set()
    for unlike, other, place in sorted(found):
        if -unlike >= _LIKE and not used & {("old", other), ("new", place)}:
            used |= {("old", other), ("new", place)}
            yield removed[other], added[place]
