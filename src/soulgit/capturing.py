"""Capture: what somebody else changed in a home's files is recorded, now or before a write."""

from __future__ import annotations

from soulgit import adoption, personas
from soulgit.adoption import Hand
from soulgit.gate import gate
from soulgit.git.staging import index_entries
from soulgit.home import AnyHome, Home, as_home
from soulgit.working import Working


def capture(home: AnyHome, hand: Hand) -> str | None:
    """Record what was changed by hand; return the new tip, None where nothing was.

    Where nothing was it takes no lock and loads nothing that writes: hooks ask very often.
    """
    home = as_home(home)
    if home.is_home and _is_as_committed(home, adopts=hand.adopts):
        return None
    from soulgit.revision import revise

    return revise(home, hand=hand)


def _is_as_committed(home: Home, *, adopts: bool) -> bool:
    head, working = home.head(), home.look()
    if head.branch is None or head.tip is None or changed_by_hand(home, working):
        return False
    if personas.archived_by(home.repository, head.branch) is not None:
        return False
    return gate(home.repository, head, working, adopts=adopts) != "settles itself"


def changed_by_hand(home: Home, working: Working) -> tuple[str, ...]:
    """Return what differs from the last commit, a line each, like `changed MEMORY.md`."""
    with home.reading() as repository:
        tip = repository.head().tip
        tree = repository.commit(tip).tree if tip else None
        staged = index_entries(home.index_path, adoption.role_paths(repository, working, tree))
        entries = dict.fromkeys(staged) | adoption.disk_entries(repository, working, tree)
        steps = adoption.found_steps(repository, tree, entries, staged, Hand())
    return tuple(line for step in steps for line in (step.record.text or "").splitlines())
