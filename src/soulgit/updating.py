"""Settling by `update`: memories re-read under the new persona, batch by batch, then merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from soulgit import freeze, guards, landing, personas, rereading, settling, souls
from soulgit.adoption import Step
from soulgit.core import merging, reading, record, settlement
from soulgit.core.actor import Identity
from soulgit.core.layout import TARGETS, memory_name
from soulgit.core.reading import Batch
from soulgit.core.record import Record
from soulgit.core.settlement import Contents, Facts, Plan
from soulgit.errors import AnswerRefused, BusyError, InvalidArgument, NothingPending
from soulgit.git import Repository
from soulgit.home import AnyHome, Home, as_home
from soulgit.landing import Raced
from soulgit.rereading import Update
from soulgit.settling import Edited, Settled

Reader = Callable[[str, Batch], Sequence[str]]
"""Given the persona and the texts of some entries, returns their new texts, in order."""

Progress = Callable[[int, int], None]
"""Told how many entries are read, of how many."""

DEFAULT_BATCH_SIZE = 20


def update(
    home: AnyHome,
    reader: Reader,
    by: Identity,
    *,
    batch_size: int = DEFAULT_BATCH_SIZE,
    model: str | None = None,
    edited: Edited | None = None,
    reason: str | None = None,
    review: bool = False,
    progress: Progress = lambda done, total: None,
) -> Settled:
    """Settle the pending edit by re-reading the memories under the new persona, in batches.

    Goes on at the first unread batch of an update that was cut off. The branch does not
    move until every batch is in; with `review` not even then, but at `land`.
    """
    home = as_home(home)
    if batch_size < 1:
        raise InvalidArgument("a batch has at least one entry", hint="give --batch-size 1 or more")
    found = rereading.under_way(home, settling.wanted_persona(home, edited)) or _begin_update(
        home, by, edited, reason
    )
    progress(found.done, found.total)
    while not found.is_read:
        found = _read_batch(home, found, reader, by, batch_size, model)
        progress(found.done, found.total)
    if review:
        branch = home.head().branch or ""
        return Settled("update", branch, found.tip, found.number, is_landed=False)
    return land(home, by, edited=edited, reason=reason)


def land(
    home: AnyHome, by: Identity, *, edited: Edited | None = None, reason: str | None = None
) -> Settled:
    """Let the branch merge an update that is read to the end; memories are merged by entry."""
    home = as_home(home)
    twice: tuple[str, ...] = ()

    def plan(facts: Facts) -> Plan:
        nonlocal twice
        found = rereading.under_way(home, settling.wanted_persona(home, edited))
        if found is None or not found.is_read:
            raise NothingPending("no update is read to its end, so there is nothing to land")
        memories, twice = _merged_memories(home.repository, found, facts.tip)
        return settlement.update_landed(replace(facts, number=found.number), found.tip, memories)

    found = rereading.under_way(home, settling.wanted_persona(home, edited))
    _, revision = settling.apply(home, plan, by, edited, reason)
    return Settled(
        "update",
        home.head().branch or "",
        revision,
        found.number if found else None,
        twice,
        unread=_count_unread(home.repository, found) if found else 0,
    )


def _count_unread(repository: Repository, found: Update) -> int:
    """Count the entries of the landed branch that were not there when the reading began."""
    merged = repository.commit(found.tip).tree
    landed = repository.head().tip
    trees = [repository.commit(landed).tree, merged] if landed else []
    texts = [
        Counter(item.entry.text for item in reading.readable(files, layout))
        for files, layout in (
            (personas.contents(repository, tree), personas.tree_layout(repository, tree))
            for tree in trees
        )
    ]
    return (texts[0] - texts[1]).total() if texts else 0


@dataclass(frozen=True)
class Reread:
    """One entry whose text an update has changed."""

    before: str
    after: str


def review(home: AnyHome) -> list[Reread]:
    """Return the entries that the update under way has changed, in order."""
    home = as_home(home)
    found = rereading.under_way(home, settling.wanted_persona(home, None))
    if found is None:
        raise NothingPending("no update is under way, so there is nothing to review")
    sides = []
    for commit_id in (found.base, found.tip):
        tree = home.repository.commit(commit_id).tree
        files = personas.contents(home.repository, tree)
        sides.append(reading.readable(files, personas.tree_layout(home.repository, tree)))
    texts = ((old.entry.text, new.entry.text) for old, new in zip(*sides, strict=True))
    return [Reread(old, new) for old, new in texts if old != new]


def abort(home: AnyHome) -> int:
    """End an update without landing it; its work stays reachable; return its number."""
    home = as_home(home)
    with home.writing():
        freeze.refuse_frozen(home.repository)
        found = rereading.under_way(home, None)
        if found is None:
            raise NothingPending("no update is under way, so there is nothing to abort")
        rereading.set_aside(home.repository, found)
        return found.number


def _begin_update(home: Home, by: Identity, edited: Edited | None, reason: str | None) -> Update:
    stale = rereading.under_way(home, None)
    settling.apply(home, settlement.update_begun, by, edited, reason)
    if stale is not None:
        with home.writing():
            rereading.set_aside(home.repository, stale)
    found = rereading.under_way(home, settling.wanted_persona(home, edited))
    assert found is not None
    return found


def _read_batch(
    home: Home, found: Update, reader: Reader, by: Identity, batch_size: int, model: str | None
) -> Update:
    """Have one batch read, and put the answer on the persona's branch as a commit."""
    repository = home.repository
    tree = repository.commit(found.tip).tree
    files, layout = personas.contents(repository, tree), personas.tree_layout(repository, tree)
    items = reading.readable(files, layout)[found.done : found.done + batch_size]
    batch = Batch([item.entry.text for item in items], reading.seared_texts(files, layout))
    told_persona = souls.persona_text(files)

    def ask() -> dict[str, bytes]:
        answer = reading.refuse_answer(batch, reader(told_persona, batch), layout)
        return reading.put(files, layout, found.done, answer)

    try:
        changed = ask()
    except AnswerRefused:
        changed = ask()  # once more, and then it is reported
    covered = reading.told(found.done, len(batch), found.total)
    message = record.build(
        Record(
            "reread",
            f"persona/{found.number}: reread {covered}",
            covered,
            persona=found.digest,
            origin="cli",
            model=model,
        )
    )
    contents = {layout.path(name): data for name, data in changed.items()}
    new_tree = repository.write_tree(tree, settling.tree_entries(repository, tree, contents))
    guards.check(repository, tree, new_tree, Step(Record("reread"), by, dict.fromkeys(contents)))
    with home.writing() as ground:
        freeze.refuse_frozen(repository)
        commit_id = repository.write_commit(new_tree, (found.tip,), message, by, home.clock())
        ref = personas.ref_name(found.number)
        try:
            refs: dict[str, tuple[str | None, str]] = {ref: (found.tip, commit_id)}
            landing.land(ground, landing.Plan(refs, "soulgit: reread", by), lambda: True)
        except Raced:
            raise BusyError(f"another update of {home.path} is reading too") from None
    return replace(found, tip=commit_id, done=found.done + len(batch))


def _merged_memories(
    repository: Repository, found: Update, tip: str
) -> tuple[Contents, tuple[str, ...]]:
    """Merge by entry what was read with what was written to the branch meanwhile."""
    base, ours, theirs = (
        personas.contents(repository, repository.commit(c).tree)
        for c in (found.base, tip, found.tip)
    )
    layout = personas.tree_layout(repository, repository.commit(tip).tree)
    memories: dict[str, bytes | None] = {}
    twice: list[str] = []
    for name in map(memory_name, TARGETS):
        sides = [files.get(name, b"") for files in (base, ours, theirs)]
        merged = merging.merge(sides[0], sides[1], sides[2], layout)
        twice += merged.kept_twice
        if merged.data != sides[1]:
            memories[layout.path(name)] = merged.data
    return memories, tuple(twice)
