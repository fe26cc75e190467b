"""What is on the disk when a call returns: how libgit2 is told to sync, and what it leaves out."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence

import pygit2
from pygit2.enums import RepositoryOpenFlag

from soulgit.directories import missing_parents
from soulgit.disk import storage_faults, sync_directory

_binding = threading.Lock()


def opened(path: str, durable: bool) -> pygit2.Repository:
    """Open a repository whose refs are synced, when libgit2 writes them, or not.

    libgit2 has one setting for the whole process and reads it for refs when a repository's are
    first read, so that is done here. Objects and packs are synced by soulgit itself.
    """
    handle = pygit2.Repository(path, RepositoryOpenFlag.NO_SEARCH)
    _bind(handle, durable)
    return handle


def released(handle: pygit2.Repository, durable: bool) -> None:
    """Close the files of a repository, packs that are gone among them; it opens them anew."""
    handle.free()
    _bind(handle, durable)


def _bind(handle: pygit2.Repository, durable: bool) -> None:
    with _binding:
        pygit2.settings.enable_fsync_gitdir(durable)
        try:
            with contextlib.suppress(pygit2.GitError, ValueError, OSError):
                handle.references.get("HEAD")
        finally:
            pygit2.settings.enable_fsync_gitdir(False)


@contextlib.contextmanager
def names_synced(paths: Sequence[str], durable: bool) -> Iterator[None]:
    """Bring the names of directories that files need to the disk, once they are made.

    libgit2 makes such directories and syncs what it puts into them, but not their own names.
    """
    parents = [parent for path in paths for parent in missing_parents(path)]
    yield
    if durable:
        with storage_faults("the new directories of refs cannot be synced"):
            for parent in filter(os.path.isdir, dict.fromkeys(parents)):
                sync_directory(parent)
