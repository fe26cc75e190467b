"""The contenders of a memory action, each with a repository of the same files of its own.

What is timed is all that one action takes, the writing of the memory file included. The
peers write it plainly, as their users do; soulgit syncs it and renames it over the old one.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pygit2

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
        pygit2.settings.enable_fsync_gitdir(True)  # of refs it is read but here, of objects later
        self._repository = pygit2.Repository(str(path))
        self._repository.set_ident(NAME, EMAIL)
        self._tip = self._repository.head.peel(pygit2.Commit)
        self._intent = path / ".git" / "floor-intent"
        self._intent.write_bytes(bytes(500))

    def _commit(self, data: bytes, message: str) -> None:
        tip = self._objects(data, message)
        _overwrite(self._intent, bytes(500))
        _replace(self.path / MEMORY, data)
        _replace(self.path / ".git" / "floor-index", bytes(200))
        self._repository.create_reference_direct(_BRANCH, tip, True, message=message)
        self._tip = self._repository[tip].peel(pygit2.Commit)

    def _objects(self, data: bytes, message: str) -> pygit2.Oid:
        blob = self._repository.create_blob(data)
        builder = self._repository.TreeBuilder(self._tip.tree)
        builder.insert(MEMORY, blob, pygit2.enums.FileMode.BLOB)
        signed = pygit2.Signature(NAME, EMAIL)
        parents: list[Any] = [self._tip.id]
        return self._repository.create_commit(
            None, signed, signed, message, builder.write(), parents
        )


def _overwrite(path: Path, data: bytes) -> None:
    """Write a file in place and sync it."""
    number = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(number, data, 0)
        os.fsync(number)
    finally:
        os.close(number)


def _replace(path: Path, data: bytes) -> None:
    """Write a file beside, sync it, rename it over the old one and sync the directory."""
    beside = path.with_name(path.name + ".new")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(number, data)
        os.fsync(number)
    finally:
        os.close(number)
    os.replace(beside, path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
