"""Settling a persona edit: continue, fork or discard, applied at once or not at all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from soulgit import adoption, freeze, guards, landing, personas, souls
from soulgit.adoption import Hand, Step
from soulgit.core import (
    branches,
    composition,
    frontmatter,
    persona,
    record,
    settlement,
    soulfile,
)
from soulgit.core import token as tokens
from soulgit.core.actor import Identity
from soulgit.core.layout import PERSONA_NAMES, TARGETS, memory_name
from soulgit.core.record import Record
from soulgit.core.settlement import Contents, Facts, Plan
from soulgit.errors import BusyError, InvalidArgument, NothingPending
from soulgit.git import Head, Repository, TreeEntry
from soulgit.git.staging import index_entries
from soulgit.git.values import BRANCHES, FILE_MODE
from soulgit.history import FileChange, changes
from soulgit.home import Home
from soulgit.landing import Raced
from soulgit.revision import revise, writable_head

Edited = Mapping[str, bytes | None]
"""Persona files as they shall be, by name."""


@dataclass(frozen=True)
class Settled:
    """What a decision did: the branch the home is on, its tip, the new persona's number, notes."""

    decision: str
    branch: str
    revision: str
    number: int | None
    kept_twice: tuple[str, ...] = ()
    token: str | None = None
    is_landed: bool = True


def decide(
    home: Home,
    decision: settlement.Decision,
    by: Identity,
    *,
    name: str | None = None,
    edited: Edited | None = None,
    reason: str | None = None,
    new_id: str = "",
    new_token: str = "",
) -> Settled:
    """Settle the pending edit, or `edited` in its place, by continue, fork or discard.

    A fork needs `name`, and `new_id` and `new_token` for a frontmatter that has such keys.
    Raises NothingPending where there is nothing to decide.
    """
    token = None

    def plan(facts: Facts) -> Plan:
        nonlocal token
        if decision == "continue":
            return settlement.continued(facts)
        if decision == "discard":
            return settlement.discarded(facts)
        if decision != "fork" or name is None:
            raise InvalidArgument(
                f"{decision} is no decision here", hint="see `soulgit settle --help`"
            )
        branches.check(name, branch_names(home.repository))
        own, token = renamed(facts.edited, name, new_id, new_token)
        return settlement.forked(replace(facts, edited=own), name)

    facts, revision = apply(home, plan, by, edited, reason)
    number = None if decision == "discard" else facts.number
    branch = name if decision == "fork" and name else facts.branch
    return Settled(decision, branch, revision, number, token=token)


def preview(home: Home, decision: settlement.Decision, *, name: str | None = None) -> Plan:
    """Return the plan of a decision, with nothing captured and nothing written."""
    facts = _facts(home, writable_head(home, None), None, None)
    if decision == "fork":
        branches.check(name or "", branch_names(home.repository))
        return settlement.forked(facts, name or "")
    plans = {
        "continue": settlement.continued,
        "discard": settlement.discarded,
        "update": settlement.update_begun,
    }
    return plans[decision](facts)


def persona_changes(home: Home) -> list[FileChange]:
    """Return how the pending persona differs from the settled one, by file."""
    repository, tip = home.repository, home.head().tip
    if tip is None:
        return []
    settled_tree = repository.commit(personas.settled(repository, tip)[0]).tree
    before = personas.contents(repository, settled_tree)
    after = wanted_persona(home, None)
    return [change for change in changes(before, after) if change.name in PERSONA_NAMES]


@dataclass(frozen=True)
class PastPersona:
    """One persona that a home has had: which, since when, by what decision, with how many adds."""

    number: int
    digest: str
    decision: str
    time: str
    reason: str | None
    memories: int


def history(home: Home) -> list[PastPersona]:
    """Return every persona that a home has had, oldest first.

    `memories` counts the memories added under it on the home's branch.
    """
    repository, tip = home.repository, home.head().tip
    if tip is None:
        return []
    added: Counter[str] = Counter()
    for commit_id in personas.first_parents(repository, tip):
        told = record.parse(repository.commit(commit_id).message)
        if told.action == "add" and told.persona:
            added[told.persona] += 1
    found = []
    for number in sorted(personas.numbers(repository)):
        first = personas.first_commit(repository, number)
        if first is not None:
            told = record.parse(first.message)
            found.append(
                PastPersona(
                    number=number,
                    digest=told.persona or "",
                    decision=told.action or "",
                    time=first.time.iso(),
                    reason=told.reason,
                    memories=added[told.persona or ""],
                )
            )
    return found


def is_persona_edit(home: Home, name: str, data: bytes) -> bool:
    """Whether a file, were it saved like this, would be another persona than the settled one."""
    tip = home.head().tip
    files = wanted_persona(home, {name: data})
    return tip is not None and persona.digest(files) != personas.settled_digest(
        home.repository, tip
    )


def is_pending(home: Home) -> bool:
    """Whether a persona edit waits for a decision."""
    head, working = home.head(), home.look()
    return souls.is_gated(home, head, working)


