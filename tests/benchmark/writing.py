"""A durable memory action, against the same commit made by others."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.benchmark import peers, toolnexus
from tests.benchmark.bench import Bench
from tests.benchmark.data import ENTRIES_OF_10_KB, MEMORY, Action, Notebook, put_files
from tests.benchmark.growth import say
from tests.benchmark.peers import Contender
from tests.benchmark.rows import Row, Sample, compare, not_measured

MEASURE = "write"
_OURS = "soulgit"
_WARM_UP = 6
_BAR = 0.6

Maker = Callable[[Path, bytes], Contender]


def measure(bench: Bench) -> list[Row]:
    """Let all contenders take turns at adding and removing; what is timed is the adding."""
    say("write: all contenders take turns")
    notebook = Notebook(ENTRIES_OF_10_KB)
    with _race(bench, notebook.data) as race:
        actions = islice(notebook.steady(), _WARM_UP + 2 * bench.size.writes)
        for turn, action in enumerate(actions):
            race.take_turns(action, counts=turn >= _WARM_UP and action.kind == "add")
        race.check(notebook.data)
    return _rows(race)


@dataclass
class Race:
    """The contenders that still run, their times, and why others do not."""

    running: dict[str, Contender] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Those who are out by a fault, and not only because they are not there."""

    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def take_turns(self, action: Action, *, counts: bool) -> None:
        """Let each do the action, in an order that changes."""
        names = list(self.running)
        self.chance.shuffle(names)
        for name in names:
            # What another contender has not synced would be this one's to sync.
            os.sync()
            try:
                seconds = self.running[name].act(action)
            except Exception as fault:  # whatever a peer raises is told in its row
                self.drop(name, f"{type(fault).__name__}: {fault}")
                continue
            if counts:
                self.seconds.setdefault(name, []).append(seconds)

    def drop(self, name: str, why: str) -> None:
        """Take out a contender that has failed."""
        self.out[name] = " ".join(why.split())[:300]
        self.broken.add(name)
        with suppress(Exception):  # it is out already
            self.running.pop(name).close()

    def check(self, expected: bytes) -> None:
        """Take out whoever does not have the bytes that it should, on disk and in git."""
        for name, contender in list(self.running.items()):
            if (contender.path / MEMORY).read_bytes() != expected:
                self.drop(name, "its file is not what was asked for")
            elif name != "toolnexus" and _committed(contender.path) != expected:
                self.drop(name, "its commit is not what was asked for")


def _committed(path: Path) -> bytes:
    return peers.git(path, "show", f"HEAD:{MEMORY}")


@contextmanager
def _race(bench: Bench, memory: bytes) -> Iterator[Race]:
    """Bring the contenders to the start, and let go of them."""
    race = Race()
    for number, (name, make) in enumerate(_makers(bench).items()):
        try:
            race.running[name] = make(bench.directory / f"contender-{number}", memory)
        except ImportError as fault:
            race.out[name] = f"{fault}; pip install 'soulgit[bench]'"
        except toolnexus.NotInstalled as fault:
            race.out[name] = str(fault)
        except Exception as fault:  # a peer that cannot begin is told in its row
            race.drop(name, f"{type(fault).__name__}: {fault}")
    try:
        yield race
    finally:
        for contender in race.running.values():
            contender.close()


def _makers(bench: Bench) -> dict[str, Maker]:
    return {
        _OURS: _soulgit(peers.Soulgit),
        "git": peers.GitProgram,
        "GitPython": peers.GitPython,
        "dulwich": peers.Dulwich,
        "dulwich that syncs objects": lambda path, data: peers.Dulwich(path, data, durable=True),
        "toolnexus": lambda path, data: toolnexus.Toolnexus(
            path, data, toolnexus.environment(bench.before)
        ),
        "soulgit, durable=False": _soulgit(peers.NotDurableSoulgit),
        "measured floor": peers.Floor,
    }


def _soulgit(begin: Callable[[Path], Contender]) -> Maker:
    def make(path: Path, memory: bytes) -> Contender:
        put_files(path, memory)
        return begin(path)

    return make


_BARS = {"git": _BAR, "GitPython": _BAR, "dulwich": _BAR}


def _rows(race: Race) -> list[Row]:
    names = [name for name in (*race.seconds, *race.out) if name != _OURS]
    order = ("git", "GitPython", "dulwich")
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    return [_row(race, name) for name in dict.fromkeys(names)]


def _row(race: Race, name: str) -> Row:
    what = f"1. durable add, 10 KB, against {name}"
    for runner in (_OURS, name):
        if runner in race.out:
            why = f"{runner}: {race.out[runner]}"
            return not_measured(MEASURE, what, why, broken=runner in race.broken)
    ours, theirs = (Sample(tuple(race.seconds[runner])) for runner in (_OURS, name))
    return compare(MEASURE, what, ours, (name, theirs), _BARS.get(name))
