"""How a memory file splits into entries.

An entry is one memory: a top-level list item with its continuation, a paragraph, a table
or a fence. Headings and rules are none. Entries are spans of the source, so that an edit
can leave every other byte alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from soulgit.core.composition import SEARED_MARKER
from soulgit.core.layout import Layout

_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|(?=\r?\n?\Z))")
_ORDERED_LATER = re.compile(r"[ \t]*(?!1[.)])\d")
_FENCE = re.compile(r"([ \t]*)(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})\r?\n?\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory: `source[start:end]` is its text, `source[outer_start:outer_end]` also
    its bullet and line end (in the Hermes layout, one delimiter).
    """

    text: str
    start: int
    end: int
    outer_start: int
    outer_end: int

    @property
    def plain(self) -> str:
        """Its text without the marker of a seared one."""
        return self.text.removesuffix(SEARED_MARKER).rstrip()

    @property
    def seared(self) -> bool:
        """Whether it never changes again."""
        return self.text.endswith(SEARED_MARKER)


def decode(data: bytes | None) -> str:
    """Return a memory file's text, each byte that is no UTF-8 kept; encode() gives it back."""
    return (data or b"").decode("utf-8", "surrogateescape")


def encode(source: str) -> bytes:
    """Return the bytes of a text that decode() gave."""
    return source.encode("utf-8", "surrogateescape")


def split(source: str, layout: Layout) -> list[Entry]:
    """Return the entries of a memory file, in order; line ends in their texts are LF."""
    if layout.delimiter is not None:
        return list(_split_delimited(source, layout.delimiter))
    return list(split_from(source, 0))


def _never(place: int) -> bool:
    return False


def split_from(source: str, start: int, ends: Callable[[int], bool] = _never) -> Iterator[Entry]:
    """Yield the entries of a plain memory file from a place on where a block may begin.

    They end before the block at whose place `ends` says so.
    """
    blocks = _blocks(source, start, ends)
    return (entry for block in blocks if (entry := _entry(source, *block)))


def ends_open(source: str) -> str | None:
    """Return "fence" or "comment" where a file ends inside one that is not closed."""
    if source.rfind("<!--") > source.rfind("-->"):
        return "comment"
    if "```" not in source and "~~~" not in source:
        return None
    fence = None
    for _, _, line in _lines(source):
        fence = _next_fence(fence, line)
    return None if fence is None else "fence"


def _lines(source: str, start: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield where each line begins and ends, and the line with its end."""
    for found in _LINE.finditer(source, start or (1 if source.startswith("\ufeff") else 0)):
        if text := found.group():
            yield found.start(), found.end(), text


def _next_fence(fence: str | None, line: str) -> str | None:
    """Return the fence that is open behind a line, given the one that was open before it."""
    found = _FENCE.match(line)
    if fence is None:
        return found.group(2) if found else None
    closes = found and found.group(2).startswith(fence) and not line[found.end() :].strip()
    return None if closes else fence


def _blocks(source: str, start: int, ends: Callable[[int], bool]) -> Iterator[tuple[int, int, int]]:
    """Yield outer start, text start and outer end of each block that may be an entry."""
    block: _Block | None = None
    for line_start, line_end, text in _lines(source, start):
        if block is not None and block.takes(text):
            block.extend(line_end, text)
            continue
        if block is not None:
            yield block.bounds()
        if ends(line_start):
            return
        block = _open(line_start, line_end, text)
    if block is not None:
        yield block.bounds()


def _open(start: int, end: int, text: str) -> _Block | None:
    if not text.strip() or _HEADING.match(text) or _RULE.match(text):
        return None
    return _Block(start, end, text, _ITEM.match(text))


class _Block:
    """A block that grows by the lines that belong to it."""

    __slots__ = ("after_blank", "end", "fence", "indent", "is_fence", "is_item", "outer_start",
                 "text_start")  # fmt: skip

    def __init__(self, start: int, end: int, text: str, item: re.Match[str] | None) -> None:
        self.outer_start = start
        self.end = end
        self.text_start = start + (item.end() if item else 0)
        self.is_item = item is not None
        self.indent = _width(item.group(1)) if item else 0
        self.after_blank = False
        self.fence = _next_fence(None, text[item.end() :] if item else text)
        self.is_fence = self.fence is not None and not self.is_item

    def bounds(self) -> tuple[int, int, int]:
        return self.outer_start, self.text_start, self.end

    def takes(self, text: str) -> bool:
        """Whether the next line belongs to this block."""
        if self.fence is not None:
            return self.is_fence or not text.strip() or self._nests(text)
        if self.is_fence:
            return False
        if not text.strip():
            return self.is_item
        if self._nests(text):
            return True
        if self.after_blank or _HEADING.match(text) or _RULE.match(text) or _FENCE.match(text):
            return False
        item = _ITEM.match(text)
        return item is None or (not self.is_item and _continues_paragraph(text, item))

    def _nests(self, text: str) -> bool:
        return self.is_item and _width(text) >= self.indent + 2

    def extend(self, end: int, text: str) -> None:
        """Take a line: blank ones count only once a line of this block follows them."""
        self.fence = _next_fence(self.fence, text)
        if self.fence is None and not text.strip():
            self.after_blank = True
            return
        self.after_blank = False
        self.end = end


def _continues_paragraph(text: str, item: re.Match[str]) -> bool:
    """Whether a line that looks like an item is prose: "2024. we moved", or a lone sign."""
    return bool(_ORDERED_LATER.match(text)) or not text[item.end() :].strip()


def _width(text: str) -> int:
    if not text.startswith((" ", "\t")):
        return 0
    blank = text[: len(text) - len(text.lstrip(" \t"))]
    return len(blank.expandtabs(4))


def _entry(source: str, outer_start: int, start: int, outer_end: int) -> Entry | None:
    text = source[start:outer_end].strip()
    if not text:
        return None
    start = source.index(text, start)
    return Entry(text.replace("\r\n", "\n"), start, start + len(text), outer_start, outer_end)


def _split_delimited(source: str, delimiter: str) -> Iterator[Entry]:
    position = 0
    while position <= len(source):
        found = source.find(delimiter, position)
        end = len(source) if found < 0 else found
        outer_end = len(source) if found < 0 else found + len(delimiter)
        text = source[position:end].strip()
        if text:
            start = source.index(text, position)
            is_last = found < 0 and position > 0
            outer_start = position - len(delimiter) if is_last else position
            yield Entry(
                text.replace("\r\n", "\n"), start, start + len(text), outer_start, outer_end
            )
        if found < 0:
            return
        position = outer_end