def apply(
    home: Home,
    plan_of: Callable[[Facts], Plan],
    by: Identity,
    edited: Edited | None,
    reason: str | None,
) -> tuple[Facts, str]:
    """Capture what was changed by hand, plan on what is there then, and carry the plan out."""
    deadline = time.monotonic() + home.wait_seconds
    if edited is None and not is_pending(home):
        raise NothingPending(f"the persona of {home.path} is settled; there is nothing to decide")
    while True:
        revise(home, hand=Hand(by))
        try:
            with home.writing() as ground:
                freeze.refuse_frozen(home.repository)
                head = writable_head(home, None)
                facts = _facts(home, head, edited, reason)
                return facts, _carry_out(home, ground, head, plan_of(facts), by)
        except Raced:
            if time.monotonic() >= deadline:
                raise BusyError(f"{home.path} keeps changing while it is settled") from None


def _facts(home: Home, head: Head, edited: Edited | None, reason: str | None) -> Facts:
    repository, working = home.repository, home.look()
    assert head.tip is not None and head.branch is not None
    settled, digest = personas.settled(repository, head.tip)
    tree, settled_tree = (repository.commit(c).tree for c in (head.tip, settled))
    wanted = {name: working.contents.get(name) for name in PERSONA_NAMES} | dict(edited or {})
    base = personas.contents(repository, settled_tree)
    changed = [name for name in PERSONA_NAMES if wanted[name] != base.get(name)]
    if persona.digest({n: d for n, d in wanted.items() if d is not None}) == digest:
        raise NothingPending(f"the persona of {home.path} is settled; there is nothing to decide")
    memory = {working.layout.memory_path(target) for target in TARGETS}
    memory |= {working.real_path(memory_name(target)) for target in TARGETS}
    return Facts(
        branch=head.branch,
        tip=head.tip,
        settled=settled,
        number=personas.next_number(repository, head.tip),
        edited={working.real_path(name): wanted[name] for name in changed},
        restored={working.real_path(name): base.get(name) for name in changed},
        is_at_tip=personas.tree_digest(repository, tree) != digest,
        memory=tuple(sorted(path for path in memory if repository.entry(tree, path))),
        told=Record(None, origin="cli", reason=reason),
    )


def _carry_out(home: Home, ground: landing.Ground, head: Head, plan: Plan, by: Identity) -> str:
    """Make a plan's commits, and move refs, HEAD and files at once."""
    repository, made = home.repository, dict[str, str]()
    when = home.clock()
    personas.refuse_blocked(repository)
    for commit in plan.commits:
        base = repository.commit(made.get(commit.base, commit.base)).tree
        tree = repository.write_tree(base, tree_entries(repository, base, commit.contents))
        if commit.parents:
            step = Step(commit.record, by, tree_entries(repository, base, commit.contents))
            guards.check(repository, base, tree, step)
        told = replace(commit.record, persona=personas.tree_digest(repository, tree))
        parents = tuple(made.get(parent, parent) for parent in commit.parents)
        made[commit.name] = repository.write_commit(tree, parents, record.build(told), by, when)
    refs = {name: (old, made.get(new, new)) for name, (old, new) in plan.refs.items()}
    last = refs.get(plan.head or head.ref or "", (None, head.tip))[1] or ""
    working = home.look()
    index = tree_entries(repository, repository.commit(last).tree, plan.files) if plan.files else {}
    staged = index_entries(home.index_path, index)
    files = _files(home, working, plan.files)

    def still() -> bool:
        unstaged = index_entries(home.index_path, index) == staged
        return repository.head() == head and home.look() == working and unstaged

    landing.land(
        ground,
        landing.Plan(
            refs=refs,
            message=f"soulgit: {plan.decision}",
            actor=by,
            files=files,
            index=index,
            head=(repository.head_target(), plan.head) if plan.head else None,
        ),
        still,
    )
    return last


def tree_entries(
    repository: Repository, base: str, contents: Contents
) -> dict[str, TreeEntry | None]:
    """Store the blobs of some contents and return their tree entries, modes as in the base."""
    entries: dict[str, TreeEntry | None] = {}
    for path, data in contents.items():
        known = repository.entry(base, path)
        mode = known.mode if known else FILE_MODE
        entries[path] = None if data is None else TreeEntry(mode, repository.write_blob(data))
    return entries


def _files(
    home: Home, working: adoption.Working, wanted: Contents
) -> dict[str, tuple[bytes | None, bytes | None]]:
    present = {file.path: file.data for file in working.files.values()}
    return {
        path: (present.get(path), data)
        for path, data in wanted.items()
        if present.get(path) != data
    }


def wanted_persona(home: Home, edited: Edited | None) -> dict[str, bytes]:
    """Return the persona files as they shall be: those on disk, but for the edited ones."""
    files = home.look().contents
    wanted = {name: files.get(name) for name in PERSONA_NAMES} | dict(edited or {})
    return {name: data for name, data in wanted.items() if data is not None}


def branch_names(repository: Repository) -> list[str]:
    """Return the short names of all branches."""
    return [name.removeprefix(BRANCHES) for name in repository.refs(BRANCHES)]


def renamed(
    edited: Contents, name: str, new_id: str, new_token: str
) -> tuple[Contents, str | None]:
    """Give a forked soul file an id, a name and a token of its own, where it has such keys."""
    soul = edited.get("SOUL.md")
    values = soulfile.frontmatter_values(composition.decode(soul or b""))
    told: dict[str, str] = {"id": new_id, "name": name, tokens.KEY: tokens.stored(new_token)}
    changed = {key: value for key, value in told.items() if key in values}
    if soul is None or not changed:
        return edited, None
    renamed = {**edited, "SOUL.md": frontmatter.assign(soul, changed)}
    return renamed, new_token if tokens.KEY in changed else None
