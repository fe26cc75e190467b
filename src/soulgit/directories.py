"""Directories on disk: made with those above them, and taken away."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from soulgit.disk import discard, storage_faults, sync_directory

_DRAFT_PREFIX = ".soulgit-draft-"


def make_directory(path: str) -> bool:
    """Make a directory of soulgit's own; return False where it is there already."""
    with storage_faults(f"{path} cannot be made"):
        try:
            os.mkdir(path)
        except FileExistsError:
            return False
    return True


def make_parents(path: str) -> list[str]:
    """Make the directories that a path needs; return those that got a new name in them."""
    missing = missing_parents(path)
    if missing:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    return missing


@contextmanager
def made_directory(path: str) -> Iterator[None]:
    """Make a directory and those above it; when what follows fails, take the empty ones away."""
    missing = []
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    with storage_faults(f"{path} cannot be made"):
        os.makedirs(path, exist_ok=True)
        for directory in missing:
            sync_directory(os.path.dirname(directory))
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for directory in missing:
                os.rmdir(directory)
        raise


def missing_parents(path: str) -> list[str]:
    """Return the directories that get a new one in them when a path's own is made."""
    parents = []
    directory = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
        parents.append(directory)
    return parents


def topmost_missing(path: str) -> str:
    """Return the highest directory that making this one would make."""
    while not os.path.lexists(os.path.dirname(path)):
        path = os.path.dirname(path)
    return path


def nearest_directory(path: str) -> str:
    """Return the innermost directory above a path that is there."""
    return next(iter(missing_parents(path)[-1:]), os.path.dirname(path))


def directories_of(path: str) -> list[str]:
    """Return the directories of a relative path, from its own to the empty one at the top."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]


def remove_empty(path: str) -> None:
    """Take away a directory that holds nothing but empty directories, if it is there."""
    for directory, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def discard_tree(path: str) -> None:
    """Take a file or directory of soulgit's own away, if it is there, as far as that goes."""
    if _is_directory(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        discard(path)


def remove_tree(path: str) -> None:
    """Take a file or directory away whole, if it is there; raises where something stays."""
    if _is_directory(path):
        import shutil

        with storage_faults(f"{path} cannot be removed"):
            shutil.rmtree(path)
    else:
        discard(path)


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def bytes_below(root: str) -> int:
    """Return the bytes that the files and directories below one take on the disk."""
    total = 0
    for directory, names_, files in os.walk(root):
        for name in (*names_, *files):
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(directory, name)).st_blocks * 512
    return total


def draft_name() -> str:
    """Return a name for a directory of soulgit's own that stands in a home for a moment."""
    return f"{_DRAFT_PREFIX}{os.getpid()}-{time.monotonic_ns()}"


def is_dead_draft(name: str) -> bool:
    """Whether a name is that of such a directory whose process is gone."""
    pid = name.removeprefix(_DRAFT_PREFIX).partition("-")[0]
    if not (name.startswith(_DRAFT_PREFIX) and pid.isdecimal() and pid.isascii()):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
