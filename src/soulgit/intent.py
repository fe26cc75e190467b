"""The intent record: what a writer is about to do, so that a dead one's work can be ended.

Before a writer touches anything that others see, it writes down what it is going to
change. Whoever holds the writer lock and finds an intent that was not cleared knows that
its writer died, for a living one would hold the lock.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from soulgit import disk
from soulgit.git import TreeEntry

_FILE = "intent"


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


def write(directory: str, intent: Intent, *, durable: bool) -> None:
    """Write an intent down before the work begins."""
    data = json.dumps(asdict(intent)).encode()
    disk.write(os.path.join(directory, _FILE), data, durable=durable)


def clear(directory: str) -> None:
    """Say that nothing is under way; not synced, for a finished intent changes nothing."""
    disk.write(os.path.join(directory, _FILE), b"", durable=False)


def read(directory: str) -> Intent | None:
    """Return the intent that was not cleared.

    None also for one that is no intent: it was cut in writing, and nothing else had begun.
    """
    try:
        with open(os.path.join(directory, _FILE), "rb") as file:
            return _parse(json.loads(file.read()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _parse(values: dict[str, Any]) -> Intent:
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
    return disk.modified_at(os.path.join(directory, _FILE)) or 0.0


def boot_id() -> str:
    """Return what tells this run of the machine from the one before a power cut."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _entry(values: dict[str, Any] | None) -> TreeEntry | None:
    return None if values is None else TreeEntry(**values)
