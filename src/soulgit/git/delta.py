"""What makes one version of an object of another, as a pack says it.

The format is that of git's `gitformat-pack`: both lengths, then what is copied from the base
and what is put in. What both begin and end with is found whatever it is, and what lies
between is looked for line by line, for that is how memories and records of commits differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_KEY_BYTES = 8
"""Lines that begin alike for so long are worth a look: `author …` with another time, say."""

_WORTH_BYTES = 6
"""What is alike for less is cheaper put in than copied."""

_COPIED_BYTES = 2**16
_PUT_IN_BYTES = 127
_FIRST_LOOK_BYTES = 64


def delta(base: bytes, target: bytes) -> bytes:
    """Return what makes `target` of `base`."""
    shorter = min(len(base), len(target))
    start = _alike_from(base, 0, target, 0, shorter)
    end = _alike_before(base, len(base), target, len(target), shorter - start)
    parts = [_length(len(base)), _length(len(target)), *_copied(0, start)]
    if start + end < len(target):
        parts += _between(base, target, start, end)
    return b"".join([*parts, *_copied(len(base) - end, end)])


def _between(base: bytes, target: bytes, start: int, end: int) -> Iterator[bytes]:
    """Yield what makes the target's lines between what both begin and end with."""
    places = _places(base, base.rfind(b"\n", 0, start) + 1, len(base) - end)
    at = told = start
    stop = len(target) - end
    while at < stop:
        line_end = _after_line(target, at, stop)
        line = target[at:line_end]
        place = places.get(line, places.get(line[:_KEY_BYTES]))
        alike = 0
        if place is not None:
            alike = _alike_from(base, place, target, at, min(len(base) - place, stop - at))
        if place is None or alike < _WORTH_BYTES:
            at = line_end
            continue
        yield from _put_in(target, told, at)
        yield from _copied(place, alike)
        at = told = at + alike
        if target[at - 1 : at] != b"\n":
            at = _after_line(target, at, stop)
    yield from _put_in(target, told, stop)


def _places(base: bytes, at: int, stop: int) -> dict[bytes, int]:
    """Return where lines begin, by the whole line and by its beginning."""
    whole: dict[bytes, int] = {}
    begun: dict[bytes, int] = {}
    while at < stop:
        end = _after_line(base, at, len(base))
        whole.setdefault(base[at:end], at)
        begun.setdefault(base[at : min(end, at + _KEY_BYTES)], at)
        at = end
    return begun | whole


def _after_line(text: bytes, at: int, stop: int) -> int:
    found = text.find(b"\n", at, stop)
    return stop if found < 0 else found + 1


def _alike(most: int, agree: Callable[[int, int], bool]) -> int:
    """Return for how many bytes two texts are alike, `most` at most.

    `agree` is asked whether so many are that come after so many that are.
    """
    alike, look = 0, _FIRST_LOOK_BYTES
    while alike < most:
        look = min(look, most - alike)
        if agree(alike, look):
            alike, look = alike + look, look * 2
        elif look == 1:
            break
        else:  # they differ before here
            most, look = alike + look, look // 2
    return alike


def _alike_from(one: bytes, at: int, other: bytes, there: int, most: int) -> int:
    return _alike(
        most,
        lambda done, more: (
            one[at + done : at + done + more] == other[there + done : there + done + more]
        ),
    )


def _alike_before(one: bytes, at: int, other: bytes, there: int, most: int) -> int:
    return _alike(
        most,
        lambda done, more: (
            one[at - done - more : at - done] == other[there - done - more : there - done]
        ),
    )


def _length(number: int) -> bytes:
    """Return a length, seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(0x80 | number & 0x7F)
        number >>= 7
    found.append(number)
    return bytes(found)


def _copied(at: int, length: int) -> Iterator[bytes]:
    """Yield the instructions that copy so many bytes of the base."""
    for start in range(at, at + length, _COPIED_BYTES):
        count = min(_COPIED_BYTES, at + length - start)
        kind, numbers = 0x80, bytearray()
        for bit, byte in enumerate([*start.to_bytes(4, "little"), count & 0xFF, count >> 8 & 0xFF]):
            if byte:
                kind |= 1 << bit
                numbers.append(byte)
        yield bytes([kind]) + numbers


def _put_in(target: bytes, at: int, stop: int) -> Iterator[bytes]:
    """Yield the instructions that put in what is new."""
    for start in range(at, stop, _PUT_IN_BYTES):
        data = target[start : min(stop, start + _PUT_IN_BYTES)]
        yield bytes([len(data)]) + data
