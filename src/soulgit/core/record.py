"""The record of a commit: what happened, as its message says it.

A message is a subject of at most 72 columns, a body that carries texts in full, each line
indented by four spaces, and a last paragraph of git trailers, the only part that is ever
parsed back but for the texts. No text can forge a trailer, for a text is never at the
start of a line, and a trailer's value is always one line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

Action = Literal[
    "init", "add", "replace", "remove", "capture", "sear", "unsear", "edit", "continue",
    "update", "reread", "fork", "undo", "restore", "redact",
]  # fmt: skip
ACTIONS: tuple[str, ...] = get_args(Action)

SUBJECT_COLUMNS = 72
_INDENT = "    "
_WITH = "with"
"""The line, not indented, between the old and the new text of a replacement."""

_TRAILER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): ?(.*)")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_INVISIBLE = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Record:
    """What one commit did, and for whom; `action` is None where soulgit did not make it.

    `text` is the text added, removed or looked for, `replacement` what it became.
    """

    action: str | None
    subject: str = ""
    text: str | None = None
    replacement: str | None = None
    target: str | None = None
    persona: str | None = None
    number: int | None = None
    origin: str | None = None
    source: str | None = None
    session: str | None = None
    composed: str | None = None
    model: str | None = None
    reason: str | None = None
    forked_from: str | None = None
    archived: str | None = None


_TRAILER_FIELDS = (
    "action", "target", "persona", "number", "origin", "source", "session", "composed",
    "model", "reason", "forked_from", "archived",
)  # fmt: skip


def build(record: Record) -> str:
    """Return the commit message of a record; parse() gives the record back.

    Line ends and control characters within a trailer's value become spaces.
    """
    paragraphs = [one_line(record.subject, SUBJECT_COLUMNS)]
    if record.text is not None:
        paragraphs.append(_indent(record.text))
    if record.replacement is not None:
        paragraphs += [_WITH, _indent(record.replacement)]
    paragraphs.append("\n".join(_trailers(record)))
    return "\n\n".join(paragraphs) + "\n"


@lru_cache(maxsize=256)
def parse(message: str) -> Record:
    """Return the record that a commit message holds; one of another's making has only a subject."""
    head, _, last = message.rstrip("\n").rpartition("\n\n")
    trailers = _trailers_of(last) if head else {}
    subject = message.lstrip("\n").split("\n", 1)[0]
    if trailers.get("action") not in ACTIONS:
        return Record(None, subject)
    text, replacement = _parse_body(head)
    number = trailers.pop("number", "")
    return Record(
        trailers.pop("action"),
        subject,
        text,
        replacement,
        number=int(number) if _NUMBER.fullmatch(number) else None,
        **trailers,
    )


def subject_for(topic: str, verb: str, *texts: str) -> str:
    """Return a subject like `memory(self): add "the user is in IST"`, on one line, cut to fit."""
    start = f"{topic}: {verb} "
    whole = start + _quote(texts, None)
    if columns(whole) <= SUBJECT_COLUMNS:
        return whole
    room = SUBJECT_COLUMNS - columns(start) - columns(_quote([""] * len(texts), None))
    return start + _quote(texts, room // len(texts))


def _quote(texts: Sequence[str], width: int | None) -> str:
    return f" {_WITH} ".join(f'"{one_line(text, width)}"' for text in texts)


def one_line(text: str, width: int | None) -> str:
    """Return a text on one line, cut to a width in terminal columns, safe to print."""
    line = " ".join(text.split())
    if not (line.isascii() and line.isprintable()):  # as it seldom is, and then it takes long
        visible = _INVISIBLE.sub("", text)
        visible = "".join(" " if unicodedata.category(c) in _BREAKING else c for c in visible)
        line = " ".join(visible.split())
    return line if width is None or columns(line) <= width else _cut(line, width - 1) + "…"


_BREAKING = ("Cc", "Zl", "Zp")


def _cut(line: str, most: int) -> str:
    width = 0
    for position, character in enumerate(line):
        width += columns(character)
        if width > most:
            return line[:position].rstrip()
    return line


def columns(text: str) -> int:
    """Return how wide a text is on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _indent(text: str) -> str:
    return "\n".join(_INDENT + line for line in text.split("\n"))


def _trailers(record: Record) -> list[str]:
    values = ((name, getattr(record, name)) for name in _TRAILER_FIELDS)
    lines = ((name, one_line(str(value), None)) for name, value in values if value is not None)
    return [f"{_key(name)}: {line}" for name, line in lines if line]


def _key(name: str) -> str:
    return "Soul-" + "-".join(part.capitalize() for part in name.split("_"))


def reason(message: str) -> str | None:
    """Return the reason that a message's trailers give, whoever made it."""
    return _trailers_of(message.rstrip("\n").rpartition("\n\n")[2]).get("reason")


def _trailers_of(paragraph: str) -> dict[str, str]:
    """Return the trailers of a message's last paragraph; the first of a name counts."""
    found: dict[str, str] = {}
    for line in paragraph.split("\n"):
        match = _TRAILER.fullmatch(line)
        if match is None:
            return {}
        name = match.group(1).removeprefix("Soul-").lower().replace("-", "_")
        if match.group(1).startswith("Soul-") and name in _TRAILER_FIELDS:
            found.setdefault(name, match.group(2).strip())
    return found


def _parse_body(head: str) -> tuple[str | None, str | None]:
    """Return text and replacement from all of a message above its trailers."""
    _, _, body = head.partition("\n\n")
    parts: list[list[str]] = [[]]
    for line in body.split("\n"):
        if line.startswith(_INDENT):
            parts[-1].append(line[len(_INDENT) :])
        elif line == _WITH and parts[-1]:
            parts.append([])
    texts = ["\n".join(part) for part in parts if part]
    return texts[0] if texts else None, texts[1] if len(texts) > 1 else None
