"""The gate: whether a persona edit waits for a person's decision, and so no memory is written."""

from __future__ import annotations

from typing import Literal

from soulgit import personas
from soulgit.core import composition
from soulgit.core.layout import TARGETS, memory_name
from soulgit.git import Head, Repository
from soulgit.home import Home
from soulgit.working import Working

Gate = Literal["open", "closed", "settles itself"]
"""Whether a persona edit waits for a person's decision, and so no memory is written."""


def waits(home: Home) -> bool:
    """Whether a persona edit waits for a decision, so that no memory may be written."""
    return gate(home.repository, home.head(), home.look()) == "closed"


def gate(repository: Repository, head: Head, working: Working, *, adopts: bool = False) -> Gate:
    """Return whether a persona edit waits for a person's decision.

    Where no memory file holds an entry there is nothing to decide, and it settles itself; and
    a person who `adopts` what is there has decided.
    """
    if adopts or not personas.is_pending(repository, head.tip, working.contents):
        return "open"
    from soulgit.core import entries

    has_entries = any(
        entries.split(composition.decode(working.contents.get(name, b"")), working.layout)
        for name in map(memory_name, TARGETS)
    )
    return "closed" if has_entries else "settles itself"
