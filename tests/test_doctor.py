"""doctor: each fault is made for real, found by its kind, and mended where that is safe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import soulgit
from soulgit import Home, doctor
from soulgit.core.actor import Identity
from soulgit.doctor import Trouble
from soulgit.errors import NotAHome
from tests.support import Git, git_home, put
from tests.test_cli import Shell
from tests.test_lint import HEAD, SECTIONS

PAT = Identity("Pat", "pat@example.org")
SOUL = HEAD + SECTIONS
MEMORY = "- likes tea\n- was born in May <!-- seared -->\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(shell: Shell, home_dir: Path) -> Git:
    """A home that is well."""
    git = git_home(home_dir, {"SOUL.md": SOUL, "MEMORY.md": MEMORY})
    assert shell("init", str(home_dir)).code == 0
    return git


def examine(git: Git, *, fix: bool = False) -> list[Trouble]:
    return doctor.examine(Home.open(git.path), fix=fix)


def found(git: Git) -> dict[str, str]:
    """The kinds of trouble, each with how grave it is."""
    return {trouble.kind: trouble.severity for trouble in examine(git)}


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def killed(home: Path, step: str) -> None:
    """Add an entry in a process that is killed where `step`, some code, says."""
    source = f"""
        import os, signal, sys
        import soulgit
        from soulgit.git.locking import RefLocks
        def die(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        {step}
        soulgit.memory_tool(sys.argv[1]).execute({{"action": "add", "text": "cut off"}})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source), str(home)], check=False)
    assert done.returncode == -signal.SIGKILL


# A home that is well


def test_a_home_that_is_well(shell: Shell, ava: Git) -> None:
    for words in ((), ("--fix",)):
        done = shell("doctor", str(ava.path), *words)
        assert (done.code, done.text, done.err) == (0, "all is well\n", "")
    assert shell("doctor", str(ava.path), "--json").text == "[]\n"


def test_a_home_that_is_written_to_stays_well(ava: Git) -> None:
    for number in range(3):
        soulgit.memory_tool(ava.path).execute({"action": "add", "text": str(number)})
    assert examine(ava) == []


def test_a_directory_that_is_no_home_is_refused(shell: Shell, home_dir: Path) -> None:
    put(home_dir, {"SOUL.md": SOUL})
    assert "soulgit init" in shell.refused("doctor", str(home_dir))
    with pytest.raises(NotAHome):
        Home.open(home_dir).repository  # noqa: B018


# What --fix mends


def leave_draft(git: Git) -> None:
    put(git.path / f".soulgit-draft-{dead_pid()}-1", {"x": "x"})


def leave_scratch(git: Git) -> None:
    put(git.path / ".git" / "soulgit" / "scratch", {"MEMORY.md.soulgit": "half"})


def die_before_the_files(git: Git) -> None:
    killed(git.path, "import soulgit.landing; soulgit.landing.place_files = die")


def die_before_the_refs(git: Git) -> None:
    killed(git.path, "RefLocks.move = die")


MENDABLE: dict[str, tuple[str, Callable[[Git], None]]] = {
    "a draft of a dead process": ("temporary-file", leave_draft),
    "a scratch file": ("temporary-file", leave_scratch),
    "a writer dead before the files": ("dead-writer", die_before_the_files),
    "a writer dead before the refs": ("dead-writer", die_before_the_refs),
}


@pytest.mark.parametrize("fault", MENDABLE)
def test_fix_mends_what_a_dead_writer_left_and_says_so(shell: Shell, ava: Git, fault: str) -> None:
    kind, make = MENDABLE[fault]
    make(ava)
    before = files(ava.path)
    told = shell("doctor", str(ava.path))
    assert told.code == 1
    assert f"[{kind}]" in told.text
    assert files(ava.path) == before
    done = shell("doctor", str(ava.path), "--fix")
    assert done.code == 0
    assert "mended" in done.text
    assert f"[{kind}]" in done.text
    assert shell("doctor", str(ava.path)).text == "all is well\n"
    assert not list(ava.path.rglob("*.lock"))
    memory = (ava.path / "MEMORY.md").read_text()
    assert memory in (MEMORY, MEMORY + "- cut off\n")
    ava.agrees()


