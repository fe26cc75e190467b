"""What a long history costs: the time of an action, and the disk."""

from __future__ import annotations

import os

from tests.benchmark.bench import YOUNG_ACTIONS, Bench
from tests.benchmark.growth import Grown, Usage, command, say, usage
from tests.benchmark.peers import Soulgit
from tests.benchmark.rows import Bar, Row, Sample, compare

_TIME_BAR = 1.25
_BYTES_BAR = Bar(600, unit=" B")
_LOOSE_BAR = Bar(20, unit=" MB")


def measure_time(bench: Bench) -> list[Row]:
    """Let a young home and an old one take turns at durable actions."""
    homes = {"young": bench.young, "old": bench.old}
    say("history: the young home and the old one take turns")
    writers = {name: Soulgit(grown.path) for name, grown in homes.items()}
    to_come = {name: grown.to_come() for name, grown in homes.items()}
    seconds: dict[str, list[float]] = {name: [] for name in homes}
    for turn in range(bench.size.window):
        for name in sorted(homes, reverse=turn % 2 == 0):
            os.sync()  # what the other has not synced would be this one's to sync
            seconds[name].append(writers[name].act(next(to_come[name])))
            homes[name].actions += 1
    young, old = (Sample(tuple(seconds[name])) for name in homes)
    what = f"2. durable action after {bench.size.actions:,} actions, against after {YOUNG_ACTIONS}"
    return [compare("history", what, old, ("soulgit, young", young), _TIME_BAR)]


def measure_disk(bench: Bench) -> list[Row]:
    """Tell what the old home takes before and after `soulgit gc`, and what it took on the way."""
    old = bench.old
    before = usage(old.path / ".git")
    say("disk: soulgit gc")
    done = command("gc", old.path)
    rows = [_loose_row(old), _bytes_row(old, before, "as it is")]
    if done.returncode == 0:
        return [*rows, _bytes_row(old, usage(old.path / ".git"), "after `soulgit gc`")]
    said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    what = "3. disk per action, after `soulgit gc`"
    why = f"not measured: `soulgit gc` ended with {done.returncode}: {said}"
    return [*rows, Row("disk", what, bar=_BYTES_BAR, trouble=why)]


def _bytes_row(old: Grown, found: Usage, when: str) -> Row:
    allocated, apparent = (size / old.actions for size in (found.allocated, found.apparent))
    return Row(
        "disk",
        f"3. disk per action, {old.actions:,} actions on 10 KB, {when}",
        f"{allocated:,.0f} B allocated, {apparent:,.0f} B apparent",
        value=allocated,
        bar=_BYTES_BAR,
        figures={
            "actions": old.actions,
            "git_dir": {"allocated": found.allocated, "apparent": found.apparent},
            "allocated_per_action": allocated,
            "apparent_per_action": apparent,
        },
    )


def _loose_row(old: Grown) -> Row:
    megabytes = old.most_loose / 1e6
    built = Sample(tuple(old.seconds)).figures()
    del built["values"]
    return Row(
        "disk",
        "3. most loose objects at any time on the way",
        f"{megabytes:.1f} MB allocated",
        value=megabytes,
        bar=_LOOSE_BAR,
        figures={"most_loose_bytes": old.most_loose, "seconds_of_the_actions_not_synced": built},
    )
