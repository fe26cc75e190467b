"""Commit messages told anew: without a redacted text, and with the ids that commits have now."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from soulgit.core import record
from soulgit.core.actor import Identity
from soulgit.core.record import SUBJECT_COLUMNS, Record, one_line, subject_for
from soulgit.core.redaction import IsId, Redactor

_ID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{7,40}(?![0-9A-Za-z])")
_DIGEST = re.compile(r"^(Soul-Persona: ?)([0-9a-f]{64})$", re.MULTILINE)
_UNDONE = re.compile(r"([0-9a-f]{40}) (.*)")
_FROM = re.compile(r"(from )([0-9a-f]{40})")

_LONG_NAME = 90
"""A longer name may have been cut at a hundred characters, and signs at its end left out."""

_OF_MEMORY = ("add", "replace", "remove", "sear", "unsear")


@dataclass(frozen=True)
class Renamed:
    """What is called otherwise now: an id, full or cut, a digest; what a commit's subject was and
    is, None where that is not known; and whether a word is an id at all, of before or of now.
    """

    id: Callable[[str], str]
    is_id: IsId
    digest: Callable[[str], str]
    subjects: Callable[[str], tuple[str, str] | None]


def ids_in(message: str) -> list[str]:
    """Return the words of a message that may be ids of commits, full or cut."""
    return list(dict.fromkeys(_ID.findall(message)))


def retell(message: str, redactor: Redactor, renamed: Renamed) -> str:
    """Return a message without the text, and with the ids and digests of now.

    A record is told anew from its redacted texts, its subject too, so that no half of the text
    is left where it was cut. Texts of memory are data, and ids in them stay. Whatever has none of
    it stays byte for byte.
    """
    told = record.parse(message)
    if _is_untouched(message, told, redactor, renamed):
        return message
    if told.action is not None and record.build(told) == message:
        new = record.build(_retold(told, redactor, renamed))
    else:
        new = _renamed(redactor.uncut(redactor.told(message, renamed.is_id)), renamed)
    if redactor.is_told(new, renamed.is_id):
        new = redactor.told(
            new, renamed.is_id
        )  # it began in soulgit's own words and ended in a text
    return new


def _is_untouched(message: str, told: Record, redactor: Redactor, renamed: Renamed) -> bool:
    """Whether a message surely stays as it is, as most do."""
    is_whole = "…" not in message or told.action in _OF_MEMORY
    return (
        is_whole
        and not redactor.finds(message)
        and (told.persona is None or renamed.digest(told.persona) == told.persona)
        and all(renamed.id(word) == word for word in ids_in(message))
    )


def untold(told: Record) -> Record:
    """Return the record of a commit of which nothing more can be said than that it was redacted.

    It stands where the text and what was done with it cannot be told apart any more.
    """
    subject = "redact: what was done here can no longer be told"
    return replace(told, action="redact", subject=subject, text=None, replacement=None)


def identity(known: Identity, redactor: Redactor) -> Identity:
    """Return a person without the text; a companion's address goes with its name.

    A name that is so long that it was cut may end in a half of the text.
    """
    name, email = redactor.text(known.name), redactor.text(known.email)
    if len(known.name) > _LONG_NAME:
        name = redactor.uncut(f"{name}…").removesuffix("…")
    if name != known.name and known.email == Identity.companion(known.name).email:
        email = Identity.companion(name).email
    return Identity(name, email)


def _renamed(text: str, renamed: Renamed) -> str:
    text = _DIGEST.sub(lambda found: found[1] + renamed.digest(found[2]), text)
    return _ID.sub(lambda found: renamed.id(found[0]), text)


def _retold(told: Record, redactor: Redactor, renamed: Renamed) -> Record:
    def text(value: str | None) -> str | None:
        return None if value is None else redactor.text(value)

    def told_id(value: str | None) -> str | None:
        return value and _renamed(redactor.told(value, renamed.is_id), renamed)

    new = replace(
        told,
        text=_text(told, redactor, renamed),
        replacement=text(told.replacement),
        persona=told.persona and renamed.digest(told.persona),
        source=text(told.source),
        session=text(told.session),
        composed=told_id(told.composed),
        model=text(told.model),
        reason=told_id(told.reason),
        forked_from=told_id(told.forked_from),
        archived=text(told.archived),
    )
    return replace(new, subject=_subject(told, new, redactor, renamed))


def _text(told: Record, redactor: Redactor, renamed: Renamed) -> str | None:
    if told.text is None:
        return None
    if told.action == "undo":
        lines = (_undone(line, redactor, renamed) for line in told.text.split("\n"))
        return "\n".join(lines)
    if told.action == "restore":
        first, *rest = told.text.split("\n", 1)
        found = _FROM.fullmatch(first)
        first = found[1] + renamed.id(found[2]) if found else redactor.text(first)
        return "\n".join([first, *map(redactor.text, rest)])
    return redactor.text(told.text)


def _undone(line: str, redactor: Redactor, renamed: Renamed) -> str:
    """Return a line of an undo, which names a commit and its subject."""
    found = _UNDONE.fullmatch(line)
    if found is None:
        return redactor.text(line)
    known = renamed.subjects(found[1])
    is_its = known is not None and found[2] == one_line(known[0], None)
    subject = known[1] if known and is_its else redactor.uncut(redactor.text(found[2]))
    return f"{renamed.id(found[1])} {one_line(subject, None)}"


def _subject(told: Record, new: Record, redactor: Redactor, renamed: Renamed) -> str:
    """Return the subject that a record gets of itself, where it had that before; else redacted."""
    for before, after in _made(told, new, renamed):
        if one_line(before, SUBJECT_COLUMNS) == told.subject:
            return after
    subject = redactor.uncut(redactor.told(told.subject, renamed.is_id))
    return subject if told.action in _OF_MEMORY else _renamed(subject, renamed)


def _made(told: Record, new: Record, renamed: Renamed) -> list[tuple[str, str]]:
    """Return the subjects that a record may have of itself, before and after."""
    if told.action in _OF_MEMORY:
        return [(_of_memory(told), _of_memory(new))]
    if told.action == "capture":
        return [(_of_capture(told), _of_capture(new))]
    found = _UNDONE.fullmatch(told.text or "") if told.action == "undo" else None
    known = renamed.subjects(found[1]) if found else None
    if known is None:
        return []
    before, after = known
    return [
        (f"undo: {before}", f"undo: {after}"),
        (f"redo: {before.removeprefix('undo: ')}", f"redo: {after.removeprefix('undo: ')}"),
    ]


def _of_memory(told: Record) -> str:
    texts = [told.text or ""]
    if told.action == "replace":
        texts.append(told.replacement or "")
    return subject_for(f"memory({told.target})", told.action or "", *texts)


def _of_capture(told: Record) -> str:
    return f"capture: {', '.join((told.text or '').splitlines())}"
