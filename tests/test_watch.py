"""A watched home: each change of a host without hooks becomes a commit soon after."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import soulgit
from tests.support import Git, git_home, put

pytest.importorskip("watchfiles")

FILES = {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- a\n"}


@dataclass
class Watcher:
    """`soulgit watch` in a process of its own."""

    process: subprocess.Popen[str]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().partition(" ")[2].rstrip("\n")

    def note(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline().rstrip("\n")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate()
        return self.process.returncode, out, err


@contextmanager
def watched(home: Path, *more: str) -> Iterator[Watcher]:
    command = [sys.executable, "-m", "soulgit", "watch", str(home), *more]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        too_long = threading.Timer(120, process.kill)  # a test that waits in vain fails
        too_long.start()
        watcher = Watcher(process)
        try:
            assert watcher.note() == f"watching {home}; Ctrl-C ends it"
            yield watcher
        finally:
            too_long.cancel()
            process.kill()


def write(path: Path, text: str) -> None:
    """As hosts write: a file beside it, and a rename."""
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text)
    os.replace(draft, path)


@pytest.fixture
def git(home_dir: Path) -> Git:
    home = git_home(home_dir, FILES)
    assert not soulgit.memory_tool(home_dir).execute({"action": "add", "text": "b"}).is_error
    return home


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_each_change_is_a_commit_until_it_is_ended(git: Git, number: int) -> None:
    with watched(git.path, "--session", "s1", "--model", "m", "--source", "user:42") as watcher:
        write(git.path / "MEMORY.md", "- a\n- b\n- c\n")
        assert watcher.line() == 'memory(self): add "c"'
        with (git.path / "MEMORY.md").open("a") as file:  # in place, too
            file.write("- d\n")
        assert watcher.line() == 'memory(self): add "d"'
        put(git.path, {"TOOLS.md": "A hammer.\n"})
        assert watcher.line() == "capture: added TOOLS.md"
        (git.path / "TOOLS.md").unlink()
        assert watcher.line() == "capture: deleted TOOLS.md"
        assert watcher.end(number) == (0, "", "")
    assert len(git.subjects()) == 6  # none of them for what soulgit itself had written
    trailers = git("log", "-1", "--format=%(trailers)")
    for told in ("Session: s1", "Model: m", "Source: user:42", "Origin: hand"):
        assert f"Soul-{told}\n" in trailers + "\n"
    assert git("log", "-1", "--format=%an") == "unknown"
    git.agrees()


def test_what_was_changed_before_comes_first(git: Git) -> None:
    write(git.path / "MEMORY.md", "- a\n")
    with watched(git.path) as watcher:
        assert watcher.line() == 'memory(self): remove "b"'
        assert watcher.end() == (0, "", "")


def test_a_directory_of_memories_that_is_made_later_is_watched(home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": "You are Ava.\n"})
    with watched(home_dir) as watcher:
        put(home_dir, {"memories/MEMORY.md": "one"})
        assert watcher.line() == 'memory(self): add "one"'
        write(home_dir / "memories" / "MEMORY.md", "one\n§\ntwo")
        assert watcher.line() == 'memory(self): add "two"'
        assert watcher.end() == (0, "", "")
    git.agrees()


def test_a_file_behind_a_link_is_watched(home_dir: Path) -> None:
    put(home_dir, {"notes/deep/m.md": "- a\n"})
    (home_dir / "MEMORY.md").symlink_to("notes/deep/m.md")
    git = git_home(home_dir, {"SOUL.md": "You are Ava.\n"})
    with watched(home_dir) as watcher:
        write(home_dir / "notes" / "deep" / "m.md", "- a\n- b\n")
        assert watcher.line() == 'memory(self): add "b"; changed notes/deep/m.md'
        assert watcher.end() == (0, "", "")
    git.agrees()


def test_what_cannot_be_recorded_now_is_told_and_recorded_later(git: Git) -> None:
    home = soulgit.Home.open(git.path)
    home.freeze(soulgit.Home.open(git.path).companion(home.look()))
    with watched(git.path) as watcher:
        write(git.path / "MEMORY.md", "- a\n- b\n- c\n")
        assert "is frozen" in watcher.note()
        home.thaw(home.companion(home.look()))
        write(git.path / "USER.md", "- likes tea\n")
        recorded = watcher.line()
        assert 'add "c"' in recorded
        assert watcher.end()[:2] == (0, "")
    assert (git.path / "USER.md").read_text() == git("show", "HEAD:USER.md") + "\n"
    git.agrees()


def test_a_home_that_goes_away_ends_it(git: Git) -> None:
    with watched(git.path) as watcher:
        shutil.rmtree(git.path)
        assert watcher.process.wait() == 1
        assert "Traceback" not in (told := watcher.process.stderr.read())  # type: ignore[union-attr]
        assert "hint: " in told


def test_without_its_package_it_says_what_to_install(git: Git) -> None:
    script = "import sys; sys.modules['watchfiles'] = None; from soulgit.cli import run; "
    done = subprocess.run(
        [sys.executable, "-c", script + "sys.exit(run(sys.argv[1:]))", "watch", str(git.path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'soulgit[watch]'" in done.stderr
