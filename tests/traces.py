"""What strace tells of a process: changes to files, and how much of them is on the disk.

The disk is the least that POSIX promises. The bytes of a file are on it after an fsync of
that file, by whatever name; a name in a directory, made or gone, after an fsync of that
directory. Nothing else brings anything there, whatever a file system does of itself.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

Kind = Literal[
    "open", "write", "map", "sync", "sync all", "hint", "rename", "link", "symlink",
    "mkdir", "remove", "mark",
]  # fmt: skip

_OPENS = ("open", "openat", "creat")
_WRITES = (
    "write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile", "copy_file_range",
    "ftruncate", "truncate", "fallocate",
)  # fmt: skip
_SYNCS = ("fsync", "fdatasync", "syncfs", "sync", "sync_file_range", "msync")
_NAMES: dict[str, Kind] = {
    "rename": "rename", "renameat": "rename", "renameat2": "rename",
    "link": "link", "linkat": "link", "symlink": "symlink", "symlinkat": "symlink",
    "mkdir": "mkdir", "mkdirat": "mkdir",
    "unlink": "remove", "unlinkat": "remove", "rmdir": "remove",
}  # fmt: skip
# A question mark: not every machine has each of them.
_TRACED = ",".join(f"?{name}" for name in (*_OPENS, *_WRITES, *_SYNCS, *_NAMES, "mmap"))

_MARK = "trace: "
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|0x[0-9a-f]+|\?)")
_ARGUMENT = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"|\b(?:\d+|AT_FDCWD)<(?P<path>[^>]*)>')


@dataclass(frozen=True)
class Event:
    """One thing that a process did; `source` is the other name of a rename or a link."""

    kind: Kind
    path: str = ""
    source: str = ""
    size: int = 0
    """How many bytes were written, or were left by a cut."""

    is_emptied: bool = False
    """Whether a file was opened to be written anew."""


BEGIN, REPLY = Event("mark", "begin"), Event("mark", "reply")


def mark(text: str) -> bytes:
    """Return what a traced script writes to standard error to leave a mark in its trace."""
    return f"{_MARK}{text}\n".encode()


def strace(words: Sequence[str], output: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command with absolute paths only, its system calls told in a file."""
    told = ["strace", "-f", "-y", "-qq", "-s", "40", "-e", f"trace={_TRACED}", "-o", str(output)]
    return subprocess.run([*told, *words], capture_output=True, check=False)


def events(text: str) -> list[Event]:
    """Read strace's output; calls that failed have changed nothing."""
    found = []
    for name, arguments, result in _calls(text):
        event = _event(name, arguments, result)
        if event is not None:
            found.append(event)
    return found


