"""Files of a home on disk: read without surprises, replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from soulgit.core import links
from soulgit.errors import HomeNotFound, StorageFailed, UnsafeFile

_MODE_BITS = 0o7777


@dataclass(frozen=True)
class DiskFile:
    """A bootstrap file as it lies on disk: the file behind its links, and the links."""

    path: str
    data: bytes
    executable: bool
    links: tuple[tuple[str, str], ...] = ()


class storage_faults:  # noqa: N801  # it is called like a function, and a hundred times an action
    """Raise what the operating system refuses within as StorageFailed about `what`."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, OSError):
            raise StorageFailed(f"{self._what}: {fault.strerror or fault}") from fault


def names(directory: str) -> list[str]:
    """Return the exact names in a directory, none where there is no such directory."""
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as fault:
        raise HomeNotFound(
            f"{directory} cannot be read: {fault.strerror}", hint="check its permissions"
        ) from fault


def read(root: str, path: str) -> DiskFile:
    """Read the file that stands at a path of a home, links followed.

    Raises UnsafeFile for a link that leads out or nowhere, a directory, a device, a pipe.
    """
    resolved = links.resolve(path, lambda part: _link_target(os.path.join(root, part)))
    full = os.path.join(root, resolved.path)
    try:
        # O_NONBLOCK: a pipe is refused, not waited for.
        descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as fault:
        told = f"a link to {resolved.links[-1][1]!r}, which is" if resolved.links else ""
        raise UnsafeFile(f"{path} is {told} not there", path=path) from fault
    except OSError as fault:
        raise UnsafeFile(
            f"{path} cannot be read: {fault.strerror}", hint="check its permissions", path=path
        ) from fault
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeFile(f"{path} is {_kind(status.st_mode)}, not a file", path=path)
        with storage_faults(f"{path} cannot be read"):
            data = _read_all(descriptor, status.st_size)
    finally:
        os.close(descriptor)
    return DiskFile(resolved.path, data, bool(status.st_mode & 0o100), resolved.links)


def _read_all(descriptor: int, size: int) -> bytes:
    """Read a file to its end, which is not where it was if somebody adds to it meanwhile."""
    parts = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)


def unchanged(root: str, path: str, data: bytes | None) -> bool:
    """Whether a file still holds these bytes (None: is absent)."""
    try:
        with open(os.path.join(root, path), "rb") as file:
            return file.read() == data
    except FileNotFoundError:
        return data is None
    except OSError:
        return False


def is_mount_point(path: str) -> bool:
    """Whether a file is mounted where it stands, so that no other can take its place."""
    if os.path.ismount(path):
        return True
    try:
        with open("/proc/self/mountinfo", "rb") as table:
            mounted = (line.split(b" ")[4] for line in table)
            wanted = os.fsencode(os.path.realpath(path)).replace(b"\\", b"\\134")
            return wanted.replace(b" ", b"\\040").replace(b"\n", b"\\012") in mounted
    except OSError:
        return False


def begins_otherwise(path: str, data: bytes) -> bool:
    """Whether a file is there, holds something, and does not begin with these bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(data)) not in (b"", data)
    except OSError:
        return False


def have_same_content(one: str, other: str) -> bool:
    """Whether two files are there and hold the same bytes."""
    try:
        with open(one, "rb") as first, open(other, "rb") as second:
            return first.read() == second.read()
    except OSError:
        return False


def replace(root: str, path: str, data: bytes, scratch: str, *, durable: bool) -> None:
    """Put bytes in a file's place whole, its mode and owner kept.

    `scratch` is a new file's path in the git directory. The caller syncs the directory.
    """
    draft(root, path, data, scratch)
    with storage_faults(f"{path} cannot be written"):
        if durable:
            sync(scratch)
    place(root, path, scratch, durable=durable)


def draft(root: str, path: str, data: bytes, scratch: str) -> None:
    """Write what a file is to become, with that file's mode and owner; not synced."""
    with storage_faults(f"{path} cannot be written"):
        _write_new(scratch, data, like=os.path.join(root, path))


