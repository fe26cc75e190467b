"""Refs locked against git and everybody else, and moved at once.

They are written here and not by libgit2, which brings each ref and each reflog to the disk
alone: one wait for the device after another, where all can share a few.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from soulgit import directories, disk
from soulgit.core.actor import Identity
from soulgit.errors import RepositoryRefused
from soulgit.git.repository import Repository
from soulgit.lockfile import busy

_POLL_SECONDS = 0.005
_NOTHING = "0" * 40
_LOGGED = ("refs/heads/", "refs/remotes/", "refs/notes/")


@dataclass
class RefLocks:
    """Refs that are locked, each lock already holding what the ref is to become.

    `moves` has each ref's commits before and after, in the order in which they move, and `head`
    is the ref that HEAD is to name, which moves last.
    """

    repository: Repository
    moves: Mapping[str, tuple[str | None, str]]
    head: str | None
    held: list[str] = field(default_factory=list)
    """The names whose locks are held, HEAD among them."""

    made: list[str] = field(default_factory=list)
    """The directories that got new ones in them, for new refs."""

    _logs: dict[str, int] = field(default_factory=dict)
    """The reflogs that were added to, and their sizes before."""

    def paths(self) -> list[str]:
        """Return the lock files, whose bytes must be on the disk before the refs move."""
        return [self.repository.lock_path(name) for name in self.held]

    def log(self, actor: Identity, message: str) -> list[str]:
        """Tell the reflogs of the move that follows; return the directories to sync.

        The reflogs themselves are not waited for, nor does git: no memory is found by them.
        """
        changed: list[str] = []
        for name, (old, new) in {**self.moves, **self._move_of_head()}.items():
            path = self.repository.reflog_path(name)
            if not os.path.exists(path):
                if not self._begins_log(name):
                    continue
                changed += directories.make_parents(path)
            line = _log_line(old, new, actor, message)
            self._logs[path] = disk.append(path, line.encode("utf-8", "replace"))
        return changed

    def unlog(self) -> None:
        """Take back what the reflogs were told."""
        for path, size in self._logs.items():
            disk.cut(path, size)

    def move(self) -> list[str]:
        """Give each ref its commit, and HEAD its branch last; return the directories to sync."""
        changed = dict.fromkeys(self.made)
        while self.held:
            lock = self.repository.lock_path(self.held[0])
            with disk.storage_faults(f"{self.held[0]} cannot be moved"):
                os.replace(lock, lock.removesuffix(".lock"))
            self.held.pop(0)
            changed[os.path.dirname(lock)] = None
        return list(changed)

    def release(self) -> None:
        """Take away the locks that are still held; nothing moved by them."""
        while self.held:
            disk.discard(self.repository.lock_path(self.held[0]))
            self.held.pop(0)

    def _move_of_head(self) -> dict[str, tuple[str | None, str]]:
        """Return HEAD's commits before and after, by its name; nothing where it stays."""
        named = self.repository.head_target() or ""
        if self.head is None or self.head == named:
            return {"HEAD": self.moves[named]} if named in self.moves else {}
        old, new = self.repository.head().tip, self.repository.ref(self.head)
        after = self.moves[self.head][1] if self.head in self.moves else new
        return {"HEAD": (old, after)} if after else {}

    def _begins_log(self, name: str) -> bool:
        """Whether git's configuration wants a reflog for a ref that has none."""
        told = (self.repository.setting("core.logallrefupdates") or "true").lower()
        is_on = told not in ("false", "no", "off", "0")
        return told == "always" or (is_on and (name == "HEAD" or name.startswith(_LOGGED)))


@contextmanager
def locked_refs(
    repository: Repository,
    moves: Mapping[str, tuple[str | None, str]],
    head: str | None,
    wait_seconds: float,
) -> Iterator[RefLocks]:
    """Lock refs against git and everybody else; raises BusyError after a bounded wait."""
    locks = RefLocks(repository, moves, head)
    contents = {name: f"{new}\n" for name, (_, new) in moves.items()}
    if head is not None:
        contents["HEAD"] = f"ref: {head}\n"
    deadline = time.monotonic() + wait_seconds
    try:
        for name, content in contents.items():
            _lock(locks, name, content.encode(), deadline)
        yield locks
    finally:
        locks.release()


def _lock(locks: RefLocks, name: str, content: bytes, deadline: float) -> None:
    """Make the lock of a ref, once nobody else has it."""
    path = locks.repository.lock_path(name)
    locks.made += _make_way(locks.repository, name)
    while not disk.create(path, content):
        if time.monotonic() >= deadline:
            raise busy(path)
        time.sleep(_POLL_SECONDS)
    locks.held.append(name)


def _make_way(repository: Repository, name: str) -> list[str]:
    """Make the directories of a new ref, where no other is in its way; return the changed ones."""
    path = repository.lock_path(name).removesuffix(".lock")
    if os.path.isfile(path):
        return []
    if repository.ref(name) is None:
        for other in repository.refs():
            if f"{name}/".startswith(f"{other}/") or f"{other}/".startswith(f"{name}/"):
                raise RepositoryRefused(
                    f"{name} cannot be made: {other} is in its way",
                    hint="give that branch another name: git branch -m",
                )
    with disk.storage_faults(f"{name} cannot be made"):
        directories.remove_empty(path)  # what a deleted ref's name left there
        return directories.make_parents(path)


def _log_line(old: str | None, new: str, actor: Identity, message: str) -> str:
    now = time.time()
    zone = time.localtime(now).tm_gmtoff // 60
    sign = "-" if zone < 0 else "+"
    offset = f"{sign}{abs(zone) // 60:02}{abs(zone) % 60:02}"
    who = f"{actor.name} <{actor.email}>"
    return f"{old or _NOTHING} {new} {who} {int(now)} {offset}\t{' '.join(message.split())}\n"
