"""Linked homes: further directories of one repository, each on a branch of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from soulgit.git.faults import translated
from soulgit.git.repository import Repository


def linked_dir(repository: Repository, directory: str) -> str:
    """Return the git directory that a linked home in a directory has, or would have."""
    digest = repository.hash_blob(os.path.abspath(directory).encode("utf-8", "surrogateescape"))
    return os.path.join(repository.common_dir, "worktrees", f"soulgit-{digest[:12]}")


def link_home(repository: Repository, directory: str, ref: str, tree_id: str) -> None:
    """Make a linked home of a branch, which need not be there yet, with a tree's bytes.

    Nothing is filtered on the way: the files are the blobs.
    """
    git_dir = linked_dir(repository, directory)
    os.makedirs(git_dir)
    os.makedirs(directory)
    _write_out(repository, repository._object(tree_id, pygit2.Tree), directory)
    for name, text in (
        ("HEAD", f"ref: {ref}"),
        ("commondir", "../.."),
        ("gitdir", os.path.join(os.path.abspath(directory), ".git")),
    ):
        Path(git_dir, name).write_text(text + "\n", encoding="utf-8")
    with translated(repository.path):
        index = pygit2.Index(os.path.join(git_dir, "index"))
        index.read_tree(repository._object(tree_id, pygit2.Tree))
        index.write()
    Path(directory, ".git").write_text(f"gitdir: {git_dir}\n", encoding="utf-8")


def _write_out(repository: Repository, tree: pygit2.Tree, directory: str) -> None:
    for entry in tree:
        path = os.path.join(directory, os.fsdecode(entry.raw_name or b""))
        if entry.filemode == FileMode.TREE:
            os.mkdir(path)
            _write_out(repository, repository._object(str(entry.id), pygit2.Tree), path)
        elif entry.filemode == FileMode.LINK:
            os.symlink(os.fsdecode(repository.blob(str(entry.id))), path)
        elif entry.filemode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
            Path(path).write_bytes(repository.blob(str(entry.id)))
            if entry.filemode == FileMode.BLOB_EXECUTABLE:
                os.chmod(path, 0o777 & ~_umask())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
