"""Settling a persona edit: continue, fork or discard, applied at once or not at all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from soulgit import disk, freeze, guards, landing, personas, rereading
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
from soulgit.core.layout import BOOTSTRAP_ORDER, PERSONA_NAMES
from soulgit.core.record import Record
from soulgit.core.settlement import Contents, Facts, Plan
from soulgit.errors import BusyError, InvalidArgument, NothingPending, UnsafeFile
from soulgit.gate import waits
from soulgit.git import Head, Repository, TreeEntry
from soulgit.git.staging import index_entries
from soulgit.git.values import BRANCHES, EXECUTABLE_MODE, FILE_MODE, LINK_MODE
from soulgit.history import FileChange, Side, changes
from soulgit.home import AnyHome, Home, as_home
from soulgit.landing import Raced
from soulgit.revision import revise, writable_head
from soulgit.working import Working

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
    unread: int = 0
    """How many entries came since the last settled commit, which an update keeps as they are."""


def decide(
    home: AnyHome,
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
    home = as_home(home)
    token = None
    if decision == "fork":
        branches.check(name or "", branch_names(home.repository))

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
        if facts.is_put_back:
            raise _put_back()
        own, token = renamed(_with_soul(home, facts.edited), name, new_id, new_token)
        return settlement.forked(replace(facts, edited=own), name)

    facts, revision = apply(home, plan, by, edited, reason)
    _set_stale_aside(home)
    number = None if decision == "discard" else facts.number
    branch = name if decision == "fork" and name else facts.branch
    return Settled(decision, branch, revision, number, token=token)


def preview(home: AnyHome, decision: settlement.Decision, *, name: str | None = None) -> Plan:
    """Return the plan of a decision, with nothing captured and nothing written."""
    home = as_home(home)
    head = writable_head(home, None)
    if not is_pending(home):
        raise NothingPending(f"the persona of {home.path} is settled; there is nothing to decide")
    facts = _facts(home, head, None, None)
    if decision == "fork":
        branches.check(name or "", branch_names(home.repository))
        return settlement.forked(facts, name or "")
    plans = {
        "continue": settlement.continued,
        "discard": settlement.discarded,
        "update": settlement.update_begun,
    }
    return plans[decision](facts)


def persona_changes(home: AnyHome) -> list[FileChange]:
    """Return how the pending persona differs from the settled one, by file, no token shown."""
    home = as_home(home)
    repository, tip = home.repository, home.head().tip
    if tip is None:
        return []
    settled_tree = repository.commit(personas.settled(repository, tip)[0]).tree
    before = personas.contents(repository, settled_tree)
    after = wanted_persona(home, None)
    values = soulfile.frontmatter_values(composition.decode(after.get("SOUL.md", b"")))

    def shown(text: str | None) -> str | None:
        return None if text is None else tokens.masked(values, text)

    return [
        replace(change, before=shown(change.before), after=shown(change.after))
        for change in changes(Side(before), Side(after))
        if change.name in PERSONA_NAMES
    ]


@dataclass(frozen=True)
class PastPersona:
    """One persona that a home has had: which, since when, by what decision, with how many adds."""

    number: int
    digest: str
    decision: str
    time: str
    reason: str | None
    memories: int


def history(home: AnyHome) -> list[PastPersona]:
    """Return every persona that a home has had, oldest first.

    `memories` counts the memories added under it on the home's branch.
    """
    home = as_home(home)
    repository, tip = home.repository, home.head().tip
    if tip is None:
        return []
    added = _added_by_number(repository, tip)
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
                    memories=added[number],
                )
            )
    return found


def _added_by_number(repository: Repository, tip: str) -> Counter[int]:
    """Count the memories that were added while each persona was the settled one."""
    numbers = {repository.ref(personas.ref_name(n)): n for n in personas.numbers(repository)}
    added: Counter[int] = Counter()
    waiting = 0
    for commit_id in personas.first_parents(repository, tip):
        commit = repository.commit(commit_id)
        told = record.parse(commit.message)
        waiting += told.action == "add"
        landed = told.number or next((numbers[p] for p in commit.parents[1:] if p in numbers), None)
        if landed is not None:
            added[landed] += waiting
            waiting = 0
    return added


def is_persona_edit(home: Home, name: str, data: bytes) -> bool:
    """Whether a file, were it saved like this, would be another persona than the settled one."""
    tip = home.head().tip
    files = wanted_persona(home, {name: data})
    return tip is not None and persona.digest(files) != personas.settled_digest(
        home.repository, tip
    )


def is_pending(home: AnyHome) -> bool:
    """Whether a persona edit waits for a decision."""
    return waits(as_home(home))


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
    wanted: dict[str, bytes | None] = {n: working.contents.get(n) for n in PERSONA_NAMES}
    wanted |= dict(edited or {})
    base = personas.contents(repository, settled_tree)
    changed = [name for name in PERSONA_NAMES if wanted[name] != base.get(name)]
    _refuse_new_links(repository, tree, working)
    is_at_tip = personas.tree_digest(repository, tree) != digest
    is_put_back = persona.digest({n: d for n, d in wanted.items() if d is not None}) == digest
    if is_put_back and not is_at_tip:
        raise NothingPending(f"the persona of {home.path} is settled; there is nothing to decide")
    if is_put_back:
        wanted = dict.fromkeys(PERSONA_NAMES) | personas.contents(repository, tree)
        changed = [name for name in PERSONA_NAMES if wanted[name] != base.get(name)]
    return Facts(
        branch=head.branch,
        tip=head.tip,
        settled=settled,
        number=personas.next_number(repository, head.tip),
        edited={working.real_path(name): wanted[name] for name in changed},
        restored={working.real_path(name): base.get(name) for name in changed},
        is_at_tip=is_at_tip,
        is_put_back=is_put_back,
        discarded_ref=rereading.free_ref(repository, "refs/soulgit/discarded/"),
        memory=tuple(personas.memory_paths(repository, tree)),
        told=Record(None, origin="cli", reason=reason),
    )


def _carry_out(home: Home, ground: landing.Ground, head: Head, plan: Plan, by: Identity) -> str:
    """Make a plan's commits, and move refs, HEAD and files at once."""
    repository, made = home.repository, dict[str, str]()
    working = home.look()
    after = {**working.contents, **{n: d for n, d in _by_name(working, plan.files).items() if d}}
    guards.refuse_token(
        personas.contents(repository, repository.commit(head.tip or "").tree), after
    )
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
    index = tree_entries(repository, repository.commit(last).tree, plan.files) if plan.files else {}
    staged = index_entries(home.index_path, index)
    files = _files(home, plan.files)

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
            index={path: (staged.get(path), entry) for path, entry in index.items()},
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
        mode = EXECUTABLE_MODE if known and known.mode == EXECUTABLE_MODE else FILE_MODE
        entries[path] = None if data is None else TreeEntry(mode, repository.write_blob(data))
    return entries


