"""Who the companion has been: the branches `persona/N` and the digest a branch is settled under."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from soulgit.core import composition, layout, persona, record
from soulgit.core.layout import PERSONA_NAMES, Layout
from soulgit.errors import BranchRefused, RepositoryRefused, UnsafeFile
from soulgit.git import Commit, Repository
from soulgit.git.values import BRANCHES

_NUMBERED = re.compile(r"(?:refs/heads|refs/remotes/[^/]+)/persona/([1-9][0-9]*)")

_MEMORY_NAMES = tuple(map(layout.memory_name, layout.TARGETS))


def ref_name(number: int) -> str:
    """Return the ref of the branch that shows a persona to people."""
    return f"{BRANCHES}persona/{number}"


def tree_layout(repository: Repository, tree: str) -> Layout:
    """Return the layout that a tree has of itself."""
    return layout.detect(_names(repository, tree))


def paths(repository: Repository, tree: str) -> list[str]:
    """Return the paths at which a tree itself has bootstrap files, or links in their place."""
    there = _names(repository, tree)
    known = [path for _, path in layout.detect(there).paths() if path in there]
    # What is in a directory of another name, by a link, is named there too.
    return [path for path in known if "/" not in path or repository.entry(tree, path) is not None]


def contents(repository: Repository, tree: str) -> dict[str, bytes]:
    """Return the bootstrap files of a tree by name, in the order of composition."""
    there = _names(repository, tree)
    present = {name: path for name, path in layout.detect(there).paths() if path in there}
    refuse_shared({name: repository.follow(tree, path).path for name, path in present.items()})
    read = {name: repository.read(tree, path) for name, path in present.items()}
    return {name: data for name, data in read.items() if data is not None}


def memory_paths(repository: Repository, tree: str) -> list[str]:
    """Return the paths at which a tree holds memory, of either layout, links before their files."""
    paths = []
    for known in (layout.PLAIN, layout.HERMES):
        for path in map(known.memory_path, layout.TARGETS):
            if repository.entry(tree, path) is not None:
                paths += [path, repository.follow(tree, path).path]
    return list(dict.fromkeys(paths))


def readable_contents(repository: Repository, tree: str) -> dict[str, bytes]:
    """Return those bootstrap files of a tree that are files, for showing history."""
    there = _names(repository, tree)
    found = {}
    for name, path in layout.detect(there).paths():
        with contextlib.suppress(UnsafeFile):
            data = repository.read(tree, path) if path in there else None
            if data is not None:
                found[name] = data
    return found


def refuse_shared(real_paths: Mapping[str, str]) -> None:
    """Raise UnsafeFile where links make one file of two; real paths are given by name."""
    names: dict[str, str] = {}
    for name, path in real_paths.items():
        other = names.setdefault(path, name)
        if other != name:
            raise UnsafeFile(f"{name} and {other} are one file, by a link", path=path)


def tree_digest(repository: Repository, tree: str) -> str:
    """Return the digest of the persona in a tree."""
    read = {name: repository.read(tree, name) for name in PERSONA_NAMES}
    return persona.digest({name: data for name, data in read.items() if data is not None})


def settled_digest(repository: Repository, tip: str) -> str:
    """Return the digest a branch is settled under.

    It is that of the newest first-parent commit whose `Soul-Persona` equals the digest of
    its own tree, for a forged or cherry-picked trailer does not; with none, the tip's.
    """
    return settled(repository, tip)[1]


def settled(repository: Repository, tip: str) -> tuple[str, str]:
    """Return the newest settled commit of a branch, and the digest it is settled under."""
    for commit_id in first_parents(repository, tip):
        commit = repository.commit(commit_id)
        told = record.parse(commit.message).persona
        if told is not None and told == tree_digest(repository, commit.tree):
            return commit_id, told
    return tip, tree_digest(repository, repository.commit(tip).tree)


def first_parents(repository: Repository, tip: str) -> Iterator[str]:
    """Yield a commit and its first parents, as far as they are here."""
    commit_id: str | None = tip
    while commit_id is not None and repository.has(commit_id):
        yield commit_id
        commit_id = next(iter(repository.commit(commit_id).parents), None)


def numbers(repository: Repository) -> set[int]:
    """Return the numbers of the personas that local and remote-tracking branches show."""
    matches = map(_NUMBERED.fullmatch, _persona_refs(repository))
    return {int(match.group(1)) for match in matches if match}


def next_number(repository: Repository, tip: str | None) -> int:
    """Return the number of the next persona: one more than any branch or trailer has."""
    told = set(numbers(repository))
    if tip is not None:
        for commit_id in first_parents(repository, tip):
            commit = repository.commit(commit_id)
            told.add(record.parse(commit.message).number or 0)
            told.update(_number_of(repository, parent) for parent in commit.parents[1:])
    return 1 + max(told, default=0)


def _number_of(repository: Repository, merged: str) -> int:
    """Return the number of the persona that a decision merged, behind what was re-read for it."""
    for commit_id in first_parents(repository, merged):
        told = record.parse(repository.commit(commit_id).message)
        if told.action != "reread":
            return told.number or 0
    return 0


def is_written(repository: Repository, tip: str | None) -> bool:
    """Whether soulgit has written this history: a persona branch, or a record on the way."""
    if tip is None:
        return False
    if _record_of(repository, tip).action is not None:
        return True
    if any(_shown(repository, name) for name in _persona_refs(repository)):
        return True
    return any(
        _record_of(repository, commit_id).action is not None
        for commit_id in first_parents(repository, tip)
    )


def first_commit(repository: Repository, number: int) -> Commit | None:
    """Return the first commit of a local persona branch, before any re-reading."""
    ref = ref_name(number)
    if _shown(repository, ref) is None:
        return None
    commit_id = repository.ref(ref)
    while commit_id is not None:
        commit = repository.commit(commit_id)
        if record.parse(commit.message).action != "reread":
            return commit
        commit_id = next(iter(commit.parents), None)
    return None


def name_of(repository: Repository, digest: str) -> str | None:
    """Return `persona/N` for a digest that a local persona branch was settled under."""
    for number in sorted(numbers(repository), reverse=True):
        shown = _shown(repository, ref_name(number))
        if shown is not None and shown.persona == digest:
            return f"persona/{number}"
    return None


def refuse_branch(branch: str | None, path: str) -> None:
    """Raise BranchRefused where HEAD is on no branch that a companion can live on."""
    if branch is None:
        raise BranchRefused(
            f"HEAD of {path} is detached or on no branch: what is written would be on none",
            hint="`git switch BRANCH` goes back, `git switch -c NAME` makes a branch here",
        )
    if branch == "persona" or branch.startswith("persona/"):
        raise BranchRefused(f"{path} is on {branch}, which shows a persona and takes no writes")


def is_pending(repository: Repository, tip: str | None, files: Mapping[str, bytes]) -> bool:
    """Whether the persona in some files, or at the tip, is not the settled one."""
    if tip is None:
        return False
    settled_at, digest = settled(repository, tip)
    if settled_at != tip and tree_digest(repository, repository.commit(tip).tree) != digest:
        return True
    return persona.digest(files) != digest


def archived_by(repository: Repository, branch: str) -> str | None:
    """Return the persona branch whose fork archived a branch, None for one that is alive.

    It is known from the fork's own first commit, so clones and fetches know it too.
    """
    tip = repository.ref(f"{BRANCHES}{branch}")
    for name in _persona_refs(repository):
        shown = _shown(repository, name)
        if shown is None or shown.archived != branch or shown.forked_from is None or tip is None:
            continue
        if repository.has(shown.forked_from) and repository.is_ancestor(shown.forked_from, tip):
            return f"persona/{name.rpartition('/')[2]}"
    return None


def archives(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield each branch that a fork has archived, and the commit it was forked from."""
    for name in _persona_refs(repository):
        shown = _shown(repository, name)
        if shown is not None and shown.archived is not None and shown.forked_from is not None:
            yield shown.archived, shown.forked_from


