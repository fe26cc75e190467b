"""Odd repositories, dead writers and full disks: each works, or says what to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import soulgit
from soulgit import personas
from soulgit.core.actor import Moment
from soulgit.errors import RepositoryRefused, UnsafeFile
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Shell
from tests.test_crashes import ACT, needs_strace, traced

DATES = ("GIT_COMMITTER_DATE", "GIT_AUTHOR_DATE")
BASE = {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- a\n"}


def add(path: Path | soulgit.Home, text: str = "x") -> soulgit.Result:
    return soulgit.memory_tool(path).execute({"action": "add", "text": text})


def killed_at(home: Path, step: str, text: str = "cut off") -> None:
    """Run an add in a process that is killed when it enters a function, named like disk.replace."""
    module, name = step.rsplit(".", 1)
    source = f"""
        import os, pkgutil, signal, sys
        import soulgit
        tool = soulgit.memory_tool(sys.argv[1])
        owner = pkgutil.resolve_name({module!r})
        owner.{name} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
        tool.execute({{"action": "add", "text": sys.argv[2]}})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), str(home), text], check=False
    )
    assert done.returncode == -signal.SIGKILL


def locks(home: Path) -> list[str]:
    return [path.name for path in (home / ".git").rglob("*.lock")]


STEPS = [
    "soulgit.intent.write",
    "soulgit.lockfile.exclusive",
    "soulgit.git.locking._lock",
    "soulgit.git.incoming.Incoming.draft",
    "soulgit.git.incoming.Incoming.place",
    "soulgit.landing.place_files",
    "soulgit.landing.place_index",
    "soulgit.git.locking.RefLocks.log",
    "soulgit.git.locking.RefLocks.move",
    "soulgit.intent.clear",
]


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_killed_at_any_step_is_ended_by_the_next(home_dir: Path, step: str) -> None:
    git = git_home(home_dir, BASE)
    add(home_dir, "first")
    killed_at(home_dir, step)
    assert not add(home_dir, "next").is_error
    lines = (home_dir / "MEMORY.md").read_text().splitlines()
    assert lines in (["- a", "- first", "- next"], ["- a", "- first", "- cut off", "- next"])
    adds = [subject for subject in git.subjects() if subject.startswith("memory")]
    assert len(adds) == len(lines) - 1
    assert not any(subject.startswith("capture") for subject in git.subjects())
    assert locks(home_dir) == []
    git.agrees()


def killed_before_the_refs(home: Path) -> None:
    killed_at(home, "soulgit.git.locking.RefLocks.move")


