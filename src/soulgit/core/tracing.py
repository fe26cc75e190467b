"""Entries followed from one version of a memory file to the one before it.

Histories are long and a commit changes little, so only the part of a file that differs is split
anew. The law that holds: a version that was reached step by step has the entries that
`entries.split` gives for its text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from soulgit.core import entries
from soulgit.core.layout import Layout

_LIKE = 0.5
"""From this share of common text on, what came where something went is its rewording."""

_COMPARED = 2_500
"""Not more pairs of texts than this are compared for likeness."""


@dataclass(eq=False)
class Item:
    """One entry as long as its text stays the same; two of the same text are two."""

    text: str


@dataclass
class Version:
    """One version of a memory file: its entries in order, and where each begins in the text."""

    source: str
    layout: Layout
    items: list[Item]
    starts: list[int]


@dataclass(frozen=True)
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


def before(
    after: Version, source: str, layout: Layout, is_paired: Callable[[], bool]
) -> tuple[Version, Change]:
    """Return the version before another, by its text, and what the other changed.

    Items that stay are the same objects in both. Where `is_paired` says so, what came is the
    rewording of what went, one for one and in order, as a replacement is; else texts must be
    alike. It is asked only where something came and something went.
    """
    if layout.delimiter is not None or layout != after.layout:
        known = read(source, layout)
        first, last = 0, len(after.items)
        texts, starts = [item.text for item in known.items], known.starts
    else:
        first, last, texts, starts = _split_anew(after, source)
    old, change = _follow(after.items[first:last], texts, is_paired)
    shift = len(source) - len(after.source)
    version = Version(
        source,
        layout,
        after.items[:first] + old + after.items[last:],
        after.starts[:first] + starts + [start + shift for start in after.starts[last:]],
    )
    return version, change


def compare(old: Version, new: Version) -> Change:
    """Return how one version differs from another, with items of their own."""
    return _follow(new.items, [item.text for item in old.items], lambda: False)[1]


def _split_anew(after: Version, source: str) -> tuple[int, int, list[str], list[int]]:
    """Return which entries another text does not share, from and to, and what it has instead."""
    same = _common_start(after.source, source)
    same_end = _common_end(after.source, source, same)
    first = max(bisect_right(after.starts, same) - 1, 0)
    while first > 0 and not _has_whole_line(after.source, after.starts[first], same):
        first -= 1
    is_shared = bool(after.starts) and _has_whole_line(after.source, after.starts[first], same)
    shift = len(source) - len(after.source)
    tail = bisect_left(after.starts, len(after.source) - same_end)
    texts: list[str] = []
    starts: list[int] = []
    for entry in entries.split_from(source, after.starts[first] if is_shared else 0):
        at = bisect_left(after.starts, entry.outer_start - shift, tail)
        if at < len(after.starts) and after.starts[at] == entry.outer_start - shift:
            return first if is_shared else 0, at, texts, starts
        texts.append(entry.plain)
        starts.append(entry.outer_start)
    return first if is_shared else 0, len(after.starts), texts, starts


def _has_whole_line(source: str, start: int, end: int) -> bool:
    """Whether the line that begins at `start` ends before `end`."""
    return 0 <= source.find("\n", start) < end


def _common_start(one: str, other: str) -> int:
    """Return how many characters two texts share at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, start: int) -> int:
    """Return how many characters two texts share at their end, behind what they share before."""
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _follow(
    new: Sequence[Item], texts: Sequence[str], is_paired: Callable[[], bool]
) -> tuple[list[Item], Change]:
    """Return the items that some texts are, those of `new` where they stayed, and the change."""
    staying: dict[str, deque[Item]] = defaultdict(deque)
    for item in new:
        staying[item.text].append(item)
    old = [staying[text].popleft() if staying[text] else Item(text) for text in texts]
    known = set(new)
    kept = known.intersection(old)
    added = [item for item in new if item not in kept]
    removed = [item for item in old if item not in known]
    pairs = list(_reworded(removed, added, is_paired)) if removed and added else []
    told = {item for pair in pairs for item in pair}
    return old, Change(
        [item for item in added if item not in told],
        [item for item in removed if item not in told],
        pairs,
    )


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
