"""The program: `python -m tests.benchmark [--quick] [--actions N] [--json FILE] [--only NAME]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.benchmark import crowd, history, machine, reading, table, writing
from tests.benchmark.bench import FULL, QUICK, Bench, Size
from tests.benchmark.growth import say
from tests.benchmark.rows import Row, failed

MEASURES: dict[str, Callable[[Bench], list[Row]]] = {
    "write": writing.measure,
    "history": history.measure_time,
    "compose": reading.measure_compose,
    "start": reading.measure_start,
    "log": reading.measure_log,
    "disk": history.measure_disk,  # after those that want the home as its actions left it
    "blame": reading.measure_blame,
    "writers": crowd.measure,
}


def main() -> int:
    """Measure and print; 1 where a measure broke, whatever the bars say."""
    asked = _parser().parse_args()
    size = _size(asked)
    with tempfile.TemporaryDirectory(prefix="soulgit-benchmark-") as name:
        directory = Path(name).resolve()
        (directory / "empty").mkdir()
        bench = Bench(directory, size, machine.isolate(directory / "empty"))
        described = machine.describe(directory) | {"size": vars(size)}
        chosen = asked.only or list(MEASURES)
        rows = [row for name in MEASURES if name in chosen for row in _measured(bench, name)]
    rows.sort(key=lambda row: row.what.split(".")[0])
    mode = f"{'quick' if asked.quick else 'full'}, N = {size.actions:,}"
    print(table.markdown(machine.heading(described, mode), rows))
    if asked.json:
        asked.json.write_text(table.as_json(described, rows), encoding="utf-8")
    return int(any(row.broken for row in rows))


def _measured(bench: Bench, name: str) -> list[Row]:
    """Return a measure's rows; one that breaks is told in a row of its own."""
    try:
        return MEASURES[name](bench)
    except Exception as fault:
        say(f"{name} failed:\n{traceback.format_exc()}")
        return [failed(name, name, fault)]


def _size(asked: argparse.Namespace) -> Size:
    size = QUICK if asked.quick else FULL
    return replace(size, actions=asked.actions) if asked.actions else size


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="in about a minute, with less of all")
    parser.add_argument("--actions", type=int, metavar="N", help="the length of the long history")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--only", nargs="+", choices=MEASURES, help="measure these alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
