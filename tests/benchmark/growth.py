"""Homes with a history: really made by soulgit, action after action, and watched on the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.benchmark.data import Action, Notebook, put_files
from tests.benchmark.machine import process
from tests.benchmark.peers import Soulgit

SAMPLED_EVERY = 50
_KEPT_REVISIONS = 20
_TOLD_EVERY_SECONDS = 5.0


@dataclass
class Grown:
    """A home and what happened while it grew."""

    path: Path
    entries: int
    fills: bool
    actions: int = 0
    seconds: list[float] = field(default_factory=list)
    revisions: list[str] = field(default_factory=list)
    """Some revisions, evenly spread over its life."""

    most_loose: int = 0
    """The largest sum of loose objects that was seen, in allocated bytes."""

    def to_come(self) -> Iterator[Action]:
        """Yield the actions that go on from where it is."""
        return islice(_all_actions(Notebook(self.entries), self.fills), self.actions, None)


def _all_actions(notebook: Notebook, fills: bool) -> Iterator[Action]:
    return notebook.filling() if fills else notebook.steady()


def grow(path: Path, actions: int, *, entries: int, fills: bool = False) -> Grown:
    """Make a home by so many actions, not synced, for its history is the same either way."""
    with process() as apart:
        return apart.submit(_grow, path, actions, entries, fills).result()


def _grow(path: Path, actions: int, entries: int, fills: bool) -> Grown:
    put_files(path, Notebook(entries).data)
    grown = Grown(path, entries, fills)
    writer = Soulgit(path, durable=False)
    loose = LooseObjects(path / ".git" / "objects")
    progress = Progress(path.name, actions)
    for action in islice(grown.to_come(), actions):
        grown.seconds.append(writer.act(action))
        grown.actions += 1
        if grown.actions % SAMPLED_EVERY == 0:
            grown.most_loose = max(grown.most_loose, loose.allocated())
        if grown.actions % max(1, actions // _KEPT_REVISIONS) == 0:
            grown.revisions.append(str(writer.revision))
        progress.tell(grown.actions)
    return grown


class Progress:
    """A line on standard error every few seconds."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._began = self._told = time.monotonic()

    def tell(self, done: int) -> None:
        """Say how far it is, unless it was said just now."""
        now = time.monotonic()
        if now - self._told < _TOLD_EVERY_SECONDS:
            return
        self._told = now
        left = (now - self._began) / done * (self._total - done)
        say(f"{self._what}: {done} of {self._total} actions, {left:.0f} s left")


def say(text: str) -> None:
    """Tell whoever waits."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class LooseObjects:
    """The loose objects of a repository; a directory that has not changed is not read again."""

    def __init__(self, objects: Path) -> None:
        self._objects = objects
        self._changed: dict[str, int] = {}
        self._sizes: dict[str, dict[str, int]] = {}

    def allocated(self) -> int:
        """Return the blocks that all of them take, in bytes."""
        present = {entry.name for entry in os.scandir(self._objects) if len(entry.name) == 2}
        for name in present:
            self._look(name)
        for name in self._sizes.keys() - present:
            del self._sizes[name], self._changed[name]
        return sum(sum(sizes.values()) for sizes in self._sizes.values())

    def _look(self, name: str) -> None:
        directory = self._objects / name
        changed = directory.stat().st_mtime_ns
        if changed == self._changed.get(name):
            return
        before = self._sizes.get(name, {})
        self._changed[name] = changed
        self._sizes[name] = {
            entry.name: before.get(entry.name) or _allocated(entry.stat())
            for entry in os.scandir(directory)
        }


def _allocated(status: os.stat_result) -> int:
    return status.st_blocks * 512


@dataclass(frozen=True)
class Usage:
    """What a directory takes of the disk, in bytes."""

    apparent: int
    allocated: int


def usage(directory: Path) -> Usage:
    """Return what a directory and all below it take; `du` says the same."""
    os.sync()  # before that, blocks are only guessed
    found = [directory, *directory.rglob("*")]
    stats = [path.lstat() for path in found]
    return Usage(sum(s.st_size for s in stats), sum(map(_allocated, stats)))


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of soulgit's in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "soulgit", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
