"""Verify finds each way in which a history can be made to lie, and nothing in one that does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import soulgit
from soulgit import upkeep, verification
from tests.support import Git, git_home, put
from tests.test_cli import Shell

FILES = {
    "SOUL.md": '+++\nname = "Ava"\n+++\nYou are Ava.\n',
    "MEMORY.md": "- one\n- two\n",
    "USER.md": "- likes tea\n",
}
EDIT = "You are somebody else.\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Git:
    """A home in whose history nearly everything has happened that soulgit writes."""
    if not BUILT:
        BUILT.append(told(Shell(tmp_path_factory.mktemp("built"))))
    return Git(shutil.copytree(BUILT[0], shell.directory / "ava"))


BUILT: list[Path] = []
"""The home that every test begins with, made once and then copied."""


def told(shell: Shell) -> Path:
    home = shell.directory / "ava"
    put(home, FILES)
    git = Git(home)
    for command in (
        ("init", "./ava"),
        ("memory", "add", "./ava", "three\nof two lines", "--source", "telegram:ann"),
        ("memory", "replace", "./ava", "two", "--with", "a seared one"),
        ("memory", "remove", "./ava", "one\n", "--target", "self"),
        ("memory", "add", "./ava", "plays chess", "--target", "user"),
        ("sear", "./ava", "a seared one"),
        ("undo", "./ava", "HEAD~1"),
        ("traits", "./ava", "drift=0"),
    ):
        shell(*command)
    put(home, {"TOOLS.md": "a tool\n", "MEMORY.md": git_text(git) + "- by hand\n"})
    assert shell("capture", "./ava").code == 0
    return home


def git_text(git: Git) -> str:
    return (git.path / "MEMORY.md").read_text()


def kinds(git: Git) -> set[str]:
    return {fault.kind for fault in verification.verify(git.path)}


def settled(shell: Shell, git: Git, *how: str) -> None:
    put(git.path, {"SOUL.md": EDIT})
    assert shell("settle", "./ava", *how).code == 0


@pytest.mark.parametrize("how", [("--continue",), ("--fork", "bea"), ("--discard",)])
def test_a_history_that_soulgit_wrote_holds_together(
    shell: Shell, ava: Git, how: tuple[str, ...]
) -> None:
    settled(shell, ava, *how)
    assert shell("fork", "./ava", "cy", "--at", "persona/1", "--no-home").code == 0
    shell("memory", "add", "./ava", "afterwards")
    assert verification.verify(ava.path) == []
    done = shell("verify", "./ava")
    assert (done.code, done.out) == (0, b"")


def test_a_hermes_home_and_one_that_began_with_plain_git_hold_together(home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": "x\n", "memories/MEMORY.md": "a\n§\nb"})
    tool = soulgit.memory_tool(home_dir)
    for action in ({"action": "add", "text": "c"}, {"action": "remove", "text": "a"}):
        assert not tool.execute(action).is_error
    git("commit", "-q", "--allow-empty", "-m", "a commit of mine")
    assert verification.verify(home_dir) == []


def test_a_commit_amended_by_hand_is_found(ava: Git) -> None:
    soulgit.memory_tool(ava.path).execute({"action": "add", "text": "true"})
    put(ava.path, {"MEMORY.md": git_text(ava).replace("true", "false")})
    ava("commit", "-q", "--amend", "--no-edit", "MEMORY.md")
    assert {"record", "amended"} <= kinds(ava)


def test_a_message_amended_by_hand_is_found(ava: Git) -> None:
    soulgit.memory_tool(ava.path).execute({"action": "add", "text": "true"})
    message = ava("log", "-1", "--format=%B").replace("true", "false")
    ava("commit", "-q", "--amend", "-m", message)
    assert "record" in kinds(ava)


@pytest.mark.parametrize("action", ["add", "sear", "remove"])
def test_a_forged_trailer_is_found(ava: Git, action: str) -> None:
    digest = ava("log", "-1", "--format=%(trailers:key=Soul-Persona,valueonly)").strip()
    put(ava.path, {"MEMORY.md": git_text(ava) + "- planted\n"})
    trailers = f"Soul-Action: {action}\nSoul-Target: self\nSoul-Persona: {digest}"
    ava("commit", "-q", "-m", f'memory(self): {action} "x"\n\n    x\n\n{trailers}', "MEMORY.md")
    assert "record" in kinds(ava)


def test_a_forged_digest_is_found(ava: Git) -> None:
    ava("commit", "-q", "--allow-empty", "-m", f"x\n\nSoul-Action: edit\nSoul-Persona: {'0' * 64}")
    assert "digest" in kinds(ava)


def test_a_persona_changed_in_a_memorys_commit_is_found(ava: Git) -> None:
    soulgit.memory_tool(ava.path).execute({"action": "add", "text": "true"})
    put(ava.path, {"SOUL.md": EDIT})
    ava("commit", "-q", "--amend", "--no-edit", "-a")
    assert {"persona", "record"} <= kinds(ava)


def test_a_seared_entry_changed_by_plain_git_is_found(ava: Git) -> None:
    put(ava.path, {"MEMORY.md": git_text(ava).replace("a seared one", "another")})
    ava("commit", "-qam", "mine")
    assert kinds(ava) == {"seared"}


def test_an_archived_branch_that_moved_is_found(shell: Shell, ava: Git) -> None:
    settled(shell, ava, "--fork", "bea")
    archived = next(b for b in ("main",) if ava("rev-parse", "--verify", b))
    ava("switch", "-q", archived)
    ava("commit", "-q", "--allow-empty", "-m", "on")
    ava("switch", "-q", "bea")
    assert "archive" in kinds(ava)


def test_a_flipped_byte_in_a_pack_is_found(ava: Git) -> None:
    upkeep.gc(ava.path)
    (pack,) = (ava.path / ".git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    assert "object" in kinds(ava)


def test_a_damaged_loose_object_is_found(ava: Git) -> None:
    blob = ava("rev-parse", "HEAD:MEMORY.md")
    path = ava.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"x")
    assert "object" in kinds(ava)


def test_faults_are_told_with_their_commits(shell: Shell, ava: Git) -> None:
    put(ava.path, {"MEMORY.md": git_text(ava).replace("a seared one", "another")})
    ava("commit", "-qam", "mine")
    head = ava("rev-parse", "HEAD")
    done = shell("verify", "./ava")
    assert done.code == 1
    assert done.out.decode().startswith(f"{head[:12]} seared: ")
    told = json.loads(shell("verify", "./ava", "--json").out)
    assert [(fault["id"], fault["kind"]) for fault in told] == [(head, "seared")]


def test_a_commit_that_an_auditor_was_given_is_in_the_history_or_not(
    shell: Shell, ava: Git
) -> None:
    given = ava("rev-parse", "HEAD~2")
    assert shell("verify", "./ava", "--contains", given).code == 0
    ava("reset", "-q", "--hard", "HEAD~3")
    done = shell("verify", "./ava", "--contains", given, "--json")
    assert (done.code, json.loads(done.out)) == (1, {"contains": False})
    assert shell("verify", "./ava", "--contains", "HEAD").code == 1
    assert shell("verify", "./ava", "--contains", "0" * 40).code == 1
