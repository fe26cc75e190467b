"""Refs locked against git and everybody else, and moved at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pygit2

from soulgit.core.actor import Identity
from soulgit.errors import BusyError
from soulgit.git.faults import translated
from soulgit.git.repository import Repository
from soulgit.lockfile import busy

_POLL_SECONDS = 0.005


_Transaction = pygit2.transaction.ReferenceTransaction


class RefLocks:
    """Refs that are locked; `move` gives them their new commits, in the order they were named.

    Each has a transaction of its own, for libgit2 moves the refs of one in an order of its own.
    """

    def __init__(self, repository: Repository, transactions: Mapping[str, _Transaction]) -> None:
        self._repository = repository
        self._transactions = transactions

    def move(self, targets: Mapping[str, str], message: str, head: str | None = None) -> None:
        """Give each ref its commit, and HEAD its branch last; `message` goes to the reflogs."""
        self._repository.sync_objects()
        with self._repository.names_synced(*targets), translated(self._repository.path):
            for name, commit_id in targets.items():
                transaction = self._transactions[name]
                transaction.set_target(name, commit_id, message=message)
                transaction.commit()
            if head is not None:
                transaction = self._transactions["HEAD"]
                transaction.set_symbolic_target("HEAD", head, message=message)
                transaction.commit()


@contextmanager
def locked_refs(
    repository: Repository, names: list[str], actor: Identity, wait_seconds: float
) -> Iterator[RefLocks]:
    """Lock refs against git and everybody else; raises BusyError after a bounded wait."""
    handle = repository._handle
    with translated(repository.path):
        handle.set_ident(actor.name, actor.email)
        transactions = {name: handle.transaction() for name in names}
    deadline = time.monotonic() + wait_seconds
    try:
        with repository.names_synced(*names):  # a lock makes the directory that it needs
            for name, transaction in transactions.items():
                _lock(repository, transaction, name, deadline)
        yield RefLocks(repository, transactions)
    finally:
        for transaction in transactions.values():
            # As if it had failed, for else it would commit again, and that corrupts memory.
            transaction.__exit__(BaseException, None, None)


def _lock(
    repository: Repository,
    transaction: _Transaction,
    name: str,
    deadline: float,
) -> None:
    while True:
        try:
            with translated(repository.path):
                transaction.lock_ref(name)
            return
        except BusyError as fault:
            if time.monotonic() >= deadline:
                lock = repository.lock_path(name)
                raise busy(lock) from fault
        time.sleep(_POLL_SECONDS)
