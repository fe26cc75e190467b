"""A memory file's entries followed back through the commits of a home."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from soulgit import personas
from soulgit.core import composition, record, tracing
from soulgit.core.layout import Layout, Target
from soulgit.core.record import Record
from soulgit.core.tracing import Change, Version
from soulgit.errors import ObjectMissing
from soulgit.git import Commit, Repository

_PAIRED = ("replace", "reread", "update")
"""Actions that put one text in the place of each that goes."""


@dataclass(frozen=True)
class Step:
    """One commit on the way back: what it did to a memory file, and the file behind it.

    `before` is the version of the parent it was followed to, None where nothing precedes it.
    """

    commit: Commit
    change: Change
    after: Version
    before: Version | None

    @property
    def record(self) -> Record:
        """What the commit says of itself."""
        return record.parse(self.commit.message)


def version(repository: Repository, commit_id: str, target: Target) -> Version:
    """Return a memory file at a commit, split as a whole."""
    tree = repository.commit(commit_id).tree
    place = _place(repository, tree, target)
    return tracing.read(_read(repository, tree, place), place.layout)


def walk(
    repository: Repository, tip: str, target: Target, after: Version | None = None
) -> Iterator[Step]:
    """Yield the commits that changed a memory file, newest first, along first parents.

    `after` is the file at the tip, if it is known. A commit that a fork began with goes on in the
    commit that it was forked from, where entries came along. The first commit of all has
    everything as added. In a shallow clone it ends where the history is cut.
    """
    after = after or version(repository, tip, target)
    commit = repository.commit(tip)
    place = _place(repository, commit.tree, target)
    while (parent := _parent(repository, commit)) is not None:
        older = _place(repository, parent.tree, target)
        if older != place:
            source = _read(repository, parent.tree, older)
            paired = partial(is_paired, commit.message)
            before, change = tracing.before(after, source, older.layout, paired)
            yield Step(commit, change, after, before)
            after = before
        commit, place = parent, older
    yield Step(commit, Change(added=list(after.items)), after, None)


def is_paired(message: str) -> bool:
    """Whether a commit put one text in the place of each that went, as its record says."""
    told = record.parse(message)
    undone = (told.text or "").splitlines() if told.action == "undo" else []
    return told.action in _PAIRED or (len(undone) == 1 and '): replace "' in undone[0])


def _parent(repository: Repository, commit: Commit) -> Commit | None:
    following = next(iter(commit.parents), None)
    if following is None:
        told = record.parse(commit.message)
        following = told.forked_from if told.action == "fork" else None
    if following is None:
        return None
    try:
        return repository.commit(following)
    except ObjectMissing:
        if commit.parents and not repository.is_shallow:
            raise
        return None


@dataclass(frozen=True)
class _Place:
    """Where a memory file lies in a tree, and its object: what tells two versions apart."""

    layout: Layout
    path: str
    id: str | None


def _place(repository: Repository, tree: str, target: Target) -> _Place:
    layout = personas.tree_layout(repository, tree)
    path = layout.memory_path(target)
    entry = repository.entry(tree, path)
    return _Place(layout, path, None if entry is None else entry.id)


def _read(repository: Repository, tree: str, place: _Place) -> str:
    return composition.decode(repository.read(tree, place.path) or b"")
