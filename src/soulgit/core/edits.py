"""Edits of a memory file: pure functions from its bytes to its new bytes.

An edit changes no byte outside its span, but for the white space at both ends of a file
that something is added to. Bytes that are no UTF-8 stay as they are.
"""

from __future__ import annotations

import codecs
import difflib
import re
import unicodedata
from dataclasses import dataclass

from soulgit.core import entries
from soulgit.core.entries import Entry
from soulgit.core.layout import Layout
from soulgit.errors import InvalidText, TextNotFound, UnsafeFile

_SURROGATE = re.compile("[\ud800-\udfff]")
_PREVIEW_WIDTH = 80
_CLOSEST_COUNT = 3
_COMPARED_LENGTH = 200
"""How much of an entry is compared with a missed text; the closest match is a courtesy."""


@dataclass(frozen=True)
class Edit:
    """What a memory file becomes, and notes that help whoever asked for it."""

    data: bytes
    notes: tuple[str, ...] = ()


def add(data: bytes, text: str, layout: Layout) -> Edit:
    """Append an entry; the white space at both ends of the file is put in order."""
    check_text(text, layout)
    if not text.strip():
        raise InvalidText("there is no text to add: it is all white space")
    current = _decode(data)
    notes = _notes_on_add(current, text, layout)
    if layout.delimiter is not None:
        kept = current.strip()
        added = _line_ends(current, text.strip())
        return Edit(_encode(kept + layout.delimiter * bool(kept) + added), notes)
    added = _line_ends(current, f"\n- {text}\n")
    changed = (current.rstrip() + added).lstrip()
    return Edit(_encode(changed), (*notes, *_notes_on_shape(text, layout)))


def replace(data: bytes, text: str, replacement: str, layout: Layout) -> Edit:
    """Put `replacement`, taken literally, for the first occurrence of `text`."""
    check_text(text, layout)
    if replacement:
        check_text(replacement, layout, what="the replacement")
    current = _decode(data)
    start, end = _find(current, text, layout)
    changed = current[:start] + _line_ends(current, replacement) + current[end:]
    return Edit(_encode(_tidy(current, changed, layout)), _notes_on_others(current, text, start))


def remove(data: bytes, text: str, layout: Layout) -> Edit:
    """Delete the first occurrence of `text`; a whole entry goes with its bullet and line end."""
    check_text(text, layout)
    current = _decode(data)
    start, end = _find(current, text, layout)
    notes = _notes_on_others(current, text, start)
    for entry in entries.split(current, layout):
        if (entry.start, entry.end) == (start, end):
            start, end = entry.outer_start, entry.outer_end
    return Edit(_encode(_tidy(current, current[:start] + current[end:], layout)), notes)


def check_text(text: str, layout: Layout, *, what: str = "the text") -> None:
    """Raise InvalidText for a text that no memory file of this layout can hold."""
    if not text:
        raise InvalidText(f"{what} is empty")
    if "\0" in text:
        raise InvalidText(f"{what} holds a NUL character", hint="leave the NUL out")
    if _SURROGATE.search(text):
        raise InvalidText(
            f"{what} holds half of a character (a lone surrogate)",
            hint="send the whole character, or leave it out",
        )
    sign = layout.delimiter and layout.delimiter.strip()
    if sign and any(line.strip() == sign for line in text.split("\n")):
        raise InvalidText(
            f"{what} holds a line {sign}, which parts entries in this home",
            hint=f"leave the line {sign} out, or add two memories",
        )


def _decode(data: bytes) -> str:
    if _is_utf16(data):
        raise UnsafeFile(
            "the memory file is UTF-16, which soulgit does not edit",
            hint="save it as UTF-8 in your editor, then try again",
        )
    return data.decode("utf-8", "surrogateescape")


def _is_utf16(data: bytes) -> bool:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return len(data) >= 4 and (not any(data[:64:2]) or not any(data[1:64:2]))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _line_ends(current: str, text: str) -> str:
    """Give a text the line ends of the file it goes into."""
    if not _has_crlf(current):
        return text
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _has_crlf(current: str) -> bool:
    crlf = current.count("\r\n")
    return crlf > 0 and crlf * 2 > current.count("\n")


def _find(current: str, text: str, layout: Layout) -> tuple[int, int]:
    """Return the span of the first occurrence; a line end finds CRLF too, and a line feed."""
    start = current.find(text)
    if start >= 0:
        return _within_entries(current, start, start + len(text), layout.delimiter)
    lines = text.replace("\r\n", "\n").split("\n")
    found = re.search("\r?\n".join(map(re.escape, lines)), current)
    if found is not None:
        return _within_entries(current, *found.span(), layout.delimiter)
    raise TextNotFound(f"not found: {text}", notes=_notes_on_miss(current, text, layout))


