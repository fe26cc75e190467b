"""Companions of one repository: forked from any revision, each in a home of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from soulgit import directories, disk, freeze, landing, memory, personas, revisions, settling
from soulgit.core import branches, record
from soulgit.core.actor import Identity
from soulgit.core.layout import TARGETS
from soulgit.core.record import Record
from soulgit.errors import InvalidArgument, SoulgitError
from soulgit.git import Repository
from soulgit.git.linking import link_home, linked_dir
from soulgit.git.values import BRANCHES
from soulgit.home import AnyHome, Home, as_home


@dataclass(frozen=True)
class Forked:
    """A new companion: its branch, its first commit, its home (None: no home) and its token."""

    branch: str
    revision: str
    home: str | None
    token: str | None


@dataclass(frozen=True)
class Companion:
    """One companion of a repository; `home` is None where no directory shows its branch."""

    branch: str
    persona: str | None
    revision: str
    entries: dict[str, int]
    home: str | None
    archived_by: str | None


def fork(
    home: AnyHome,
    name: str,
    by: Identity,
    *,
    at: str | None = None,
    keep_memories: bool = False,
    directory: str | None = None,
    new_id: str = "",
    new_token: str = "",
) -> Forked:
    """Make a sibling companion from a revision, by default the tip; it decides nothing.

    Without memories its branch is parentless; with them it descends. `directory` becomes
    its home, a linked worktree; None makes none. When anything fails nothing is left.
    """
    home = as_home(home)
    repository = home.repository
    start = revisions.resolve(home, at or "HEAD")
    branches.check(name, settling.branch_names(repository))
    if directory is not None and "\0" in directory:
        raise InvalidArgument("the path of a home cannot hold a NUL character")
    if directory is not None and os.path.lexists(directory):
        raise InvalidArgument(f"{directory} exists already", hint="name another with --home DIR")
    if keep_memories:
        _refuse_unsettled(repository, start)
    contents, token = _contents(repository, start, name, new_id, new_token)
    if keep_memories:
        contents = {path: data for path, data in contents.items() if data is not None}
    with home.writing() as ground:
        freeze.refuse_frozen(repository)
        parents = (start,) if keep_memories else ()
        commit_id = _first_commit(home, start, contents, parents, name, by)
        ref = f"{BRANCHES}{name}"
        plan = landing.Plan({ref: (None, commit_id)}, "soulgit: fork", by)
        if directory is not None:
            plan = _with_home(plan, home, directory, ref, repository.commit(commit_id).tree)
        landing.land(ground, plan, lambda: True)
    return Forked(name, commit_id, directory, token)


def companions(home: AnyHome) -> list[Companion]:
    """Return every companion of a repository: its branches but those that show a persona."""
    home = as_home(home)
    repository = home.repository
    places = _places(repository)
    found = []
    for branch in settling.branch_names(repository):
        tip = repository.ref(f"{BRANCHES}{branch}")
        if branch.startswith("persona/") or tip is None:
            continue
        tree = repository.commit(tip).tree
        files, layout = personas.contents(repository, tree), personas.tree_layout(repository, tree)
        known = memory.entries_of(files, layout)
        found.append(
            Companion(
                branch=branch,
                persona=personas.name_of(repository, personas.tree_digest(repository, tree)),
                revision=tip,
                entries={target: sum(e.target == target for e in known) for target in TARGETS},
                home=places.get(f"{BRANCHES}{branch}"),
                archived_by=personas.archived_by(repository, branch),
            )
        )
    return found


def _refuse_unsettled(repository: Repository, start: str) -> None:
    tree = repository.commit(start).tree
    if personas.settled_digest(repository, start) != personas.tree_digest(repository, tree):
        raise InvalidArgument(
            f"the persona at {start[:12]} is not settled, so its memories cannot come along",
            hint="`soulgit settle` first, or fork without --keep-memories",
        )


def _contents(
    repository: Repository, start: str, name: str, new_id: str, new_token: str
) -> tuple[dict[str, bytes | None], str | None]:
    """Return what a fork has otherwise: its own soul file and no memory; and its token."""
    tree = repository.commit(start).tree
    contents: dict[str, bytes | None] = dict.fromkeys(personas.memory_paths(repository, tree))
    soul = repository.read(tree, "SOUL.md")
    if soul is None:
        return contents, None
    path = repository.follow(tree, "SOUL.md").path
    own, token = settling.renamed({"SOUL.md": soul}, name, new_id, new_token)
    return {**contents, path: own["SOUL.md"]}, token


def _first_commit(
    home: Home,
    start: str,
    contents: dict[str, bytes | None],
    parents: tuple[str, ...],
    name: str,
    by: Identity,
) -> str:
    repository = home.repository
    base = repository.commit(start).tree
    tree = repository.write_tree(base, settling.tree_entries(repository, base, contents))
    told = Record(
        "fork",
        f"fork: {name} from {start[:12]}",
        persona=personas.tree_digest(repository, tree),
        origin="cli",
        forked_from=start,
    )
    return repository.write_commit(tree, parents, record.build(told), by, home.clock())


def _with_home(plan: landing.Plan, home: Home, directory: str, ref: str, tree: str) -> landing.Plan:
    """Return a plan that also makes a linked home, which is there before its branch is."""
    repository = home.repository
    place = os.path.abspath(directory)
    git_dir = linked_dir(repository, place)
    parents = {
        parent
        for made in (place, git_dir)
        for parent in directories.missing_parents(f"{made}/HEAD")
    }

    def make() -> None:
        link_home(repository, place, ref, tree)
        if home.durable:
            for made in (git_dir, place):
                disk.sync_tree(made)
            for parent in parents:
                disk.sync_directory(parent)

    return replace(plan, made=(git_dir, directories.topmost_missing(place)), make=make)


def _places(repository: Repository) -> dict[str, str]:
    """Return the directory of each home of a repository, by the ref that its HEAD names."""
    common = repository.common_dir
    linked = os.path.join(common, "worktrees")
    git_dirs = [common, *(os.path.join(linked, name) for name in disk.names(linked))]
    places: dict[str, str] = {}
    for git_dir in git_dirs:
        try:
            head = disk.read_line(os.path.join(git_dir, "HEAD")).removeprefix("ref: ")
            if git_dir == common:
                place = os.path.dirname(common)
            else:
                place = os.path.dirname(disk.read_line(os.path.join(git_dir, "gitdir")))
        except SoulgitError:
            continue
        if os.path.lexists(os.path.join(place, ".git")):
            places[head] = place
    return places
