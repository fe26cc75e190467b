"""Memories merged by entry: nothing is lost, and no conflict marker is ever written.

The laws: merge(b, b, x) = x, merge(b, x, b) = x, merge(b, x, x) = x, and an entry that
one side has and the base has not is in the result.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from soulgit.core import entries
from soulgit.core.layout import Layout


@dataclass(frozen=True)
class Merged:
    """A merged memory file, and the entries that were kept twice or against a deletion."""

    data: bytes
    kept_twice: tuple[str, ...] = ()


def merge(base: bytes, ours: bytes, theirs: bytes, layout: Layout) -> Merged:
    """Merge two descendants of a memory file by entry.

    An entry changed on both sides is kept twice, ours first; one that was deleted on one
    side and changed on the other is kept. Both are reported.
    """
    if ours in (base, theirs):
        return Merged(theirs)
    if theirs == base:
        return Merged(ours)
    sources = [_decoded(data) for data in (base, ours, theirs)]
    parts = [_tokens(source, layout) for source in sources]
    merged, twice = _merge_tokens(*parts)
    left = _left_out(parts[0], parts[1], parts[2], merged)
    text = _joined(merged + left, layout, sources[1] or sources[2])
    if not any(source.endswith("\n") for source in sources[1:]):
        text = _without_end(text)
    return Merged(text.encode("utf-8", "surrogateescape"), tuple(_shown(twice + left)))


def _left_out(base: list[str], ours: list[str], theirs: list[str], merged: list[str]) -> list[str]:
    """Return what must be in the result and is not: what both sides have, or one side alone has."""
    had, one, other, has = (Counter(tokens) for tokens in (base, ours, theirs, merged))
    wanted = (one & other) | (one - had) | (other - had)
    return [token for token in (wanted - has).elements() if token.strip()]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _tokens(source: str, layout: Layout) -> list[str]:
    """Split a memory file into entries and what stands between them, without last line ends."""
    if layout.delimiter is not None:
        return [part.strip() for part in source.split(layout.delimiter) if part.strip()]
    tokens, position = [], 0
    for entry in entries.split(source, layout):
        tokens += [
            source[position : entry.outer_start],
            source[entry.outer_start : entry.outer_end],
        ]
        position = entry.outer_end
    tokens.append(source[position:])
    return [_without_end(token) for token in tokens if token]


def _without_end(token: str) -> str:
    return token.removesuffix("\n").removesuffix("\r")


def _joined(tokens: Sequence[str], layout: Layout, like: str) -> str:
    """Join tokens as a file of the layout, with the line ends of one of the sides."""
    if layout.delimiter is not None:
        return layout.delimiter.join(tokens)
    end = "\r\n" if "\r\n" in like else "\n"
    text = "".join(token + end for token in tokens)
    if _entries(text, layout) >= _entries_of(tokens, layout):
        return text
    # Side by side some would run into one; a blank line keeps them apart.
    apart = [token if number == 0 else token.lstrip(" \t") for number, token in enumerate(tokens)]
    return end.join(_closed(token) + end for token in apart)


def _entries(text: str, layout: Layout) -> Counter[str]:
    return Counter(entry.text for entry in entries.split(text, layout))


def _entries_of(tokens: Sequence[str], layout: Layout) -> Counter[str]:
    return sum((_entries(token, layout) for token in tokens), Counter[str]())


def _closed(token: str) -> str:
    """Return a token with a fence closed that would swallow the next."""
    if entries.ends_open(token) != "fence":
        return token
    lines = reversed(token.splitlines())
    sign = next(line.lstrip()[:3] for line in lines if line.lstrip()[:3] in ("```", "~~~"))
    return f"{token}\n{sign}"


def _merge_tokens(
    base: list[str], ours: list[str], theirs: list[str]
) -> tuple[list[str], list[str]]:
    """Merge three token lists region by region, between tokens that all three have."""
    to_ours, to_theirs = _matches(base, ours), _matches(base, theirs)
    merged: list[str] = []
    twice: list[str] = []
    b = o = t = 0
    for anchor in [*(i for i in range(len(base)) if i in to_ours and i in to_theirs), None]:
        b_end, o_end, t_end = (
            (len(base), len(ours), len(theirs))
            if anchor is None
            else (anchor, to_ours[anchor], to_theirs[anchor])
        )
        region, kept = _merge_region(base[b:b_end], ours[o:o_end], theirs[t:t_end])
        merged += region
        twice += kept
        if anchor is not None:
            merged.append(base[anchor])
            b, o, t = b_end + 1, o_end + 1, t_end + 1
    return merged, twice


def _merge_region(
    base: list[str], ours: list[str], theirs: list[str]
) -> tuple[list[str], list[str]]:
    if ours in (base, theirs):
        return theirs, []
    if theirs == base:
        return ours, []
    if len(theirs) == len(base):
        return _follow(base, ours, theirs, rewritten_first=False)
    if len(ours) == len(base):
        return _follow(base, theirs, ours, rewritten_first=True)
    added = [token for token in theirs if token not in ours and token not in base]
    return [*ours, *added], added if base else []


def _follow(
    base: list[str], edited: list[str], rewritten: list[str], *, rewritten_first: bool
) -> tuple[list[str], list[str]]:
    """Merge an edited region with one in which each token is the rewriting of the base's."""
    to_edited = _matches(base, edited)
    merged: list[str] = []
    twice: list[str] = []
    position = 0
    waiting: list[str] = []

    def flush(until: int) -> None:
        nonlocal position
        between = edited[position:until]
        both = [waiting, between] if rewritten_first else [between, waiting]
        merged.extend([*both[0], *(token for token in both[1] if token not in both[0])])
        waiting.clear()
        position = until

    for index, token in enumerate(base):
        if index in to_edited:
            flush(to_edited[index])
            merged.append(rewritten[index])
            position += 1
        elif rewritten[index] != token:
            waiting.append(rewritten[index])
            twice.append(rewritten[index])
    flush(len(edited))
    return merged, twice


def _matches(base: list[str], other: list[str]) -> dict[int, int]:
    """Return which token of the other list each unchanged token of the base is."""
    blocks = difflib.SequenceMatcher(a=base, b=other, autojunk=False).get_matching_blocks()
    return {block.a + i: block.b + i for block in blocks for i in range(block.size)}


def _shown(tokens: Sequence[str]) -> list[str]:
    return [" ".join(token.split()) for token in tokens if token.strip()]
