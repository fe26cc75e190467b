"""Locks: those that git makes of files, and those that end with the process that holds them."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from soulgit.disk import discard, storage_faults
from soulgit.errors import BusyError

_POLL_SECONDS = 0.002


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


@contextmanager
def held(path: str, wait_seconds: float, told: Callable[[], BusyError]) -> Iterator[None]:
    """Hold a lock that the system takes back when its holder dies; raise `told` after a wait.

    The file stays, and may be taken away only by who holds it. Nobody can hold it twice.
    """
    deadline = time.monotonic() + wait_seconds
    with storage_faults(f"{path} cannot be used"):
        while (descriptor := _lock_now(path)) is None:
            if time.monotonic() >= deadline:
                raise told()
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        _unlock(descriptor)


@contextmanager
def beside(paths: Iterable[str], wait_seconds: float) -> Iterator[None]:
    """Hold the locks that a host keeps beside the files it writes, as far as there are any.

    Hermes Agent locks `MEMORY.md.lock` so while it reads, changes and replaces `MEMORY.md`.
    """
    with ExitStack() as stack:
        for lock in sorted(f"{path}.lock" for path in paths):
            if os.path.isfile(lock):
                busy = BusyError(
                    f"{lock} is held by the program that writes this memory",
                    hint="try again when it has written",
                    lock=lock,
                )
                stack.enter_context(held(lock, wait_seconds, lambda busy=busy: busy))  # type: ignore[misc]
        yield


def _lock_now(path: str) -> int | None:
    """Open a file and lock it; return None where somebody else holds it or took it away."""
    from filelock import lock_descriptor  # its import costs more than a whole reading command

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if lock_descriptor(descriptor, blocking=False):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
            _unlock(descriptor)
            return None
    except BaseException as fault:
        os.close(descriptor)
        if isinstance(fault, FileNotFoundError):
            return None
        raise
    os.close(descriptor)
    return None


def _unlock(descriptor: int) -> None:
    """Give a lock up, also for a process that was forked meanwhile and has the file open."""
    from filelock import unlock_descriptor

    try:
        unlock_descriptor(descriptor)
    finally:
        os.close(descriptor)


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
