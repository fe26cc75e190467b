"""A redaction killed at any instant leaves homes that git finds whole, and can be run again."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from soulgit import doctor, redactions, verification
from tests.support import Git
from tests.test_crashes import each_fault, leaves_nothing_behind, needs_strace, traced
from tests.test_redact import SECRET, copied, files_of, opened, scanned

slow = pytest.mark.slow
WORDS = ["-m", "soulgit", "redact"]


def ids(git: Git) -> dict[str, str]:
    """What each ref names, but for the record, in which the time stands."""
    told = git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    refs = dict(line.split(" ") for line in told)
    return {name: named for name, named in refs.items() if name != redactions.REF}


def is_whole(git: Git, side: Path) -> None:
    """That git finds nothing wrong, whatever was cut off."""
    for home in (git, Git(side)):
        assert home("fsck", "--strict", "--no-dangling") == ""


def is_done(git: Git, side: Path, wanted: dict[str, str]) -> None:
    assert scanned(git, SECRET, side) == []
    assert ids(git) == wanted
    for home in (git, Git(side)):
        home.agrees()
        assert home("status", "--porcelain") == ""
    assert verification.verify(git.path) == []
    leaves_nothing_behind(git.path)
    assert [t for t in doctor.examine(git.path) if t.kind == "redaction"] == []
    (mapped,) = (git.path / ".git/soulgit").glob("redacted-*.txt")
    lines = [line.split() for line in mapped.read_text().splitlines()]
    assert {old for old, _ in lines} == WHOLE[1]
    assert git("rev-list", "--count", redactions.REF) == "1"


WHOLE: list[dict[str, str] | set[str]] = []


@pytest.fixture
def scene(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a home and its twin, and what a redaction makes of them, made once."""
    git = copied("archived", tmp_path, tmp_path_factory)
    if not WHOLE:
        whole = tmp_path_factory.mktemp("whole")
        at = copied("archived", whole, tmp_path_factory)
        run(at.path)
        (mapped,) = (at.path / ".git/soulgit").glob("redacted-*.txt")
        WHOLE[:] = [ids(at), {line.split()[0] for line in mapped.read_text().splitlines()}]
    return git.path.parent


def run(home: Path) -> int:
    command = [sys.executable, *WORDS, str(home), SECRET, "--yes"]
    done = subprocess.run(command, capture_output=True, check=False)
    print(done.returncode, done.stderr.decode())
    return done.returncode


def again(scene: Path) -> Git:
    """A copy of the homes in the same place, for they name one another by their paths."""
    kept = scene / "kept"
    if not kept.exists():
        for home in ("ava", "twin"):
            shutil.copytree(scene / home, kept / home, symlinks=True)
    for home in ("ava", "twin"):
        shutil.rmtree(scene / home)
        shutil.copytree(kept / home, scene / home, symlinks=True)
    return Git(scene / "ava")


@slow
@needs_strace
@pytest.mark.parametrize("call", ["rename", "link", "unlink", "fsync", "mkdir", "rmdir"])
def test_a_redaction_killed_at_any_call_is_run_again(scene: Path, call: str) -> None:
    hits = 0
    for _, fault in each_fault(call, "signal=SIGKILL"):
        git = again(scene)
        done = traced(fault, *WORDS, str(git.path), SECRET, "--yes")
        is_whole(git, scene / "twin")
        files = files_of(git.path), files_of(scene / "twin")
        code = run(git.path)
        assert code == 0 or (code, (files_of(git.path), files_of(scene / "twin"))) == (1, files)
        is_done(git, scene / "twin", WHOLE[0])
        if not done.was_hit:
            break
        hits += 1
    assert hits, f"a redaction makes no {call}"


@needs_strace
@pytest.mark.parametrize("number", [6, 13, 20, 27, 34])
def test_a_redaction_killed_at_some_renames_is_run_again(scene: Path, number: int) -> None:
    git = Git(scene / "ava")
    traced(f"rename:signal=SIGKILL:when={number}", *WORDS, str(git.path), SECRET, "--yes")
    is_whole(git, scene / "twin")
    run(git.path)
    is_done(git, scene / "twin", WHOLE[0])


FAULTS = ["fsync=EIO", "rename=EIO", "rename=ENOSPC", "write=ENOSPC", "link=ENOSPC", "unlink=EIO",
          "unlinkat=EIO", "mkdir=ENOSPC", "ftruncate=EIO"]  # fmt: skip


@needs_strace
@pytest.mark.parametrize(
    ("call", "path"), [("unlink", "soulgit/scratch/kept-0"), ("unlinkat", None)]
)
def test_what_cannot_be_taken_away_is_told(scene: Path, call: str, path: str | None) -> None:
    git = Git(scene / "ava")
    at = None if path is None else git.path / ".git" / path
    again_and_again = f"{call}:error=EIO:when=1+"
    done = traced(again_and_again, *WORDS, str(git.path), SECRET, "--yes", at=at)
    assert done.was_hit
    assert done.code == 1
    assert run(git.path) == 0
    is_done(git, scene / "twin", WHOLE[0])


@slow
@needs_strace
@pytest.mark.parametrize("call", FAULTS)
def test_a_fault_at_any_call_is_told_and_it_is_run_again(scene: Path, call: str) -> None:
    name, _, error = call.partition("=")
    hits = 0
    for _, fault in each_fault(name, f"error={error}"):
        git = again(scene)
        done = traced(fault, *WORDS, str(git.path), SECRET, "--yes")
        is_whole(git, scene / "twin")
        if done.code == 0 and done.was_hit:
            assert scanned(git, SECRET, scene / "twin") == []
        run(git.path)
        is_done(git, scene / "twin", WHOLE[0])
        if not done.was_hit:
            break
        hits += 1
    assert hits, f"a redaction makes no {name}"


@slow
def test_redactions_killed_at_random_are_run_again(scene: Path) -> None:
    chance = random.Random(7)
    for _ in range(100):
        git = again(scene)
        for _ in range(chance.randrange(1, 4)):
            command = [sys.executable, *WORDS, str(git.path), SECRET, "--yes"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
                threading.Event().wait(chance.uniform(0.2, 1.2))
                one.send_signal(signal.SIGKILL)
                one.communicate()
            is_whole(git, scene / "twin")
        run(git.path)
        is_done(git, scene / "twin", WHOLE[0])
    assert opened(git.path).repository
