"""The homes of one repository: its own directory, and those linked to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from soulgit import disk
from soulgit.errors import RepositoryRefused
from soulgit.git import Repository
from soulgit.home import Home


@dataclass(frozen=True)
class Place:
    """A home of a repository: its directory, and its own git directory."""

    root: str
    git_dir: str


def homes_of(home: Home) -> Iterator[Place]:
    """Yield the homes that share a home's repository, that home last.

    Raises RepositoryRefused where one of them cannot be found.
    """
    repository = home.repository
    own = Place(home.path, os.path.normpath(repository.git_dir))
    for place in _all(repository, own):
        if place != own:
            yield place
    yield own


def _all(repository: Repository, own: Place) -> Iterator[Place]:
    common = repository.common_dir
    if own.git_dir != common and repository.setting("core.bare") != "true":
        yield Place(_main_root(repository), common)
    linked = os.path.join(common, "worktrees")
    for name in sorted(disk.names(linked)):
        git_dir = os.path.join(linked, name)
        if git_dir == own.git_dir:
            continue
        root = os.path.dirname(disk.read_line(os.path.join(git_dir, "gitdir")))
        if not os.path.lexists(os.path.join(root, ".git")):
            raise RepositoryRefused(
                f"the linked home {root} is not there",
                hint="`git worktree repair PATH` if it was moved, `git worktree prune` if it is "
                "gone",
            )
        if not os.path.samefile(Repository.open(root).git_dir, git_dir):
            raise RepositoryRefused(
                f"{root} is a linked home of another repository, of which this one is a copy",
                hint=f"delete {git_dir}: it is a copy of that home's entry, and of no use",
            )
        yield Place(os.path.realpath(root), git_dir)


def _main_root(repository: Repository) -> str:
    common = repository.common_dir
    root = os.path.dirname(common)
    if os.path.realpath(os.path.join(root, ".git")) != os.path.realpath(common):
        raise RepositoryRefused(
            f"the home that {common} belongs to cannot be found from here",
            hint="give that home instead of one that is linked to it",
        )
    return root