def place(root: str, path: str, scratch: str, *, durable: bool) -> None:
    """Put a draft that is on the disk in a file's place whole; the caller syncs the directory.

    Where it lies on another file system the new file stands beside the old one for a moment,
    and where the file itself is a mount point it is written in place.
    """
    full = os.path.join(root, path)
    with storage_faults(f"{path} cannot be written"):
        os.makedirs(os.path.dirname(full), exist_ok=True)
        try:
            os.replace(scratch, full)
        except OSError as fault:
            if fault.errno not in (errno.EXDEV, errno.EBUSY):
                raise
            with open(scratch, "rb") as file:
                _replace_beside(_beside(full), full, file.read(), durable)
            os.unlink(scratch)


def relink(path: str, target: str, *, durable: bool) -> None:
    """Let a symbolic link lead elsewhere, whole or not at all."""
    with storage_faults(f"{path} cannot be made"):
        discard(_beside(path))
        os.symlink(target, _beside(path))
        os.replace(_beside(path), path)
        if durable:
            sync_directory(os.path.dirname(path))


def remove(root: str, path: str) -> None:
    """Take a file away; the caller syncs the directory."""
    with storage_faults(f"{path} cannot be removed"):
        os.unlink(os.path.join(root, path))


def refuse_write_protected(root: str, path: str) -> None:
    """Raise UnsafeFile for a file that nobody may write, root not excepted."""
    with contextlib.suppress(FileNotFoundError):
        if not os.stat(os.path.join(root, path)).st_mode & 0o222:
            raise UnsafeFile(
                f"{path} is write-protected", hint=f"allow it: chmod u+w {path}", path=path
            )


