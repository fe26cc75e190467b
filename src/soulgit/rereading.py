"""Updates under way: what `persona/N` says of how far the re-reading has come."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from soulgit import personas
from soulgit.core import persona, reading, record
from soulgit.git import Repository
from soulgit.home import Home


@dataclass(frozen=True)
class Update:
    """An update under way: its persona branch, what was read, and from which memories."""

    number: int
    tip: str
    base: str
    done: int
    total: int
    digest: str
    branch: str

    @property
    def is_read(self) -> bool:
        """Whether every entry was read."""
        return self.done >= self.total


def under_way(home: Home, files: Mapping[str, bytes] | None) -> Update | None:
    """Return the branch's update that is not landed, of the persona in some files (None: any)."""
    repository, head = home.repository, home.head()
    if head.tip is None:
        return None
    for number in sorted(personas.numbers(repository), reverse=True):
        tip = repository.ref(personas.ref_name(number))
        if tip is None or repository.is_ancestor(tip, head.tip):
            continue
        found = _as_update(repository, number, tip)
        if found is None or found.branch != head.branch:
            continue
        if files is None or found.digest == persona.digest(files):
            return found
    return None


def set_aside(repository: Repository, found: Update) -> None:
    """Take an update's branch away; its work stays reachable under a ref of soulgit's own."""
    ref = free_ref(repository, "refs/soulgit/aborted/")
    repository.create_ref(ref, found.tip, "soulgit: abort")
    repository.delete_ref(personas.ref_name(found.number))


def _as_update(repository: Repository, number: int, tip: str) -> Update | None:
    """Return the update that a persona branch holds, None for a persona of another decision."""
    told = record.parse(repository.commit(tip).message)
    if told.action not in ("update", "reread") or told.persona is None:
        return None
    first = tip
    while record.parse(repository.commit(first).message).action == "reread":
        first = repository.commit(first).parents[0]
    commit = repository.commit(tip)
    files = personas.contents(repository, commit.tree)
    total = len(reading.readable(files, personas.tree_layout(repository, commit.tree)))
    base = repository.commit(first).parents[0]
    branch = (record.parse(repository.commit(first).message).text or "").removeprefix("of ")
    done = reading.covered(told.text) if told.action == "reread" else 0
    return Update(number, tip, base, done, total, told.persona, branch)


def free_ref(repository: Repository, prefix: str) -> str:
    """Return the first numbered ref of a kind that is not taken yet."""
    taken = {name.removeprefix(prefix) for name in repository.refs(prefix)}
    return prefix + next(str(n) for n in itertools.count(1) if str(n) not in taken)
