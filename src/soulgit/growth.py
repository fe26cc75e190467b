"""Keeping a home small: loose objects into packs, and packs into bigger ones.

None of it is needed for a reply, so it comes after a write, outside the writer lock, never
waits, and never makes a write fail that is done. One round packs at most so many
objects, so the time it takes has a bound. Only objects that a ref leads to are packed, for
those that are about to be used by somebody else lead nowhere yet; only packs that were made
here are made one, for the others are the user's.

Killed at any moment it leaves nothing worse than a file that the next round takes away: a pack
is in its place and synced before anything that it replaces goes, and is written down as ours
before it is placed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

from soulgit import directories, disk, lockfile
from soulgit.errors import BusyError, StorageFailed
from soulgit.git import Repository, packs
from soulgit.git.packfile import HeldTwice, NotJoinable
from soulgit.landing import Ground

_DUE_SAMPLE = 4
"""So many loose objects in one of 256 directories mean about a thousand in all."""

_ROUND_OBJECTS = 2_000
_TIER = 8
"""So many packs of like size are made one: a pack of the next tier."""

_FOLDED_BYTES = 64 * 2**20
"""Packs that would be bigger together are made one by `collect` alone."""

_GC_SECONDS = 12 * 3_600
"""How long git itself takes a `gc.pid` to mean a collection that still runs."""

Progress = Callable[[int, int], None]
"""Told how many objects of how many were packed."""


@dataclass(frozen=True)
class Collected:
    """What a collection did: objects packed, packs made one, bytes of the git directory."""

    packed: int
    folded: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class Dropped:
    """What goes when its objects are elsewhere or not wanted: files beside packs, loose objects."""

    files: frozenset[str]
    loose: frozenset[str]


@dataclass
class Known:
    """What is remembered between rounds: our packs, and the sample that was left."""

    packs: list[str] = field(default_factory=list)
    left: int = 0


def after_write(ground: Ground) -> bool:
    """Do one round where it is due, and return whether it was; trouble is left to the next."""
    with contextlib.suppress(Exception):  # whatever it is: the write is done, and was promised
        if _is_due(ground):
            with alone(ground) as (repository, known):
                _pack(ground, repository, known, _ROUND_OBJECTS)
                due = _due_for_folding(repository, known)
                _fold(ground, repository, known, due, most=_TIER * _ROUND_OBJECTS)
                known.left = packs.sampled(repository)
            return True
    return False


def _is_due(ground: Ground) -> bool:
    sampled = packs.sampled(ground.repository)
    if sampled < _DUE_SAMPLE:
        return False
    known = _read(ground)
    if sampled < known.left:  # somebody took away what could not be packed
        known.left = sampled
        _write(ground, known)
    return sampled - known.left >= _DUE_SAMPLE


def collect(ground: Ground, progress: Progress = lambda done, of: None) -> Collected:
    """Do all of it to the end; raises BusyError where another process is at it."""
    before = directories.bytes_below(ground.repository.common_dir)
    packed = folded = 0
    with disk.storage_faults(f"{ground.root} cannot be packed"), alone(ground) as at_work:
        repository, known = at_work
        waiting = len(packs.reachable(repository, packs.loose(repository)))
        while done := _pack(ground, repository, known, _ROUND_OBJECTS):
            packed += done
            progress(packed, max(waiting, packed))
        _remove_packed_loose(repository)
        folded = _fold(ground, repository, known, known.packs)
        known.left = packs.sampled(repository)
    return Collected(packed, folded, before, directories.bytes_below(ground.repository.common_dir))


@contextmanager
def alone(ground: Ground) -> Iterator[tuple[Repository, Known]]:
    """Hold the lock of whoever packs, with a repository of its own, for others read meanwhile."""
    path = os.path.join(ground.state_dir, "packing")
    for directory in (ground.state_dir, scratch(ground)):
        directories.make_directory(directory)
    busy = BusyError(f"{ground.root} is being packed by another process", lock=path)
    with lockfile.held(path, 0, lambda: busy):
        repository = Repository.open(ground.root, durable=ground.durable)
        _refuse_while_git_collects(repository)
        known = _read(ground)
        _sweep(ground, repository, known)
        try:
            yield repository, known
        finally:
            _write(ground, known)
            repository.release()


def add(ground: Ground, repository: Repository, known: Known, names: Iterable[str]) -> None:
    """Place packs that were made in `scratch` as ours."""
    for name in names:
        _place(ground, repository, known, name)


def keep_only(
    ground: Ground,
    repository: Repository,
    known: Known,
    object_ids: Sequence[str],
    dropped: Dropped,
) -> None:
    """Make one pack of some objects; then other packs and loose objects go, whoever made them.

    Raises StorageFailed, with nothing gone, where that pack has not become what it should be.
    """
    kept = set(object_ids)
    name = packs.write(repository, object_ids, scratch(ground))
    _place(ground, repository, known, name)
    if set(packs.ids(repository, name)) != kept or not packs.is_whole(repository, name):
        raise StorageFailed(f"{name} does not hold what was put into it, so nothing was removed")
    packs.remove_all(repository, dropped.files - packs.files_of(name))
    if ground.durable:
        disk.sync_directory(packs.directory(repository))
    packs.remove_loose(repository, dropped.loose)
    if ground.durable:
        packs.sync(repository)
    known.packs, known.left = [name], 0


def _refuse_while_git_collects(repository: Repository) -> None:
    lock = os.path.join(repository.common_dir, "gc.pid")
    made = disk.modified_at(lock)
    if made is not None and time.time() - made < _GC_SECONDS:
        raise BusyError(f"git is collecting garbage in {repository.path}", lock=lock)


def _pack(ground: Ground, repository: Repository, known: Known, most: int) -> int:
    """Pack the oldest loose objects that a ref leads to, and return how many."""
    waiting = packs.reachable(repository, packs.loose(repository))
    # A killed round leaves some that are packed and loose; a collection takes those away.
    unpacked = packs.unpacked(repository, waiting, known.packs)
    if not unpacked:
        return 0
    ids = packs.for_one_pack(repository, unpacked, most)
    newest_first = list(reversed(ids))
    newest_first.sort(key=waiting.__getitem__)  # versions of one thing after each other
    name = packs.write(repository, newest_first, scratch(ground))
    _place(ground, repository, known, name)
    if set(packs.ids(repository, name)).issuperset(ids):
        packs.remove_loose(repository, ids)
    return len(ids)


def _due_for_folding(repository: Repository, known: Known) -> list[str]:
    """Return our packs of the smallest tier that is full, if there is one."""
    tiers: dict[int, list[str]] = {}
    for name in known.packs:
        tiers.setdefault(_tier(packs.size(repository, name)), []).append(name)
    full = [names for _, names in sorted(tiers.items()) if len(names) >= _TIER]
    due = full[0] if full else []
    is_small = sum(packs.size(repository, name) for name in due) <= _FOLDED_BYTES
    return due if is_small else []


def _tier(size_bytes: int) -> int:
    tier = 0
    while size_bytes >= _TIER:
        size_bytes //= _TIER
        tier += 1
    return tier


def _fold(
    ground: Ground, repository: Repository, known: Known, names: list[str], most: int | None = None
) -> int:
    """Make one pack of several of ours, and return of how many.

    Where they share objects these are packed anew, but not more than `most`: that takes time.
    """
    free = [name for name in names if not packs.is_relied_on(repository, name)]
    if len(free) < 2:
        return 0
    try:
        name = packs.joined(repository, free, scratch(ground))
    except HeldTwice:
        ids = list(dict.fromkeys(chain.from_iterable(packs.ids(repository, n) for n in free)))
        if most is not None and len(ids) > most:
            return 0
        name = packs.write(repository, ids, scratch(ground))
    except NotJoinable:
        damaged = {name for name in free if not packs.is_whole(repository, name)}
        known.packs = [name for name in known.packs if name not in damaged]
        return 0
    _place(ground, repository, known, name)
    replaced = set(free) - {name}  # one that holds all of the others comes out as it is
    for old in replaced:
        packs.remove(repository, old)
    known.packs = [known_name for known_name in known.packs if known_name not in replaced]
    return len(free)


def _place(ground: Ground, repository: Repository, known: Known, name: str) -> None:
    known.packs = [*dict.fromkeys([*known.packs, name])]
    _write(ground, known)
    packs.place(repository, name, scratch(ground), durable=ground.durable)


def _remove_packed_loose(repository: Repository) -> None:
    """Take away loose objects that are in a pack too, as `git prune-packed` does."""
    loose = packs.loose(repository)
    for name in packs.names(repository):
        if packs.is_whole(repository, name):
            packs.remove_loose(repository, loose.intersection(packs.ids(repository, name)))


def _sweep(ground: Ground, repository: Repository, known: Known) -> None:
    """Take away what a dead one left, and forget packs of ours that are gone."""
    for name in disk.names(scratch(ground)):
        disk.discard(os.path.join(scratch(ground), name))
    complete = set(packs.names(repository))
    for name in set(known.packs) - complete:
        packs.remove(repository, name)
    known.packs = [name for name in known.packs if name in complete]


def scratch(ground: Ground) -> str:
    """Return where packs are made before they are placed."""
    return os.path.join(ground.state_dir, "pack")


def _read(ground: Ground) -> Known:
    try:
        with open(os.path.join(ground.state_dir, "packs.json"), "rb") as file:
            values = json.loads(file.read())
        return Known([str(name) for name in values["packs"]], int(values["left"]))
    except (OSError, ValueError, LookupError, TypeError):
        return Known()


def _write(ground: Ground, known: Known) -> None:
    data = json.dumps({"packs": known.packs, "left": known.left}).encode()
    draft = os.path.join(scratch(ground), "packs.json")
    disk.replace(ground.state_dir, "packs.json", data, draft, durable=ground.durable)
