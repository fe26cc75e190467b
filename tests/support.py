"""What tests share: the git program as the judge, files as bytes, a fixed clock."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soulgit.core.actor import Moment

PERSON = {
    "GIT_AUTHOR_NAME": "Pat",
    "GIT_AUTHOR_EMAIL": "pat@example.org",
    "GIT_COMMITTER_NAME": "Pat",
    "GIT_COMMITTER_EMAIL": "pat@example.org",
}


def fixed_clock() -> Moment:
    """A clock that stands still, so that commit ids can be named."""
    return Moment(1_800_000_000, 60)


@dataclass(frozen=True)
class Git:
    """The git program in a directory, without configuration of its user's."""

    path: Path

    def __call__(self, *arguments: str, stdin: bytes | None = None, check: bool = True) -> str:
        """Run it and return standard output as text, final line ends stripped."""
        return (
            self.bytes(*arguments, stdin=stdin, check=check).decode("utf-8", "replace").rstrip("\n")
        )

    def bytes(self, *arguments: str, stdin: bytes | None = None, check: bool = True) -> bytes:
        """Run it and return standard output."""
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", "-C", str(self.path), *arguments],
            input=stdin,
            capture_output=True,
            env={**os.environ, **PERSON},
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"git {arguments}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def subjects(self) -> list[str]:
        """The subjects of the history, newest first."""
        return self("log", "--format=%s").splitlines()

    def agrees(self) -> None:
        """Assert that git finds the repository sound and the working files committed."""
        assert self("fsck", "--strict", "--no-dangling") == ""
        assert self("status", "--porcelain", "-uno") == ""


def put(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files of a directory, text as UTF-8, byte for byte."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def git_home(directory: Path, files: Mapping[str, str | bytes]) -> Git:
    """Make a home that a person committed with git and soulgit has not seen."""
    directory.mkdir(parents=True, exist_ok=True)
    git = Git(directory)
    git("init", "-q")
    put(directory, files)
    git("add", "-A")
    git("commit", "-qm", "by hand")
    return git
