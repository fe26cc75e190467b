"""Packs as bytes: how one is written, what its index names, and several made one as they are.

The format is that of git's `gitformat-pack`: a pack is a header, objects, and the SHA-1 of both;
a delta says how far back in the same pack its base lies. So the objects of one pack can
follow those of another as they are, and only their offsets in the index change.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from soulgit.git.chain import Chain, entry_head
from soulgit.git.values import KIND_NUMBERS

_PACK_HEADER = struct.Struct(">4sII")
_INDEX_HEADER = b"\377tOc\0\0\0\2"
_ID_BYTES = 20
_MOST_BYTES = 2**31
"""Offsets from here on have another form in an index, which is not written here."""


class NotJoinable(Exception):
    """Packs that are damaged or too big together."""


class HeldTwice(NotJoinable):
    """Packs that share an object, which one pack may hold once only."""


@dataclass(frozen=True)
class Index:
    """What the index of a pack says of each object, in the order of the ids."""

    ids: tuple[bytes, ...]
    checksums: tuple[int, ...]
    offsets: tuple[int, ...]
    pack_checksum: bytes


def read_index(data: bytes) -> Index:
    """Return what the bytes of an index say; raises NotJoinable for a damaged one."""
    if not data.startswith(_INDEX_HEADER):
        raise NotJoinable("an index of another version")
    if hashlib.sha1(data[:-_ID_BYTES]).digest() != data[-_ID_BYTES:]:
        raise NotJoinable("a damaged index")
    start = len(_INDEX_HEADER) + 256 * 4
    (count,) = struct.unpack_from(">I", data, start - 4)
    ids = tuple(
        data[at : at + _ID_BYTES] for at in range(start, start + count * _ID_BYTES, _ID_BYTES)
    )
    numbers = start + count * _ID_BYTES
    checksums = struct.unpack_from(f">{count}I", data, numbers)
    offsets = struct.unpack_from(f">{count}I", data, numbers + 4 * count)
    if any(offset >= _MOST_BYTES for offset in offsets):
        raise NotJoinable("a pack of more than two gigabytes")
    return Index(ids, checksums, offsets, data[-2 * _ID_BYTES : -_ID_BYTES])


def is_whole(pack: bytes, index: bytes) -> bool:
    """Whether a pack and its index are undamaged and belong together."""
    try:
        _body(pack, read_index(index))
    except NotJoinable:
        return False
    return True


class Writing:
    """A pack that is written object after object, and then its index."""

    def __init__(self) -> None:
        self._entries: list[tuple[bytes, int, int]] = []
        self._checksum = hashlib.sha1()

    def pack(self, count: int, objects: Iterable[tuple[str, int, bytes]]) -> Iterator[bytes]:
        """Yield the bytes of a pack of so many objects: ids, kinds as a pack has them, and data.

        Where versions of a thing follow each other, the newest first, it becomes smallest.
        """
        chains: dict[int, Chain] = {}
        yield self._told(pack_header(count))
        at = _PACK_HEADER.size
        for object_id, kind, data in objects:
            entry = chains.setdefault(kind, Chain(kind)).entry(data, at)
            self._entries.append((bytes.fromhex(object_id), zlib.crc32(entry), at))
            at += len(entry)
            yield self._told(entry)
        yield self._checksum.digest()

    def index(self) -> bytes:
        """Return the index of the pack that was written."""
        return build_index(sorted(self._entries), self._checksum.digest())

    @property
    def name(self) -> str:
        """The name of the pack that was written, as git would call it."""
        return f"pack-{self._checksum.hexdigest()}"

    def _told(self, data: bytes) -> bytes:
        self._checksum.update(data)
        return data


def holds(index: bytes, object_id: bytes) -> bool:
    """Whether the bytes of an index name an object; the index is taken to be undamaged."""
    first = object_id[0]
    fan_out = struct.unpack_from(">256I", index, len(_INDEX_HEADER))
    low, high = fan_out[first - 1] if first else 0, fan_out[first]
    start = len(_INDEX_HEADER) + 256 * 4
    while low < high:
        middle = (low + high) // 2
        at = start + middle * _ID_BYTES
        if index[at : at + _ID_BYTES] < object_id:
            low = middle + 1
        else:
            high = middle
    return index[start + low * _ID_BYTES : start + (low + 1) * _ID_BYTES] == object_id


def join(packs: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return one pack, and its index, for several packs given with theirs.

    Raises NotJoinable where one is damaged, for its damage would get a checksum that holds,
    HeldTwice where they share an object.
    """
    if not packs:
        raise NotJoinable("no pack at all")
    indexes = [read_index(index) for _, index in packs]
    bodies = [_body(pack, index) for (pack, _), index in zip(packs, indexes, strict=True)]
    if sum(map(len, bodies)) >= _MOST_BYTES:
        raise NotJoinable("a pack of more than two gigabytes")
    shifts = accumulate(map(len, bodies[:-1]), initial=0)
    entries = sorted(
        chain.from_iterable(
            zip(index.ids, index.checksums, (at + shift for at in index.offsets), strict=True)
            for index, shift in zip(indexes, shifts, strict=True)
        )
    )
    if any(one[0] == other[0] for one, other in pairwise(entries)):
        raise HeldTwice("packs that share an object")
    joined = b"".join([pack_header(len(entries)), *bodies])
    checksum = hashlib.sha1(joined).digest()
    return joined + checksum, build_index(entries, checksum)


def _body(pack: bytes, index: Index) -> bytes:
    """Return the objects of a pack that is whole and that an index speaks of."""
    if len(pack) < _PACK_HEADER.size + _ID_BYTES:
        raise NotJoinable("a pack that is cut off")
    if _PACK_HEADER.unpack_from(pack) != (b"PACK", 2, len(index.ids)):
        raise NotJoinable("a pack of another version, or of another index")
    if hashlib.sha1(pack[:-_ID_BYTES]).digest() != pack[-_ID_BYTES:]:
        raise NotJoinable("a damaged pack")
    if pack[-_ID_BYTES:] != index.pack_checksum:
        raise NotJoinable("an index of another pack")
    return pack[_PACK_HEADER.size : -_ID_BYTES]


def pack_header(count: int) -> bytes:
    """Return what a pack of so many objects begins with."""
    return _PACK_HEADER.pack(b"PACK", 2, count)


def pack_entry(kind: str, data: bytes) -> bytes:
    """Return an object as a pack holds it: kind and length, then the bytes, quickly deflated."""
    return entry_head(KIND_NUMBERS[kind], len(data)) + zlib.compress(data, 1)


def build_index(entries: Sequence[tuple[bytes, int, int]], pack_checksum: bytes) -> bytes:
    """Return the index of a pack for its objects: ids in order, checksums, offsets.

    Raises NotJoinable for a pack that is too big for the form that is written here.
    """
    if any(offset >= _MOST_BYTES for _, _, offset in entries):
        raise NotJoinable("a pack of more than two gigabytes")
    counts = [0] * 256
    for object_id, _, _ in entries:
        counts[object_id[0]] += 1
    numbers = struct.Struct(f">{len(entries)}I")
    data = b"".join(
        [
            _INDEX_HEADER,
            struct.pack(">256I", *accumulate(counts)),
            *(object_id for object_id, _, _ in entries),
            numbers.pack(*(checksum for _, checksum, _ in entries)),
            numbers.pack(*(offset for _, _, offset in entries)),
            pack_checksum,
        ]
    )
    return data + hashlib.sha1(data).digest()