def _calls(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield calls that succeeded; one that others interrupt in the trace counts at its end."""
    begun: dict[str, str] = {}
    for line in text.splitlines():
        process, _, told = line.partition(" ")
        told = told.strip()
        if told.endswith("<unfinished ...>"):
            begun[process] = told.removesuffix("<unfinished ...>")
            continue
        if told.startswith("<... "):
            told = begun.pop(process) + told.partition("resumed>")[2]
        call = _CALL.match(told)
        if call is not None and call["result"] != "?" and not call["result"].startswith("-"):
            yield call["name"], call["arguments"], int(call["result"], 0)


def _event(name: str, arguments: str, result: int) -> Event | None:
    found = list(_ARGUMENT.finditer(arguments))
    places = [_text(one["path"]) for one in found if one["path"] is not None]
    texts = [_text(one["text"]) for one in found if one["text"] is not None]
    if name == "write" and arguments.startswith("2<") and texts[0].startswith(_MARK):
        return Event("mark", texts[0].removeprefix(_MARK).strip())
    if name in _OPENS:
        is_made = name == "creat" or "O_CREAT" in arguments
        is_emptied = name == "creat" or "O_TRUNC" in arguments
        path = _full(texts[0], places)
        return Event("open", path, is_emptied=is_emptied) if is_made or is_emptied else None
    if name in _WRITES:
        wanted = 1 if name == "copy_file_range" else 0
        is_cut = name in ("ftruncate", "truncate")
        size = int(arguments.rpartition(",")[2]) if is_cut else result
        return Event("write", _path(places[wanted] if places else texts[0]), size=size)
    if name == "mmap":
        is_written = "MAP_SHARED" in arguments and "PROT_WRITE" in arguments
        return Event("map", _path(places[0])) if places and is_written else None
    if name in ("fsync", "fdatasync"):
        return Event("sync", _path(places[0]))
    if name in _SYNCS:
        return Event("sync all" if name in ("sync", "syncfs") else "hint")
    kind = _NAMES.get(name)
    if kind in ("rename", "link"):
        return Event(kind, _full(texts[1], places[1:]), source=_full(texts[0], places))
    return None if kind is None else Event(kind, _full(texts[-1], places))


def _text(told: str) -> str:
    return os.fsdecode(ast.literal_eval('b"' + re.sub(r'(?<!\\)"', r"\"", told) + '"'))


def _full(path: str, directories: Sequence[str]) -> str:
    return os.path.normpath(os.path.join(directories[0] if directories else "/", path))


def _path(told: str) -> str:
    """Return the path of a descriptor, of which strace also says whether its name is gone."""
    return told.removesuffix(" (deleted)")


@dataclass
class Inode:
    """What is known of a file's bytes: whether some are not on the disk, how many were written."""

    is_dirty: bool = False
    size: int = 0


@dataclass
class Disk:
    """Files and directories by name, and what of them a power cut would take."""

    inodes: dict[str, Inode]
    directories: set[str]
    unsynced: dict[str, set[str]] = field(default_factory=dict)
    """The names in a directory that were made or taken away since it was synced."""

    touched: set[str] = field(default_factory=set)
    """Paths of files that were written, put in place or taken away."""

    made: set[str] = field(default_factory=set)
    """Directories that were made."""

    gone: dict[str, Inode] = field(default_factory=dict)
    """Files by a name that is gone: a descriptor may still be open, or another name be there."""

    def begin(self) -> None:
        """Take all that is there as lying on the disk, and nothing as touched."""
        self.inodes = {path: Inode() for path in self.inodes}
        for known in (self.unsynced, self.touched, self.made, self.gone):
            known.clear()

    def inode(self, path: str) -> Inode:
        """Return a file by its name; one that nobody has told of lies on the disk."""
        if path not in self.inodes and path in self.gone:
            return self.gone[path]
        return self.inodes.setdefault(path, Inode())

    def below(self, path: str) -> list[str]:
        """Return the files in and below a directory."""
        return sorted(name for name in self.inodes if name.startswith(path + "/"))

    def unsynced_names(self) -> set[str]:
        """Return the paths whose name is made or gone and not on the disk as such."""
        return {
            os.path.join(place, name) for place in self.unsynced for name in self.unsynced[place]
        }

    def lacks(self, path: str) -> list[str]:
        """Return what a power cut would take of a file, or give back of one taken away."""
        found = []
        if path in self.inodes and self.inodes[path].is_dirty:
            found.append(f"the bytes of {path}")
        while path != os.path.dirname(path):
            directory, name = os.path.split(path)
            if name in self.unsynced.get(directory, ()):
                found.append(f"the name {path}")
            path = directory
        return found

    def apply(self, event: Event) -> None:
        """Do to the model what the event did to the disk."""
        if event.kind == "open":
            self._open(event.path, event.is_emptied)
        elif event.kind == "write":
            self._write(event.path, event.size)
        elif event.kind == "map":
            raise AssertionError(f"{event.path} is written by mmap, which nobody follows here")
        elif event.kind == "sync":
            self._sync(event.path)
        elif event.kind == "sync all":
            self.unsynced.clear()
            for inode in self.inodes.values():
                inode.is_dirty = False
        elif event.kind == "mkdir":
            self.directories.add(event.path)
            self.made.add(event.path)
            self._named(event.path)
        elif event.kind in ("rename", "link"):
            self._put(event)
        elif event.kind == "symlink":
            self._appear(event.path, Inode())
        elif event.kind == "remove":
            self._remove(event.path)

    def _named(self, path: str) -> None:
        directory, name = os.path.split(path)
        self.unsynced.setdefault(directory, set()).add(name)

    def _appear(self, path: str, inode: Inode) -> None:
        self.inodes[path] = inode
        self.gone.pop(path, None)
        self.touched.add(path)
        self._named(path)

    def _open(self, path: str, is_emptied: bool) -> None:
        if path in self.directories:
            return
        if path not in self.inodes:
            self._appear(path, Inode(is_dirty=True))
        elif is_emptied:
            self._write(path, 0)

    def _write(self, path: str, size: int) -> None:
        inode = self.inode(path)
        inode.is_dirty, inode.size = True, size
        if path in self.inodes:
            self.touched.add(path)

    def _sync(self, path: str) -> None:
        if path in self.directories:
            self.unsynced.pop(path, None)
        else:
            self.inode(path).is_dirty = False

    def _put(self, event: Event) -> None:
        if event.source in self.directories:
            self._move_directory(event.source, event.path)
        else:
            self._appear(event.path, self.inode(event.source))
        if event.kind == "rename":
            self._remove(event.source)

    def _move_directory(self, source: str, target: str) -> None:
        def moved(path: str) -> str:
            return target + path[len(source) :] if f"{path}/".startswith(f"{source}/") else path

        self.inodes = {moved(path): inode for path, inode in self.inodes.items()}
        self.unsynced = {moved(path): names for path, names in self.unsynced.items()}
        self.directories = set(map(moved, self.directories))
        self.touched, self.made = set(map(moved, self.touched)), set(map(moved, self.made))
        self._named(target)

    def _remove(self, path: str) -> None:
        self._named(path)
        if path in self.directories:
            self.directories.discard(path)
            self.made.discard(path)
            self.unsynced.pop(path, None)
        elif path in self.inodes:
            self.gone[path] = self.inodes.pop(path)
            self.touched.add(path)


@dataclass(frozen=True)
class Trace:
    """What happened below some directories, and what was there before."""

    events: tuple[Event, ...]
    files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()

    @classmethod
    def of(cls, root: str, told: Iterable[Event], before: Trace) -> Trace:
        """Return what happened below a directory that was as `before`, its own path left out."""
        kept = (
            one for one in told if one.kind in _EVERYWHERE or f"{one.path}/".startswith(f"{root}/")
        )
        within = (
            replace(
                one, path=one.path.removeprefix(root) or "/", source=one.source.removeprefix(root)
            )
            for one in kept
        )
        return cls(tuple(within), before.files, before.directories)

    @classmethod
    def nothing_yet(cls, root: str) -> Trace:
        """Return the empty trace of a directory as it is now, its own path left out."""
        files, directories = set(), set()
        for directory, _, names in os.walk(root):
            within = directory.removeprefix(root) or "/"
            directories.add(within)
            files |= {os.path.join(within, name) for name in names}
        return cls((), frozenset(files), frozenset(directories))

    def steps(self) -> Iterator[tuple[Event, Disk]]:
        """Yield each event of the action, and the disk as it was before that event."""
        disk = Disk({path: Inode() for path in self.files}, set(self.directories))
        is_begun = False
        for event in self.events:
            if event == BEGIN:
                disk.begin()
                is_begun = True
            elif is_begun:
                yield event, disk
            disk.apply(event)


_EVERYWHERE = ("mark", "sync all", "hint")
