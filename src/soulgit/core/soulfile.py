"""The soul file: TOML frontmatter, comments, and what of it a model may see.

Nothing here raises on any text, and nothing of frontmatter or a comment reaches the
text that is shown; where a file is broken, more is hidden rather than less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_FENCE = re.compile(r"^\+\+\+[ \t]*\r?$", re.MULTILINE)
_OPENING = re.compile(r"(?:[^\S\n]*\n)*\+\+\+[ \t]*\r?(?:\n|\Z)")
_MULTILINE_QUOTE = re.compile(r"'''|\"\"\"")
_MAX_CLOSING_TRIES = 100
"""A bound on the work that a hostile file can cause; past it the last `+++` line closes."""


@dataclass(frozen=True)
class Frontmatter:
    """The frontmatter of a soul file: `text[start:end]` lies between the two fences."""

    start: int
    end: int
    body_start: int
    fault: str | None = None

    @property
    def unterminated(self) -> bool:
        """Whether no line closes it, so that it hides the whole file."""
        return self.fault == UNTERMINATED


UNTERMINATED = "the frontmatter is not closed by a `+++` line"


@lru_cache(maxsize=16)
def find_frontmatter(text: str) -> Frontmatter | None:
    """Find the frontmatter at the start of a text, the byte-order mark gone.

    It closes at the first `+++` line that makes the text between parse as TOML, else at
    the last one; with no closing line it reaches to the end.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return None
    start = opening.end()
    closings = list(_FENCE.finditer(text, start))
    if not closings:
        return Frontmatter(start, len(text), len(text), UNTERMINATED)
    fault = None
    for closing in _viable(text, closings):
        fault = _toml_fault(text[start : closing.start()])
        if fault is None:
            return _closed(text, start, closing)
        if "end of document" not in fault:
            break  # an error before the end stays, however far the text goes on
    return _closed(text, start, closings[-1], fault)


def frontmatter_values(text: str) -> dict[str, Any]:
    """Return the keys of a text's frontmatter; none where it is absent or broken."""
    return dict(_frontmatter_values(text))


@lru_cache(maxsize=32)
def _frontmatter_values(text: str) -> dict[str, Any]:
    found = find_frontmatter(text)
    if found is None or found.fault is not None:
        return {}
    import tomllib  # what has no frontmatter is spared it

    return tomllib.loads(_toml_text(text[found.start : found.end]))


def strip_frontmatter(text: str) -> str:
    """Return what follows the frontmatter, or the text where there is none."""
    found = find_frontmatter(text)
    return text if found is None else text[found.body_start :]


def strip_comments(text: str) -> str:
    """Return a text without comments.

    A comment runs from `<!--` to the next `-->`, wherever it stands; one that fills its
    lines takes those lines with it; one that is not closed hides the rest.
    """
    kept, position = [], 0
    for first, last, comments in _comment_lines(text):
        kept.append(text[position:first])
        outside = _outside(text, first, last, comments)
        if outside.strip():
            kept.append(outside)
        position = last
    kept.append(text[position:])
    return "".join(kept)


def unclosed_comment(text: str) -> int | None:
    """Return the offset of a comment that is never closed, if there is one."""
    return next((start for start, _, closed in _comments(text) if not closed), None)


def _viable(text: str, closings: list[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Yield the `+++` lines that can close the frontmatter.

    A `+++` line is TOML only within a multi-line string, so after one that failed the
    next to try is the first behind a further triple quote.
    """
    quote_from, tries = 0, 0
    for closing in closings:
        if closing.start() < quote_from:
            continue
        if tries == _MAX_CLOSING_TRIES:
            return
        tries += 1
        yield closing
        quote = _MULTILINE_QUOTE.search(text, closing.end())
        if quote is None:
            return
        quote_from = quote.end()


def _closed(text: str, start: int, closing: re.Match[str], fault: str | None = None) -> Frontmatter:
    body_start = closing.end()
    if text.startswith("\n", body_start):
        body_start += 1
    return Frontmatter(start, closing.start(), body_start, fault)


def _toml_text(text: str) -> str:
    return text.replace("\r\n", "\n")


def _toml_fault(text: str) -> str | None:
    import tomllib

    try:
        tomllib.loads(_toml_text(text))
    except (ValueError, RecursionError) as fault:
        return str(fault)
    return None


def _comments(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start, end and whether it is closed, of each comment."""
    start = text.find("<!--")
    while start >= 0:
        close = text.find("-->", start + 4)
        if close < 0:
            yield start, len(text), False
            return
        yield start, close + 3, True
        start = text.find("<!--", close + 3)


def _comment_lines(text: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Yield each run of whole lines that comments touch, with the comments in it."""
    first, last = 0, 0
    comments: list[tuple[int, int]] = []
    for start, end, _ in _comments(text):
        if comments and start >= last:
            yield first, last, comments
            comments = []
        if not comments:
            first = text.rfind("\n", 0, start) + 1
        comments.append((start, end))
        line_end = text.find("\n", end)
        last = len(text) if line_end < 0 else line_end + 1
    if comments:
        yield first, last, comments


def _outside(text: str, first: int, last: int, comments: list[tuple[int, int]]) -> str:
    kept, position = [], first
    for start, end in comments:
        kept.append(text[position:start])
        position = end
    kept.append(text[position:last])
    return "".join(kept)
