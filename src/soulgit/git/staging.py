"""The index: what is staged at a path, and an index that differs in a few.

An index is named by its own path, for linked homes of one repository have one each. The
caller holds `index.lock` where it puts a new one in place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping

import pygit2
from pygit2.enums import FileMode
from pygit2.ffi import ffi

from soulgit.git.faults import index_faults, translated
from soulgit.git.repository import Repository
from soulgit.git.values import TreeEntry


def index_entries(index_path: str, paths: Iterable[str]) -> dict[str, TreeEntry]:
    """Return what the index holds at some paths, unmerged ones left out."""
    with index_faults(index_path):
        index = _Index(index_path)
        found = {path: _entry(index, path) for path in paths}
        return {path: entry for path, entry in found.items() if entry is not None}


def unmerged(index_path: str) -> list[str]:
    """Return the paths of the index that a merge left unmerged."""
    with index_faults(index_path):
        conflicts = _Index(index_path).conflicts
        if conflicts is None:
            return []
        return sorted({side.path for sides in conflicts for side in sides if side is not None})


def looks_unchanged(repository: Repository, path: str) -> bool:
    """Whether git itself, which heeds attributes, takes a tracked file for unchanged."""
    with translated(repository.path):
        return int(repository._handle.status_file(path)) == 0


def prepare_index(index_path: str, changes: Mapping[str, TreeEntry | None], draft: str) -> bool:
    """Write to `draft` an index that differs from the present one in some paths.

    Whatever else the user staged stays staged. Returns False where nothing differs. The
    new index keeps the old one's time: by it git knows which files it must still compare.
    """
    with contextlib.suppress(FileNotFoundError):
        _begin_with(index_path, draft)
    with index_faults(index_path):
        index = _Index(draft)
        differs = False
        known = {path: _entry(index, path) for path in changes}
        gone_first = sorted(changes.items(), key=lambda change: change[1] is not None)
        for path, entry in gone_first:
            if entry == known[path]:
                continue
            differs = True
            if entry is None:
                index.remove(path)
            else:
                index.add(pygit2.IndexEntry(path, pygit2.Oid(hex=entry.id), FileMode(entry.mode)))
        if differs:
            index.write()
            _keep_time(index_path, draft)
    return differs


def _begin_with(index_path: str, draft: str) -> None:
    """Let a draft be the present index: another name of it, for libgit2 renames a new one there."""
    try:
        os.link(index_path, draft)
    except FileNotFoundError:
        raise
    except OSError:
        import shutil

        shutil.copyfile(index_path, draft)


def _entry(index: pygit2.Index, path: str) -> TreeEntry | None:
    """Return what is staged at a path, None for nothing and for an unmerged one."""
    try:
        found = index[path]
    except KeyError:
        return None
    return TreeEntry(int(found.mode), str(found.id))


def _keep_time(index_path: str, draft: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(index_path)
        os.utime(draft, ns=(status.st_atime_ns, status.st_mtime_ns))


class _Index(pygit2.Index):
    """An index; where it could not be read there is nothing to free, which pygit2 overlooks."""

    _index = ffi.NULL
