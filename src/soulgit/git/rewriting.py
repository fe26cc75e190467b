"""Objects made anew, each after all that it leads to, so that what nothing touches keeps its id."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from soulgit.errors import RepositoryRefused
from soulgit.git.objects import Item, Told, build_tree, parse_tree, read
from soulgit.git.repository import Repository

_SIGNED = (b"gpgsig", b"gpgsig-sha256", b"mergetag")
"""Headers that would be false of a commit that was made anew."""

_SIGNATURE = re.compile(rb"^-----BEGIN (?:PGP|SSH) SIGNATURE-----$", re.MULTILINE)
"""What a tag's message ends with, where it is signed."""

_LEAST_ID = 7
_WHOLE_ID, _CUT_ID = 40, 12

Put = Callable[[str, bytes], str]
"""Stores an object of a kind and returns its id."""


class Hand(Protocol):
    """What changes objects: given them as they are, it returns them as they shall be."""

    def blob(self, data: bytes, path: bytes) -> bytes:
        """Return a file's bytes; the path is one at which it lies."""

    def name(self, name: bytes) -> bytes:
        """Return the name of a file or directory."""

    def named(self, commit: Told) -> Iterable[str]:
        """Return the words of a commit that may be ids of others, full or cut."""

    def commit(self, commit_id: str, commit: Told) -> Told:
        """Return a commit's texts; what it leads to is seen to by who asks."""

    def remade(self, old: str, new: str, commit: Told) -> None:
        """Be told which commit a commit has become."""

    def tag(self, tag: Told) -> Told:
        """Return a tag's texts."""


