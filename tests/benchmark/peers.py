"""The contenders of a memory action, each with a repository of the same files of its own.

What is timed is all that one action takes, the writing of the memory file included. The
peers write it plainly, as their users do; soulgit syncs it and renames it over the old one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import soulgit
from tests.benchmark.data import MEMORY, Action, put_files
from tests.benchmark.machine import process

NAME = "Bo"
EMAIL = "bo@example.org"
_BRANCH = "refs/heads/main"


class Contender(Protocol):
    """Whoever carries out memory actions and says how many seconds each took."""

    path: Path

    def act(self, action: Action) -> float:
        """Carry out an action and return its seconds."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


def clocked(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def git(path: Path, *arguments: str) -> bytes:
    """Run the git program in a directory and return what it prints."""
    command = ["git", "-C", str(path), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


class Soulgit:
    """The memory tool of soulgit, on a home that is opened once."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self.home = soulgit.Home.open(path, durable=durable)
        self._tool = soulgit.memory_tool(self.home, session="benchmark", model="none")
        self.revision: str | None = None

    def act(self, action: Action) -> float:
        """Call the tool as a model would."""
        arguments = {"action": action.kind, "text": action.text}
        began = time.perf_counter()
        result = self._tool.execute(arguments)
        seconds = time.perf_counter() - began
        if result.is_error or result.revision is None:
            raise RuntimeError(result.output)
        self.revision = result.revision
        return seconds

    def close(self) -> None:
        """Nothing is held."""


class NotDurableSoulgit:
    """The memory tool of a home that is not durable, in a process apart that measures itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = process()
        self._process.submit(_open_not_durable, path).result()

    def act(self, action: Action) -> float:
        """Let the process call the tool."""
        return self._process.submit(_act_not_durable, action).result()

    def close(self) -> None:
        """End the process."""
        self._process.shutdown()


_opened: list[Soulgit] = []
"""The home of the process apart, there."""


def _open_not_durable(path: Path) -> None:
    _opened.append(Soulgit(path, durable=False))


def _act_not_durable(action: Action) -> float:
    return _opened[0].act(action)


class _Committer:
    """A contender on a repository that the git program made, with its files committed."""

    def __init__(self, path: Path, memory: bytes) -> None:
        self.path = path
        put_files(path, memory)
        git(path, "-c", "init.defaultBranch=main", "init", "-q")
        git(path, "config", "user.name", NAME)
        git(path, "config", "user.email", EMAIL)
        git(path, "add", "-A")
        git(path, "commit", "-qm", "begin")

    def act(self, action: Action) -> float:
        """Write the memory file and commit it."""
        return clocked(lambda: self._commit(action.data, _message(action)))

    def close(self) -> None:
        """Nothing is held."""

    def _commit(self, data: bytes, message: str) -> None:
        raise NotImplementedError

    def _write(self, data: bytes) -> None:
        (self.path / MEMORY).write_bytes(data)


def _message(action: Action) -> str:
    return f'memory(self): {action.kind} "{action.text}"'


class GitProgram(_Committer):
    """`git add` and `git commit`, two processes, told to sync all they write."""

    def _commit(self, data: bytes, message: str) -> None:
        said = ("-c", "core.fsync=all", "-c", f"user.name={NAME}", "-c", f"user.email={EMAIL}")
        self._write(data)
        git(self.path, *said, "add", MEMORY)
        git(self.path, *said, "commit", "-q", "-m", message)


class GitPython(_Committer):
    """GitPython with its repository opened once. It syncs nothing, and cannot be told to."""

    def __init__(self, path: Path, memory: bytes) -> None:
        super().__init__(path, memory)
        import git as gitpython

        self._actor = gitpython.Actor(NAME, EMAIL)
        self._repository = gitpython.Repo(path)

    def _commit(self, data: bytes, message: str) -> None:
        self._write(data)
        index = self._repository.index
        index.add([MEMORY])
        index.commit(message, author=self._actor, committer=self._actor)

    def close(self) -> None:
        """End the processes that it keeps."""
        self._repository.close()


class Dulwich(_Committer):
    """dulwich with its repository opened once; by default it syncs index and refs alone."""

    def __init__(self, path: Path, memory: bytes, *, durable: bool = False) -> None:
        super().__init__(path, memory)
        git(path, "config", "core.fsyncObjectFiles", "true" if durable else "false")
        from dulwich.repo import Repo

        self._repository = Repo(str(path))
        self._worktree = self._repository.get_worktree()
        self._person = f"{NAME} <{EMAIL}>".encode()

    def _commit(self, data: bytes, message: str) -> None:
        self._write(data)
        self._worktree.stage([MEMORY])
        self._worktree.commit(message=message.encode(), author=self._person, committer=self._person)

    def close(self) -> None:
        """Close its files."""
        self._repository.close()


class Floor(_Committer):
    """The bare calls that a durable commit cannot do without, and nothing else.

    No lock, no look at what is there, no memory tool: nobody could use it. It shows how
    much of an action is the disk's.
    """

    def __init__(self, path: Path, memory: bytes) -> None:
        super().__init__(path, memory)
        self._git = path / ".git"
        self._tip = (self._git / _BRANCH).read_text().strip()
        self._intent = self._git / "floor-intent"
        self._intent.write_bytes(bytes(1_024))

    def _commit(self, data: bytes, message: str) -> None:
        objects = self._objects(data, message)
        commit = objects[-1]
        _overwrite(self._intent, bytes(1_024))
        drafts = {self._git / "objects" / id_[:2] / id_[2:]: body for id_, body in objects}
        changed = _placed({**drafts, self.path / MEMORY: data}, self._intent)
        lock = self._git / f"{_BRANCH}.lock"
        lock.write_text(f"{commit[0]}\n")
        changed |= _placed({self._git / "floor-index": bytes(200)}, lock)
        for log in (self._git / "logs" / "HEAD", self._git / "logs" / _BRANCH):
            with log.open("a") as file:
                file.write(f"{self._tip} {commit[0]} {NAME} <{EMAIL}> 0 +0000\tfloor\n")
        _sync(*changed)
        lock.rename(self._git / _BRANCH)
        _sync(lock.parent)
        self._tip = commit[0]

    def _objects(self, data: bytes, message: str) -> list[tuple[str, bytes]]:
        """Return the blob, the tree and the commit, each by its id as git has it in a file."""
        blob = _object(b"blob", data)
        tree = _object(b"tree", b"100644 %s\0%s" % (MEMORY.encode(), bytes.fromhex(blob[0])))
        who = f"{NAME} <{EMAIL}> 0 +0000"
        heads = [f"tree {tree[0]}", f"parent {self._tip}", f"author {who}", f"committer {who}"]
        return [blob, tree, _object(b"commit", "\n".join([*heads, "", message]).encode())]


def _object(kind: bytes, data: bytes) -> tuple[str, bytes]:
    whole = b"%s %d\0%s" % (kind, len(data), data)
    return hashlib.sha1(whole).hexdigest(), zlib.compress(whole, 1)


def _overwrite(path: Path, data: bytes) -> None:
    number = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(number, data, 0)
    finally:
        os.close(number)


def _placed(contents: Mapping[Path, bytes], beside: Path) -> set[Path]:
    """Write files, sync them and one more together, rename them; return their directories."""
    drafts = {path.with_name(f"{path.name}.new"): path for path in contents}
    for draft, path in drafts.items():
        path.parent.mkdir(exist_ok=True)
        draft.write_bytes(contents[path])
    _sync(*drafts, beside)
    for draft, path in drafts.items():
        draft.rename(path)
    return {path.parent for path in contents}


def _sync(*paths: Path) -> None:
    """Bring files and directories to the disk, all begun before the first is waited for."""
    numbers = [os.open(path, os.O_RDONLY) for path in paths]
    for number in numbers:
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    for number in numbers:
        os.fsync(number)
        os.close(number)
