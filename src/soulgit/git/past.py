"""A repository read for its past: thousands of commits, trees and versions of a file.

libgit2 hashes each object before it gives it out, which for a memory file takes ten times as
long as unpacking it. Here objects are read as git itself reads them, which trusts the checksums
within packs and loose objects. Whatever cannot be read so, the repository reads, or tells why not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType

from soulgit.git import packs
from soulgit.git.faults import translated
from soulgit.git.loose import refuse_cut_off
from soulgit.git.repository import Repository
from soulgit.git.values import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, TREE_MODE, TreeEntry

_COMMIT = re.compile(rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)author ")
_TREE = re.compile(rb"(?:[0-7]+ [^\0]+\0.{20})*", re.DOTALL)
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_MODES = {f"{mode:o}".encode(): mode for mode in (FILE_MODE, EXECUTABLE_MODE, LINK_MODE, TREE_MODE)}

_Entries = dict[bytes, TreeEntry]
"""What stands in a tree itself, by name."""


class Link(NamedTuple):
    """What a commit leads to: its tree, and its parents."""

    tree: str
    parents: tuple[str, ...]


class Past(Repository):
    """A repository that is only read, fast, and by one thread."""

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository._handle, repository.path, repository._durable)
        with translated(self.path):
            self._stores = list(self._handle.odb.backends)  # of loose objects, and of packs
        self._loose = packs.loose(self)
        grafts = os.path.join(self.common_dir, "info", "grafts")
        self._is_cut = self.is_shallow or os.path.exists(grafts)
        self._last: tuple[str, _Entries | None] = ("", None)

    def link(self, commit_id: str) -> Link:
        """Return what a commit leads to."""
        data = None if self._is_cut else self._raw(commit_id, ObjectType.COMMIT)
        found = None if data is None else _COMMIT.match(data)
        if found is None:
            commit = self.commit(commit_id)
            return Link(commit.tree, commit.parents)
        return Link(found[1].decode(), tuple(found[2].decode().split()[1::2]))

    def names(self, tree_id: str, directory: str = "") -> list[str]:
        """Return the names in a directory of a tree, names that are no UTF-8 escaped."""
        known = None if directory else self.root(tree_id)
        if known is None:
            return super().names(tree_id, directory)
        return [name.decode("utf-8", "backslashreplace") for name in known]

    def entry(self, tree_id: str, path: str) -> TreeEntry | None:
        """Return what stands at a path of a tree, links not followed."""
        known = self.root(tree_id)
        if known is None:
            return super().entry(tree_id, path)
        if "/" not in path:
            return known.get(path.encode())
        name, _, rest = path.partition("/")
        found = known.get(name.encode())
        return self.entry(found.id, rest) if found and found.mode == TREE_MODE else None

    def blob(self, blob_id: str) -> bytes:
        """Return the bytes of a blob."""
        data = self._raw(blob_id, ObjectType.BLOB)
        return super().blob(blob_id) if data is None else data

    def root(self, tree_id: str) -> Mapping[bytes, TreeEntry] | None:
        """Return what stands in a tree itself by name, None for a tree of an odd form."""
        if self._last[0] != tree_id:
            self._last = tree_id, _parsed(self._raw(tree_id, ObjectType.TREE))
        return self._last[1]

    def _raw(self, object_id: str, kind: ObjectType) -> bytes | None:
        if object_id in self._loose:  # what came since was written whole
            refuse_cut_off(self._objects_dir, object_id)
        for place, store in enumerate(self._stores):
            try:
                found, data = store.read(object_id)
            except (pygit2.GitError, LookupError, ValueError, OSError):
                continue
            if place:  # the next object most likely lies where this one does
                self._stores.insert(0, self._stores.pop(place))
            return data if found == kind else None
        return None


def _parsed(data: bytes | None) -> _Entries | None:
    if data is None or _TREE.fullmatch(data) is None:
        return None
    found = _ENTRY.findall(data)
    try:
        known = {name: _tree_entry(mode, raw_id) for mode, name, raw_id in found}
    except KeyError:
        return None
    return known if len(known) == len(found) else None


@lru_cache(maxsize=256)  # from tree to tree most entries are the same
def _tree_entry(mode: bytes, raw_id: bytes) -> TreeEntry:
    return TreeEntry(_MODES[mode], raw_id.hex())
