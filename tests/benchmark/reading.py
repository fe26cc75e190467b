"""Reading: a soul of a revision, and commands as whole processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import soulgit
from tests.benchmark.bench import Bench
from tests.benchmark.data import MEMORY
from tests.benchmark.growth import command, grow, say
from tests.benchmark.peers import clocked
from tests.benchmark.rows import Row, Sample, compare, not_measured

_COMPOSE_BAR, _START_BAR, _LOG_BAR = 3.0, 1.3, 1.5
_IMPORTS = (sys.executable, "-c", "import pygit2, click")
_PROGRAM = Path(sys.executable).with_name("soulgit")


def measure_compose(bench: Bench) -> list[Row]:
    """Compose souls of all ages, against reading as many files of the same home."""
    grown = bench.old
    home = soulgit.Home.open(grown.path)
    names = soulgit.compose_soul(home, at=grown.revisions[0]).found
    paths = [str(grown.path / name) for name in names]
    revisions = grown.revisions * (bench.size.composed // len(grown.revisions) + 1)
    say("compose: souls of revisions against files")
    return [
        compare(
            "compose",
            f"4. compose_soul(at=revision), {len(names)} files",
            *_take_turns(
                bench.size.composed,
                lambda turn: soulgit.compose_soul(home, at=revisions[turn]),
                ("open().read()", lambda turn: _read(paths)),
            ),
            _COMPOSE_BAR,
        )
    ]


def _read(paths: list[str]) -> list[str]:
    texts = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return texts


def measure_start(bench: Bench) -> list[Row]:
    """Time `soulgit compose` as a process, against one that only imports."""
    what = "5. `soulgit compose HOME`, a process"
    ours = ("compose", str(bench.young.path))
    return [_program_row(bench, "start", what, ours, ("the imports", _IMPORTS), _START_BAR)]


def measure_log(bench: Bench) -> list[Row]:
    """Time `soulgit log` in the old home, against a process that only imports."""
    what = f"6. `soulgit log HOME -n 20` at {bench.size.actions:,} commits"
    ours = ("log", str(bench.old.path), "-n", "20")
    return [_program_row(bench, "log", what, ours, ("the imports", _IMPORTS), _LOG_BAR)]


def measure_blame(bench: Bench) -> list[Row]:
    """Time `soulgit blame` of a memory file with a long life, against `git blame`."""
    actions = bench.size.blamed_actions
    what = f"7. `soulgit blame`, {actions // 5:,} entries over {actions:,} actions"
    if command("blame", "--help").returncode:
        return [not_measured("blame", what, "there is no blame yet")]
    path = grow(bench.directory / "blamed", actions, entries=0, fills=True).path
    theirs = ("git", "-C", str(path), "blame", MEMORY)
    return [_program_row(bench, "blame", what, ("blame", str(path)), ("git blame", theirs), None)]


def _program_row(
    bench: Bench,
    measure: str,
    what: str,
    words: tuple[str, ...],
    peer: tuple[str, tuple[str, ...]],
    bar: float | None,
) -> Row:
    """Return the row of the installed program against another one."""
    if not _PROGRAM.exists():
        return not_measured(measure, what, f"there is no {_PROGRAM}; install soulgit")
    say(f"{measure}: {' '.join(words)}")
    name, theirs = peer
    ours = (str(_PROGRAM), *words)
    for line in (ours, theirs):  # for the byte code, and for whatever it keeps
        _run(bench, line)
    return compare(
        measure,
        what,
        *_take_turns(
            bench.size.processes,
            lambda turn: _run(bench, ours),
            (name, lambda turn: _run(bench, theirs)),
        ),
        bar,
    )


def _run(bench: Bench, line: tuple[str, ...]) -> None:
    done = subprocess.run(
        line, cwd=bench.empty, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        raise RuntimeError(f"{line} ended with {done.returncode}: {said}")


Turn = Callable[[int], object]


def _take_turns(
    rounds: int, ours: Turn, peer: tuple[str, Turn]
) -> tuple[Sample, tuple[str, Sample]]:
    """Time two contenders, each first every other time."""
    name, theirs = peer
    seconds: tuple[list[float], list[float]] = ([], [])
    works = (ours, theirs)
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            seconds[which].append(clocked(partial(works[which], turn)))
    mine, other = (Sample(tuple(values)) for values in seconds)
    return mine, (name, other)
