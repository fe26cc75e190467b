"""Decisions on a persona edit, as plans: which commits, refs and files each of them means.

A plan is pure: its commits are named, not yet made, and refer to one another by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from soulgit.core.record import Record

Decision = Literal["continue", "update", "fork", "discard"]

_BRANCHES = "refs/heads/"
Contents = Mapping[str, bytes | None]
"""Bytes by path; None is a file that is not there."""


_UNTOLD = Record(None)


@dataclass(frozen=True)
class Facts:
    """What a plan is made from.

    `tip` is the branch's, hand edits of memory captured; `settled` the newest settled
    commit; `number` the next persona's; `edited` the persona files as they shall be, and
    `restored` as they are at the settled commit; `memory` the paths of the memory files.
    """

    branch: str
    tip: str
    settled: str
    number: int
    edited: Contents
    restored: Contents
    is_at_tip: bool
    is_put_back: bool = False
    """Whether the disk has the settled persona again, and only the tip has the edit."""

    memory: tuple[str, ...] = ()
    discarded_ref: str = "refs/soulgit/discarded/1"
    told: Record = _UNTOLD
    """Reason, origin and the like, which every commit of the decision carries."""


@dataclass(frozen=True)
class Made:
    """A commit to be made: parents and base tree by name or id, and what differs from the base."""

    name: str
    parents: tuple[str, ...]
    base: str
    contents: Contents
    record: Record


@dataclass(frozen=True)
class Plan:
    """What a decision means: commits, refs (old id, new by name), HEAD's branch, files on disk."""

    decision: str
    commits: tuple[Made, ...]
    refs: Mapping[str, tuple[str | None, str]]
    files: Contents = field(default_factory=dict)
    head: str | None = None


def persona_ref(number: int) -> str:
    """Return the ref of a persona's branch."""
    return f"{_BRANCHES}persona/{number}"


def continued(facts: Facts) -> Plan:
    """Plan `continue`: `persona/N` holds the edit, the branch merges it, memories stay.

    Where the disk has the settled persona again, that is what is gone on with.
    """
    if facts.is_put_back:
        return discarded(facts)
    persona = _persona(facts, "continue")
    merge = Made(
        "merge",
        (facts.tip, "persona"),
        facts.tip,
        facts.edited,
        _told(facts, "continue", f"settle: continue as persona/{facts.number}"),
    )
    return Plan(
        "continue",
        (persona, merge),
        {persona_ref(facts.number): (None, "persona"), _branch(facts): (facts.tip, "merge")},
        facts.edited,
    )


def update_begun(facts: Facts) -> Plan:
    """Plan the first step of `update`: `persona/N` holds the edit, and nothing else moves."""
    return Plan(
        "update", (_persona(facts, "update"),), {persona_ref(facts.number): (None, "persona")}
    )


def update_landed(facts: Facts, read: str, memories: Contents) -> Plan:
    """Plan the last step of `update`: the branch merges what was read, up to the commit `read`."""
    contents = {**facts.edited, **memories}
    merge = Made(
        "merge",
        (facts.tip, read),
        facts.tip,
        contents,
        _told(facts, "update", f"settle: update to persona/{facts.number}"),
    )
    return Plan("update", (merge,), {_branch(facts): (facts.tip, "merge")}, contents)


def forked(facts: Facts, name: str) -> Plan:
    """Plan `fork`: a parentless branch holds the edit and no memory; the old one is archived."""
    contents = {**dict.fromkeys(facts.memory), **facts.edited}
    told = _told(facts, "fork", f"settle: fork {name} from {facts.branch}")
    record = replace(told, number=facts.number, forked_from=facts.tip, archived=facts.branch)
    first = Made("first", (), facts.tip, contents, record)
    ref = f"{_BRANCHES}{name}"
    refs = {ref: (None, "first"), persona_ref(facts.number): (None, "first")}
    return Plan("fork", (first,), refs, contents, ref)


def discarded(facts: Facts) -> Plan:
    """Plan `discard`: the persona is as it was settled, and the edit stays reachable."""
    told = _told(facts, "restore", "settle: discard the persona edit")
    kept = Made("kept", (facts.tip,), facts.tip, facts.edited, told)
    commits = [kept]
    moved: dict[str, tuple[str | None, str]] = {facts.discarded_ref: (None, "kept")}
    if facts.is_at_tip:
        commits.append(Made("restored", (facts.tip,), facts.tip, facts.restored, told))
        moved[_branch(facts)] = (facts.tip, "restored")
    return Plan("discard", tuple(commits), moved, facts.restored)


def _persona(facts: Facts, action: str) -> Made:
    names = ", ".join(facts.edited)
    record = _told(facts, action, f"persona/{facts.number}: {names} edited")
    record = replace(record, text=f"of {facts.branch}")
    return Made(
        "persona",
        (facts.settled,),
        facts.settled,
        facts.edited,
        replace(record, number=facts.number),
    )


def _told(facts: Facts, action: str, subject: str) -> Record:
    return replace(facts.told, action=action, subject=subject)


def _branch(facts: Facts) -> str:
    return f"{_BRANCHES}{facts.branch}"
