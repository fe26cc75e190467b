"""Refs that go, several at once, under locks that a dead process's successor knows as its own."""

from __future__ import annotations

import os
from collections.abc import Iterable

from soulgit import disk
from soulgit.git.repository import Repository
from soulgit.lockfile import exclusive

_PACKED = "packed-refs"


def delete_refs(
    repository: Repository, names: Iterable[str], source: str, wait_seconds: float, *, durable: bool
) -> None:
    """Take refs away that need not be there; each lock is a link to the file `source`.

    What is packed goes first, for a packed ref that only its loose one hides would come back.
    """
    going = list(names)
    common = repository.common_dir
    packed = os.path.join(common, _PACKED)
    with exclusive(packed + ".lock", source, wait_seconds):
        before = disk.lines(packed)
        after = _without(before, {name.encode() for name in going})
        if after != before:
            draft = os.path.join(common, "soulgit", "scratch", _PACKED)
            disk.replace(common, _PACKED, b"".join(after), draft, durable=durable)
            if durable:
                disk.sync_directory(common)
    for name in going:
        path = os.path.join(common, name)
        if os.path.lexists(path):
            with exclusive(repository.lock_path(name), source, wait_seconds):
                disk.discard(path)
            if durable:
                disk.sync_directory(os.path.dirname(path))


def discard_dead_locks(repository: Repository, source: str) -> None:
    """Take away the locks that a dead process made as links to the file `source`."""
    for directory, below, names in os.walk(repository.common_dir):
        below[:] = [name for name in below if name not in ("objects", "soulgit")]
        for name in names:
            lock = os.path.join(directory, name)
            if name.endswith(".lock") and disk.have_same_content(lock, source):
                disk.discard(lock)


def _without(lines: list[bytes], names: set[bytes]) -> list[bytes]:
    """Return lines of packed refs without some, and without what those lead to."""
    kept: list[bytes] = []
    is_gone = False
    for line in lines:
        if not line.startswith(b"^"):
            is_gone = line.rstrip(b"\n").partition(b" ")[2] in names
        if not is_gone:
            kept.append(line)
    return kept
