"""Reflogs cut to their newest entries, so that they do not outgrow the objects."""

from __future__ import annotations

import os

from soulgit import disk, landing
from soulgit import intent as intents
from soulgit.core.actor import UNKNOWN
from soulgit.git.locking import locked_refs
from soulgit.landing import Ground, Plan

ENTRIES = 1_000
_LONG_BYTES = 2 * ENTRIES * 150
"""A reflog of fewer bytes is not looked into after a write."""


def trim(ground: Ground, longer_than_bytes: int = _LONG_BYTES) -> None:
    """Cut the reflogs of HEAD and its branch; the caller holds the writer lock.

    The refs are locked meanwhile, as git locks them when it adds an entry, and an intent
    names them, so that the locks of a writer that is killed here are known as its own.
    """
    repository = ground.repository
    branch = repository.head_target()
    paths = [repository.reflog_path(name) for name in ("HEAD", branch) if name]
    long = [path for path in paths if _is_long(path, longer_than_bytes)]
    if not long or intents.read(ground.state_dir) is not None:
        return  # a dead writer's work comes first, and nothing ends it while a home is frozen
    head = repository.head()
    if head.ref is None or head.tip is None:
        return
    stays = Plan({head.ref: (head.tip, head.tip)}, "", UNKNOWN, head=(head.ref, head.ref))
    ground.sync(intents.write(ground.state_dir, landing.intent_for(ground, stays)))
    try:
        with locked_refs(repository, stays.refs, head.ref, 0):
            for path in long:
                _trim(ground, path)
    finally:
        intents.clear(ground.state_dir)


def _is_long(path: str, longer_than_bytes: int) -> bool:
    if (disk.size_bytes(path) or 0) <= longer_than_bytes:
        return False
    return len(disk.lines(path)) > ENTRIES


def _trim(ground: Ground, path: str) -> None:
    newest = b"".join(disk.lines(path)[-ENTRIES:])
    directory, name = os.path.split(path)
    scratch = os.path.join(ground.state_dir, "scratch", "reflog")
    disk.replace(directory, name, newest, scratch, durable=ground.durable)