def test_a_reading_command_ends_a_dead_writers_work(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    killed_before_the_refs(home_dir)
    assert "index.lock" in locks(home_dir)
    assert "- cut off" in shell("compose", str(home_dir)).text
    assert locks(home_dir) == []
    assert git.subjects()[0] == 'memory(self): add "cut off"'
    git.agrees()


def test_an_edit_made_after_a_kill_is_kept_as_a_persons(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    killed_before_the_refs(home_dir)
    put(home_dir, {"MEMORY.md": "- a\n- cut off\n- by hand\n"})
    add(home_dir, "next")
    assert git.subjects()[:2] == ['memory(self): add "next"', "memory(self): 2 entries added"]
    assert (home_dir / "MEMORY.md").read_text() == "- a\n- cut off\n- by hand\n- next\n"
    git.agrees()


def test_a_living_gits_locks_are_never_removed(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    killed_at(home_dir, "soulgit.lockfile.exclusive")
    tip = git("rev-parse", "HEAD")
    put(home_dir / ".git", {"refs/heads/main.lock": f"{tip}\n", "index.lock": ""})
    result = add(soulgit.Home.open(home_dir, wait_seconds=0.05))
    assert result.is_error
    assert sorted(locks(home_dir)) == ["index.lock", "main.lock"]


@pytest.mark.parametrize("how", ["copied", "moved"])
def test_a_home_that_went_elsewhere_after_a_kill_heals_there(home_dir: Path, how: str) -> None:
    git_home(home_dir, BASE)
    killed_before_the_refs(home_dir)
    there = home_dir.parent / "there"
    if how == "copied":
        shutil.copytree(home_dir, there, symlinks=True)
    else:
        home_dir.rename(there)
    assert not add(there, "next").is_error
    assert (there / "MEMORY.md").read_text() == "- a\n- cut off\n- next\n"
    Git(there).agrees()
    if how == "copied":
        assert "index.lock" in locks(home_dir)


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"refs": {}}', "{", "\xff"])
def test_an_intent_that_is_none_stands_in_nobodys_way(home_dir: Path, content: str) -> None:
    git_home(home_dir, BASE)
    put(home_dir, {".git/soulgit/intent": content})
    assert not add(home_dir).is_error


def test_a_draft_of_a_killed_first_write_is_swept(home_dir: Path) -> None:
    killed_at(home_dir, "os.rename")
    assert [path.name[:15] for path in home_dir.iterdir()] == [".soulgit-draft-"]
    assert not add(home_dir).is_error
    assert sorted(path.name for path in home_dir.iterdir()) == [".git", "MEMORY.md"]


def test_a_first_write_that_fails_does_not_harm_another(home_dir: Path) -> None:
    started, results = threading.Event(), []

    def slow_clock() -> Moment:
        started.set()
        failed.wait(timeout=20)
        return fixed_clock()

    failed = threading.Event()
    slow = soulgit.Home.open(home_dir, clock=slow_clock)
    impatient = soulgit.Home.open(home_dir, wait_seconds=0.05)
    writer = threading.Thread(target=lambda: results.append(add(slow, "slow")))
    writer.start()
    assert started.wait(timeout=20)
    assert add(impatient, "impatient").is_error
    failed.set()
    writer.join(timeout=20)
    assert [result.is_error for result in results] == [False]
    assert Git(home_dir).subjects() == ['memory(self): add "slow"']


def test_a_failed_first_write_leaves_no_repository(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": "- a\n"})
    (home_dir / "MEMORY.md").chmod(0o444)
    assert add(home_dir).is_error
    assert [path.name for path in home_dir.iterdir()] == ["MEMORY.md"]


@pytest.mark.parametrize("is_back", [False, True])
def test_a_directory_that_goes_away_under_a_tool(home_dir: Path, is_back: bool) -> None:
    git_home(home_dir, BASE)
    tool = soulgit.memory_tool(home_dir)
    shutil.rmtree(home_dir)
    if is_back:
        home_dir.mkdir()
    first = tool.execute({"action": "add", "text": "x"})
    assert first.is_error or is_back
    assert home_dir.exists() == is_back
    if is_back:
        assert not add(home_dir, "y").is_error
        Git(home_dir).agrees()


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs a file system of its own")
    try:
        home = disk / "ava"
        git = git_home(home, BASE)
        add(home, "first")
        before = git("rev-parse", "HEAD"), (home / "MEMORY.md").read_bytes()
        filler = disk / "filler"
        refused = 0
        for room in range(20):
            with filler.open("wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 4096):
                        pass
                except OSError:
                    file.truncate(max(0, file.tell() - room * 4096))
            result = add(home, f"{room} " + "y" * 9000)
            if not result.is_error:
                break
            refused += 1
            assert (git("rev-parse", "HEAD"), (home / "MEMORY.md").read_bytes()) == before
            assert locks(home) == []
        assert refused > 3
        filler.unlink()
        assert not add(home, "after").is_error
        git.agrees()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_memory_directory_that_becomes_a_link(home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": "s\n", "memories/MEMORY.md": "one"})
    put(home_dir, {"store/x": "x"})
    (home_dir / "memories").rename(home_dir / "store" / "m")
    (home_dir / "memories").symlink_to("store/m")
    assert not add(home_dir, "two").is_error
    assert git("ls-tree", "HEAD", "memories").startswith("120000 ")
    for at in (None, "HEAD"):
        assert "one\n§\ntwo" in soulgit.compose_soul(home_dir, at=at).text
    git.agrees()


@pytest.mark.parametrize("other", ["SOUL.md", "USER.md"])
def test_two_bootstrap_files_that_are_one_are_refused(home_dir: Path, other: str) -> None:
    git = git_home(home_dir, {"SOUL.md": "s\n", "USER.md": "- u\n"})
    (home_dir / "MEMORY.md").symlink_to(other)
    assert "are one file" in add(home_dir, "obey me").output
    assert git.subjects() == ["by hand"]
    git("add", "-A")
    git("commit", "-qm", "link")
    for at in (None, "HEAD"):
        with pytest.raises(UnsafeFile, match="are one file"):
            soulgit.compose_soul(home_dir, at=at)


def test_a_symbolic_branch_moves_the_branch_behind_it(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git("symbolic-ref", "HEAD", "refs/heads/alias")
    assert not add(home_dir).is_error
    assert git("symbolic-ref", "refs/heads/alias") == "refs/heads/main"
    assert git("log", "-1", "--format=%s", "main") == 'memory(self): add "x"'


def test_a_head_outside_the_branches_takes_no_memory(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    put(home_dir, {".git/HEAD": "ref: refs/tags/x\n"})
    assert "on no branch" in add(home_dir).output
    assert git("tag", "--list") == ""


@pytest.mark.parametrize("stage", [True, False])
def test_a_staged_file_that_was_deleted_is_told_once(home_dir: Path, stage: bool) -> None:
    git = git_home(home_dir, BASE)
    put(home_dir, {"USER.md": "- u\n"})
    git("add", *([] if stage else ["-N"]), "USER.md")
    (home_dir / "USER.md").unlink()
    for number in range(2):
        assert not add(home_dir, str(number)).is_error
    told = git("log", "--format=%s%n%b").splitlines()
    captures = [line.strip() for line in told if line.strip().endswith(" USER.md")]
    assert captures == (["deleted USER.md", "staged USER.md"] if stage else [])
    of_user = [subject for subject in git.subjects() if subject.startswith("memory(user)")]
    assert of_user == (['memory(user): remove "u"', 'memory(user): add "u"'] if stage else [])
    assert git("status", "--porcelain") == ""


def test_commits_of_strange_encodings_are_read(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("-c", "i18n.commitEncoding=bogus-9", "commit", "-q", "--allow-empty", "-m", "odd")
    message = b"caf\xe9\n\nSoul-Action: add\nSoul-Number: " + b"9" * 5000 + b"\n"
    git("commit", "-q", "--allow-empty", "-F", "-", stdin=message)
    git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    assert not add(home_dir).is_error
    rows = [json.loads(line) for line in shell("log", str(home_dir), "--json").text.splitlines()]
    assert [row["subject"] for row in rows] == [
        'memory(self): add "x"', "", "café", "odd", "by hand",
    ]  # fmt: skip
    assert shell("status", str(home_dir)).code == 0


def test_wild_clocks_neither_hide_nor_reorder(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    for when in ("4102444800", "100000001", "253402300799", "100000000"):
        put(home_dir, {"MEMORY.md": f"- {when}\n"})
        environment = dict.fromkeys(DATES, f"@{when} +0000")
        subprocess.run(
            ["git", "-C", str(home_dir), "-c", "user.name=x", "-c", "user.email=x@y", "commit",
             "-qam", when],
            env={**os.environ, **environment}, check=True,
        )  # fmt: skip
    add(home_dir)
    rows = shell("log", str(home_dir)).text.splitlines()
    assert [row.rsplit(": ", 1)[1] for row in rows[1:]] == [
        "100000000", "253402300799", "100000001", "4102444800", "by hand",
    ]  # fmt: skip
    git.agrees()


def test_log_keeps_children_before_parents_through_merges(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    for branch in ("one", "two", "three"):
        git("switch", "-q", "-c", branch, "main")
        for number in range(3):
            git("commit", "-q", "--allow-empty", "-m", f"{branch} {number}")
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "octopus", "one", "two", "three")
    git("checkout", "-q", "--orphan", "unrelated")
    git("commit", "-q", "--allow-empty", "-m", "unrelated")
    git("switch", "-q", "main")
    git("merge", "-q", "--allow-unrelated-histories", "-m", "unrelated too", "unrelated")
    git("switch", "-q", "-c", "criss", "main~1")
    git("commit", "-q", "--allow-empty", "-m", "criss")
    git("switch", "-q", "main")
    git("commit", "-q", "--allow-empty", "-m", "cross")
    crossed = git("rev-parse", "main")
    git("merge", "-q", "--no-ff", "-m", "m1", "criss")
    git("switch", "-q", "criss")
    git("merge", "-q", "--no-ff", "-m", "m2", crossed)
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "m3", "criss")
    rows = [json.loads(line) for line in shell("log", str(home_dir), "--json").text.splitlines()]
    ids = [row["id"] for row in rows]
    assert sorted(ids) == sorted(git("rev-list", "HEAD").split())
    place = {commit_id: number for number, commit_id in enumerate(ids)}
    assert all(place[row["id"]] < place[parent] for row in rows for parent in row["parents"])


def test_status_tells_of_an_unfinished_merge(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("switch", "-q", "-c", "side")
    put(home_dir, {"MEMORY.md": "- side\n"})
    git("commit", "-qam", "side")
    git("switch", "-q", "main")
    put(home_dir, {"MEMORY.md": "- main\n"})
    git("commit", "-qam", "main")
    git("merge", "side", check=False)
    assert shell("status", str(home_dir)).code == 0
    assert shell("compose", str(home_dir)).code == 3
    assert shell("memory", "add", str(home_dir), "x").code == 3
    assert shell("compose", str(home_dir), "--at", "HEAD").code == 0


def test_a_bare_repository_is_named(shell: Shell, home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    git("clone", "-q", "--bare", str(home_dir), str(tmp_path / "bare"))
    before = sorted(path.name for path in (tmp_path / "bare").iterdir())
    for words in (("compose",), ("memory", "list"), ("init",), ("status",)):
        assert "is a bare repository" in shell.refused(*words, "./bare")
    with pytest.raises(RepositoryRefused, match="bare"):
        soulgit.memory_tool(tmp_path / "bare")
    assert sorted(path.name for path in (tmp_path / "bare").iterdir()) == before


def test_a_moved_linked_home_is_told_how_to_be_mended(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    side = tmp_path / "side"
    git("worktree", "add", "-q", "-b", "side", str(side))
    side.rename(tmp_path / "moved")
    with pytest.raises(RepositoryRefused) as caught:
        soulgit.memory_tool(tmp_path / "moved")
    assert "git worktree repair" in caught.value.hint
    home_dir.rename(tmp_path / "main-moved")
    with pytest.raises(RepositoryRefused) as caught:
        soulgit.memory_tool(tmp_path / "moved")
    assert "git worktree repair" in caught.value.hint


def test_a_partial_clone_misses_a_blob_by_name(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    put(home_dir, {"MEMORY.md": "- b\n"})
    git("commit", "-qam", "later")
    git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git("clone", "-q", "--filter=blob:none", f"file://{home_dir}", str(clone))
    assert not add(clone).is_error
    assert "- b" in soulgit.compose_soul(clone, at="HEAD").text
    with pytest.raises(RepositoryRefused, match="not here") as caught:
        soulgit.compose_soul(clone, at="HEAD~2")
    assert "--refetch" in caught.value.hint


def test_another_kind_of_persona_branch_is_nobodys_persona(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("branch", "persona/1")
    put(home_dir, {".git/refs/heads/persona/7": "1" * 40 + "\n"})
    assert not personas.is_written(soulgit.Home.open(home_dir).repository, git("rev-parse", "HEAD"))
    assert shell("status", str(home_dir)).code == 0
    assert shell("init", str(home_dir)).err.startswith("adopted as it is")


def test_a_commit_whose_memory_is_no_file_can_be_shown(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    (home_dir / "MEMORY.md").unlink()
    put(home_dir, {"MEMORY.md/x": "a tree"})
    git("add", "-A")
    git("commit", "-qm", "tree")
    assert shell("show", str(home_dir), "HEAD").code == 0
    assert shell("diff", str(home_dir), "HEAD~1", "HEAD").code == 0
    done = shell("compose", str(home_dir), "--at=HEAD")
    assert (done.code, "MEMORY.md is no file" in done.err) == (1, True)


def test_closed_and_full_streams(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    soulgit_here = f"{sys.executable} -m soulgit"

    def run(command: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["bash", "-c", f"cd {home_dir}; {command}"], capture_output=True, check=False
        )

    assert run(f"{soulgit_here} memory add . one >&-").returncode == 0
    assert run(f"{soulgit_here} compose . >&-").returncode == 0
    closed = run(f"{soulgit_here} memory add . - <&-")
    assert (closed.returncode, b"standard input is closed" in closed.stderr) == (1, True)
    full = run(f"{soulgit_here} memory add . two >/dev/full")
    assert full.returncode == 1
    assert b"only its output is lost" in full.stderr
    assert b"Exception" not in full.stderr
    assert run(f"set -o pipefail; {soulgit_here} log . | head -0").returncode == 0
    assert git.subjects()[:2] == ['memory(self): add "two"', 'memory(self): add "one"']


def test_odd_names_of_homes(shell: Shell) -> None:
    shell.refused("init", b"q\xff", code=2)
    shell.refused("init", "--name", b"a\xffb", "q")
    shell.refused("init", "nl\nx", code=2)
    shell.refused("init", ".git", code=2)
    shell.refused("init", "./z1/z2", "--from", "-", stdin=b"\xff")
    assert sorted(path.name for path in shell.directory.iterdir()) in ([], ["root"])
    assert shell("list", HOME="", SOULGIT_ROOT="").code in (0, 1)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


LONG = "long, " * 1_000 + "and over"
MOUNTED = f"- a\n- {LONG}\n- z\n"


@pytest.fixture
def mounted(home_dir: Path, tmp_path: Path) -> Iterator[Path]:
    """What is mounted where a home has its memory, so that it is written in place."""
    source = tmp_path / "mounted.md"
    source.write_text(MOUNTED)
    git_home(home_dir, {**BASE, "MEMORY.md": source.read_text()})
    mount = ["mount", "--bind", str(source), str(home_dir / "MEMORY.md")]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs leave to mount")
    yield source
    subprocess.run(["umount", str(home_dir / "MEMORY.md")], check=True)


CUT_OFF = [
    {"action": "remove", "text": LONG},
    {"action": "replace", "text": LONG, "with": "short"},
    {"action": "replace", "text": "a", "with": "b" * 3_000},
    {"action": "add", "text": "cut off, " * 1_000 + "and over"},
]


def killed_while_it_writes(home: Path, action: dict[str, str]) -> None:
    """Kill an action as it has put its files, and before anything else."""
    source = """
        import json, os, signal, sys
        import soulgit
        from soulgit import landing
        tool = soulgit.memory_tool(sys.argv[1])
        landing.place_index = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
        tool.execute(json.loads(sys.argv[2]))
    """
    words = [sys.executable, "-c", textwrap.dedent(source), str(home), json.dumps(action)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL


def is_ended_whole(home: Path, action: dict[str, str], done: str) -> None:
    git = Git(home)
    assert not add(home, "next").is_error
    assert (home / "MEMORY.md").read_text() == done + "- next\n"
    subjects = git.subjects()
    assert subjects[0] == 'memory(self): add "next"'
    assert subjects[1].startswith(f"memory(self): {action['action']} ")
    assert subjects[2:] == ["by hand"]
    assert locks(home) == []
    git.agrees()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99, 1])
@pytest.mark.parametrize("action", CUT_OFF, ids=lambda action: action["action"])
def test_a_mounted_file_that_is_half_new_and_half_old_is_ended_by_the_next(
    home_dir: Path, mounted: Path, action: dict[str, str], share: float
) -> None:
    old = mounted.read_bytes()
    killed_while_it_writes(home_dir, action)
    new = mounted.read_bytes()
    same = next(at for at in range(len(new)) if new[: at + 1] != old[: at + 1])
    written = same + max(1, int((len(new) - same) * share))
    mounted.write_bytes(new[:written] + old[written:])
    is_ended_whole(home_dir, action, new.decode())
    assert mounted.read_bytes() == (home_dir / "MEMORY.md").read_bytes()


@needs_strace
@pytest.mark.parametrize("action", CUT_OFF, ids=lambda action: action["action"])
def test_a_writer_that_is_killed_as_it_cuts_a_mounted_file_is_ended_by_the_next(
    home_dir: Path, mounted: Path, action: dict[str, str]
) -> None:
    words = ["-c", ACT, str(home_dir), json.dumps(action)]
    done = traced("ftruncate:signal=SIGKILL:when=1", *words, at=home_dir / "MEMORY.md")
    assert done.was_hit
    assert done.code == -signal.SIGKILL
    data = mounted.read_bytes()
    soul = soulgit.compose_soul(home_dir, at="HEAD")
    assert soul.text.endswith("- z")
    new = carried_out_on(MOUNTED, action)
    assert data.startswith(new.encode())
    is_ended_whole(home_dir, action, new)


def carried_out_on(text: str, action: dict[str, str]) -> str:
    """What an action makes of a memory file."""
    if action["action"] == "add":
        return f"{text}- {action['text']}\n"
    line = f"- {action['with']}\n" if "with" in action else ""
    return text.replace(f"- {action['text']}\n", line)
