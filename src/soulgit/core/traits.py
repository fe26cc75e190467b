"""Traits: the knobs of a companion's temper, kept in the frontmatter of its soul file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

_META = "trait"


@dataclass(frozen=True)
class Trait:
    """What a trait may be and does; bounds are inclusive, None is none."""

    low: float | None
    high: float | None
    meaning: str
    acted_on_by: str = "the host"

    @property
    def range(self) -> str:
        """Its range in words."""
        if self.low is None:
            return "true or false"
        return (
            f"{self.low:g} to {self.high:g}" if self.high is not None else f"at least {self.low:g}"
        )


def _trait(default: Any, low: float | None, high: float | None, meaning: str) -> Any:
    return field(default=default, metadata={_META: Trait(low, high, meaning)})


@dataclass(frozen=True)
class Traits:
    """A companion's traits; what its frontmatter does not say is the default."""

    contrariness: float = _trait(0.5, 0, 1, "how often it pushes back")
    """A share from 0 (never) to 1 (always)."""

    persistence: float = _trait(0.5, 0, 1, "0 forgives and forgets, 1 chases what is unresolved")
    """A share from 0 to 1."""

    time_sense: bool = _trait(True, None, None, "time away shifts its warmth")
    """Whether time away shifts its warmth."""

    recall_window: int = _trait(2, 1, 5, "user messages used to search memory")
    """A number of user messages, from 1 to 5."""

    drift: float = _trait(0.3, 0, 1, "how much memories blur while it sleeps")
    """A share from 0 (not at all) to 1."""

    tired_at: float = _trait(0.7, 0, 1, "share of the turn budget at which it tires")
    """A share of the turn budget from 0 to 1, below `sleep_at`."""

    sleep_at: float = _trait(0.9, 0, 1, "share of the turn budget at which it asks to sleep")
    """A share of the turn budget from 0 to 1."""

    pushback_window: int = _trait(20, 1, None, "turns over which its pushback is budgeted")
    """A number of turns, at least 1."""


TRAITS: dict[str, Trait] = {f.name: cast(Trait, f.metadata[_META]) for f in fields(Traits)}
"""Each trait by name, in the order in which they are shown."""

DEFAULTS: dict[str, float | bool] = {f.name: getattr(Traits, f.name) for f in fields(Traits)}

OTHER_KEYS = ("id", "name", "doctor_token")
"""The keys of a frontmatter that are no traits."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with one key of a frontmatter: a kind of fault, and it in words."""

    key: str
    kind: str
    message: str


def faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what is wrong with the traits among a frontmatter's values."""
    for name, trait in TRAITS.items():
        if name in values and (fault := _fault(name, trait, values[name])):
            yield fault
    shares = {name: values.get(name, DEFAULTS[name]) for name in ("tired_at", "sleep_at")}
    if all(_is_number(share) for share in shares.values()) and not (
        shares["tired_at"] < shares["sleep_at"]
    ):
        yield Fault(
            "tired_at" if "tired_at" in values else "sleep_at",
            "tired-not-below-sleep",
            f"tired_at ({shares['tired_at']}) is not below sleep_at ({shares['sleep_at']})",
        )


def of(values: Mapping[str, Any]) -> Traits:
    """Return the traits that a frontmatter gives; one at fault counts as its default."""
    wrong = {fault.key for fault in faults(values)}
    return Traits(**{n: values[n] for n in TRAITS if n in values and n not in wrong})


def _fault(name: str, trait: Trait, value: Any) -> Fault | None:
    if not _has_type(name, value):
        kind = "true or false" if trait.low is None else _number_word(name)
        return Fault(name, "trait-type", f"{name} must be {kind}")
    low, high = trait.low, trait.high
    if low is not None and not (low <= value and (high is None or value <= high)):
        return Fault(name, "trait-range", f"{name} is {_shown(value)}; it must be {trait.range}")
    return None


def _shown(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # an integer of thousands of digits
        return "a huge number"
    return text if len(text) <= 40 else text[:40] + "…"


def _has_type(name: str, value: Any) -> bool:
    default = DEFAULTS[name]
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, int):
        return isinstance(value, int) and not isinstance(value, bool)
    return _is_number(value)


def _number_word(name: str) -> str:
    return "a whole number" if isinstance(DEFAULTS[name], int) else "a number"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