def refuse_archived(repository: Repository, branch: str) -> None:
    """Raise BranchRefused for a branch that a fork has archived."""
    by = archived_by(repository, branch)
    if by is not None:
        raise BranchRefused(
            f"the branch {branch} is archived: {by} went on from it as another companion",
            hint=f"`soulgit fork HOME NAME --at {branch}` makes a companion that can be written to",
        )


def refuse_blocked(repository: Repository) -> None:
    """Raise BranchRefused where a branch `persona` leaves no room for `persona/N`."""
    if repository.ref(f"{BRANCHES}persona") is not None:
        raise BranchRefused(
            f"a branch named persona in {repository.path} leaves no room for persona/1",
            hint=f"rename it: git -C {repository.path} branch -m persona NAME",
        )


def companion_name(files: dict[str, bytes], fallback: str) -> str:
    """Return what a companion is called: what it says of itself, else the directory's name."""
    return told_name(files) or fallback


def told_name(files: Mapping[str, bytes]) -> str | None:
    """Return the name that the frontmatter gives, else IDENTITY.md; None where it is unset."""
    return persona.companion_name(files.get("SOUL.md")) or _told(files, "name")


def told_emoji(files: Mapping[str, bytes]) -> str | None:
    """Return the emoji that IDENTITY.md gives; None where it is unset."""
    return _told(files, "emoji")


def _told(files: Mapping[str, bytes], label: str) -> str | None:
    from soulgit.core import identity  # who only reads a soul is spared its patterns

    return identity.value(composition.body("IDENTITY.md", files.get("IDENTITY.md", b"")), label)


def _names(repository: Repository, tree: str) -> set[str]:
    """Return the names in a tree, those in a memory directory too where it may be in use."""
    there = set(repository.names(tree))
    if "memories" in there and not there.intersection(_MEMORY_NAMES):
        directory = repository.follow(tree, "memories").path
        inside = repository.names(tree, directory)
        there.update(layout.HERMES.memory_directory + name for name in inside)
    return there


def _persona_refs(repository: Repository) -> list[str]:
    return [name for name in repository.refs("refs/") if _NUMBERED.fullmatch(name)]


def _shown(repository: Repository, ref: str) -> record.Record | None:
    """Return the record that soulgit made of a persona, None for a branch of another's making."""
    try:
        tip = repository.ref(ref)
        found = _record_of(repository, tip) if tip else None
    except RepositoryRefused:
        return None  # dangling, or no commit: nobody's persona
    return found if found and found.action is not None else None


def _record_of(repository: Repository, commit_id: str) -> record.Record:
    return record.parse(repository.commit(commit_id).message)