def _files(home: Home, wanted: Contents) -> dict[str, tuple[bytes | None, bytes | None]]:
    present = {path: disk.read_raw(home.path, path) for path in wanted}
    return {path: (present[path], data) for path, data in wanted.items() if present[path] != data}


def wanted_persona(home: Home, edited: Edited | None) -> dict[str, bytes]:
    """Return the persona files as they shall be: those on disk, but for the edited ones."""
    files = home.look().contents
    wanted = {name: files.get(name) for name in PERSONA_NAMES} | dict(edited or {})
    return {name: data for name, data in wanted.items() if data is not None}


def _by_name(working: Working, contents: Contents) -> dict[str, bytes | None]:
    names = {working.real_path(name): name for name in BOOTSTRAP_ORDER}
    return {names[path]: data for path, data in contents.items() if path in names}


def _set_stale_aside(home: Home) -> None:
    """Set an update aside that another decision has overtaken."""
    stale = rereading.under_way(home, None)
    if stale is not None:
        with home.writing():
            rereading.set_aside(home.repository, stale)


def _refuse_new_links(repository: Repository, tree: str, working: Working) -> None:
    """Refuse a persona file that has become a link, which a decision would not carry along."""
    for name in PERSONA_NAMES:
        file, known = working.files.get(name), repository.entry(tree, name)
        if file and file.links and known and known.mode != LINK_MODE:
            raise UnsafeFile(
                f"{name} has become a link, which a decision on the persona does not record",
                hint=f"put a file in its place, or commit the link first: git commit {name}",
            )


def _put_back() -> InvalidArgument:
    return InvalidArgument(
        "the disk has the settled persona again; only the branch has the edit",
        hint="--discard takes it off the branch, or edit SOUL.md again",
    )


def _with_soul(home: Home, edited: Contents) -> Contents:
    """Return the edited files and the soul file, which a fork gives a name of its own."""
    working = home.look()
    path = working.real_path("SOUL.md")
    soul = working.contents.get("SOUL.md")
    return edited if path in edited or soul is None else {**edited, path: soul}


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
