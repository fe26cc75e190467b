"""The bootstrap files as they lie on disk: all that a reader needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from soulgit import disk, personas
from soulgit.core import layout
from soulgit.core.layout import Layout
from soulgit.disk import DiskFile
from soulgit.errors import RepositoryRefused
from soulgit.git import Repository


@dataclass(frozen=True)
class Working:
    """The bootstrap files as they lie on disk, by name, in the order of composition."""

    layout: Layout
    files: dict[str, DiskFile]
    twins: tuple[str, ...] = ()

    @property
    def contents(self) -> dict[str, bytes]:
        """Their bytes by name."""
        return {name: file.data for name, file in self.files.items()}

    def real_path(self, name: str) -> str:
        """Return where a bootstrap file's bytes lie, or would."""
        return self.files[name].path if name in self.files else self.layout.path(name)


def look(root: str, otherwise: Layout = layout.PLAIN) -> Working:
    """Read the bootstrap files of a directory, by their exact names.

    `otherwise` is the layout of one that has no memory file.
    """
    there = set(disk.names(root))
    memory = disk.names(f"{root}/{layout.HERMES.memory_directory}") if "memories" in there else []
    there.update(layout.HERMES.memory_directory + name for name in memory)
    found = layout.detect(there, otherwise)
    files = {name: disk.read(root, path) for name, path in found.paths() if path in there}
    personas.refuse_shared({name: file.path for name, file in files.items()})
    return Working(found, files, other_case(there, found))


def other_case(there: Iterable[str], found: Layout) -> tuple[str, ...]:
    """Return the names that differ from a bootstrap file's only in case."""
    exact = {path for _, path in found.paths()}
    folded = {path.casefold() for path in exact}
    return tuple(sorted(name for name in there if name.casefold() in folded and name not in exact))


def refuse_sparse(repository: Repository, working: Working, head_tree: str | None) -> None:
    """Raise RepositoryRefused where a sparse checkout hides a bootstrap file: it is not deleted."""
    if repository.setting("core.sparsecheckout") != "true":
        return
    there = {file.path for file in working.files.values()}
    there.update(path for file in working.files.values() for path, _ in file.links)
    for path in committed_paths(repository, head_tree):
        if path not in there:
            raise RepositoryRefused(
                f"{path} is in the history but a sparse checkout hides it from the directory",
                hint=f"git -C {repository.path} sparse-checkout disable",
            )


def committed_paths(repository: Repository, head_tree: str | None) -> list[str]:
    """Return the paths at which a tree holds bootstrap files."""
    return [] if head_tree is None else personas.paths(repository, head_tree)
