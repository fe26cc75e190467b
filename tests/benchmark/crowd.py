"""Eight processes that write one home, against one that writes as much; nothing may be lost."""

from __future__ import annotations

import multiprocessing
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import Empty
from time import perf_counter

import soulgit
from tests.benchmark.bench import Bench
from tests.benchmark.data import ENTRIES_OF_10_KB, MEMORY, Notebook, entry_text, put_files
from tests.benchmark.growth import say
from tests.benchmark.machine import forget_configuration
from tests.benchmark.peers import git
from tests.benchmark.rows import Bar, Row, Sample

_WRITERS = 8
_BAR = Bar(0.7, at_least=True)
_TEXT = re.compile(rb"writer \d-\d{5}")


@dataclass(frozen=True)
class Written:
    """What one process did: when, and what each of its texts was answered (None: ok)."""

    began: float
    ended: float
    answers: dict[str, str | None]


@dataclass(frozen=True)
class Outcome:
    """What all processes of one home did together, and what is wrong with the home."""

    rate: float
    refused: int
    trouble: tuple[str, ...]


def measure(bench: Bench) -> list[Row]:
    """Compare the rates, each time in fresh homes."""
    each = bench.size.writes_in_crowd
    crowds, singles = [], []
    for number in range(bench.size.crowds):
        say(f"writers: {_WRITERS} and one, {number + 1} of {bench.size.crowds}")
        crowds.append(_write(bench.directory / f"crowd-{number}", _WRITERS, each))
        singles.append(_write(bench.directory / f"single-{number}", 1, _WRITERS * each))
    return [_row(each, crowds, singles)]


def _row(each: int, crowds: list[Outcome], singles: list[Outcome]) -> Row:
    crowd, single = (Sample(tuple(o.rate for o in found)) for found in (crowds, singles))
    ratios = Sample(tuple(a / b for a, b in zip(crowd.values, single.values, strict=True)))
    low, high = ratios.quartiles
    value = crowd.median / single.median
    troubles = [trouble for outcome in (*crowds, *singles) for trouble in outcome.trouble]
    refused = sum(outcome.refused for outcome in crowds)
    return Row(
        "writers",
        f"8. {_WRITERS} processes × {each} durable adds to one home, rate against one process",
        f"{crowd.median:.1f}/s, {refused} refused as busy, "
        + ("not all well" if troubles else "nothing lost or twice"),
        f"one process: {single.median:.1f}/s",
        f"{value:.2f} ({low:.2f}–{high:.2f})",
        value,
        _BAR,
        trouble="; ".join(["failed", *troubles]) if troubles else None,
        broken=bool(troubles),
        figures={
            "crowd_per_second": crowd.values,
            "single_per_second": single.values,
            "refused": refused,
        },
    )


def _write(path: Path, writers: int, each: int) -> Outcome:
    """Let processes write a fresh home at the same time, and look at what came of it."""
    put_files(path, Notebook(ENTRIES_OF_10_KB).data)
    first = soulgit.memory_tool(path).execute({"action": "add", "text": "the home begins"})
    before = _commits(path)
    written = _let_write(path, writers, each)
    answers = {text: answer for one in written for text, answer in one.answers.items()}
    done = [text for text, answer in answers.items() if answer is None]
    seconds = max(one.ended for one in written) - min(one.began for one in written)
    trouble = [first.output] if first.is_error else []
    trouble += _wrongs(path, before, done)
    trouble += sorted({a for a in answers.values() if a is not None and " busy" not in a})
    return Outcome(len(done) / seconds, len(answers) - len(done), tuple(trouble))


def _let_write(path: Path, writers: int, each: int) -> list[Written]:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(writers)
    results: Queue[Written] = context.Queue()
    processes = [
        context.Process(target=_writer, args=(str(path), number, each, start, results))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    try:
        return [_next_result(processes, results) for _ in processes]
    finally:
        for process in processes:
            process.terminate()  # it has nothing more to do, or waits for one that died
            process.join()


def _next_result(processes: Sequence[BaseProcess], results: Queue[Written]) -> Written:
    """Wait for what a writer has done; raises where one died, for the others wait for it."""
    while True:
        try:
            return results.get(timeout=1)
        except Empty:
            if any(process.exitcode for process in processes):
                raise RuntimeError("a writer died; see standard error") from None


def _writer(path: str, number: int, each: int, start: Barrier, results: Queue[Written]) -> None:
    """Write as one of the processes; they begin together."""
    forget_configuration()
    texts = [f"writer {number}-{turn:05d} {entry_text(turn)[:60]}" for turn in range(each)]
    tool = soulgit.memory_tool(soulgit.Home.open(path))
    answers: dict[str, str | None] = {}
    start.wait()
    began = perf_counter()
    for text in texts:
        result = tool.execute({"action": "add", "text": text})
        answers[text] = result.output if result.is_error else None
    results.put(Written(began, perf_counter(), answers))


def _wrongs(path: Path, commits_before: int, done: list[str]) -> list[str]:
    """Return what is lost or twice, in the file and in the history."""
    expected = Counter(text.encode()[: len("writer 0-00000")] for text in done)
    in_file = Counter(_TEXT.findall((path / MEMORY).read_bytes()))
    log = git(path, "log", "--format=%B%x00").split(b"\0")
    in_log = Counter(text for message in log for text in set(_TEXT.findall(message)))
    made = _commits(path) - commits_before
    return [
        *([] if in_file == expected else ["the file has entries lost or twice"]),
        *([] if in_log == expected else ["the history has actions lost or twice"]),
        *([] if made == len(done) else [f"{made} commits for {len(done)} actions"]),
    ]


def _commits(path: Path) -> int:
    return int(git(path, "rev-list", "--count", "HEAD"))