def test_refs_that_are_half_moved_are_brought_to_their_end(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": SOUL, "MEMORY.md": MEMORY})
    source = """
        import os, signal, sys
        from soulgit import homes
        from soulgit.core.actor import UNKNOWN
        from soulgit.git.locking import RefLocks
        move = RefLocks.move
        def move_one(self):
            self.held = self.held[:1]
            move(self)
            os.kill(os.getpid(), signal.SIGKILL)
        RefLocks.move = move_one
        homes.init(sys.argv[1], identifier="1", identify=lambda home: UNKNOWN)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(source), str(home_dir)], check=False)
    assert git.subjects() == ["by hand"]
    assert git("branch", "--list", "persona/1") != ""
    assert found(git)["dead-writer"] == "wrong"
    done = shell("doctor", str(home_dir), "--fix")
    assert (done.code, "mended" in done.text) == (0, True)
    assert git("rev-parse", "main") == git("rev-parse", "persona/1")
    assert examine(git) == []
    git.agrees()


def test_fix_leaves_what_is_a_persons_to_a_person(ava: Git) -> None:
    leave_scratch(ava)
    put(ava.path, {"TOOLS.md": "by hand\n", ".soulgit-draft-notes": "mine\n"})
    lock = ava.path / ".git" / "index.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))
    before = ava("rev-parse", "HEAD"), (ava.path / "SOUL.md").read_bytes()
    fixed = {trouble.kind: trouble.mended for trouble in examine(ava, fix=True)}
    assert fixed == {"temporary-file": True, "old-lock": False, "by-hand": False}
    assert lock.exists()
    assert (ava.path / ".soulgit-draft-notes").exists()
    assert (ava("rev-parse", "HEAD"), (ava.path / "SOUL.md").read_bytes()) == before


def test_what_a_living_writer_is_at_is_no_trouble(ava: Git) -> None:
    with Home.open(ava.path).writing():
        leave_scratch(ava)
        put(ava.path, {f".soulgit-draft-{os.getpid()}-1/x": "x"})
        assert examine(ava) == []


# What a person must look at


def freeze(git: Git) -> None:
    Home.open(git.path).freeze(PAT, "it is confused")


def edit_persona(git: Git) -> None:
    put(git.path, {"SOUL.md": SOUL.replace("A baker.", "A miller.")})


def break_soul(git: Git) -> None:
    put(git.path, {"SOUL.md": SOUL.replace('id = "1"', 'id = "1"\ndrift = 2')})


def edit_by_hand(git: Git) -> None:
    put(git.path, {"TOOLS.md": "A hammer.\n"})


def drop_seared(git: Git) -> None:
    put(git.path, {"MEMORY.md": "- likes tea\n"})


def leave_lock(git: Git) -> None:
    lock = git.path / ".git" / "refs" / "heads" / "main.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))


def ignore_memory(git: Git) -> None:
    put(git.path, {".git/info/exclude": "MEM*\n"})


def ignore_all(git: Git) -> None:
    put(git.path, {".gitignore": "*\n!SOUL.md\n"})


def attribute(line: str) -> Callable[[Git], None]:
    def make(git: Git) -> None:
        put(git.path, {".gitattributes": f"*.md {line}\n"})

    return make


def nest(git: Git) -> None:
    git_home(git.path / "skills" / "baking", {"x": "x"})


def twin(git: Git) -> None:
    put(git.path, {"soul.md": "You are Eve.\n"})


def move_linked_home(git: Git) -> None:
    side = git.path.parent / "side"
    git("worktree", "add", "-q", "-b", "side", str(side))
    side.rename(git.path.parent / "moved")


def setting(name: str, value: str) -> Callable[[Git], None]:
    return lambda git: (git("config", name, value), None)[1]


FAULTS: dict[str, tuple[str, str, Callable[[Git], None]]] = {
    "frozen": ("frozen", "wrong", freeze),
    "a persona edit": ("pending", "wrong", edit_persona),
    "a lint error": ("lint:trait-range", "wrong", break_soul),
    "a hand edit": ("by-hand", "note", edit_by_hand),
    "a seared entry gone": ("seared-changed", "wrong", drop_seared),
    "an old lock": ("old-lock", "wrong", leave_lock),
    "an exclude": ("ignored", "wrong", ignore_memory),
    "an ignore file": ("ignored", "wrong", ignore_all),
    "a filter": ("attribute", "wrong", attribute("filter=lfs")),
    "an encoding": ("attribute", "wrong", attribute("working-tree-encoding=UTF-16")),
    "text=auto": ("attribute", "wrong", attribute("text=auto")),
    "text": ("attribute", "wrong", attribute("text")),
    "crlf": ("attribute", "wrong", attribute("eol=crlf")),
    "ident": ("attribute", "wrong", attribute("ident")),
    "a nested repository": ("nested-repository", "note", nest),
    "a name in other case": ("other-case", "wrong", twin),
    "a linked home that moved": ("moved-home", "wrong", move_linked_home),
    "autocrlf": ("git-setting", "note", setting("core.autocrlf", "true")),
    "autocrlf for input": ("git-setting", "note", setting("core.autocrlf", "input")),
    "eol": ("git-setting", "note", setting("core.eol", "crlf")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_kind_with_what_mends_it(ava: Git, fault: str) -> None:
    kind, severity, make = FAULTS[fault]
    make(ava)
    known = {trouble.kind: trouble for trouble in examine(ava)}
    assert kind in known
    assert known[kind].severity == severity
    assert known[kind].message
    assert known[kind].mend


@pytest.mark.parametrize("line", ["-text", "!text", "diff", "merge=union"])
def test_attributes_that_change_no_byte_are_no_trouble(ava: Git, line: str) -> None:
    attribute(line)(ava)
    assert examine(ava) == []


def test_a_setting_that_changes_no_byte_is_no_trouble(ava: Git) -> None:
    setting("core.autocrlf", "false")(ava)
    assert examine(ava) == []


def test_hand_edits_are_told_while_the_home_is_frozen_too(shell: Shell, ava: Git) -> None:
    freeze(ava)
    edit_by_hand(ava)
    assert found(ava) == {"frozen": "wrong", "by-hand": "note"}
    done = shell("doctor", str(ava.path))
    assert done.code == 1
    assert "it is confused" in done.text
    assert "added TOOLS.md" in done.text
    assert "soulgit thaw" in done.text


def test_notes_alone_exit_0(shell: Shell, ava: Git) -> None:
    nest(ava)
    edit_by_hand(ava)
    done = shell("doctor", str(ava.path))
    assert (done.code, "note: " in done.text) == (0, True)


def test_a_linked_home_that_is_repaired_is_well(ava: Git) -> None:
    move_linked_home(ava)
    ava("worktree", "repair", str(ava.path.parent / "moved"))
    assert examine(ava) == []
    assert examine(Git(ava.path.parent / "moved")) == []


def test_a_new_lock_is_a_living_programs(ava: Git) -> None:
    (ava.path / ".git" / "index.lock").write_text("")
    assert examine(ava) == []


def test_the_json_of_a_trouble(shell: Shell, ava: Git) -> None:
    leave_scratch(ava)
    freeze(ava)
    done = shell("doctor", str(ava.path), "--fix", "--json")
    assert done.code == 1
    rows = json.loads(done.text)
    assert {tuple(row) for row in rows} == {("kind", "severity", "message", "mend", "mended")}
    assert {row["kind"]: row["mended"] for row in rows} == {"temporary-file": True, "frozen": False}


def test_one_fault_does_not_hide_another(ava: Git) -> None:
    for make in (leave_scratch, freeze, edit_by_hand, twin, nest, leave_lock):
        make(ava)
    assert set(found(ava)) == {
        "temporary-file", "frozen", "by-hand", "other-case", "nested-repository", "old-lock",
    }  # fmt: skip


def test_a_file_that_cannot_be_read_is_told_and_the_rest_goes_on(ava: Git) -> None:
    (ava.path / "USER.md").symlink_to("/etc/hostname")
    freeze(ava)
    known = found(ava)
    assert known["unsafe-file"] == "wrong"
    assert known["frozen"] == "wrong"


def test_in_the_hermes_layout_the_same_holds(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": SOUL, "memories/MEMORY.md": "a\n§\nb <!-- seared -->"})
    assert shell("init", str(home_dir)).code == 0
    assert examine(git) == []
    put(home_dir, {".gitignore": "memories/\n", "memories/memory.md": "x"})
    assert {"ignored", "other-case"} <= set(found(git))
