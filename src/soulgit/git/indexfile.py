"""The index as the bytes it is: what it holds, and an index without what git can do without.

The format is that of git's `gitformat-index`. Its extensions remember trees, merges and
names of files that are long gone, and git makes them anew when it needs them.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from soulgit.errors import RepositoryRefused

_HEADER = struct.Struct(">4sII")
_FIXED = struct.Struct(">24xI12x20sH")
_CHECKSUM_BYTES = 20
_EXTENDED = 0x4000
_STAGE = 0x3000
_ASSUMED = 0x8000
_HAS_NO_FILE = 0x4000 | 0x2000
"""Extended flags of an entry that a sparse checkout hides, and of one that was only announced."""


@dataclass(frozen=True)
class Staged:
    """One entry: what is staged at a path, and whether git takes it otherwise than it stands:
    as a merge's, as hidden by a sparse checkout, as announced, as never to be looked at.
    """

    path: bytes
    mode: int
    id: str
    is_odd: bool


def staged(index_path: str) -> list[Staged]:
    """Return what an index holds, nothing where there is none."""
    data = _read(index_path)
    return [] if data is None else [entry for entry, _ in _entries(index_path, data)]


def bare(index_path: str) -> bytes | None:
    """Return an index without its extensions, None where there is none or it has none."""
    data = _read(index_path)
    if data is None:
        return None
    end = max((end for _, end in _entries(index_path, data)), default=_HEADER.size)
    if len(data) - _CHECKSUM_BYTES <= end:
        return None
    kept = data[:end]
    has_checksum = any(data[-_CHECKSUM_BYTES:])  # index.skipHash leaves it out
    return kept + (hashlib.sha1(kept).digest() if has_checksum else bytes(_CHECKSUM_BYTES))


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _entries(index_path: str, data: bytes) -> Iterator[tuple[Staged, int]]:
    """Yield each entry, and where it ends."""
    try:
        signature, version, count = _HEADER.unpack_from(data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            raise ValueError
        at, path = _HEADER.size, b""
        for _ in range(count):
            mode, object_id, flags = _FIXED.unpack_from(data, at)
            start = at + _FIXED.size
            extended = 0
            if flags & _EXTENDED:
                (extended,) = struct.unpack_from(">H", data, start)
                start += 2
            if version == 4:
                dropped, start = _number(data, start)
                end = data.index(b"\0", start)
                path = path[: len(path) - dropped] + data[start:end]
                at = end + 1
            else:
                end = data.index(b"\0", start)
                path = data[start:end]
                at += (end - at + 8) // 8 * 8
            is_odd = bool(flags & (_STAGE | _ASSUMED) or extended & _HAS_NO_FILE)
            yield Staged(path, mode, object_id.hex(), is_odd), at
        _refuse_needed(index_path, data[at:-_CHECKSUM_BYTES])
    except (ValueError, struct.error) as fault:
        raise RepositoryRefused(
            f"git's index cannot be read: {index_path}", hint="delete it, then `git reset`"
        ) from fault


def _refuse_needed(index_path: str, extensions: bytes) -> None:
    """Refuse an index that does not hold all of itself: a split or a sparse one."""
    at = 0
    while at + 8 <= len(extensions):
        if extensions[at : at + 1].islower():
            raise RepositoryRefused(
                f"git's index is split or sparse: {os.path.basename(index_path)}",
                hint="`git update-index --no-split-index` or `git sparse-checkout disable`",
            )
        at += 8 + int.from_bytes(extensions[at + 4 : at + 8], "big")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in git's varying length, and where it ends."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = (value + 1) << 7 | data[at] & 127
    return value, at + 1
