"""What was measured: samples, bars, and the rows of the table."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """Measured values, in seconds; the median stands for them, the quartiles for the spread."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The values that a quarter is below, and above."""
        if len(self.values) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high

    def __str__(self) -> str:
        unit, scale = _unit(self.median)
        shown, low, high = (_digits(value * scale) for value in (self.median, *self.quartiles))
        return f"{shown} {unit} ({low}–{high})"

    def figures(self) -> dict[str, Any]:
        """Return all that is known of it, for the JSON."""
        return {
            "median": self.median,
            "quartiles": self.quartiles,
            "mean": statistics.fmean(self.values),
            "least": min(self.values),
            "most": max(self.values),
            "values": self.values,
        }


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _unit(seconds: float) -> tuple[str, float]:
    if seconds >= 1:
        return "s", 1.0
    return ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)


@dataclass(frozen=True)
class Bar:
    """What a value is compared with: at most a limit, or at least it."""

    limit: float
    at_least: bool = False
    unit: str = ""

    def allows(self, value: float) -> bool:
        """Whether a value meets the bar."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{self.unit}"


@dataclass(frozen=True)
class Row:
    """One row: two texts to show, and the value that the bar is compared with."""

    measure: str
    what: str
    ours: str = "–"
    peer: str = "–"
    ratio: str = "–"
    value: float | None = None
    bar: Bar | None = None
    trouble: str | None = None
    """Why it was not measured, or what else has gone wrong; never left out of the table."""

    broken: bool = False
    """Whether the trouble is a fault and not only something that is not there."""

    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> str:
        """Whether the bar is met, in a word; what failed meets nothing."""
        if self.trouble is not None:
            return self.trouble
        if self.bar is None or self.value is None:
            return "–"
        return "yes" if self.bar.allows(self.value) else "**no**"


def compare(
    measure: str, what: str, ours: Sample, peer: tuple[str, Sample], bar: float | None = None
) -> Row:
    """Return the row of two contenders that took turns.

    The ratio is that of the medians, its spread that of the ratios turn by turn.
    """
    name, theirs = peer
    value = ours.median / theirs.median
    turns = Sample(tuple(a / b for a, b in zip(ours.values, theirs.values, strict=True)))
    low, high = turns.quartiles
    return Row(
        measure,
        what,
        str(ours),
        f"{name}: {theirs}",
        f"{value:.2f} ({low:.2f}–{high:.2f})",
        value,
        None if bar is None else Bar(bar),
        figures={"soulgit": ours.figures(), name: theirs.figures(), "turns": turns.figures()},
    )


def not_measured(measure: str, what: str, why: str, *, broken: bool = False) -> Row:
    """Return the row of what could not be measured."""
    word = "failed" if broken else "not measured"
    return Row(measure, what, trouble=f"{word}: {why}", broken=broken)


def failed(measure: str, what: str, fault: Exception) -> Row:
    """Return the row of a measure that broke."""
    words = " ".join(f"{type(fault).__name__}: {fault}".split())
    return Row(measure, what, trouble=f"failed: {words[:300]}", broken=True)
