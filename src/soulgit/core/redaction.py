"""A text that must not exist, found in whatever form it stands, and a mark put in its place.

The text is found letter for letter in either Unicode form, with any run of blanks or one
line break where it has blanks, and with invisible characters within it passed over: so it
is found in a file with CRLF, in a record's indented body and in a subject on one line. Of
several lines each gets a mark of its own, so that headings, items and quotes stay what
they are.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cached_property

from soulgit.core import soulfile
from soulgit.core.composition import SEARED_MARKER
from soulgit.core.layout import BOOTSTRAP_ORDER, HERMES
from soulgit.core.record import ACTIONS, columns
from soulgit.errors import InvalidText

MARK = "[redacted]"
"""What stands where the text stood."""

_LEAST_COLUMNS = 4
_MOST_CUT = 72
"""No subject, and so nothing that is cut, is longer."""

_INVISIBLE = "[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]*"
_BLANK = r"[^\S\n]|[\x00-\x08\x0e-\x1f\x7f-\x9f]"
_GAP = rf"(?:(?:{_BLANK})+(?:\n(?:{_BLANK})*)?|\n(?:{_BLANK})*)"
_LINE_BREAK = re.compile(rf"((?:{_BLANK})*\n(?:{_BLANK})*)")
_WORD = re.compile(r"\s+|\S")
_HEX = re.compile(r"[0-9a-f]{1,11}")
_ID = re.compile(r"((?<![0-9A-Za-z])(?:[0-9a-f]{12}|[0-9a-f]{40}|[0-9a-f]{64})(?![0-9A-Za-z]))")
_SURROGATE = re.compile("[\ud800-\udfff]")

_SIGNS = re.compile(
    r"<!--|-->|```|~~~|^\+\+\+|^[ \t]*§[ \t]*$|^(?:[-*+]|\d{1,9}[.)])[ \t]|^#{1,6}[ \t]"
    r"|\n[ \t]*\n",
    re.MULTILINE,
)
"""What gives a Markdown file its structure, which must stay when the text goes."""

_OWN_WORDS = (
    *BOOTSTRAP_ORDER,
    HERMES.memory_directory,
    *(f"Soul-Action: {action} Soul-Target: self user" for action in ACTIONS),
    *(f"Soul-{key}: " for key in ("Persona", "Number", "Origin", "Source", "Session", "Composed")),
    *(f"Soul-{key}: " for key in ("Model", "Reason", "Forked-From", "Archived")),
    *(f'memory(self): {verb} "" with ""' for verb in ("add", "replace", "remove", "sear")),
    *(f"capture: {verb} MEMORY.md" for verb in ("added", "changed", "deleted", "staged")),
    "persona: edit SOUL.md by hand, persona/1: SOUL.md edited",
    "persona: settle what came by git, settle: continue as persona/1",
    "settle: update to persona/1, settle: discard the persona edit, settle: fork",
    "persona/1: reread entries 1 to 2 of 3, memory(user): unsear",
    "undo: redo: restore: a memory of MEMORY.md from, init: begin a home, init: adopt",
    "freeze: memory stands still, thaw: memory goes on, fork: of main",
    "unknown <unknown@soulgit.invalid> companion, refs/heads/persona/1, refs/soulgit/redactions",
    "tool hand none, tree parent author committer encoding object type commit tag tagger",
    SEARED_MARKER,
)
"""Words that soulgit and git write themselves, and would write again."""


IsId = Callable[[str], bool]
"""Whether a word of hex digits is the id of an object, or a digest."""


class Redactor:
    """Finds one text and puts the mark in its place; doing it again changes nothing.

    Raises InvalidText for a text that cannot be taken out everywhere.
    """

    def __init__(self, text: str) -> None:
        self._text = re.sub(_INVISIBLE, "", text).strip()
        _refuse(text, self._text)
        plain = unicodedata.normalize("NFC", self._text)
        self._parts = [_part(word) for word in _WORD.findall(plain)]
        forms = [_INVISIBLE.join(self._parts)]
        if self._text not in (plain, unicodedata.normalize("NFD", self._text)):
            forms.append(_INVISIBLE.join(map(_as_given, _WORD.findall(self._text))))
        self._pattern = re.compile("|".join(forms))
        runs = re.findall(r"[!-~]+", plain) if plain.isascii() else []
        self._sure = max(runs, key=len, default="").encode()
        """What ASCII data that holds the text holds for sure."""

        self.is_hex = _HEX.fullmatch(plain) is not None
        """Whether it may stand in ids and digests by chance, which therefore are passed over."""

        if any(map(self.finds, _OWN_WORDS)) or self.finds(MARK):
            raise InvalidText(
                "soulgit itself writes this word in every record, so it cannot be taken out",
                hint="give more of the text, with the words around it",
            )

    def finds(self, text: str) -> bool:
        """Whether a text holds it."""
        return self._pattern.search(text) is not None

    def text(self, text: str, mark: str = MARK) -> str:
        """Return a text with the mark in its place."""
        kept, position = [], 0
        for start, end in self._spans(text):
            pieces = _LINE_BREAK.split(text[start:end])
            kept += [
                text[position:start],
                *(mark if n % 2 == 0 else p for n, p in enumerate(pieces)),
            ]
            position = end
        return "".join([*kept, text[position:]])

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where it stands; where it stands twice in part, that is one place."""
        start = end = -1
        found = self._pattern.search(text)
        while found is not None:
            if found.start() >= end:
                if end > start:
                    yield start, end
                start = found.start()
            end = max(end, found.end())
            found = self._pattern.search(text, found.start() + 1)
        if end > start:
            yield start, end

    # Bytes

    def is_in(self, data: bytes) -> bool:
        """Whether bytes, as UTF-8 or with a mark of UTF-16, hold it."""
        if data.isascii() and (not self._sure or self._sure not in data):
            return False
        return self.finds(_decoded(data)[0])

    def data(self, data: bytes) -> bytes:
        """Return a file's bytes with the mark in its place; frontmatter stays readable."""
        if not self.is_in(data):
            return data
        text, codec = _decoded(data)
        return self._file(text).encode(codec, _errors(codec))

    def name(self, name: bytes) -> bytes:
        """Return the name of a file with the mark in its place."""
        return self.text(name.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _file(self, text: str) -> str:
        redacted = self.text(text)
        body = text.removeprefix("\ufeff")
        head = soulfile.find_frontmatter(body)
        if head is None or head.fault is not None or _is_readable(redacted):
            return redacted
        end = len(text) - len(body) + head.end
        for mark in (f'"{MARK}"', MARK.strip("[]")):
            other = self.text(text[:end], mark) + self.text(text[end:])
            if _is_readable(other) and not self.finds(other):
                return other
        return redacted

    # Messages

    def told(self, text: str, is_id: IsId) -> str:
        """Return part of a message with the mark in its place, and ids as they are."""
        if not self.is_hex:
            return self.text(text)
        parts = enumerate(_ID.split(text))
        return "".join(part if n % 2 and is_id(part) else self.text(part) for n, part in parts)

    def is_told(self, text: str, is_id: IsId) -> bool:
        """Whether part of a message holds it, other than by chance in an id."""
        return self.finds(text) and self.told(text, is_id) != text

    def uncut(self, text: str) -> str:
        """Return a text with the mark for each beginning of it that is cut off with an ellipsis."""
        parts = text.split("…")
        return "…".join([*map(self._without_beginning, parts[:-1]), parts[-1]])

    def _without_beginning(self, text: str) -> str:
        for pattern in self._beginnings:
            found = pattern.search(text[-4 * _MOST_CUT :])
            if found is not None:
                return text[: len(text) - (found.end() - found.start())] + MARK
        return text

    @cached_property
    def _beginnings(self) -> list[re.Pattern[str]]:
        """The beginnings of it that say something, the longest first."""
        count = len(self._parts)
        least = max(2, min(4, count // 2))
        lengths = range(min(count - 1, _MOST_CUT), least - 1, -1)
        return [re.compile(_INVISIBLE.join(self._parts[:n]) + r"\s*\Z") for n in lengths]


def _refuse(given: str, text: str) -> None:
    """Raise InvalidText for a text that says too little, or more than one thing."""
    if "\0" in given or _SURROGATE.search(given):
        raise InvalidText("the text holds a NUL, or half of a character")
    if not text:
        raise InvalidText("there is no text to redact: nobody sees any of it")
    if columns("".join(text.split())) < _LEAST_COLUMNS:
        raise InvalidText(
            "the text is too short: it would be taken out of other words too",
            hint=f"give at least {_LEAST_COLUMNS} characters, with the words around it",
        )
    if SEARED_MARKER in text or _SIGNS.search(text):
        raise InvalidText(
            "the text holds signs of Markdown (a bullet, a heading, a fence, a comment) or a "
            "blank line, so it is more than one text",
            hint="leave such signs out, and redact the parts one after the other",
        )
    plain = unicodedata.normalize("NFC", text)
    overlaps = (
        plain.startswith(MARK[-n:]) or plain.endswith(MARK[:n]) for n in range(1, len(MARK))
    )
    if MARK in plain or any(overlaps):
        raise InvalidText(
            f"the text holds a part of {MARK}, which is put in its place",
            hint="leave the brackets at its ends out",
        )


def _part(word: str) -> str:
    """Return what finds a character in either Unicode form, or a run of blanks."""
    if word.isspace():
        return _GAP
    apart = unicodedata.normalize("NFD", word)
    return re.escape(word) if apart == word else f"(?:{re.escape(word)}|{re.escape(apart)})"


def _as_given(word: str) -> str:
    return _GAP if word.isspace() else re.escape(word)


def _decoded(data: bytes) -> tuple[str, str]:
    """Return bytes as text, each that is none kept, and the codec that gives them back."""
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            text = data.decode(codec, "surrogatepass") if len(data) % 2 == 0 else ""
            if text and text.encode(codec, "surrogatepass") == data:
                return text, codec
    return data.decode("utf-8", "surrogateescape"), "utf-8"


def _errors(codec: str) -> str:
    return "surrogateescape" if codec == "utf-8" else "surrogatepass"


def _is_readable(text: str) -> bool:
    head = soulfile.find_frontmatter(text.removeprefix("\ufeff"))
    return head is not None and head.fault is None
