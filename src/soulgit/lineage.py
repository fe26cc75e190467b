"""A memory file's entries followed back through the commits of a home."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from soulgit import personas
from soulgit.core import composition, record, tracing
from soulgit.core.layout import HERMES, PLAIN, Layout, Target, memory_name
from soulgit.core.record import Record
from soulgit.core.tracing import Change, Version
from soulgit.errors import ObjectMissing
from soulgit.git import Commit, Past, Repository, TreeEntry
from soulgit.git.past import Link

_HERMES_DIRECTORY = HERMES.memory_directory.rstrip("/").encode()

_PAIRED = ("replace", "reread", "update")
"""Actions that put one text in the place of each that goes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One commit on the way back, and what it did to a memory file."""

    past: Past
    id: str
    parents: tuple[str, ...]
    target: Target
    change: Change

    @property
    def commit(self) -> Commit:
        """The commit with all that it says."""
        return self.past.commit(self.id)

    @property
    def record(self) -> Record:
        """What the commit says of itself."""
        return record.parse(self.commit.message)


def version(repository: Repository, commit_id: str, target: Target) -> Version:
    """Return a memory file at a commit, split as a whole."""
    tree = repository.commit(commit_id).tree
    place = _place(repository, tree, target)
    return tracing.read(_read(repository, tree, place), place.layout)


def walk(past: Past, tip: str, files: dict[Target, Version]) -> Iterator[Step]:
    """Yield the commits that changed memory files, newest first, along first parents.

    `files` are as they are at the tip, and go back in place; no more is told of one that is
    taken out. A commit that a fork began with goes on in the commit that it was forked from,
    where entries came along. The first commit of all has everything as added. In a shallow clone
    it ends where the history is cut.
    """
    at, link = tip, past.link(tip)
    places = _places(past, link.tree, files)
    while files and (parent := _parent(past, at, link)) is not None:
        try:
            behind = past.link(parent)
        except ObjectMissing:
            if link.parents and not past.is_shallow:
                raise
            break
        older = _places(past, behind.tree, files)
        for target, place in older.items():
            if place != places[target]:
                source = _read(past, behind.tree, place)
                paired = partial(_is_paired_at, past, at)
                change = tracing.go_back(files[target], source, place.layout, paired)
                yield Step(past, at, link.parents, target, change)
        at, link, places = parent, behind, older
    for target in list(files):
        yield Step(past, at, link.parents, target, Change(added=list(files[target].items)))


def _parent(past: Past, commit_id: str, link: Link) -> str | None:
    """Return the commit that a walk goes on to."""
    if link.parents:
        return link.parents[0]
    told = record.parse(past.commit(commit_id).message)
    return told.forked_from if told.action == "fork" else None


def _is_paired_at(past: Past, commit_id: str) -> bool:
    return is_paired(past.commit(commit_id).message)


def is_paired(message: str) -> bool:
    """Whether a commit put one text in the place of each that went, as its record says."""
    told = record.parse(message)
    undone = (told.text or "").splitlines() if told.action == "undo" else []
    return told.action in _PAIRED or (len(undone) == 1 and '): replace "' in undone[0])


class _Place(NamedTuple):
    """Where a memory file lies in a tree, and its object: what tells two versions apart."""

    layout: Layout
    path: str
    id: str | None


def _places(past: Past, tree: str, targets: Iterable[Target]) -> dict[Target, _Place]:
    root = past.root(tree)
    if root is None or _HERMES_DIRECTORY in root:
        return {target: _place(past, tree, target) for target in targets}
    return {target: _plain_place(root, target) for target in targets}


def _plain_place(root: Mapping[bytes, TreeEntry], target: Target) -> _Place:
    """Return where a file lies if there is no other directory for it."""
    path = memory_name(target)
    entry = root.get(path.encode())
    return _Place(PLAIN, path, None if entry is None else entry.id)


def _place(repository: Repository, tree: str, target: Target) -> _Place:
    layout = personas.tree_layout(repository, tree)
    path = layout.memory_path(target)
    entry = repository.entry(tree, path)
    return _Place(layout, path, None if entry is None else entry.id)


def _read(repository: Repository, tree: str, place: _Place) -> str:
    return composition.decode(repository.read(tree, place.path) or b"")
