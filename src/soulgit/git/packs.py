"""Loose objects and packs of a repository: which there are, and how they take each other's place.

A pack is complete, in its place and synced, before any object or pack that it replaces goes;
so whoever reads finds each object in one place or the other at every moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile

import pygit2

from soulgit import disk
from soulgit.errors import SoulgitError
from soulgit.git import packfile
from soulgit.git.faults import translated
from soulgit.git.objects import read
from soulgit.git.packfile import Writing, holds, join, read_index
from soulgit.git.repository import Repository
from soulgit.git.values import KIND_NUMBERS, TREE_MODE

_FAN_OUT = [f"{number:02x}" for number in range(256)]
_BESIDE = (".keep", ".promisor", ".bitmap", ".mtimes")
"""What stands beside a pack that somebody relies on as it is."""

_SAMPLED = "17"

_PACK_MODE = 0o444
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_PACK_BYTES = 2**30

Kin = tuple[int, str]
"""What an object is a version of: its kind, in the order of a pack, and the name it has."""

_COMMITS, _TREES, _BLOBS = range(3)


def directory(repository: Repository) -> str:
    """Return where packs lie."""
    return os.path.join(_objects(repository), "pack")


def sampled(repository: Repository) -> int:
    """Return how many loose objects lie in one of the 256 directories, for a quick guess."""
    return len(disk.names(os.path.join(_objects(repository), _SAMPLED)))


def loose(repository: Repository) -> set[str]:
    """Return the ids of all loose objects."""
    objects = _objects(repository)
    return {
        prefix + name
        for prefix in _FAN_OUT
        for name in disk.names(os.path.join(objects, prefix))
        if len(name) == 38
    }


def reachable(repository: Repository, wanted: set[str]) -> dict[str, Kin]:
    """Return those of some loose objects that a ref leads to, each after what it leads to.

    An object that is not among them is taken to lead to none of them, which holds while
    packs are made of such lists from their beginning.
    """
    found: dict[str, Kin] = {}
    tips = [tip for name in repository.refs("refs/") if (tip := _tip(repository, name))]
    for commit_id in _commits(repository, tips, wanted):
        found[commit_id] = (_COMMITS, "")
        tree_id = repository.commit(commit_id).tree
        for object_id, kin in _of_tree(repository, tree_id, "", wanted):
            found.setdefault(object_id, kin)
    return dict(reversed(found.items()))


def for_one_pack(repository: Repository, ids: Sequence[str], most: int) -> Sequence[str]:
    """Return the first of some loose objects, so many that the bytes of a pack have a bound."""
    sizes = (disk.size_bytes(loose_path(repository, object_id)) or 0 for object_id in ids[:most])
    fitting = takewhile(lambda size_bytes: size_bytes <= _PACK_BYTES, accumulate(sizes))
    return ids[: max(1, sum(1 for _ in fitting))]


def write(repository: Repository, ids: Sequence[str], scratch: str) -> str:
    """Make a pack of objects in an empty directory and return its name, without ending.

    Versions of a thing are to follow each other, the newest first. The directory's own name
    has to be `pack`, for that is where libgit2, which has to find all of it whole, looks.
    """
    writing = Writing()
    draft = os.path.join(scratch, "draft")
    with open(os.open(draft, _NEW_FILE, _PACK_MODE), "wb") as file:
        file.writelines(writing.pack(len(ids), _read(repository, ids)))
        mode = os.fstat(file.fileno()).st_mode
    made = os.path.join(scratch, writing.name)
    disk.write(made + ".idx", writing.index(), durable=False)
    os.chmod(made + ".idx", mode)
    os.replace(draft, made + ".pack")
    _refuse_unlike(repository, ids, scratch)
    return writing.name


def _read(repository: Repository, ids: Sequence[str]) -> Iterator[tuple[str, int, bytes]]:
    for object_id in ids:
        kind, data = read(repository, object_id)
        yield object_id, KIND_NUMBERS[kind], data


def _refuse_unlike(repository: Repository, ids: Sequence[str], scratch: str) -> None:
    """Raise for a pack from which not all objects come back as they were: others are to go."""
    with translated(repository.path):
        store = pygit2.Odb()
        store.add_backend(pygit2.OdbBackendPack(os.path.dirname(scratch)), 1)
        for object_id in ids:
            store.read(pygit2.Oid(hex=object_id))  # which compares the hash


def place(repository: Repository, name: str, scratch: str, *, durable: bool) -> None:
    """Move a pack into its place: the pack first, for it is its index that makes it known."""
    for ending in (".pack", ".idx"):
        path = os.path.join(scratch, name + ending)
        if durable:
            disk.sync(path)
        os.replace(path, os.path.join(directory(repository), name + ending))
    if durable:
        disk.sync_directory(directory(repository))


def joined(repository: Repository, names: Iterable[str], scratch: str) -> str:
    """Make one pack of several and return its name; it still has to be placed."""
    known = list(names)
    pack, index = join([_both(repository, name) for name in known])
    made = f"pack-{pack[-20:].hex()}"
    like = os.stat(os.path.join(directory(repository), known[0] + ".pack"))
    for ending, content in ((".pack", pack), (".idx", index)):
        path = os.path.join(scratch, made + ending)
        disk.write(path, content, durable=False)
        os.chmod(path, like.st_mode & 0o444)
    return made


def is_whole(repository: Repository, name: str) -> bool:
    """Whether a pack is undamaged, as far as its checksums tell."""
    return packfile.is_whole(*_both(repository, name))


def unpacked(repository: Repository, object_ids: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return those of some objects that none of some packs holds."""
    indexes = [_both(repository, name, only_index=True)[1] for name in names]
    raw = ((object_id, bytes.fromhex(object_id)) for object_id in object_ids)
    return [text for text, data in raw if not any(holds(index, data) for index in indexes)]


