"""Search: memories that hold a text, now or ever, with when they came and went, and why."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from soulgit import blame, lineage, revisions
from soulgit.blame import Names, Origin
from soulgit.core.actor import Moment
from soulgit.core.layout import TARGETS, Target
from soulgit.core.tracing import Item
from soulgit.errors import InvalidText
from soulgit.git import Past
from soulgit.home import AnyHome, as_home
from soulgit.lineage import Step


@dataclass(frozen=True)
class Gone:
    """How a memory went: in which commit, when, by what, why, and what it became, if anything."""

    id: str
    time: Moment
    action: str | None
    reason: str | None
    became: str | None


@dataclass(frozen=True)
class Found:
    """One memory that holds a text; `gone` is None while it is there."""

    came: Origin
    gone: Gone | None = None


def search(
    home: AnyHome,
    text: str,
    *,
    ever: bool = False,
    target: Target | None = None,
    source: str | None = None,
    at: str | None = None,
    exact: bool = False,
) -> list[Found]:
    """Return the memories that hold a text, newest first.

    With `ever` those too that this branch has had. Case and Unicode's normal form do not
    matter unless `exact`. `source` wants only what came from exactly there.
    """
    if not text.strip():
        raise InvalidText("there is no text to search for")
    home = as_home(home)
    tip = revisions.resolve(home, "HEAD" if at is None else at)
    holds = _holds(text, exact)
    with home.reading() as repository:
        past = Past(repository)
        found = [
            one
            for part in (TARGETS if target is None else (target,))
            for one in _search(past, tip, part, holds, ever)
            if source is None or one.came.source == source
        ]
    return sorted(found, key=lambda one: -one.came.time.seconds)


def _search(
    past: Past, tip: str, target: Target, holds: Callable[[str], bool], ever: bool
) -> Iterator[Found]:
    after = lineage.version(past, tip, target)
    gone: dict[Item, Gone | None] = {item: None for item in after.items if holds(item.text)}
    names = Names(past)
    for step in lineage.walk(past, tip, {target: after}):
        if ever:
            gone |= {item: how for item, how in _departures(step) if holds(item.text)}
        born = [item for item in step.change.new if item in gone]
        births = blame.of_merged(past, step, born) if born else {}
        for item in born:
            yield Found(blame.origin(names, target, item.text, births[item]), gone.pop(item))
        if not ever and not gone:
            return


def _departures(step: Step) -> Iterator[tuple[Item, Gone]]:
    """Yield the items that went in a commit, and how."""
    went = [(item, None) for item in step.change.removed]
    became = [(old, new.text) for old, new in step.change.reworded]
    told = step.record
    for item, text in [*went, *became]:
        yield item, Gone(step.id, step.commit.time, told.action, told.reason, text)


def _holds(text: str, exact: bool) -> Callable[[str], bool]:
    if exact:
        return lambda other: text in other
    wanted = _folded(text)
    return lambda other: wanted in _folded(other)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text).casefold())
