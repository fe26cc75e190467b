"""Blame: where each memory came from, and every wording that one has had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from soulgit import lineage, personas, revisions
from soulgit.core import record, seared, tracing
from soulgit.core.actor import Moment
from soulgit.core.layout import TARGETS, Target
from soulgit.core.tracing import Item, Version
from soulgit.errors import TextAmbiguous, TextNotFound
from soulgit.git import Commit, Past, Repository
from soulgit.home import AnyHome, as_home
from soulgit.lineage import Step

_SHOWN = 5


@dataclass(frozen=True)
class Origin:
    """One memory and the commit that gave it its present text; None for what nobody said."""

    target: Target
    text: str
    id: str
    time: Moment
    action: str | None
    origin: str | None
    source: str | None
    session: str | None
    model: str | None
    persona: str | None
    seared: bool = False


def blame(home: AnyHome, *, target: Target | None = None, at: str | None = None) -> list[Origin]:
    """Return where each memory came from, in the order of the files.

    An entry that was carried over, by a capture, a merge or a fork, keeps its origin; one that
    was reworded or re-read has a new one.
    """
    home = as_home(home)
    tip = revisions.resolve(home, "HEAD" if at is None else at)
    with home.reading() as repository:
        past, names = Past(repository), Names(repository)
        targets = TARGETS if target is None else (target,)
        afters = {one: lineage.version(past, tip, one) for one in targets}
        births = _births(past, tip, afters)
        return [
            origin(names, one, item.text, births[item], is_seared)
            for one, after in afters.items()
            for item, is_seared in zip(after.items, tracing.seared(after), strict=True)
        ]


def wordings(home: AnyHome, text: str, *, at: str | None = None) -> list[Origin]:
    """Return every wording that the one entry which holds a text has had, newest first."""
    home = as_home(home)
    tip = revisions.resolve(home, "HEAD" if at is None else at)
    with home.reading() as repository:
        past, names = Past(repository), Names(repository)
        target, after, item = _one(past, tip, text)
        return [
            origin(names, target, wording, commit)
            for wording, commit in _rewordings(past, tip, target, after, item)
        ]


def _births(past: Past, tip: str, afters: Mapping[Target, Version]) -> dict[Item, Commit]:
    """Return the commit in which each item of some files at a commit came to its text."""
    births: dict[Item, Commit] = {}
    waiting = {target: set(after.items) for target, after in afters.items() if after.items}
    files = {target: tracing.copy(afters[target]) for target in waiting}
    for step in lineage.walk(past, tip, files):
        left = waiting[step.target]
        if born := [item for item in step.change.new if item in left]:
            births |= of_merged(past, step, born)
            left.difference_update(born)
        if not left:
            del files[step.target]
    return births


def of_merged(past: Past, step: Step, born: list[Item]) -> dict[Item, Commit]:
    """Return the birth of items in a commit: in a merged parent, where they came from there."""
    found = dict.fromkeys(born, step.commit)
    for parent in step.parents[1:]:
        theirs = lineage.version(past, parent, step.target)
        by_text = {item.text: item for item in theirs.items}
        births = _births(past, parent, {step.target: theirs})
        found |= {item: births[by_text[item.text]] for item in born if item.text in by_text}
    return found


def _rewordings(
    past: Past, tip: str, target: Target, after: Version, item: Item
) -> Iterator[tuple[str, Commit]]:
    """Yield the wordings of an item back to where it came from, each with its commit."""
    for step in lineage.walk(past, tip, {target: tracing.copy(after)}):
        older = next((old for old, new in step.change.reworded if new is item), None)
        if older is None and item not in step.change.added:
            continue
        birth = of_merged(past, step, [item])[item]
        yield item.text, birth
        if birth.id != step.id:
            merged = lineage.version(past, birth.id, target)
            theirs = next(known for known in merged.items if known.text == item.text)
            further = _rewordings(past, birth.id, target, merged, theirs)
            yield from list(further)[1:]
            return
        if older is None:
            return
        item = older


def _one(repository: Repository, tip: str, text: str) -> tuple[Target, Version, Item]:
    """Return the one entry of a commit's memory that holds a text."""
    wanted = text.strip()
    found = []
    for target in TARGETS:
        after = lineage.version(repository, tip, target)
        found += [(target, after, item) for item in after.items if wanted in item.text]
    found = [known for known in found if known[2].text == wanted] or found
    if not found:
        raise TextNotFound(f"no memory holds this: {text}", notes=())
    if len({item.text for _, _, item in found}) > 1:
        shown = tuple(item.text for _, _, item in found[:_SHOWN])
        raise TextAmbiguous(f"{len(found)} memories hold this: {text}", notes=shown)
    return found[0]


class Names:
    """What personas are called, each looked up once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[str, str | None] = {}

    def of(self, digest: str | None) -> str | None:
        """Return `persona/N` for the digest of a persona, if there is one."""
        if digest is not None and digest not in self._known:
            self._known[digest] = personas.name_of(self._repository, digest)
        return None if digest is None else self._known[digest]


def origin(
    names: Names, target: Target, text: str, commit: Commit, is_seared: bool = False
) -> Origin:
    """Return what a commit says of a text that came in it."""
    told = record.parse(commit.message)
    return Origin(
        target=target,
        text=seared.plain(text),
        id=commit.id,
        time=commit.time,
        action=told.action,
        origin=told.origin,
        source=told.source,
        session=told.session,
        model=told.model,
        persona=names.of(told.persona),
        seared=is_seared,
    )