def _both(repository: Repository, name: str, *, only_index: bool = False) -> tuple[bytes, bytes]:
    path = os.path.join(directory(repository), name)
    return b"" if only_index else _bytes(path + ".pack"), _bytes(path + ".idx")


def ids(repository: Repository, name: str) -> list[str]:
    """Return the ids of the objects in a pack, in their order there."""
    index = read_index(_both(repository, name, only_index=True)[1])
    in_order = sorted(zip(index.offsets, index.ids, strict=True))
    return [object_id.hex() for _, object_id in in_order]


def names(repository: Repository) -> list[str]:
    """Return the packs that are complete, by name without ending."""
    there = set(disk.names(directory(repository)))
    return sorted(
        name.removesuffix(".idx")
        for name in there
        if name.endswith(".idx") and name.removesuffix(".idx") + ".pack" in there
    )


def size(repository: Repository, name: str) -> int:
    """Return the bytes of a pack."""
    return os.path.getsize(os.path.join(directory(repository), name + ".pack"))


def is_relied_on(repository: Repository, name: str) -> bool:
    """Whether something else speaks of a pack, so that it may not go."""
    place = directory(repository)
    if os.path.exists(os.path.join(place, "multi-pack-index")):
        return True
    return any(os.path.exists(os.path.join(place, name + ending)) for ending in _BESIDE)


def remove(repository: Repository, name: str) -> None:
    """Take away a pack whose objects are elsewhere; without its index nobody looks into it."""
    for ending in (".idx", ".rev", ".pack"):
        disk.discard(os.path.join(directory(repository), name + ending))


def files(repository: Repository) -> set[str]:
    """Return the names of all files that lie where packs do."""
    return set(disk.names(directory(repository)))


def files_of(name: str) -> set[str]:
    """Return the names of the files of a pack that was made here."""
    return {name + ".pack", name + ".idx"}


def remove_all(repository: Repository, names: Iterable[str]) -> None:
    """Take files away that lie where packs do: what speaks of packs first, then their indexes."""
    ranks = {".idx": 1, ".pack": 3}
    for name in sorted(names, key=lambda name: _rank(name, ranks)):
        disk.discard(os.path.join(directory(repository), name))


def _rank(name: str, ranks: dict[str, int]) -> tuple[int, str]:
    return (0 if name.startswith("multi-pack") else ranks.get(os.path.splitext(name)[1], 2)), name


def sync(repository: Repository) -> None:
    """Bring to the disk that files of objects are gone."""
    objects = _objects(repository)
    with disk.storage_faults(f"the objects of {repository.path} cannot be synced"):
        for name in ("pack", "info", *_FAN_OUT, ""):
            place = os.path.join(objects, name)
            if os.path.isdir(place):
                disk.sync_directory(place)


def loose_path(repository: Repository, object_id: str) -> str:
    """Return where a loose object lies."""
    return os.path.join(_objects(repository), object_id[:2], object_id[2:])


def unfinished(repository: Repository) -> list[str]:
    """Return the paths of what others began to write as loose objects."""
    objects = _objects(repository)
    return [
        os.path.join(objects, prefix, name)
        for prefix in ("", *_FAN_OUT)
        for name in disk.names(os.path.join(objects, prefix))
        if name.startswith("tmp_")
    ]


def remove_loose(repository: Repository, object_ids: Iterable[str]) -> None:
    """Take away loose objects that are in a pack."""
    for object_id in object_ids:
        disk.discard(loose_path(repository, object_id))


def _objects(repository: Repository) -> str:
    return os.path.join(repository.common_dir, "objects")


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _tip(repository: Repository, name: str) -> str | None:
    try:
        return repository.ref(name)
    except SoulgitError:
        return None  # it leads nowhere


def _commits(repository: Repository, tips: list[str], wanted: set[str]) -> Iterator[str]:
    """Yield the commits among some objects that others of them lead to, children first."""
    waiting, seen = list(tips), set(tips)
    while waiting:
        commit_id = waiting.pop()
        if commit_id not in wanted or (parents := _parents(repository, commit_id)) is None:
            continue
        yield commit_id
        waiting += [parent for parent in parents if parent not in seen]
        seen.update(parents)


def _parents(repository: Repository, commit_id: str) -> tuple[str, ...] | None:
    try:
        return repository.commit(commit_id).parents
    except SoulgitError:
        return None  # a tag, or nothing that can be read


def _of_tree(
    repository: Repository, tree_id: str, name: str, wanted: set[str]
) -> Iterator[tuple[str, Kin]]:
    """Yield a tree and what it holds, as far as it is among some objects."""
    if tree_id not in wanted:
        return
    yield tree_id, (_TREES, name)
    entries = repository.children(tree_id)
    for below, entry in zip(repository.names(tree_id), entries, strict=True):
        if entry.mode == TREE_MODE:
            yield from _of_tree(repository, entry.id, below, wanted)
        elif entry.id in wanted:
            yield entry.id, (_BLOBS, below)
