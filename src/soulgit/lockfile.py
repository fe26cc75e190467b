"""Lock files as git makes them: whoever makes the file holds the lock."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from soulgit.disk import discard, storage_faults
from soulgit.errors import BusyError

_POLL_SECONDS = 0.005


@contextmanager
def exclusive(lock: str, source: str, wait_seconds: float) -> Iterator[None]:
    """Hold a lock file as git does, by being the one who made it.

    It is a link to the file `source` and so has its content from the first moment: a lock
    of a dead writer's is never mistaken for one of a living git's.
    """
    deadline = time.monotonic() + wait_seconds
    with storage_faults(f"{lock} cannot be made"):
        while not _link(source, lock):
            if time.monotonic() >= deadline:
                raise busy(lock)
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        discard(lock)


def busy(lock: str) -> BusyError:
    """Return the error that names a lock file, its age and what to do."""
    try:
        age = f"{max(0, time.time() - os.lstat(lock).st_mtime):.0f} seconds old"
    except OSError:
        age = "gone by now"
    return BusyError(
        f"{lock} is held by another program ({age})",
        hint="if no git program is running here, delete that file and try again",
        lock=lock,
    )


def _link(scratch: str, lock: str) -> bool:
    """Make a lock of a file that is ready; return False where there is such a lock already."""
    try:
        os.link(scratch, lock)
    except FileExistsError:
        return False
    except OSError as fault:
        if fault.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK):
            raise
        return _copy_exclusively(scratch, lock)
    return True


def _copy_exclusively(scratch: str, lock: str) -> bool:
    try:
        with open(lock, "xb") as made, open(scratch, "rb") as file:
            made.write(file.read())
    except FileExistsError:
        return False
    return True
