"""A repository read for its past gives what the repository itself gives, quickly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import soulgit
from soulgit import upkeep
from soulgit.errors import ObjectMissing, SoulgitError
from soulgit.git import Repository
from soulgit.git.past import Past
from tests.support import Git, git_home, put

FILES = {"SOUL.md": "You are Ava.\n", "memories/MEMORY.md": "one", "memories/USER.md": "Ann"}


@pytest.fixture
def git(home_dir: Path) -> Git:
    """A history with a directory, a link, an executable file, a merge and a submodule's entry."""
    git = git_home(home_dir, FILES)
    for text in ("two", "three"):
        assert not soulgit.memory_tool(home_dir).execute({"action": "add", "text": text}).is_error
    (home_dir / "LINK.md").symlink_to("memories/USER.md")
    put(home_dir, {"run": "#!/bin/sh\n", "päth/ö.md": "deep\n"})
    (home_dir / "run").chmod(0o755)
    tip = git("rev-parse", "HEAD")
    git("add", "-A")
    git("update-index", "--add", "--cacheinfo", f"160000,{tip},module")
    git("commit", "-qm", "odd things")
    git("switch", "-qc", "other", tip)
    git("commit", "-q", "--allow-empty", "-m", "beside")
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "merged", "other")
    return git


def paths(git: Git, commit_id: str) -> list[str]:
    listed = git("ls-tree", "-r", "-t", "-z", "--name-only", commit_id)
    return [*filter(None, listed.split("\0")), "absent", "memories/absent", "run/below"]


@pytest.mark.parametrize("packed", [False, True])
def test_the_past_is_as_the_repository_has_it(git: Git, packed: bool) -> None:
    if packed:
        upkeep.gc(git.path)
    repository = Repository.open(str(git.path))
    past = Past(Repository.open(str(git.path)))
    for commit_id in git("rev-list", "--all").splitlines():
        commit = repository.commit(commit_id)
        assert (past.link(commit_id).tree, past.link(commit_id).parents) == (
            commit.tree, commit.parents,
        )  # fmt: skip
        assert sorted(past.names(commit.tree)) == sorted(repository.names(commit.tree))
        for path in paths(git, commit_id):
            entry = repository.entry(commit.tree, path)
            assert past.entry(commit.tree, path) == entry
            if entry is not None and git("cat-file", "-t", entry.id) == "blob":
                assert past.blob(entry.id) == repository.blob(entry.id)


def test_what_was_written_since_is_found(git: Git) -> None:
    past = Past(Repository.open(str(git.path)))
    past.link(git("rev-parse", "HEAD"))
    assert not soulgit.memory_tool(git.path).execute({"action": "add", "text": "new"}).is_error
    tip = git("rev-parse", "HEAD")
    assert past.link(tip).parents == (git("rev-parse", "HEAD~1"),)
    upkeep.gc(git.path)
    assert past.link(git("rev-parse", "HEAD~2")).tree == git("rev-parse", "HEAD~2^{tree}")


def test_what_is_missing_or_damaged_is_told(git: Git) -> None:
    past = Past(Repository.open(str(git.path)))
    with pytest.raises(ObjectMissing):
        past.blob("1" * 40)
    blob = git("rev-parse", "HEAD:SOUL.md")
    path = git.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"no zlib stream at all")
    with pytest.raises(SoulgitError):
        Past(Repository.open(str(git.path))).blob(blob)


@pytest.mark.parametrize("kept", [0, 1, 5, 20, -6, -1])
def test_an_object_that_was_cut_off_is_told_and_never_waited_for(git: Git, kept: int) -> None:
    blob = git("rev-parse", "HEAD:SOUL.md")
    path = git.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:kept])
    script = "import sys, soulgit; print(soulgit.compose_soul(sys.argv[1], at='HEAD').text)"
    for words in (
        ["-c", script],
        *(["-m", "soulgit", verb] for verb in ("verify", "gc", "blame")),
    ):
        done = subprocess.run(
            [sys.executable, *words, str(git.path)], capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        if words[-1] != "blame":  # which does not ask who she is
            assert done.returncode == 1
            assert "cut off" in done.stderr + done.stdout
