"""One run of the benchmark: how much is measured, where, and the homes that measures share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.benchmark.data import ENTRIES_OF_10_KB
from tests.benchmark.growth import Grown, grow

YOUNG_ACTIONS = 100


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    actions: int
    """The length of the long history."""

    writes: int
    """Timed additions of each contender."""

    window: int
    """Durable actions that are timed in the young home and in the old one."""

    composed: int
    """Timed readings of a soul."""

    processes: int
    """Timed starts of each command."""

    crowds: int
    """How often eight writers are compared with one."""

    writes_in_crowd: int
    """The actions of each of the eight."""

    blamed_actions: int
    """The actions behind the file that is blamed; a fifth of them is left as entries."""


QUICK = Size(2_000, 20, 60, 200, 8, 2, 10, 500)
FULL = Size(100_000, 200, 200, 1_000, 40, 5, 100, 10_000)


@dataclass(frozen=True)
class Bench:
    """Where a run takes place; a home is made when the first measure asks for it."""

    directory: Path
    size: Size
    before: Mapping[str, str]
    """The environment before it was isolated, for pip alone."""

    @property
    def empty(self) -> Path:
        """An empty directory, for commands to be run in."""
        return self.directory / "empty"

    @cached_property
    def young(self) -> Grown:
        """A home with little history, of a memory file of 10 KB."""
        return grow(self.directory / "young", YOUNG_ACTIONS, entries=ENTRIES_OF_10_KB)

    @cached_property
    def old(self) -> Grown:
        """A home with the long history, of a memory file of 10 KB."""
        return grow(self.directory / "old", self.size.actions, entries=ENTRIES_OF_10_KB)
