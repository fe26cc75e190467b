"""A memory file's entries followed back through the commits of a home."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from soulgit import personas
from soulgit.core import composition, record, tracing
from soulgit.core.layout import Layout, Target
from soulgit.core.record import Record
from soulgit.core.tracing import Change, Version
from soulgit.errors import ObjectMissing
from soulgit.git import Commit, Repository

_PAIRED = ("replace", "reread")
"""Actions that put one text in the place of each that goes."""


@dataclass(frozen=True)
class Step:
    """One commit on the way back: what it did to a memory file, and the file behind it.

    `before` is the version of the parent it was followed to, None where nothing precedes it.
    """

    commit: Commit
    record: Record
    change: Change
    after: Version
    before: Version | None


def version(repository: Repository, commit_id: str, target: Target) -> Version:
    """Return a memory file at a commit, split as a whole."""
    source, layout = _read(repository, repository.commit(commit_id).tree, target)
    return tracing.read(source, layout)


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
    while True:
        told = record.parse(commit.message)
        parent = _parent(repository, commit, told)
        if parent is None:
            yield Step(commit, told, Change(added=list(after.items)), after, None)
            return
        if _entry_ids(repository, commit.tree, target) != _entry_ids(
            repository, parent.tree, target
        ):
            source, layout = _read(repository, parent.tree, target)
            paired = told.action in _PAIRED
            before, change = tracing.before(after, source, layout, paired=paired)
            yield Step(commit, told, change, after, before)
            after = before
        commit = parent


def _parent(repository: Repository, commit: Commit, told: Record) -> Commit | None:
    following = next(iter(commit.parents), told.forked_from if told.action == "fork" else None)
    if following is None:
        return None
    try:
        return repository.commit(following)
    except ObjectMissing:
        if commit.parents and not repository.is_shallow:
            raise
        return None


def _entry_ids(repository: Repository, tree: str, target: Target) -> tuple[str | None, Layout]:
    """Return what tells two versions of a memory file apart without reading them."""
    layout = personas.tree_layout(repository, tree)
    entry = repository.entry(tree, layout.memory_path(target))
    return (None if entry is None else entry.id), layout


def _read(repository: Repository, tree: str, target: Target) -> tuple[str, Layout]:
    layout = personas.tree_layout(repository, tree)
    data = repository.read(tree, layout.memory_path(target)) or b""
    return composition.decode(data), layout
