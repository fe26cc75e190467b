"""The emergency stop: while a home is frozen nothing writes memory, on any branch.

The freeze is a ref, so it waits for no lock, survives a crash, and takes effect at the
next write of every process. Like all refs outside the branches it is local to a clone.
Who froze and thawed, when and why, stays on a ref of its own.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from soulgit import disk
from soulgit.core import record
from soulgit.core.actor import Identity, Moment
from soulgit.core.record import Record
from soulgit.errors import BusyError, HomeFrozen, SoulgitError
from soulgit.git import Repository

REF = "refs/soulgit/frozen"
_HISTORY_REF = "refs/soulgit/freezes"
_LEFT_LOCK_SECONDS = 2


@dataclass(frozen=True)
class Freeze:
    """Who froze a home, when and why."""

    by: Identity
    time: Moment
    reason: str | None

    def told(self) -> str:
        """Return it in words, like `since … by Ann: it writes nonsense`."""
        why = f": {self.reason}" if self.reason else ""
        return f"since {self.time.iso()} by {self.by.name}{why}"


def freeze(repository: Repository, by: Identity, when: Moment, reason: str | None) -> bool:
    """Freeze a home; return False where it is frozen already, for the first freeze stands."""
    commit_id = _record(repository, "freeze: memory stands still", by, when, reason)
    try:
        is_first = repository.create_ref(REF, commit_id, "soulgit: freeze")
    except BusyError:
        _discard_left_lock(repository)
        is_first = repository.create_ref(REF, commit_id, "soulgit: freeze")
    if is_first:
        _remember(repository, commit_id, "soulgit: freeze")
    return is_first


def thaw(repository: Repository, by: Identity, when: Moment, reason: str | None) -> bool:
    """End a freeze; return False where there was none."""
    if repository.ref(REF) is None:
        return False
    commit_id = _record(repository, "thaw: memory goes on", by, when, reason)
    repository.delete_ref(REF)
    _remember(repository, commit_id, "soulgit: thaw")
    return True


def state(repository: Repository) -> Freeze | None:
    """Return the freeze that is on, None where memory is written."""
    commit_id = repository.ref(REF)
    if commit_id is None:
        return None
    commit = repository.commit(commit_id)
    return Freeze(commit.author, commit.time, record.reason(commit.message))


def refuse_frozen(repository: Repository) -> None:
    """Raise HomeFrozen while a home is frozen."""
    frozen = state(repository)
    if frozen is not None:
        raise HomeFrozen(f"{repository.path} is frozen {frozen.told()}")


def _discard_left_lock(repository: Repository) -> None:
    """Take away the lock of a freeze that crashed; a living one holds it for an instant only."""
    lock = repository.lock_path(REF)
    made = disk.modified_at(lock)
    if made is not None and time.time() - made > _LEFT_LOCK_SECONDS:
        disk.discard(lock)


def _remember(repository: Repository, commit_id: str, message: str) -> None:
    """Keep a freeze or thaw in their history, where nothing hinders it: the stop itself counts."""
    with contextlib.suppress(SoulgitError):
        repository.set_ref(_HISTORY_REF, commit_id, message)


def _record(
    repository: Repository, subject: str, by: Identity, when: Moment, reason: str | None
) -> str:
    previous = repository.ref(_HISTORY_REF)
    told = Record(None, subject, reason, reason=reason)
    tree = repository.write_tree(None, {})
    parents = () if previous is None else (previous,)
    return repository.write_commit(tree, parents, record.build(told), by, when)
