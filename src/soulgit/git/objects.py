"""Objects as the bytes they are: read from the store, taken apart and put together again.

What is taken apart and put together unchanged is the same bytes, so it has the same id.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pygit2

from soulgit.errors import RepositoryRefused
from soulgit.git.faults import translated
from soulgit.git.loose import refuse_cut_off
from soulgit.git.repository import Repository
from soulgit.git.values import KINDS

_TREE, _FILE = range(2)


def read(repository: Repository, object_id: str) -> tuple[str, bytes]:
    """Return the kind and the bytes of an object, its hash checked."""
    refuse_cut_off(os.path.join(repository.common_dir, "objects"), object_id)
    with translated(repository.path):
        kind, data = repository._handle.read(pygit2.Oid(hex=object_id))
    return KINDS[int(kind)], data


def stored(repository: Repository) -> Iterator[str]:
    """Yield the id of every object in the store, whatever leads to it."""
    with translated(repository.path):
        yield from dict.fromkeys(str(object_id) for object_id in repository._handle.odb)


def id_of(kind: str, data: bytes) -> str:
    """Return the id that an object has."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()


@dataclass(frozen=True)
class Item:
    """One entry of a tree: its mode as it is written, its name, its object."""

    mode: bytes
    name: bytes
    id: str

    @property
    def is_tree(self) -> bool:
        """Whether it is a directory."""
        return self.mode.lstrip(b"0") == b"40000"

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is a submodule, whose object is in another repository."""
        return self.mode == b"160000"


def parse_tree(data: bytes) -> list[Item]:
    """Return the entries of a tree."""
    items, at = [], 0
    while at < len(data):
        blank, end = data.index(b" ", at), data.index(b"\0", at)
        items.append(Item(data[at:blank], data[blank + 1 : end], data[end + 1 : end + 21].hex()))
        at = end + 21
    return items


def build_tree(items: Sequence[Item]) -> bytes:
    """Return a tree of some entries, in git's order; two of one name are refused."""
    if len({item.name for item in items}) < len(items):
        raise RepositoryRefused(
            "two files would have one name",
            hint="rename one of them, commit that, and try again",
        )
    ordered = sorted(items, key=lambda item: item.name + b"/" * item.is_tree)
    return b"".join(
        b"%s %s\0" % (item.mode, item.name) + bytes.fromhex(item.id) for item in ordered
    )


@dataclass(frozen=True)
class Told:
    """A commit or a tag: its headers in order, each with the lines it goes on in, and a message."""

    headers: tuple[tuple[bytes, bytes], ...]
    message: bytes

    @classmethod
    def parse(cls, data: bytes) -> Told:
        """Take a commit or tag apart."""
        head, gap, message = data.partition(b"\n\n")
        if not gap:  # a tag without a message may end with its headers
            head, message = data.removesuffix(b"\n"), b""
        headers: list[tuple[bytes, bytes]] = []
        for line in head.split(b"\n"):
            if line.startswith(b" ") and headers:
                key, value = headers[-1]
                headers[-1] = (key, value + b"\n" + line)
            else:
                key, _, value = line.partition(b" ")
                headers.append((key, value))
        return cls(tuple(headers), message)

    def build(self) -> bytes:
        """Put it together again."""
        head = b"".join(key + b" " + value + b"\n" for key, value in self.headers)
        return head + b"\n" + self.message

    def first(self, key: bytes) -> bytes | None:
        """Return the value of a header, None where there is none."""
        return next((value for known, value in self.headers if known == key), None)

    def all(self, key: bytes) -> list[str]:
        """Return the values of a header that may be there several times, as text."""
        return [value.decode("ascii", "replace") for known, value in self.headers if known == key]

    def without(self, *keys: bytes) -> Told:
        """Return it without some headers."""
        return replace(self, headers=tuple(h for h in self.headers if h[0] not in keys))

    @cached_property
    def codec(self) -> str:
        """The codec of its texts: the one it names if that gives the message back, else UTF-8."""
        try:
            named = (self.first(b"encoding") or b"utf-8").decode("ascii")
            text = self.message.decode(named, "surrogateescape")
            return named if text.encode(named, "surrogateescape") == self.message else "utf-8"
        except (LookupError, ValueError):
            return "utf-8"

    def text(self, data: bytes) -> str:
        """Return bytes of it as text; those that are none are kept in it."""
        return data.decode(self.codec, "surrogateescape")

    def bytes(self, text: str) -> bytes:
        """Return a text as bytes of it."""
        return text.encode(self.codec, "surrogateescape")


