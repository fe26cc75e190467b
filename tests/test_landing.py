"""What a landing is made of: objects that wait, refs that are locked and moved, locks that end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import soulgit
from soulgit import lockfile
from soulgit.core.actor import Identity, Moment
from soulgit.errors import BusyError, RepositoryRefused
from soulgit.git import Repository, TreeEntry
from soulgit.git.locking import locked_refs
from soulgit.git.values import FILE_MODE
from tests.support import Git, git_home

PAT = Identity("Pat", "pat@example.org")
BASE = {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- a\n"}


def objects(git: Git) -> list[str]:
    return sorted(
        str(path) for path in (git.path / ".git" / "objects").rglob("*") if path.is_file()
    )


def commit(repository: Repository, data: bytes, parents: tuple[str, ...] = ()) -> str:
    entry = TreeEntry(FILE_MODE, repository.write_blob(data))
    tree = repository.write_tree(None, {"sub/file": entry})
    return repository.write_commit(tree, parents, "made\n", PAT, Moment(1_700_000_000))


# Objects


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("size", [1, 100_000])  # small ones an opened repository keeps
def test_new_objects_are_read_at_once_and_git_finds_them_once_stored(
    home_dir: Path, size: int, durable: bool
) -> None:
    git = git_home(home_dir, BASE)
    repository = Repository.open(str(home_dir), durable=durable)
    before = objects(git)
    data = b"new\0\xff" * size
    made = commit(repository, data)
    tree = repository.commit(made).tree
    assert repository.read(tree, "sub/file") == data
    assert repository.has(made)
    assert objects(git) == before
    repository.incoming.store()
    git("update-ref", "refs/heads/made", made)
    assert git("cat-file", "-t", made) == "commit"
    assert git.bytes("cat-file", "blob", f"{made}:sub/file") == data
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert not any("tmp_obj" in path for path in objects(git))


def test_new_objects_that_are_dropped_leave_nothing(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    repository = Repository.open(str(home_dir))
    before = objects(git)
    made = commit(repository, b"new")
    repository.incoming.draft()
    assert objects(git) != before
    repository.incoming.drop()
    assert objects(git) == before
    assert not repository.has(made)
    again = commit(repository, b"new")
    repository.incoming.store()
    assert again == made
    assert git("cat-file", "-p", f"{made}:sub/file") == "new"


def test_an_object_that_is_there_already_is_not_stored_again(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    repository = Repository.open(str(home_dir))
    before = objects(git)
    assert repository.write_blob(b"- a\n") == git("rev-parse", "HEAD:MEMORY.md")
    repository.incoming.store()
    assert objects(git) == before


# Refs


def moved(home_dir: Path, name: str, git: Git, *, actor: Identity = PAT) -> None:
    """Make a ref at HEAD, as a landing does."""
    tip = git("rev-parse", "HEAD")
    repository = Repository.open(str(home_dir))
    with locked_refs(repository, {name: (None, tip)}, None, 0) as refs:
        refs.log(actor, "made by\na test")
        refs.move()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("there", "wanted"), [("liv", "liv/two"), ("liv/two", "liv"), ("liv/a/b", "liv/a")]
)
def test_a_ref_for_which_another_leaves_no_room_is_refused(
    home_dir: Path, there: str, wanted: str, packed: bool
) -> None:
    git = git_home(home_dir, BASE)
    git("branch", there)
    if packed:
        git("pack-refs", "--all")
    with pytest.raises(RepositoryRefused) as told:
        moved(home_dir, f"refs/heads/{wanted}", git)
    assert f"refs/heads/{there} is in its way" in str(told.value)
    assert told.value.hint
    assert git("branch", "--list", wanted) == ""
    assert list((home_dir / ".git").rglob("*.lock")) == []


def test_what_a_deleted_branch_left_behind_is_in_nobodys_way(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    (home_dir / ".git" / "refs" / "heads" / "liv" / "empty").mkdir(parents=True)
    moved(home_dir, "refs/heads/liv", git)
    assert git("rev-parse", "liv") == git("rev-parse", "main")


def test_a_packed_ref_moves(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("pack-refs", "--all")
    assert not soulgit.memory_tool(home_dir).execute({"action": "add", "text": "x"}).is_error
    assert git("log", "-1", "--format=%s", "main") == 'memory(self): add "x"'
    git.agrees()


def test_reflogs_are_what_git_expects(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    tool = soulgit.memory_tool(home_dir)
    for text in ("x", "y"):
        assert not tool.execute({"action": "add", "text": text}).is_error
    told = "--format=%H %gs"
    tips = git("rev-list", "-2", "HEAD").splitlines()
    for name in ("HEAD", "main"):
        lines = git("reflog", "show", told, name).splitlines()
        assert lines[:2] == [f"{tip} soulgit: add" for tip in tips]
    moved(home_dir, "refs/heads/liv", git, actor=Identity("Zoë", "zoe@example.org"))
    assert git("reflog", "show", "--format=%gn <%ge> %gs", "liv") == (
        "Zoë <zoe@example.org> made by a test"
    )
    assert git("fsck", "--strict") == ""


@pytest.mark.parametrize(
    ("told", "heads", "others"),
    [("true", True, False), ("false", False, False), ("always", True, True)],
)
def test_reflogs_are_begun_as_git_is_told(
    home_dir: Path, told: str, heads: bool, others: bool
) -> None:
    git = git_home(home_dir, BASE)
    git("config", "core.logAllRefUpdates", told)
    for name in ("refs/heads/liv", "refs/custom/liv"):
        moved(home_dir, name, git)
    logs = home_dir / ".git" / "logs" / "refs"
    assert (logs / "heads" / "liv").exists() == heads
    assert (logs / "custom" / "liv").exists() == others


def test_what_reflogs_were_told_of_a_move_that_failed_is_taken_back(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    tip = git("rev-parse", "HEAD")
    log = home_dir / ".git" / "logs" / "refs" / "heads" / "main"
    before = log.read_bytes()
    repository = Repository.open(str(home_dir))
    with locked_refs(repository, {"refs/heads/main": (tip, tip)}, None, 0) as refs:
        refs.log(PAT, "in vain")
        assert log.read_bytes() != before
        refs.unlog()
    assert log.read_bytes() == before


# Locks that end with their holder

HOLDER = """
    import sys, time
    from soulgit import lockfile
    with lockfile.held(sys.argv[1], 0, ValueError):
        print("held", flush=True)
        time.sleep(60)
"""


def busy() -> BusyError:
    return BusyError("somebody holds it")


def holder(path: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", textwrap.dedent(HOLDER), str(path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_is_held_against_another_process_until_that_dies(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    try:
        with pytest.raises(BusyError), lockfile.held(str(path), 0.05, busy):
            pytest.fail("two held it")
        process.send_signal(signal.SIGKILL)
        process.wait()
        with lockfile.held(str(path), 5, busy):
            assert path.exists()
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_lock_is_given_up_though_a_forked_process_has_it_open(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    reader, writer = os.pipe()
    with lockfile.held(path, 0, busy):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    try:
        with lockfile.held(path, 0, busy):
            pass
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)


def test_a_lock_whose_file_was_taken_away_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lockfile.held(str(path), 0, busy):
        path.unlink()
        process = holder(path)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