def _within_entries(current: str, start: int, end: int, delimiter: str | None) -> tuple[int, int]:
    """Draw a span back from a delimiter that it holds only a part of."""
    if delimiter is None:
        return start, end
    found = current.find(delimiter, max(0, start - len(delimiter) + 1))
    while 0 <= found < end:
        behind = found + len(delimiter)
        if found < start < behind <= end:
            start = behind
        elif start <= found and end < behind:
            end = found
        found = current.find(delimiter, behind)
    return start, end


def _tidy(before: str, after: str, layout: Layout) -> str:
    """Keep a Hermes file canonical, as its host wants it, where it was canonical before."""
    if layout.delimiter is None or _canonical(before, layout) != before.strip():
        return after
    return _canonical(after, layout)


def _canonical(source: str, layout: Layout) -> str:
    assert layout.delimiter is not None
    parts = (part.strip() for part in source.split(layout.delimiter))
    return layout.delimiter.join(part for part in parts if part)


def _notes_on_add(current: str, text: str, layout: Layout) -> tuple[str, ...]:
    notes = []
    # Splitting a long file costs as much as writing it, so it is done only where it can tell.
    is_there = text.strip().split("\n", 1)[0].rstrip("\r") in current
    if is_there and any(e.plain == text.strip() for e in entries.split(current, layout)):
        notes.append("the same entry is already there; it is now there twice")
    if layout.delimiter is None and (inside := entries.ends_open(current)):
        notes.append(f"the file ends inside a {inside} that is not closed; the entry is in it")
    return tuple(notes)


def _notes_on_shape(text: str, layout: Layout) -> tuple[str, ...]:
    """Tell of a text that would not be read back as the one memory it was meant to be."""
    read = entries.split(f"- {text}\n", layout)
    if [entry.text for entry in read] != [text.strip().replace("\r\n", "\n")]:
        return (
            f"the text is read back as {len(read)} entries or in part; indent its further lines "
            "by two spaces to keep it one",
        )
    return ()


def _notes_on_others(current: str, text: str, start: int) -> tuple[str, ...]:
    others = current.count(text) - 1
    if others < 1:
        return ()
    times = "once" if others == 1 else f"{others} times"
    return (f"the text occurs {times} more; changed was: {preview(_line_at(current, start))}",)


def _line_at(text: str, offset: int) -> str:
    end = text.find("\n", offset)
    return text[text.rfind("\n", 0, offset) + 1 : end if end >= 0 else len(text)]


def _notes_on_miss(current: str, text: str, layout: Layout) -> tuple[str, ...]:
    known = entries.split(current, layout)
    wanted = _fold(text)
    alike = [entry for entry in known if wanted and wanted in _fold(entry.plain)]
    if alike:
        note = "differs only in case, quotes, dashes, spaces or the form of accents: "
        return tuple(note + preview(entry.plain) for entry in alike[:_CLOSEST_COUNT])
    return tuple(f"closest: {preview(entry.plain)}" for entry in _closest(known, text))


def _closest(known: list[Entry], text: str) -> list[Entry]:
    matcher = difflib.SequenceMatcher(b=_fold(text[:_COMPARED_LENGTH]), autojunk=False)
    rated = []
    for entry in known:
        matcher.set_seq1(_fold(entry.plain[:_COMPARED_LENGTH]))
        if matcher.real_quick_ratio() > 0.5 and matcher.quick_ratio() > 0.5:
            rated.append((matcher.ratio(), entry))
    rated.sort(key=lambda pair: pair[0], reverse=True)
    return [entry for _, entry in rated[:_CLOSEST_COUNT]]


_FOLDED = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»", '"'),
        **dict.fromkeys("‘’‚‛`´", "'"),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)


def _fold(text: str) -> str:
    """Reduce a text to what a model keeps when it quotes from memory."""
    plain = unicodedata.normalize("NFKC", text).translate(_FOLDED).casefold()
    return " ".join(plain.replace("--", "-").split())


def preview(text: str, width: int = _PREVIEW_WIDTH) -> str:
    """Return the start of a text on one line, of at most `width` characters."""
    line = " ".join(_SURROGATE.sub("\ufffd", text).split())
    return line if len(line) <= width else line[: width - 1] + "…"
