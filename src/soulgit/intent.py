"""The intent record: what a writer is about to do, so that a dead one's work can be ended.

Before a writer touches anything that others see, it writes down what it is going to
change. Whoever holds the writer lock and finds an intent that was not cleared knows that
its writer died, for a living one would hold the lock.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from soulgit import disk
from soulgit.git import TreeEntry

_FILE = "intent"
_CLEARED = b"-"
_BLOCK_BYTES = 1_024
"""The record is padded to whole blocks, so that the next one seldom changes the file's size."""


@dataclass(frozen=True)
class Intent:
    """One write: refs old and new, files and index entries by path, the locks it makes.

    `files` maps a path to the blob ids it has before and after, `index` to its entries; None
    is an absent one.
    """

    token: str
    pid: int
    boot: str
    git_dir: str
    """The home's git directory, relative to the common one, for homes are moved and copied."""

    refs: dict[str, tuple[str | None, str]]
    files: dict[str, tuple[str | None, str | None]]
    index: dict[str, tuple[TreeEntry | None, TreeEntry | None]]
    message: str
    head: tuple[str | None, str] | None = None
    """The refs that HEAD names before and after, where it moves to another branch."""

    made: tuple[str, ...] = ()
    """Directories that are made for this write, and are nothing without it."""


def path(directory: str) -> str:
    """Return where the record lies; `index.lock` is a second link to it while a write goes on."""
    return os.path.join(directory, _FILE)


def write(directory: str, intent: Intent) -> list[str]:
    """Write an intent down; return the paths to bring to the disk before the work begins."""
    import json

    text = json.dumps(_values(intent)).encode()
    data = b"%s %s\n" % (_checksum(text), text)
    padded = data.ljust(-(-len(data) // _BLOCK_BYTES) * _BLOCK_BYTES)
    is_new = disk.overwrite(path(directory), padded)
    return [path(directory), *([directory] if is_new else [])]


def clear(directory: str) -> None:
    """Say that nothing is under way; not synced, for a finished intent changes nothing."""
    disk.overwrite(path(directory), _CLEARED)


def read(directory: str) -> Intent | None:
    """Return the intent that was not cleared.

    None also for one that is none, as its checksum tells: it was cut in writing, and nothing
    else had begun.
    """
    try:
        with open(path(directory), "rb") as file:
            line = file.readline()
        if not line.endswith(b"\n") or line.startswith(_CLEARED):
            return None
        told, _, text = line.rstrip(b"\n").partition(b" ")
        return _parse(text) if told == _checksum(text) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _values(intent: Intent) -> dict[str, Any]:
    """Return the fields as JSON has them; `asdict` would take longer than the sync."""
    values = {field.name: getattr(intent, field.name) for field in fields(intent)}
    values["index"] = {
        path: [None if entry is None else [entry.mode, entry.id] for entry in pair]
        for path, pair in intent.index.items()
    }
    return values


def _checksum(text: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(text).hexdigest().encode()


def _parse(text: bytes) -> Intent:
    import json

    values = json.loads(text)
    parsed = {
        "refs": {name: (old, new) for name, (old, new) in values["refs"].items()},
        "files": {path: (old, new) for path, (old, new) in values["files"].items()},
        "index": {path: (_entry(old), _entry(new)) for path, (old, new) in values["index"].items()},
        "made": tuple(str(path) for path in values["made"]),
        "head": None if values["head"] is None else (values["head"][0], values["head"][1]),
    }
    return Intent(**values | parsed)


def written_at(directory: str) -> float:
    """Return when the intent was written, in seconds since 1970."""
    return disk.modified_at(path(directory)) or 0.0


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return what tells this run of the machine from the one before a power cut."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _entry(values: list[Any] | None) -> TreeEntry | None:
    return None if values is None else TreeEntry(*values)
