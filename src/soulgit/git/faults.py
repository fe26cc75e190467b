"""The one place where what libgit2 raises becomes an error of soulgit.

pygit2 raises GitError, KeyError, ValueError and OSError, often one for another; which it
was says little, so the text and the question that was asked decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pygit2

from soulgit.errors import BusyError, ObjectMissing, RepositoryRefused, SoulgitError, StorageFailed

_STORAGE = ("No space left", "Read-only file system", "Permission denied", "Input/output error",
            "Disk quota exceeded", "File too large", "Too many open files")  # fmt: skip
_CONFIG = r"failed to parse config file: (?P<what>.*) \(in (?P<file>.*):(?P<line>\d+)\)"


class translated:  # noqa: N801  # it is called like the function that it was, only a hundred times
    """Raise what pygit2 raises within as an error of soulgit about the repository at `path`."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, (pygit2.GitError, LookupError, ValueError, OSError)):
            raise translate(fault, self._path) from fault


def translate(fault: Exception, path: str) -> SoulgitError:
    """Return the error of soulgit that says what a fault of pygit2's means."""
    text = str(fault).removeprefix(f"{path}: ").strip("'")
    if any(sign in text for sign in _STORAGE):
        return StorageFailed(f"the repository at {path} cannot be used: {text}")
    for says, error in _MEANINGS:
        if says in text:
            return error(path, text)
    if isinstance(fault, LookupError):
        return ObjectMissing(f"an object of {path} is not here: {text}")
    if isinstance(fault, OSError):
        return StorageFailed(f"the repository at {path} cannot be used: {text}")
    return RepositoryRefused(f"the repository at {path} cannot be used: {text}")


def _not_owned(path: str, text: str) -> SoulgitError:
    return RepositoryRefused(
        f"the repository at {path} belongs to another user",
        hint=f"if you trust it: git config --global --add safe.directory {path}",
    )


def _reftable(path: str, text: str) -> SoulgitError:
    return RepositoryRefused(
        f"the repository at {path} uses reftable, which libgit2 cannot read",
        hint=f"run: git -C {path} refs migrate --ref-format=files",
    )


def _object_format(path: str, text: str) -> SoulgitError:
    return RepositoryRefused(
        f"the repository at {path} uses an object format that libgit2 cannot read ({text})",
        hint="make a new home with `soulgit init` and copy the files into it",
    )


def _config(path: str, text: str) -> SoulgitError:
    found = re.search(_CONFIG, text)
    where = f"{found['file']} line {found['line']}: {found['what']}" if found else text
    return RepositoryRefused(
        f"git's configuration is broken: {where}",
        hint="mend that line; `git config --list` reads the same file",
    )


def _locked(path: str, text: str) -> SoulgitError:
    return BusyError(f"the repository at {path} is locked: {text}")


def _not_found(path: str, text: str) -> SoulgitError:
    return RepositoryRefused(
        f"the .git of {path} leads to no repository",
        hint="for a linked home whose repository was moved: git worktree repair",
    )


@contextmanager
def index_faults(index_path: str) -> Iterator[None]:
    """Raise what pygit2 raises of an index as RepositoryRefused, with what makes it whole."""
    try:
        yield
    except (pygit2.GitError, LookupError, ValueError, OSError) as fault:
        if any(sign in str(fault) for sign in _STORAGE):
            raise translate(fault, index_path) from fault
        raise RepositoryRefused(
            f"git's index cannot be read: {index_path}: {fault}",
            hint="`git update-index --no-split-index` makes it plain; a broken one: delete it, "
            "then `git reset`",
        ) from fault


_MEANINGS = (
    ("is not owned by current user", _not_owned),
    ("extensions.refstorage", _reftable),
    ("unknown object format", _object_format),
    ("extensions.objectformat", _object_format),
    ("failed to parse config file", _config),
    ("failed to lock file", _locked),
    ("failed to create locked file", _locked),  # it was made between a look and the making
    ("Repository not found", _not_found),
)
