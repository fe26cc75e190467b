"""New objects that wait: read like any other, and stored all at once.

libgit2 brings each object that it writes to the disk alone, the file and then its directory,
and each is a wait for the device. Here those of one action are held in memory until it
lands; where it does not, they are dropped and nothing of them is left.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from functools import cached_property

import pygit2

from soulgit import directories, disk
from soulgit.git.values import KINDS

_QUICK = 1
"""The level at which git compresses loose objects: they are packed later, and better."""

_FOREMOST = 100
"""A rank before those of libgit2's own stores, for it writes to the foremost one."""


class Incoming:
    """The new objects of an opened repository, from their making until they are placed."""

    def __init__(self, handle: pygit2.Repository, objects: str, durable: bool) -> None:
        self._handle = handle
        self._objects = objects
        self._durable = durable
        self._drafts: dict[str, str] = {}

    def begin(self) -> None:
        """Let what libgit2 writes from now on wait here."""
        self._store  # noqa: B018  # it is made at its first use

    def draft(self) -> list[str]:
        """Write what waits into files, and return their paths, which the caller syncs.

        They bear names that `git prune` takes away after a crash.
        """
        for object_id, (kind, data) in self._store.held.items():
            draft = os.path.join(self._objects, f"tmp_obj_{os.urandom(8).hex()}")
            self._drafts[object_id] = draft
            content = b"%s %d\0%s" % (KINDS[kind].encode(), len(data), data)
            disk.create(draft, zlib.compress(content, _QUICK), mode=0o444)
        return list(self._drafts.values())

    def place(self) -> list[str]:
        """Put the drafts where git finds them; return the directories to sync."""
        changed: dict[str, None] = {}
        for object_id, draft in self._drafts.items():
            directory = os.path.join(self._objects, object_id[:2])
            if directories.make_directory(directory):
                changed[self._objects] = None
            with disk.storage_faults(f"{directory} cannot be written"):
                os.replace(draft, os.path.join(directory, object_id[2:]))
            changed[directory] = None
        self._drafts.clear()
        self._store.held.clear()
        return list(changed)

    def store(self) -> None:
        """Draft, sync and place what waits, for a ref that is not landed with others."""
        try:
            for step in (self.draft, self.place):
                paths = step()
                if self._durable:
                    with disk.storage_faults(f"{self._objects} cannot be synced"):
                        disk.sync_all(paths)
        finally:
            self.drop()

    def drop(self) -> None:
        """Forget what was not placed; it was for nothing."""
        for draft in self._drafts.values():
            disk.discard(draft)
        self._drafts.clear()
        if "_store" in vars(self):
            self._store.held.clear()

    @cached_property
    def _store(self) -> _Store:
        store = _Store()
        self._handle.odb.add_backend(store, _FOREMOST)
        return store


class _Store(pygit2.OdbBackend):
    """Objects in memory, as libgit2 asks for them; a KeyError sends it on to the other stores."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, tuple[int, bytes]] = {}

    def read_cb(self, oid: pygit2.Oid) -> tuple[int, bytes]:
        return self.held[str(oid)]

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        kind, data = self.held[str(oid)]
        return kind, len(data)

    def read_prefix_cb(self, oid: str) -> tuple[int, bytes, pygit2.Oid]:
        return (*self.held[oid], pygit2.Oid(hex=oid))  # a whole id, for nobody cuts one that waits

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        return str(oid) in self.held

    def exists_prefix_cb(self, oid: str) -> None:
        raise KeyError(oid)

    def write_cb(self, oid: pygit2.Oid, data: bytes, kind: int) -> None:
        self.held[str(oid)] = (kind, bytes(data))

    def __iter__(self) -> Iterator[pygit2.Oid]:
        return iter([pygit2.Oid(hex=object_id) for object_id in self.held])

    def refresh_cb(self) -> None:
        """Do nothing: nobody else puts anything here."""
