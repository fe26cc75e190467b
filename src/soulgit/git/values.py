"""What is known of a repository, as values that outlive it."""

from __future__ import annotations

from dataclasses import dataclass

from soulgit.core.actor import Identity, Moment

BRANCHES = "refs/heads/"

FILE_MODE = 0o100644
EXECUTABLE_MODE = 0o100755
LINK_MODE = 0o120000
TREE_MODE = 0o040000

KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
"""The kinds of objects, by the numbers that git gives them."""

KIND_NUMBERS = {kind: number for number, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """What stands at a path of a tree or of the index: a git file mode and an object id."""

    mode: int
    id: str


@dataclass(frozen=True)
class Commit:
    """A commit; its time is the committer's."""

    id: str
    parents: tuple[str, ...]
    tree: str
    author: Identity
    time: Moment
    message: str


@dataclass(frozen=True)
class Head:
    """Where HEAD is: the ref it names (None: detached) and the commit (None: unborn)."""

    ref: str | None
    tip: str | None

    @property
    def branch(self) -> str | None:
        """The short name of the branch, None where HEAD is on none."""
        on_branch = self.ref is not None and self.ref.startswith(BRANCHES)
        return self.ref.removeprefix(BRANCHES) if self.ref and on_branch else None
