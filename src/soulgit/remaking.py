"""A history made anew without a text: which objects, which refs, and what is told of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from soulgit import verification
from soulgit.core import persona, record, retelling
from soulgit.core.actor import Identity
from soulgit.core.layout import PERSONA_NAMES
from soulgit.core.redaction import Redactor
from soulgit.core.retelling import Renamed
from soulgit.errors import SoulgitError
from soulgit.git import Repository
from soulgit.git.objects import Told, parse_tree, read, refs, stored
from soulgit.git.rewriting import Put, Rewriting
from soulgit.git.values import LINK_MODE
from soulgit.history import Side

Progress = Callable[[int, int], None]
"""Told how many commits of how many were looked at."""

_KEPT = 16
"""How many files are remembered: the next commit has most of the last one's."""

STASH = "refs/stash"
REMOTE = ("refs/remotes/", "refs/prefetch/")
_NOTES = "refs/notes/"
_PERSON = re.compile(rb"(.*?)( ?)<([^>]*)>(.*)", re.DOTALL)
_LEADS = (b"tree", b"parent", b"object", b"type", b"encoding", b"gpgsig", b"gpgsig-sha256")
_DIGEST_DIGITS = 64
_PEOPLE = (b"author", b"committer", b"tagger")


@dataclass
class Tally:
    """What was found on the way: files by path, messages, signatures that are false now."""

    files: dict[str, None] = field(default_factory=dict)
    messages: int = 0
    signatures: int = 0


@dataclass(frozen=True)
class Remade:
    """What a history becomes: refs that move (old and new), refs that go, commits old and new.

    `elsewhere` counts the objects that hold the text and that none of the refs that stay leads to.
    """

    moves: dict[str, tuple[str, str]]
    drops: tuple[str, ...]
    commits: dict[str, str]
    tally: Tally
    elsewhere: int


def remake(repository: Repository, redactor: Redactor, put: Put, progress: Progress) -> Remade:
    """Make all anew that the refs lead to and that holds the text; nothing moves yet."""
    direct, symbolic = refs(repository)
    stays = {n: tip for n, tip in direct.items() if n != STASH and not n.startswith(REMOTE)}
    tally, hand = Tally(), _Hand(repository, redactor, progress)
    hand.tally = tally
    work = Rewriting(repository, hand, put)
    hand.use(work)
    work.know(stays.values())
    for name in sorted(stays, key=lambda name: (name.startswith(_NOTES), name)):
        take = work.take_notes if name.startswith(_NOTES) else work.take
        take(stays[name])
    moves = {n: (tip, work.of(tip)) for n, tip in stays.items() if work.of(tip) != tip}
    commits = dict(hand.commits)
    within = set(work.reached)
    remote = {n: tip for n, tip in direct.items() if n.startswith(REMOTE)}
    drops = [STASH] if STASH in direct else []
    drops += _reaching(work, hand, remote)
    drops += [name for name, other in symbolic.items() if other in drops]
    others = (object_id for object_id in stored(repository) if object_id not in within)
    elsewhere = sum(_is_held(repository, redactor, object_id) for object_id in others)
    return Remade(moves, tuple(drops), commits, tally, elsewhere)


def _reaching(work: Rewriting, hand: _Hand, remote: dict[str, str]) -> list[str]:
    """Return the remote-tracking refs from which the text is reached, or what led to it."""
    work.put, hand.tally = _forgotten, Tally()
    work.know(remote.values())
    return [name for name, tip in remote.items() if work.take(tip) != tip]


def _forgotten(kind: str, data: bytes) -> str:
    from soulgit.git.objects import id_of

    return id_of(kind, data)