def refs(repository: Repository) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the refs name: those that name an object, and those that name another ref."""
    direct: dict[str, str] = {}
    symbolic: dict[str, str] = {}
    with translated(repository.path):
        for raw in repository._handle.raw_listall_references():
            name = _ref_name(raw)
            reference = repository._handle.references.get(name)
            if reference is None:
                continue
            target = reference.target
            if isinstance(target, pygit2.Oid):
                direct[name] = str(target)
            else:
                symbolic[name] = target
    return direct, symbolic


def _ref_name(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise RepositoryRefused(
            f"the name of a ref is no UTF-8: {raw!r}", hint="rename it with `git branch -m`"
        ) from fault


def reachable(repository: Repository, tips: Iterable[str]) -> list[str]:
    """Return all that tips lead to: commits, trees, files, and versions of a thing together."""
    commits: dict[str, None] = {}
    others: dict[str, tuple[int, bytes]] = {}
    trees: list[str] = []
    waiting = list(tips)
    while waiting:
        object_id = waiting.pop()
        if object_id in commits or object_id in others:
            continue
        kind, data = read(repository, object_id)
        if kind in ("commit", "tag"):
            commits[object_id] = None
            told = Told.parse(data)
            waiting += told.all(b"parent") + told.all(b"object")
            trees += told.all(b"tree")
        elif kind == "tree":
            trees.append(object_id)
        else:
            others[object_id] = (_FILE, b"")
    _below(repository, trees, others)
    return [*commits, *sorted(others, key=others.__getitem__)]


def _below(
    repository: Repository, trees: Iterable[str], found: dict[str, tuple[int, bytes]]
) -> None:
    """Add trees and all below them to what was found, each with its kind and its path."""
    waiting = deque((tree_id, b"") for tree_id in trees)
    while waiting:
        tree_id, path = waiting.popleft()
        if tree_id in found:
            continue
        found[tree_id] = (_TREE, path)
        for item in parse_tree(read(repository, tree_id)[1]):
            below = path + b"/" + item.name
            if item.is_tree:
                waiting.append((item.id, below))
            elif not item.is_elsewhere:
                found.setdefault(item.id, (_FILE, below))


def changed_files(
    repository: Repository, before: str, after: str, path: bytes = b""
) -> Iterator[tuple[bytes, Item | None, Item | None]]:
    """Yield the paths at which two trees differ, with what stands there in each."""
    if before == after:
        return
    had, has = (
        {item.name: item for item in parse_tree(read(repository, tree)[1])}
        for tree in (before, after)
    )
    for name in {**had, **has}:
        old, new = had.get(name), has.get(name)
        if old == new:
            continue
        if old is not None and new is not None and old.is_tree and new.is_tree:
            yield from changed_files(repository, old.id, new.id, path + name + b"/")
            continue
        gone = dict(files(repository, old, path + name)) if old else {}
        come = dict(files(repository, new, path + name)) if new else {}
        for one in {**gone, **come}:
            yield one, gone.get(one), come.get(one)


def files(repository: Repository, item: Item, path: bytes) -> Iterator[tuple[bytes, Item]]:
    """Yield the files at and below an entry of a tree, with their paths."""
    if not item.is_tree:
        yield path, item
        return
    for below in parse_tree(read(repository, item.id)[1]):
        yield from files(repository, below, path + b"/" + below.name if path else below.name)
