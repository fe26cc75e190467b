"""Versions of one thing as a pack holds them: the newest whole, the others as what differs.

What was remembered last is read most, so it is the older ones that are put together anew.
Each is told by the one before it, but after so many one is told by the first of those: so
none is far from a whole one, and few have to be whole.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from soulgit.git.delta import delta

_RUN = 25
_RUNS = 25
"""Together these are as many steps as git itself takes at most to put an object together."""

_LONGEST_BYTES = 2**22
"""What is longer is held whole: it is no memory, and takes long to compare."""

_SHRINKS = 8
"""Text hardly ever shrinks to less than this part of its length."""

_BY_OFFSET = 6


@dataclass(frozen=True)
class _Version:
    """An object that was put into the pack, and where."""

    data: bytes
    at: int


class Chain:
    """Objects of one kind on their way into a pack, newer versions first."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._last: _Version | None = None
        self._first: _Version | None = None
        """The one at which this run began."""
        self._length = 0
        """How many objects this run has."""
        self._runs = 0

    def entry(self, data: bytes, at: int) -> bytes:
        """Return the bytes of the next object, which are to stand at a place of the pack."""
        begins = self._length >= _RUN
        base = self._first if begins else self._last
        if begins and self._runs >= _RUNS:
            base = None
        entry = _as_delta(base, data, at) if base else None
        if entry is None:
            entry = entry_head(self._kind, len(data)) + zlib.compress(data)
            self._runs, begins = 0, True
        self._last = _Version(data, at)
        if begins:
            self._first = self._last
            self._length = 0
            self._runs += 1
        self._length += 1
        return entry


def _as_delta(base: _Version, data: bytes, at: int) -> bytes | None:
    """Return an object as what differs from another one, None where that saves nothing."""
    if max(len(base.data), len(data)) > _LONGEST_BYTES:
        return None
    differs = delta(base.data, data)
    if len(differs) >= len(data):
        return None
    packed = zlib.compress(differs)
    if len(packed) > len(data) // _SHRINKS and len(packed) >= len(zlib.compress(data)):
        return None
    return entry_head(_BY_OFFSET, len(differs)) + _distance(at - base.at) + packed


def entry_head(kind: int, length: int) -> bytes:
    """Return what an entry begins with: its kind, and its length before it was packed."""
    found = bytearray([kind << 4 | length & 0x0F])
    length >>= 4
    while length:
        found[-1] |= 0x80
        found.append(length & 0x7F)
        length >>= 7
    return bytes(found)


def _distance(number: int) -> bytes:
    """Return how far back the base lies, in the form that only this number has."""
    found = bytearray([number & 0x7F])
    while number := number >> 7:
        number -= 1
        found.append(0x80 | number & 0x7F)
    return bytes(found[::-1])