def holds(repository: Repository, redactor: Redactor, object_id: str) -> bool:
    """Whether an object holds the text, other than by chance in an id."""
    kind, data = read(repository, object_id)
    if kind == "blob":
        return redactor.is_in(data)
    if kind == "tree":
        return any(redactor.name(item.name) != item.name for item in parse_tree(data))
    told = Told.parse(data)
    values = [value for key, value in told.headers if key not in _LEADS + _PEOPLE]
    people = [found for value in _people(told) for found in (value[1], value[3])]
    texts = map(told.text, (*values, *people, told.message))
    return any(redactor.is_told(text, lambda word: _is_id(repository, word)) for text in texts)


def _is_id(repository: Repository, word: str) -> bool:
    return len(word) == _DIGEST_DIGITS or repository.resolve(word) is not None


def _is_held(repository: Repository, redactor: Redactor, object_id: str) -> bool:
    """Whether an object that nothing leads to holds the text; a broken one says nothing."""
    try:
        return holds(repository, redactor, object_id)
    except SoulgitError:
        return False


def _people(told: Told) -> Iterable[re.Match[bytes]]:
    values = (_PERSON.fullmatch(value) for key, value in told.headers if key in _PEOPLE)
    return (found for found in values if found is not None)


class _Hand:
    """Takes the text out of objects, and tells records anew so that they stay true."""

    def __init__(self, repository: Repository, redactor: Redactor, progress: Progress) -> None:
        self.tally = Tally()
        self.commits: dict[str, str] = {}
        self._repository = repository
        self._redactor = redactor
        self._progress = progress
        self._done = 0
        self._subjects: dict[str, tuple[str, str]] = {}
        self._digests: dict[str, str] = {}
        self._person = lru_cache(lambda known: retelling.identity(known, redactor))
        self._data = lru_cache(maxsize=_KEPT)(redactor.data)
        self._personas: dict[tuple[object, ...], tuple[str, str]] = {}

    def use(self, work: Rewriting) -> None:
        """Learn where to ask what an object has become."""
        self._work = work

    def blob(self, data: bytes, path: bytes) -> bytes:
        """Return a file's bytes without the text."""
        new = self._data(data)
        if new is not data:
            self.tally.files.setdefault(path.decode("utf-8", "replace"))
        return new

    def name(self, name: bytes) -> bytes:
        """Return the name of a file without the text."""
        return self._redactor.name(name)

    def named(self, commit: Told) -> Iterable[str]:
        """Return the words of a message that may be ids of others, full or cut."""
        return retelling.ids_in(commit.text(commit.message))

    def commit(self, commit_id: str, commit: Told) -> Told:
        """Return a commit's people and message without the text, its record true."""
        self._done += 1
        self._progress(self._done, self._work.count)
        own = self._learn_persona(commit.all(b"tree")[0])
        told = commit.text(commit.message)
        renamed = self._renamed(lambda digest: self._digest(digest, own))
        message = retelling.retell(told, self._redactor, renamed)
        message = self._true(commit, told, message)
        new = self._without(commit, message)
        self._count(commit, told)
        subjects = record.parse(told).subject, record.parse(message).subject
        if subjects[0] != subjects[1]:
            self._subjects[commit_id] = subjects
        return new

    def remade(self, old: str, new: str, commit: Told) -> None:
        """Remember what a commit has become, and whether its signature went."""
        self.commits[old] = new
        self.tally.signatures += any(key.startswith(b"gpgsig") for key, _ in commit.headers)

    def tag(self, tag: Told) -> Told:
        """Return a tag's texts without the text."""
        renamed = self._renamed(lambda digest: digest)
        told = tag.text(tag.message)
        self._count(tag, told)
        return self._without(tag, retelling.retell(told, self._redactor, renamed))

    def _renamed(self, digest: Callable[[str], str]) -> Renamed:
        return Renamed(self._work.renamed, self._is_id, digest, self._known)

    def _is_id(self, word: str) -> bool:
        return len(word) == _DIGEST_DIGITS or self._work.knows(word)

    def _count(self, told: Told, message: str) -> None:
        is_held = self._redactor.is_told(message, self._is_id)
        self.tally.messages += is_held or any(self._holds(one) for one in _people(told))

    def _holds(self, person: re.Match[bytes]) -> bool:
        return any(self._redactor.is_in(part) for part in (person[1], person[3]))

    def _without(self, told: Told, message: str) -> Told:
        headers = tuple((key, self._header(told, key, value)) for key, value in told.headers)
        new = told.bytes(message)
        return replace(told, headers=headers, message=new)

    def _header(self, told: Told, key: bytes, value: bytes) -> bytes:
        if key in _LEADS:
            return value
        person = _PERSON.fullmatch(value) if key in _PEOPLE else None
        if person is None:
            mark = "redacted" if key == b"tag" else None  # the name of a tag has no brackets
            text = told.text(value)
            new = (
                self._redactor.text(text, mark) if mark else self._redactor.told(text, self._is_id)
            )
            return value if new == text else told.bytes(new)
        was = Identity(told.text(person[1]), told.text(person[3]))
        now = self._person(was)
        if now == was:
            return value
        return told.bytes(now.name) + person[2] + b"<" + told.bytes(now.email) + b">" + person[4]

    def _known(self, commit_id: str) -> tuple[str, str] | None:
        """Return the subject that a commit had and has, None for one that is not here."""
        if commit_id not in self._subjects:
            try:
                subject = record.parse(self._repository.commit(commit_id).message).subject
            except SoulgitError:
                return None
            return subject, subject
        return self._subjects[commit_id]

    # Personas

    def _digest(self, digest: str, own: tuple[str, str] | None) -> str:
        """Return what a digest has become: a commit's own persona's, else one that was before."""
        if own is not None and digest == own[0]:
            return own[1]
        return self._digests.get(digest, digest)

    def _learn_persona(self, tree: str) -> tuple[str, str] | None:
        """Return the digest of a tree's persona, before and after, None where it has no digest."""
        try:
            entries = tuple(self._repository.entry(tree, name) for name in PERSONA_NAMES)
            has_link = any(entry and entry.mode == LINK_MODE for entry in entries)
            found = None if has_link else self._personas.get(entries)
            if found is None:
                found = self._personas[entries] = self._digests_of(tree)
        except SoulgitError:
            return None
        if found[0] != found[1]:
            self._digests[found[0]] = found[1]
        return found

    def _digests_of(self, tree: str) -> tuple[str, str]:
        read = {name: self._repository.read(tree, name) for name in PERSONA_NAMES}
        files = {name: data for name, data in read.items() if data is not None}
        redacted = {name: self._redactor.data(data) for name, data in files.items()}
        return persona.digest(files), persona.digest(redacted)

    # Records

    def _true(self, commit: Told, told: str, message: str) -> str:
        """Return a message whose record is as true as it was, or else tells no more than it can."""
        before, now = record.parse(told), record.parse(message)
        trees = [commit.all(b"tree")[0], *map(self._tree, commit.all(b"parent")[:1])]
        is_same = message == told and all(self._work.of(tree) == tree for tree in trees)
        if now.action not in verification.TOLD_OF_MEMORY or is_same:
            return message
        sides = [self._side(tree) for tree in trees]
        if not _lies(now, [self._redacted(one) for one in sides]) or _lies(before, sides):
            return message
        return record.build(retelling.untold(now))

    def _tree(self, commit_id: str) -> str:
        return self._repository.commit(commit_id).tree

    def _side(self, tree: str) -> Side:
        return verification.side(self._repository, tree)

    def _redacted(self, known: Side) -> Side:
        contents = {name: self._data(data) for name, data in known.contents.items()}
        return Side(contents, known.layout)


def _lies(told: record.Record, sides: list[Side]) -> bool:
    """Whether a record does not say what its files, after and before, show."""
    before = sides[1] if len(sides) > 1 else None
    return any(verification.record_faults(told, before, sides[0], is_first=before is None))
