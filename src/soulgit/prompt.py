"""The system prompt: a home's soul, from its working files or from any revision."""

from __future__ import annotations

from soulgit import personas, revisions
from soulgit.core import composition, persona
from soulgit.core.composition import Soul
from soulgit.errors import ConflictPending
from soulgit.git import Repository
from soulgit.git.staging import unmerged
from soulgit.home import AnyHome, Home, as_home
from soulgit.working import other_case


def compose_soul(home: AnyHome, *, at: str | None = None) -> Soul:
    """Compose a home's soul: of its working files, or of the revision `at`.

    A revision is read from git objects alone, so the same commit gives the same bytes for
    ever. Raises UnsafeFile for a bootstrap file that cannot be read for what it is, and
    ConflictPending while a merge has left one of the working files unmerged.
    """
    home = as_home(home)
    return (
        _compose_working(home) if at is None else compose_commit(home, revisions.resolve(home, at))
    )


def compose_commit(home: Home, commit_id: str) -> Soul:
    """Compose the soul of a commit, given by its full id."""
    with home.reading() as repository:
        tree = repository.commit(commit_id).tree
        return _compose(
            personas.contents(repository, tree), _tree_twins(repository, tree), commit_id
        )


def _compose_working(home: Home) -> Soul:
    working = home.look()
    conflicts = unmerged(home.index_path) if home.is_home else []
    if conflicts:
        raise ConflictPending(
            f"unmerged in {home.path}, with markers in the text: {', '.join(conflicts)}",
            hint="settle the merge with git first, or compose a revision with --at HEAD",
        )
    return _compose(working.contents, working.twins, None)


def _compose(files: dict[str, bytes], twins: tuple[str, ...], revision: str | None) -> Soul:
    soul = composition.compose(files, persona.digest(files), revision=revision)
    notes = tuple(f"{name} is not read: names count to the letter" for name in twins)
    return composition.with_warnings(soul, notes)


def _tree_twins(repository: Repository, tree: str) -> tuple[str, ...]:
    return other_case(repository.names(tree), personas.tree_layout(repository, tree))
