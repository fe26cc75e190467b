"""Objects written into packs of their own, so that many are in the store at once or not at all."""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import BinaryIO

from soulgit import disk
from soulgit.git import packfile
from soulgit.git.objects import id_of

_READ_BYTES = 2**20
_FULL_BYTES = 2**30
"""A pack that is longer is finished, and another one begun."""


class FreshPacks:
    """Packs in the making: objects are added, and `finish` names the packs that hold them.

    They lie in a directory of soulgit's own until they are placed; nobody knows of them before.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._path = os.path.join(scratch, "fresh")
        self._file: BinaryIO | None = None
        self._entries: list[tuple[bytes, int, int]] = []
        self._known: set[str] = set()
        self._names: list[str] = []

    def add(self, kind: str, data: bytes) -> str:
        """Add an object, once, and return its id."""
        object_id = id_of(kind, data)
        if object_id not in self._known:
            self._known.add(object_id)
            self._append(bytes.fromhex(object_id), packfile.pack_entry(kind, data))
        return object_id

    def finish(self) -> list[str]:
        """Write what is lacking and return the names of the packs, without ending."""
        if self._entries:
            self._close()
        return self._names

    def _append(self, object_id: bytes, entry: bytes) -> None:
        if self._file is None:
            self._file = open(self._path, "w+b")  # noqa: SIM115  # it is closed by _close
            self._file.write(packfile.pack_header(0))
        at = self._file.tell()
        self._file.write(entry)
        self._entries.append((object_id, zlib.crc32(entry), at))
        if at + len(entry) > _FULL_BYTES:
            self._close()

    def _close(self) -> None:
        assert self._file is not None
        with self._file as file:
            file.seek(0)
            file.write(packfile.pack_header(len(self._entries)))
            file.seek(0)
            state = hashlib.sha1()
            while part := file.read(_READ_BYTES):
                state.update(part)
            file.write(state.digest())
        name = f"pack-{state.hexdigest()}"
        os.replace(self._path, os.path.join(self._scratch, name + ".pack"))
        index = packfile.build_index(sorted(self._entries), state.digest())
        disk.write(os.path.join(self._scratch, name + ".idx"), index, durable=False)
        self._names.append(name)
        self._file, self._entries = None, []
