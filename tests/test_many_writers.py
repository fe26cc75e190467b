"""Many writers at once, with git at work beside them: every memory lands once, nothing else does.

What git does beside the writers it does until they are done.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import soulgit
from soulgit import forking
from tests.support import Git, git_home, put
from tests.test_settle import PAT

slow = pytest.mark.slow

WRITER = """
import json, sys
import soulgit
home = soulgit.Home.open(sys.argv[1], wait_seconds=60)
tool = soulgit.memory_tool(home)
told = []
for number in range(int(sys.argv[3])):
    text = f"<{sys.argv[2]}.{number}>"
    result = tool.execute({"action": "add", "text": text})
    told.append([text, result.is_error, result.output])
print(json.dumps(told))
"""

GIT_LOOP = """
import json, subprocess, sys, threading
home, name, commands = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
is_over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
rounds = 0
while not is_over.wait(0.05) or not rounds:
    rounds += 1
    with open(f"{home}/{name}", "w") as file:
        file.write(f"round {rounds}\\n")
    for command in commands:
        while subprocess.run(["git", "-C", home, *command], capture_output=True).returncode:
            is_over.wait(0.005)
print(rounds)
"""
"""Rewrites a file and runs git on it until its standard input ends, with a breath between, for
git waits for nobody and would starve the writers; a command that fails is tried again."""

Told = list[tuple[str, bool, str]]


Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def started() -> Iterator[Start]:
    """Start a process that does not outlive the test."""
    processes: list[Process] = []

    def start(source: str, *words: str | Path) -> Process:
        process = subprocess.Popen(
            [sys.executable, "-c", source, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.returncode is None:
            process.kill()
            process.communicate()


def ended(process: Process) -> str:
    """What a process said, once it has come to its end by itself."""
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    return out


def added(told: Told) -> list[str]:
    """The texts that were acknowledged, which are all of them."""
    assert [(text, output) for text, is_error, output in told if is_error] == []
    return [text for text, _, _ in told]


def subjects_of(texts: list[str]) -> list[str]:
    return [f'memory(self): add "{text}"' for text in texts]


def holds(git: Git, base: list[str], texts: list[str], others: list[str]) -> None:
    """Assert that file and history hold what was added, each once, and nothing else."""
    lines = git("show", "HEAD:MEMORY.md").splitlines()
    assert sorted(lines) == sorted(base + [f"- {text}" for text in texts])
    assert (git.path / "MEMORY.md").read_text().splitlines() == lines
    assert sorted(git.subjects()) == sorted(others + subjects_of(texts))
    changed = git("log", "--format=%s", "--", "MEMORY.md").splitlines()
    assert sorted(set(changed) - set(others)) == sorted(subjects_of(texts))
    assert git("rev-list", "--min-parents=2", "HEAD") == ""
    assert git("fsck", "--strict", "--no-dangling") == ""
    git_dir = Path(git.path, git("rev-parse", "--git-common-dir"))
    assert [path.name for path in git_dir.rglob("*.lock")] == []


def home_with_notes(directory: Path) -> Git:
    git = git_home(directory, {"MEMORY.md": "- a\n", "notes.txt": "mine\n"})
    git("config", "user.name", "Pat")
    git("config", "user.email", "pat@example.org")
    git("config", "gc.autoDetach", "false")
    return git


STAGED = ("OTHER.txt", [["add", "OTHER.txt"]])
COMMITTED = ("notes.txt", [["add", "notes.txt"], ["commit", "-qm", "x"]])
COMMITTED_WITH_ALL = ("notes.txt", [["commit", "-qam", "x"]])


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=slow)])
@pytest.mark.parametrize(
    ("name", "commands"), [STAGED, COMMITTED, COMMITTED_WITH_ALL], ids=["add", "commit", "commit-a"]
)
def test_many_processes_beside_git(
    started: Start, home_dir: Path, name: str, commands: list[list[str]], count: int
) -> None:
    git = home_with_notes(home_dir)
    beside = started(GIT_LOOP, home_dir, name, json.dumps(commands))
    writers = [started(WRITER, home_dir, str(number), str(count)) for number in range(8)]
    texts = [text for writer in writers for text in added(json.loads(ended(writer)))]
    rounds = int(ended(beside))
    assert len(texts) == 8 * count
    commits = 0 if name == "OTHER.txt" else rounds
    holds(git, ["- a"], texts, ["by hand", *["x"] * commits])
    last = f"round {rounds}"
    if commits:
        assert git("log", "--format=%s", "--", "notes.txt").splitlines() == [
            *["x"] * commits, "by hand",
        ]  # fmt: skip
        assert git("show", "HEAD:notes.txt") == last
        assert git("status", "--porcelain") == ""
    else:
        assert git("show", ":OTHER.txt") == last
        assert git("status", "--porcelain") == "A  OTHER.txt"


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=slow)])
def test_a_process_in_each_linked_home(
    started: Start, home_dir: Path, tmp_path: Path, count: int
) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- a\n"})
    assert not soulgit.memory_tool(home_dir).execute({"action": "add", "text": "b"}).is_error
    homes = [home_dir]
    for name in ("eve", "liv", "una"):
        place = tmp_path / name
        forking.fork(home_dir, name, PAT, keep_memories=True, directory=str(place))
        homes.append(place)
    writers = [started(WRITER, home, home.name, str(count)) for home in homes]
    told = [added(json.loads(ended(writer))) for writer in writers]
    assert [len(texts) for texts in told] == [count] * 4
    shared = ["by hand", 'memory(self): add "b"']
    for home, texts in zip(homes, told, strict=True):
        forked = [s for s in Git(home).subjects() if s.startswith("fork: ")]
        assert len(forked) == (home != home_dir)
        holds(Git(home), ["- a", "- b"], texts, shared + forked)
        assert Git(home)("status", "--porcelain") == ""
    assert git("rev-list", "--count", "--branches") == str(len(shared) + 3 + 4 * count)


def one_home(path: Path) -> Callable[[], soulgit.Home]:
    home = soulgit.Home.open(path, wait_seconds=60)
    return lambda: home


def a_home_each(path: Path) -> Callable[[], soulgit.Home]:
    return lambda: soulgit.Home.open(path, wait_seconds=60)


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=slow)])
@pytest.mark.parametrize("opener", [one_home, a_home_each])
def test_many_threads_of_one_process(
    home_dir: Path, opener: Callable[[Path], Callable[[], soulgit.Home]], count: int
) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- a\n"})
    opened, told, start = opener(home_dir), [], threading.Barrier(4)

    def write(name: int) -> None:
        tool = soulgit.memory_tool(opened())
        start.wait()
        for number in range(count):
            text = f"<{name}.{number}>"
            result = tool.execute({"action": "add", "text": text})
            told.append((text, result.is_error, result.output))

    threads = [threading.Thread(target=write, args=[name]) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 4 * count
    holds(git, ["- a"], added(told), ["by hand"])
    git.agrees()


def test_tools_of_a_home_that_is_begun_by_all_of_them_at_once(
    started: Start, home_dir: Path
) -> None:
    put(home_dir, {"MEMORY.md": "- a\n"})
    writers = [started(WRITER, home_dir, str(number), "3") for number in range(4)]
    texts = [text for writer in writers for text in added(json.loads(ended(writer)))]
    holds(Git(home_dir), ["- a"], texts, ["capture: added MEMORY.md"])
    assert sorted(path.name for path in home_dir.iterdir()) == [".git", "MEMORY.md"]