class Rewriting:
    """Makes objects anew by a hand, from tips down; `new` is what each that changed has become."""

    def __init__(self, repository: Repository, hand: Hand, put: Put) -> None:
        self.new: dict[str, str] = {}
        self.reached: set[str] = set()
        self.put = put
        self._repository = repository
        self._hand = hand
        self._kinds: dict[str, str] = {}
        self._sorted: list[str] = []
        self._made: set[str] = set()

    def of(self, object_id: str) -> str:
        """Return what an object has become, itself where nothing touches it."""
        return self.new.get(object_id, object_id)

    @property
    def count(self) -> int:
        """How many commits and tags there are, as far as is known."""
        return len(self._kinds)

    def know(self, tips: Iterable[str]) -> None:
        """Learn which commits there are, so that a word can be told to name one."""
        waiting = list(tips)
        while waiting:
            object_id = waiting.pop()
            if object_id in self._kinds:
                continue
            kind, data = read(self._repository, object_id)
            if kind in ("commit", "tag"):
                self._kinds[object_id] = kind
                told = Told.parse(data)
                waiting += told.all(b"parent") + told.all(b"object")
        self._sorted = sorted(self._kinds)

    def named(self, word: str) -> str | None:
        """Return the commit or tag that a word of hex digits names, None for none or several."""
        at = bisect_left(self._sorted, word)
        found = [known for known in self._sorted[at : at + 2] if known.startswith(word)]
        return found[0] if len(found) == 1 and len(word) >= _LEAST_ID else None

    def renamed(self, word: str) -> str:
        """Return a word that names a commit as the same number of digits of its new id."""
        found = self.named(word)
        return self.of(found)[: len(word)] if found else word

    def knows(self, word: str) -> bool:
        """Whether a word names a commit or tag, as it was or as it has become."""
        return word in self._made or self.named(word) is not None

    def take(self, tip: str) -> str:
        """Make all anew that a tip leads to, and return what it has become."""
        kind, data = read(self._repository, tip)
        if kind == "commit":
            self._take_commits(tip)
        elif kind == "tree":
            self._tree(tip, b"")
        elif kind == "tag":
            self._tag(tip, Told.parse(data))
        else:
            self._blob(tip, b"")
        return self.of(tip)

    def take_notes(self, tip: str) -> str:
        """Do as `take` does for notes, whose files are named for the objects they speak of."""
        kind, _ = read(self._repository, tip)
        if kind == "commit":
            self._take_commits(tip, self._notes)
        return self.of(tip)

    def _take_commits(self, tip: str, tree: Callable[[str], str] | None = None) -> None:
        waiting, begun = [tip], set[str]()
        while waiting:
            commit_id = waiting[-1]
            if commit_id in self.reached:
                waiting.pop()
                continue
            kind, data = read(self._repository, commit_id)
            if kind != "commit":
                raise RepositoryRefused(f"{commit_id} is a {kind} where a commit should be")
            told = Told.parse(data)
            before = [] if commit_id in begun else [*self._before(told, begun)]
            begun.add(commit_id)
            if before:
                waiting += before
            else:
                waiting.pop()
                self._commit(commit_id, told, tree or (lambda tree_id: self._tree(tree_id, b"")))

    def _before(self, told: Told, begun: set[str]) -> Iterator[str]:
        """Yield the commits that must be made anew before one: its parents, and those it names."""
        named = (found for word in self._hand.named(told) if (found := self.named(word)))
        for other in (*told.all(b"parent"), *named):
            is_open = other not in self.reached and other not in begun
            if is_open and self._kinds.get(other, "commit") == "commit":
                yield other

    def _commit(self, commit_id: str, told: Told, tree: Callable[[str], str]) -> None:
        ids = {old: self.of(old) for old in told.all(b"parent")}
        (tree_id,) = told.all(b"tree")
        ids[tree_id] = tree(tree_id)
        new = self._hand.commit(commit_id, told)
        if new != told or any(old != of for old, of in ids.items()):
            new = _leading_to(ids, new.without(*_SIGNED), (b"tree", b"parent"))
            self._become(commit_id, "commit", new.build())
            self._hand.remade(commit_id, self.of(commit_id), told)
        self.reached.add(commit_id)

    def _tag(self, tag_id: str, told: Told) -> None:
        (object_id,) = told.all(b"object")
        ids = {object_id: self.take(object_id)}
        new = self._hand.tag(told)
        if new != told or self.of(object_id) != object_id:
            new = replace(new, message=_SIGNATURE.split(new.message, maxsplit=1)[0])
            self._become(tag_id, "tag", _leading_to(ids, new, (b"object",)).build())
        self.reached.add(tag_id)

    def _blob(self, blob_id: str, path: bytes) -> str:
        if blob_id not in self.reached:
            kind, data = read(self._repository, blob_id)
            if kind != "blob":
                raise RepositoryRefused(f"{blob_id} is a {kind} where a file should be")
            new = self._hand.blob(data, path)
            if new is not data and new != data:
                self._become(blob_id, "blob", new)
            self.reached.add(blob_id)
        return self.of(blob_id)

    def _tree(self, tree_id: str, path: bytes) -> str:
        if tree_id not in self.reached:
            items = self._items(tree_id)
            new = [self._item(item, path) for item in items]
            if new != items:
                self._become(tree_id, "tree", build_tree(new))
            self.reached.add(tree_id)
        return self.of(tree_id)

    def _items(self, tree_id: str) -> list[Item]:
        kind, data = read(self._repository, tree_id)
        if kind != "tree":
            raise RepositoryRefused(f"{tree_id} is a {kind} where a directory should be")
        return parse_tree(data)

    def _item(self, item: Item, path: bytes) -> Item:
        name = self._hand.name(item.name)
        below = path + name
        if item.is_elsewhere:
            return replace(item, name=name)
        of = self._tree(item.id, below + b"/") if item.is_tree else self._blob(item.id, below)
        return item if (name, of) == (item.name, item.id) else replace(item, name=name, id=of)

    def _notes(self, tree_id: str) -> str:
        """Make a tree of notes anew: each name, its slashes aside, is the id of an object."""
        self._tree(tree_id, b"notes/")
        items = [(path, replace(item, id=self.of(item.id))) for path, item in self._flat(tree_id)]
        renamed = [(_as_path(self.of(_as_id(path)), path), item) for path, item in items]
        if renamed != list(self._flat(tree_id)):
            merged = dict(reversed(renamed))  # of two notes on what is one object now, the first
            self.new[tree_id] = self._nested(merged)
        return self.of(tree_id)

    def _flat(self, tree_id: str, path: bytes = b"") -> Iterator[tuple[bytes, Item]]:
        for item in self._items(tree_id):
            if item.is_tree:
                yield from self._flat(item.id, path + item.name + b"/")
            else:
                yield path + item.name, item

    def _nested(self, items: dict[bytes, Item]) -> str:
        made: list[Item] = []
        below: dict[bytes, dict[bytes, Item]] = {}
        for path, item in items.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                below.setdefault(name, {})[rest] = item
            else:
                made.append(replace(item, name=self._hand.name(name)))
        for name, inner in below.items():
            made.append(Item(b"40000", self._hand.name(name), self._nested(inner)))
        return self.put("tree", build_tree(made))

    def _become(self, old: str, kind: str, data: bytes) -> None:
        made = self.new[old] = self.put(kind, data)
        if kind in ("commit", "tag"):
            self._made.update((made, made[:_CUT_ID]))


def _leading_to(ids: dict[str, str], told: Told, keys: tuple[bytes, ...]) -> Told:
    """Return a commit or tag that leads to what its objects have become."""
    headers = tuple(
        (key, ids[value.decode("ascii")].encode() if key in keys else value)
        for key, value in told.headers
    )
    return replace(told, headers=headers)


def _as_id(path: bytes) -> str:
    return path.replace(b"/", b"").decode("ascii", "replace")


def _as_path(object_id: str, like: bytes) -> bytes:
    """Return an id as a path with slashes where another has them; what is no id stays."""
    if len(object_id) != _WHOLE_ID or len(like.replace(b"/", b"")) != _WHOLE_ID:
        return like
    digits = iter(object_id.encode())
    return bytes(sign if sign == ord("/") else next(digits) for sign in like)
