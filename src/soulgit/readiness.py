"""Whether a repository and its homes can be redacted as they stand; who says no says why.

A redaction that was cut off leaves some homes as they shall be and others as they were, so
both count as unchanged.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from soulgit import disk
from soulgit.core.redaction import Redactor
from soulgit.errors import (
    BranchRefused,
    ChangesUncommitted,
    ConflictPending,
    InvalidText,
    PersonaPending,
    RepositoryRefused,
    SoulgitError,
)
from soulgit.gate import waits
from soulgit.git import Repository, packs
from soulgit.git.indexfile import Staged, staged
from soulgit.git.objects import Item, files, id_of, read, refs
from soulgit.git.staging import looks_unchanged
from soulgit.git.values import EXECUTABLE_MODE, LINK_MODE
from soulgit.home import Home
from soulgit.places import Place
from soulgit.working import look


def refuse_unreachable(repository: Repository, redactor: Redactor) -> None:
    """Raise RepositoryRefused where part of the history lies where it cannot be made anew."""
    common = repository.common_dir
    direct, symbolic = refs(repository)
    beside = packs.files(repository)
    elsewhere = os.path.join("objects", "info", "alternates")
    for is_so, what, hint in (
        (
            repository.is_shallow,
            "it is a shallow clone, and what its history was cut from is elsewhere",
            "redact the whole repository, or `git fetch --unshallow` first",
        ),
        (
            bool(disk.size_bytes(os.path.join(common, elsewhere))),
            "it borrows objects from another repository (objects/info/alternates)",
            "`git repack -a -d`, then delete that file; redact the other repository too",
        ),
        (
            bool(disk.size_bytes(os.path.join(common, "info", "grafts"))),
            "grafts change its history (info/grafts)",
            "delete that file, or make them part of history first",
        ),
        (
            any(name.startswith("refs/replace/") for name in direct),
            "some of its objects are replaced by others (refs/replace)",
            "`git replace -d` ends each of them",
        ),
        (
            any(name.endswith(".promisor") for name in beside),
            "it is a partial clone, and some of its objects are elsewhere",
            "redact the whole repository, or `git fetch --refetch` without a filter first",
        ),
        (
            any(name.endswith(".keep") for name in beside),
            "a pack is marked to be kept (objects/pack/*.keep)",
            "delete the .keep file, if nothing relies on it",
        ),
        (
            any(_own_refs(common)),
            "a linked home has refs of its own (worktrees/*/refs)",
            "`git bisect reset` or `git update-ref -d` there ends them",
        ),
    ):
        if is_so:
            raise RepositoryRefused(f"{repository.path} cannot be redacted: {what}", hint=hint)
    for name in (*direct, *symbolic):
        if redactor.finds(name):
            raise InvalidText(
                f"the name of a branch or tag holds the text: {redactor.text(name)}",
                hint="rename it first: `git branch -m OLD NEW`, or `git tag NEW OLD` and "
                "`git tag -d OLD`",
            )


def _own_refs(common: str) -> Iterator[str]:
    linked = os.path.join(common, "worktrees")
    for name in disk.names(linked):
        for _, _, found in os.walk(os.path.join(linked, name, "refs")):
            yield from found


def refuse_changes(there: Home, redactor: Redactor) -> None:
    """Raise where a home is not, but for the text, as its last commit has it."""
    repository = there.repository
    repository.refuse_unfinished()
    if os.path.exists(os.path.join(repository.git_dir, "BISECT_LOG")):
        raise ConflictPending(f"a bisect is in progress in {there.path}", hint="git bisect reset")
    if repository.head().ref is None:
        raise BranchRefused(f"HEAD of {there.path} is detached")
    if repository.setting("core.sparsecheckout") == "true":
        raise RepositoryRefused(
            f"a sparse checkout hides files of {there.path}",
            hint=f"git -C {there.path} sparse-checkout disable",
        )
    changed = sorted(_Comparison(there, redactor).changed())
    if not changed:
        return
    if _waits(there):
        raise PersonaPending(f"the persona of {there.path} was edited, and nobody settled it")
    raise ChangesUncommitted(f"{there.path} has changes that no commit has", notes=tuple(changed))


def _waits(there: Home) -> bool:
    with contextlib.suppress(SoulgitError):
        return waits(there)
    return False


def opened(home: Home, place: Place) -> Home:
    """Open another home of a repository as a home is opened."""
    if place.root == home.path:
        return home
    return Home.open(
        place.root, clock=home.clock, wait_seconds=home.wait_seconds, durable=home.durable
    )


class _Comparison:
    """What a home has on disk and in its index, held against its last commit."""

    def __init__(self, there: Home, redactor: Redactor) -> None:
        self._home = there
        self._repository = there.repository
        self._redactor = redactor
        self._ignores_modes = there.repository.setting("core.filemode") == "false"

    def changed(self) -> set[str]:
        """Return the paths that differ, the text aside."""
        tip = self._repository.head().tip
        tree = self._repository.commit(tip).tree if tip else None
        wanted: dict[bytes, Item] = {}
        if tree is not None:
            top = Item(b"40000", b"", tree)
            wanted = {self._name(path): one for path, one in files(self._repository, top, b"")}
        found = set(self._staged_otherwise(wanted))
        found |= {path for path in wanted if not self._is_on_disk(path, wanted[path])}
        working = look(self._home.path)
        found |= {
            file.path.encode()
            for file in working.files.values()
            if self._name(os.fsencode(file.path)) not in wanted
        }
        return {self._redactor.text(path.decode("utf-8", "replace")) for path in found}

    def _name(self, path: bytes) -> bytes:
        return self._redactor.name(path)

    def _staged_otherwise(self, wanted: dict[bytes, Item]) -> Iterator[bytes]:
        entries = staged(self._home.index_path)
        present = {self._name(entry.path): entry for entry in entries}
        for path in {**wanted, **present}:
            item, entry = wanted.get(path), present.get(path)
            if item is None or entry is None or entry.is_odd or not self._are_alike(item, entry):
                yield path

    def _are_alike(self, item: Item, entry: Staged) -> bool:
        is_same = item.id == entry.id or self._redacted(item.id) == self._redacted(entry.id)
        return int(item.mode, 8) == entry.mode and is_same

    def _redacted(self, blob_id: str) -> str:
        kind, data = read(self._repository, blob_id)
        return id_of(kind, self._redactor.data(data))

    def _is_on_disk(self, path: bytes, item: Item) -> bool:
        if item.is_elsewhere:
            return True
        full = os.path.join(os.fsencode(self._home.path), self._place(path))
        mode = int(item.mode, 8)
        wanted = self._redactor.data(read(self._repository, item.id)[1])
        try:
            if mode == LINK_MODE:
                return self._redactor.data(os.readlink(full)) == wanted
            if os.path.islink(full) or not os.path.isfile(full):
                return False
            is_executable = bool(os.stat(full).st_mode & 0o100)
            with open(full, "rb") as file:
                data = self._redactor.data(file.read())
        except OSError:
            return False
        if not self._ignores_modes and is_executable != (mode == EXECUTABLE_MODE):
            return False
        return data == wanted or looks_unchanged(self._repository, os.fsdecode(path))

    def _place(self, path: bytes) -> bytes:
        """Return where a file lies on disk: under its name, or under one with the text in it."""
        root = os.fsencode(self._home.path)
        if os.path.lexists(os.path.join(root, path)):
            return path
        return next(
            (place for place in named_for(self._home.path, self._redactor) if
             self._name(place) == path),
            path,
        )  # fmt: skip


def named_for(root: str, redactor: Redactor) -> Iterator[bytes]:
    """Yield the paths of files of a home whose names hold the text."""
    for directory, below, names in os.walk(os.fsencode(root)):
        if directory == os.fsencode(root) and b".git" in below:
            below.remove(b".git")
        links = [name for name in below if os.path.islink(os.path.join(directory, name))]
        for name in (*names, *links):
            path = os.path.relpath(os.path.join(directory, name), os.fsencode(root))
            if redactor.name(path) != path:
                yield path