def write(path: str, data: bytes, *, durable: bool) -> None:
    """Write a file in place, the new bytes over the old ones: never is it empty in between."""
    with storage_faults(f"{path} cannot be written"):
        is_new = not os.path.exists(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if durable and is_new:
            sync_directory(os.path.dirname(path))


def overwrite(path: str, data: bytes) -> bool:
    """Write over the beginning of a file of soulgit's own; return whether it had to be made.

    What is behind it stays: that is the cheapest write that can be synced, for neither blocks
    nor size change.
    """
    with storage_faults(f"{path} cannot be written"):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return create(path, data)
        try:
            os.pwrite(descriptor, data, 0)
        finally:
            os.close(descriptor)
    return False


def create(path: str, data: bytes, mode: int = 0o666) -> bool:
    """Write a new file, not synced; return False where there is one of that name already."""
    with storage_faults(f"{path} cannot be made"):
        try:
            _write_new(path, data, mode)
        except FileExistsError:
            return False
    return True


def append(path: str, data: bytes) -> int:
    """Add bytes to the end of a file, not synced, and return the size that it had before."""
    with storage_faults(f"{path} cannot be added to"):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            if os.write(descriptor, data) < len(data):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
    return size


def cut(path: str, size: int) -> None:
    """Cut off what is behind the first bytes of a file."""
    with storage_faults(f"{path} cannot be cut"):
        os.truncate(path, size)


def discard(path: str) -> None:
    """Take a file of soulgit's own away, if it is there."""
    with storage_faults(f"{path} cannot be removed"), contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@dataclass(frozen=True)
class Kept:
    """A file's old state, to be put back; without a link there was no file."""

    path: str
    link: str | None

    def put_back(self) -> None:
        """Make the file what it was when it was kept."""
        with storage_faults(f"{self.path} cannot be put back"):
            if self.link is None:
                discard(self.path)
            elif not _same_file(self.link, self.path):
                self._replace(self.link)

    def _replace(self, link: str) -> None:
        try:
            os.replace(link, self.path)
        except OSError as fault:  # a mount point, or on another file system
            if fault.errno not in (errno.EXDEV, errno.EBUSY):
                raise
            with open(link, "rb") as file:
                write(self.path, file.read(), durable=True)

    def forget(self) -> None:
        """Drop what was kept."""
        if self.link is not None:
            discard(self.link)


def keep(path: str, link: str) -> Kept:
    """Keep a file's old state by a second link to it, or by a copy where links do not reach."""
    with storage_faults(f"{path} cannot be kept"):
        try:
            os.link(path, link)
        except FileNotFoundError:
            return Kept(path, None)
        except OSError:
            import shutil  # seldom needed, and dear to import

            shutil.copy2(path, link)
    return Kept(path, link)


def read_raw(root: str, path: str) -> bytes | None:
    """Return what is read at a path of a home, None where there is no file."""
    try:
        with open(os.path.join(root, path), "rb") as file:
            return file.read()
    except OSError:
        return None


def lines(path: str) -> list[bytes]:
    """Return the lines of a file, none where there is no such file."""
    with storage_faults(f"{path} cannot be read"):
        try:
            with open(path, "rb") as file:
                return file.readlines()
        except FileNotFoundError:
            return []


def read_line(path: str) -> str:
    """Return the first line of a small text file of git's."""
    with storage_faults(f"{path} cannot be read"), open(path, encoding="utf-8") as file:
        return file.readline().rstrip("\n")


def modified_at(path: str) -> float | None:
    """Return when a file was last written, in seconds since 1970; None for no file."""
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return None


def size_bytes(path: str) -> int | None:
    """Return the size of a file, None for no file."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def sync(path: str) -> None:
    """Bring a file's bytes to the disk."""
    with storage_faults(f"{path} cannot be synced"), open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: str) -> None:
    """Bring a directory's entries to the disk."""
    with storage_faults(f"{path} cannot be synced"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_all(paths: Iterable[str]) -> None:
    """Bring files and directories to the disk together.

    All are begun before the first is waited for, so that they share the waits for the device.
    """
    descriptors = []
    try:
        for path in dict.fromkeys(paths):
            descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            _begin_to_write(descriptors[-1])
        for descriptor in descriptors:
            os.fsync(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _begin_to_write(descriptor: int) -> None:
    """Ask the system to send a file's bytes to the device, where it can be asked that."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def sync_tree(root: str) -> None:
    """Bring all files and directories below one to the disk."""
    for directory, _, files in os.walk(root):
        for name in files:
            if not os.path.islink(os.path.join(directory, name)):
                sync(os.path.join(directory, name))
        sync_directory(directory)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return False


def _write_new(path: str, data: bytes, mode: int = 0o666, like: str | None = None) -> None:
    """Write a new file, with the mode and owner of another one if that is given."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        _write_all(descriptor, data)
        if like is not None:
            _keep_mode(descriptor, like)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _replace_by(temporary: str, full: str, data: bytes, durable: bool) -> None:
    """Write a temporary file and rename it over the old one; it is gone afterwards."""
    try:
        _write_new(temporary, data, like=full)
        if durable:
            sync(temporary)
        os.replace(temporary, full)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    """Write bytes at the beginning of a file and cut off what is behind them."""
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], done)
    os.ftruncate(descriptor, len(data))


def _beside(full: str) -> str:
    return os.path.join(os.path.dirname(full), f".{os.path.basename(full)}.soulgit")


def discard_beside(full: str) -> None:
    """Take away what a dead writer left beside a file that it was to replace."""
    discard(_beside(full))


def _replace_beside(beside: str, full: str, data: bytes, durable: bool) -> None:
    try:
        _replace_by(beside, full, data, durable)
    except OSError as fault:
        if fault.errno != errno.EBUSY:
            raise
        write(full, data, durable=durable)


def _keep_mode(descriptor: int, full: str) -> None:
    try:
        old = os.stat(full)
    except FileNotFoundError:
        return
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & _MODE_BITS)


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None  # no link, or nothing at all


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
