"""Settling as the git program sees it: what is drawn, what a kill leaves, what clones know."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from soulgit.cli import run
from tests.support import Git, git_home, put
from tests.test_cli import Shell

FILES = {
    "SOUL.md": '+++\nname = "Ava"\n+++\nYou are Ava.\n',
    "MEMORY.md": "- one\n- two\n",
    "USER.md": "- likes tea\n",
}
EDIT = {"SOUL.md": '+++\nname = "Ava"\n+++\nYou are somebody else.\n'}
WHERE = ["disk", "tip"]
PENDING = "pending   the persona was edited"
UPDATE = ("--update", "--batch-size", "2")
READER = """
import json, sys
asked = json.load(sys.stdin)["entries"]
with open({log!r}, "a") as log:
    log.write(json.dumps([entry["text"] for entry in asked]) + "\\n")
told = [{{"id": entry["id"], "text": "re-read " + entry["text"]}} for entry in asked]
print(json.dumps({{"entries": told}}))
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(shell: Shell) -> Git:
    """A home with three memories, in the directory `ava`."""
    put(shell.directory / "ava", FILES)
    assert shell("init", "./ava").code == 0
    return Git(shell.directory / "ava")


@pytest.fixture
def reader(tmp_path: Path) -> tuple[str, ...]:
    """The options of a reader that answers with `re-read TEXT` and logs what it was asked."""
    script = tmp_path / "reader.py"
    script.write_text(READER.format(log=str(tmp_path / "asked.log")))
    return ("--reader", f"{sys.executable} {script}")


def asked(directory: Path) -> list[str]:
    log = directory / "asked.log"
    return log.read_text().splitlines() if log.exists() else []


def edit(git: Git, where: str = "disk", files: dict[str, str] = EDIT) -> None:
    put(git.path, files)
    if where == "tip":
        git("commit", "-qam", "by hand")


def settle(shell: Shell, *words: str, home: str = "./ava") -> str:
    """Settle, and return the tip that is told."""
    done = shell("settle", home, *words)
    assert done.code == 0, done
    return done.text.strip()


def is_pending(shell: Shell, home: str = "./ava") -> bool:
    done = shell("memory", "add", home, "probe")
    assert done.code in (0, 3), done
    assert (done.code == 3) == (PENDING in shell("status", home).text)
    return done.code == 3


def trailers(git: Git, commit: str) -> dict[str, str]:
    parsed = git(
        "interpret-trailers", "--parse", stdin=git.bytes("log", "-1", "--format=%B", commit)
    )
    return dict(line.split(": ", 1) for line in parsed.splitlines())


def digest(shell: Shell, at: str, home: str = "./ava") -> str:
    value = json.loads(shell("compose", home, "--json", "--at", at).text)["persona"]
    assert isinstance(value, str)
    return value


def branches(git: Git) -> list[str]:
    return git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


# What git draws


@pytest.mark.parametrize("where", WHERE)
def test_continue_is_a_merge_of_the_persona(shell: Shell, ava: Git, where: str) -> None:
    settled = ava("rev-parse", "HEAD")
    edit(ava, where)
    tip = ava("rev-parse", "HEAD")
    merge = settle(shell, "--continue", "--reason", "a new look")
    assert merge == ava("rev-parse", "main")
    assert ava("log", "-1", "--format=%P", "main").split() == [tip, ava("rev-parse", "persona/2")]
    assert ava("log", "-1", "--format=%P", "persona/2") == settled
    assert ava("diff", "--name-only", settled, "persona/2") == "SOUL.md"
    assert ava("diff", "main", "persona/2", "--", "SOUL.md") == ""
    assert ava("rev-parse", "main:MEMORY.md") == ava("rev-parse", f"{settled}:MEMORY.md")
    told = trailers(ava, "persona/2")
    assert (told["Soul-Action"], told["Soul-Number"]) == ("continue", "2")
    assert told["Soul-Persona"] == digest(shell, "persona/2") != digest(shell, settled)
    told = trailers(ava, "main")
    assert (told["Soul-Action"], told["Soul-Reason"]) == ("continue", "a new look")
    assert told["Soul-Persona"] == digest(shell, "main") == digest(shell, "persona/2")
    assert not is_pending(shell)
    assert trailers(ava, "main")["Soul-Persona"] == told["Soul-Persona"]
    ava.agrees()


@pytest.mark.parametrize("where", WHERE)
def test_update_is_a_merge_of_what_was_read(
    shell: Shell, ava: Git, reader: tuple[str, ...], where: str
) -> None:
    settled = ava("rev-parse", "HEAD")
    edit(ava, where)
    tip = ava("rev-parse", "HEAD")
    settle(shell, *UPDATE, *reader, "--model", "m-1")
    assert ava("log", "-1", "--format=%P", "main").split() == [tip, ava("rev-parse", "persona/2")]
    commits = ava("log", "--first-parent", "--format=%H", "persona/2").splitlines()
    assert commits[3] == settled
    actions = [trailers(ava, commit)["Soul-Action"] for commit in commits[:3]]
    assert actions == ["reread", "reread", "update"]
    assert trailers(ava, commits[2])["Soul-Number"] == "2"
    assert trailers(ava, commits[0])["Soul-Model"] == "m-1"
    assert {trailers(ava, commit)["Soul-Persona"] for commit in commits[:3]} == {
        digest(shell, "main")
    }
    assert trailers(ava, "main")["Soul-Action"] == "update"
    assert ava("show", "main:MEMORY.md") == "- re-read one\n- re-read two"
    assert ava("show", "main:USER.md") == "- re-read likes tea"
    ava.agrees()


@pytest.mark.parametrize("where", WHERE)
def test_a_fork_begins_without_parent_and_memory(shell: Shell, ava: Git, where: str) -> None:
    assert shell("memory", "add", "./ava", "later").code == 0
    edit(ava, where)
    tip = ava("rev-parse", "HEAD")
    first = settle(shell, "--fork", "bo")
    assert ava("symbolic-ref", "HEAD") == "refs/heads/bo"
    assert ava("rev-list", "bo").split() == [first]
    assert ava("rev-parse", "persona/2") == first
    assert ava("rev-parse", "main") == tip
    reachable = {line.split()[0] for line in ava("rev-list", "--objects", "bo").splitlines()}
    old = ava("rev-list", "--objects", "main", "--", "MEMORY.md", "USER.md").splitlines()
    memories = {line.split()[0] for line in old if line.endswith(("MEMORY.md", "USER.md"))}
    assert len(memories) == 3
    assert not reachable & memories
    assert ava("ls-tree", "-r", "--name-only", "bo").split() == ["SOUL.md"]
    told = trailers(ava, "bo")
    assert told["Soul-Action"] == "fork"
    assert told["Soul-Number"] == "2"
    assert told["Soul-Forked-From"] == tip
    assert told["Soul-Archived"] == "main"
    assert told["Soul-Persona"] == digest(shell, "bo")
    assert not is_pending(shell)
    ava.agrees()
    ava("switch", "-q", "main")
    refused = shell("memory", "add", "./ava", "x")
    assert (refused.code, "archived" in refused.err, "persona/2" in refused.err) == (1, True, True)
    assert ava("rev-parse", "main") == tip


def test_a_fork_takes_memory_of_neither_layout_along(shell: Shell, ava: Git) -> None:
    put(ava.path, {"memories/USER.md": "an old secret"})
    ava("add", "-A")
    ava("commit", "-qm", "a leftover of the other layout")
    edit(ava)
    settle(shell, "--fork", "bo")
    assert ava("ls-tree", "-r", "--name-only", "bo").split() == ["SOUL.md"]
    assert "secret" not in shell("compose", "./ava").text


@pytest.mark.parametrize("where", WHERE)
def test_discard_keeps_the_edit_reachable(shell: Shell, ava: Git, where: str) -> None:
    before = ava("rev-parse", "HEAD")
    edit(ava, where)
    tip = ava("rev-parse", "HEAD")
    settle(shell, "--discard")
    kept = ava("for-each-ref", "--format=%(refname)", "refs/soulgit/discarded")
    assert ava("show", f"{kept}:SOUL.md") == EDIT["SOUL.md"].rstrip()
    assert ava("diff", before, "main") == ""
    assert ava("rev-list", "--count", f"{tip}..main") == ("1" if where == "tip" else "0")
    assert branches(ava) == ["main", "persona/1"]
    assert not is_pending(shell)
    ava.agrees()


def test_every_discarded_edit_stays_reachable(shell: Shell, ava: Git) -> None:
    for word in ("first", "second"):
        edit(ava, files={"SOUL.md": f"You are {word}.\n"})
        settle(shell, "--discard")
    kept = ava("for-each-ref", "--format=%(objectname)", "refs/soulgit").splitlines()
    assert {ava("show", f"{commit}:SOUL.md") for commit in kept} >= {
        "You are first.",
        "You are second.",
    }


def test_every_aborted_update_stays_reachable(
    shell: Shell, ava: Git, reader: tuple[str, ...]
) -> None:
    for word in ("first", "second"):
        edit(ava, files={"SOUL.md": f"You are {word}.\n"})
        settle(shell, *UPDATE, *reader, "--review")
        settle(shell, "--abort")
    kept = ava("for-each-ref", "--format=%(objectname)", "refs/soulgit").splitlines()
    assert {ava("show", f"{commit}:SOUL.md") for commit in kept} >= {
        "You are first.",
        "You are second.",
    }
    assert is_pending(shell)


# Killed at every step

CHILD = """
    import os, signal, sys
    from pathlib import Path
    from soulgit.cli import run
    import soulgit.forking, soulgit.updating, soulgit.git.locking as locking
    import {module} as module

    def dead():
        os.kill(os.getpid(), signal.SIGKILL)

    owner = module{owner}
    real, calls = owner.{name}, [0]

    def cut(*words, **named):
        calls[0] += 1
        if calls[0] != {nth}:
            return real(*words, **named)
        if {after}:
            real(*words, **named)
        dead()

    def cut_between(locks):
        calls[0] += 1
        if calls[0] != {nth}:
            return real(locks)
        locks.held = locks.held[:{between}] if {between} > 0 else locks.held[{between}:]
        real(locks)
        dead()

    owner.{name} = cut_between if {between} else cut
    sys.exit(run(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Step:
    """Where a command is killed: at the nth call of a function, before or after it.

    `between`: that many of the refs have moved, the first ones or (negative) the last.
    """

    function: str
    nth: int = 1
    after: bool = False
    between: int = 0

    def __str__(self) -> str:
        when = f"between{self.between}" if self.between else "after" if self.after else "before"
        return f"{self.function.removeprefix('soulgit.')}-{self.nth}-{when}"

    def kill(self, directory: Path, *words: str) -> None:
        """Run a command that dies there."""
        module, name = self.function.rsplit(".", 1)
        owner = ""
        if module.rsplit(".", 1)[1][0].isupper():
            module, kind = module.rsplit(".", 1)
            owner = f".{kind}"
        source = textwrap.dedent(CHILD).format(
            module=module,
            owner=owner,
            name=name,
            nth=self.nth,
            after=self.after,
            between=self.between,
        )
        done = subprocess.run(
            [sys.executable, "-c", source, *words], cwd=directory, capture_output=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done


MOVE = "soulgit.git.locking.RefLocks.move"
STEPS = [
    Step("soulgit.intent.write", after=True),
    Step("soulgit.git.locking._lock", after=True),
    Step("soulgit.landing.place_files", after=True),
    Step("soulgit.landing.place_index", after=True),
    Step(MOVE),
    Step(MOVE, after=True),
    Step("soulgit.intent.clear"),
]
BETWEEN = [Step(MOVE, between=1), Step(MOVE, between=-1)]
FORK_STEPS = [
    Step("soulgit.disk.place", after=True),
    *(Step("soulgit.disk.remove", nth, after=True) for nth in (1, 2)),
    Step("soulgit.git.locking._lock", 2, after=True),
    Step(MOVE, between=2),
    Step(MOVE, between=-2),
]
DECISIONS: dict[str, tuple[str, ...]] = {
    "continue": ("--continue",),
    "discard": ("--discard",),
    "fork": ("--fork", "bo"),
}
View = tuple[object, ...]


def view(git: Git) -> View:
    """All that a decision may change, but for ids, which depend on the time."""
    files = {path.name: path.read_bytes() for path in git.path.iterdir() if path.is_file()}
    common = Path(git("rev-parse", "--path-format=absolute", "--git-common-dir"))
    return (
        git("symbolic-ref", "HEAD"),
        git("for-each-ref", "--format=%(refname) %(subject)"),
        {name: data for name, data in files.items() if name != ".git"},
        git("diff", "--cached", "--name-status"),
        sorted(path.name for path in common.rglob("*.lock")),
    )


def copied(git: Git, name: str) -> Git:
    shutil.copytree(git.path, git.path.parent / name, symlinks=True)
    return Git(git.path.parent / name)


def renewed(git: Git) -> View:
    """The next command, and what it leaves."""
    assert run(["status", str(git.path)]) == 0
    return view(git)


def killing_cases() -> list[ParameterSet]:
    cases: list[ParameterSet] = []
    for decision in DECISIONS:
        for where in WHERE:
            steps = [step for step in STEPS if where == "tip" or step.function != MOVE]
            steps += [*BETWEEN, *(FORK_STEPS if decision == "fork" else [])]
            cases += [
                pytest.param(decision, where, step, id=f"{decision}-{where}-{step}")
                for step in steps
            ]
    return cases


@pytest.mark.slow
@pytest.mark.parametrize(("decision", "where", "step"), killing_cases())
def test_a_decision_killed_at_any_step_is_taken_or_not(
    shell: Shell, ava: Git, decision: str, where: str, step: Step
) -> None:
    edit(ava, where)
    before, words = view(ava), DECISIONS[decision]
    other = copied(ava, "other")
    assert run(["settle", str(other.path), *words]) == 0
    after = view(other)
    step.kill(shell.directory, "settle", "./ava", *words)
    found = renewed(ava)
    assert found in (before, after)
    if found == before:
        assert run(["settle", str(ava.path), *words]) == 0
        assert view(ava) == after
    assert run(["memory", "add", str(ava.path), "next"]) == 0
    ava.agrees()


UPDATE_STEPS = [  # the begin and two batches, then the landing
    *(Step(MOVE, nth, after=after) for nth in (1, 2, 3) for after in (False, True)),
    Step("soulgit.intent.clear", 2),
    Step("soulgit.intent.write", 4, after=True),
    Step("soulgit.landing.place_files", after=True, nth=4),
    *(Step("soulgit.disk.place", nth, after=True) for nth in (1, 2)),
    Step("soulgit.landing.place_index", 4, after=True),
    Step(MOVE, 4),
    Step(MOVE, 4, after=True),
]


@pytest.mark.slow
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("step", UPDATE_STEPS, ids=str)
def test_an_update_killed_at_any_step_goes_on(
    shell: Shell, ava: Git, reader: tuple[str, ...], where: str, step: Step
) -> None:
    edit(ava, where)
    tip, files = ava("rev-parse", "main"), view(ava)[2]
    step.kill(shell.directory, "settle", "./ava", *UPDATE, *reader)
    renewed(ava)
    if PENDING in shell("status", "./ava").text:
        assert ava("rev-parse", "main") == tip
        assert view(ava)[2:4] == (files, "")
        read = asked(shell.directory)
        merged = ava("for-each-ref", "--format=%(subject)", "refs/heads/persona/2")
        settle(shell, *UPDATE, *reader)
        again = [batch for batch in asked(shell.directory)[len(read) :] if batch in read]
        # Only a batch whose answer was not yet in history may be asked for once more.
        assert len(again) <= 1
        if "reread entries 1 to 2" in merged:
            assert asked(shell.directory).count('["one", "two"]') == 1
        if "reread entries 3 to 3" in merged:
            assert again == []
    assert set(asked(shell.directory)) == {'["one", "two"]', '["likes tea"]'}
    assert ava("show", "main:MEMORY.md") == "- re-read one\n- re-read two"
    assert ava("show", "main:USER.md") == "- re-read likes tea"
    assert branches(ava) == ["main", "persona/1", "persona/2"]
    assert ava("log", "-1", "--format=%P").split() == [tip, ava("rev-parse", "persona/2")]
    ava.agrees()


SIBLING_STEPS = [
    Step(MOVE),
    Step(MOVE, after=True),
    Step("soulgit.intent.clear"),
    Step("soulgit.forking.link_home"),
    Step("soulgit.git.linking._write_out"),
    Step("soulgit.git.linking._write_out", after=True),
    Step("soulgit.forking.link_home", after=True),
]


@pytest.mark.slow
@pytest.mark.parametrize("step", SIBLING_STEPS, ids=str)
def test_a_fork_with_a_home_killed_at_any_step_is_made_or_not(
    shell: Shell, ava: Git, step: Step
) -> None:
    words = ("fork", "./ava", "bo", "--home", "bo")
    step.kill(shell.directory, *words)
    renewed(ava)
    if not (shell.directory / "bo").exists():
        assert "bo" not in branches(ava)
        assert ava("worktree", "list", "--porcelain").count("worktree ") == 1
        assert shell(*words).code == 0
    assert shell("memory", "add", "./bo", "x").code == 0
    assert (shell.directory / "bo" / "MEMORY.md").read_text() == "- x\n"
    Git(shell.directory / "bo").agrees()
    ava.agrees()


# Clones, fetches, pushes


def cloned(git: Git, *refs: str) -> Git:
    """Push refs to a bare repository, and clone that."""
    bare, clone = git.path.parent / "bare", git.path.parent / "clone"
    git("init", "-q", "--bare", str(bare))
    git("push", "-q", str(bare), *refs)
    git("clone", "-q", "-b", refs[0], str(bare), str(clone))
    return Git(clone)


@pytest.mark.parametrize("refs", [("main",), ("main", "persona/1", "persona/2")])
@pytest.mark.parametrize("decision", ["continue", "update"])
def test_numbers_count_on_in_a_clone(
    shell: Shell, ava: Git, reader: tuple[str, ...], refs: tuple[str, ...], decision: str
) -> None:
    edit(ava)
    settle(shell, *(("--continue",) if decision == "continue" else (*UPDATE, *reader)))
    clone = cloned(ava, *refs)
    edit(clone, files={"SOUL.md": "You are a third.\n"})
    settle(shell, "--continue", home="./clone")
    assert [name for name in branches(clone) if name.startswith("persona/")] == ["persona/3"]
    assert trailers(clone, "persona/3")["Soul-Number"] == "3"


def test_numbers_count_on_in_the_clone_of_a_fork(shell: Shell, ava: Git) -> None:
    edit(ava)
    settle(shell, "--fork", "bo")
    assert shell("memory", "add", "./ava", "x").code == 0
    clone = cloned(ava, "bo")
    edit(clone, files={"SOUL.md": "You are a third.\n"})
    settle(shell, "--continue", home="./clone")
    assert trailers(clone, "persona/3")["Soul-Number"] == "3"


def test_archived_stays_archived_in_a_clone(shell: Shell, ava: Git) -> None:
    edit(ava)
    settle(shell, "--fork", "bo")
    clone = cloned(ava, "main", "bo", "persona/1", "persona/2")
    assert "archived" in shell.refused("memory", "add", "./clone", "x")
    clone("switch", "-q", "bo")
    assert shell("memory", "add", "./clone", "x").code == 0
    clone("push", "-q", "origin", "bo")
    assert Git(shell.directory / "bare")("log", "-1", "--format=%s", "bo").startswith("memory")


def test_an_archive_becomes_known_by_a_fetch(shell: Shell, ava: Git) -> None:
    clone = cloned(ava, "main")
    assert not is_pending(shell, "./clone")
    edit(ava)
    settle(shell, "--fork", "bo")
    ava("push", "-q", str(shell.directory / "bare"), "bo", "persona/2")
    clone("reset", "-q", "--hard", "origin/main")
    clone("fetch", "-q")
    assert "archived" in shell.refused("memory", "add", "./clone", "x")


def test_pending_stays_pending_in_a_clone(shell: Shell, ava: Git) -> None:
    edit(ava, "tip")
    clone = cloned(ava, "main", "persona/1")
    assert is_pending(shell, "./clone")
    settle(shell, "--continue", home="./clone")
    assert not is_pending(shell, "./clone")
    clone("push", "-q", "origin", "main", "persona/2")
    ava("pull", "-q", str(shell.directory / "bare"), "main")
    assert not is_pending(shell)


# Pending by plain git


def by_commit(git: Git) -> None:
    edit(git, "tip")


def by_pull(git: Git) -> None:
    clone = git.path.parent / "clone"
    git("clone", "-q", str(git.path), str(clone))
    edit(Git(clone), "tip")
    git("pull", "-q", str(clone), "main")


def by_cherry_pick(git: Git) -> None:
    git("switch", "-q", "-c", "side")
    edit(git, "tip")
    git("switch", "-q", "main")
    git("cherry-pick", "side")


def by_checkout(git: Git) -> None:
    git("switch", "-q", "-c", "side")
    edit(git, "tip")
    git("switch", "-q", "main")
    git("switch", "-q", "side")


def by_reset(git: Git) -> None:
    edit(git, "tip")
    tip = git("rev-parse", "HEAD")
    git("reset", "-q", "--hard", "HEAD~1")
    git("reset", "-q", "--hard", tip)


def by_checkout_of_a_file(git: Git) -> None:
    git("switch", "-q", "-c", "side")
    edit(git, "tip")
    git("switch", "-q", "main")
    git("checkout", "-q", "side", "--", "SOUL.md")


def by_a_cherry_picked_decision(git: Git) -> None:
    """A merge's trailer comes along, and so does its persona: another one is on the branch."""
    git("switch", "-q", "-c", "side")
    edit(git, "disk", {"SOUL.md": "You are another.\n", "IDENTITY.md": "name: Ann\n"})
    assert run(["settle", str(git.path), "--continue"]) == 0
    git("switch", "-q", "main")
    git("checkout", "-q", "persona/2", "--", "SOUL.md")
    message = git.bytes("log", "-1", "--format=%B", "persona/2")
    git("commit", "-q", "-F", "-", stdin=message)


def by_a_forged_trailer(git: Git) -> None:
    put(git.path, EDIT)
    git("commit", "-qam", f"sly\n\nSoul-Action: continue\nSoul-Persona: {'0' * 64}")


@pytest.mark.parametrize(
    "how",
    [
        by_commit,
        by_pull,
        by_cherry_pick,
        by_checkout,
        by_reset,
        by_checkout_of_a_file,
        by_a_cherry_picked_decision,
        by_a_forged_trailer,
    ],
)
@pytest.mark.parametrize("end", ["--continue", "--discard"])
def test_an_edit_by_plain_git_is_pending(
    shell: Shell, ava: Git, how: Callable[[Git], None], end: str
) -> None:
    how(ava)
    assert is_pending(shell)
    settle(shell, end)
    assert not is_pending(shell)


def test_a_capture_does_not_settle_an_edit_at_the_tip(shell: Shell, ava: Git) -> None:
    edit(ava, "tip")
    put(ava.path, {"MEMORY.md": "- one\n- two\n- by hand\n"})
    shell("capture", "./ava")
    assert is_pending(shell)


@pytest.mark.parametrize("decision", ["--continue", "--discard", "--fork=bo"])
def test_memory_by_hand_does_not_settle_an_edit_at_the_tip(
    shell: Shell, ava: Git, decision: str
) -> None:
    edit(ava, "tip")
    put(ava.path, {"MEMORY.md": "- one\n- two\n- by hand\n"})
    settle(shell, decision)
    assert "- by hand" in ava("show", "main:MEMORY.md")


# Links and modes


def linked_soul(shell: Shell) -> Git:
    home = shell.directory / "ava"
    put(home, {"souls/ava.md": "You are Ava.\n", "MEMORY.md": "- one\n"})
    (home / "SOUL.md").symlink_to("souls/ava.md")
    assert shell("init", "./ava").code == 0
    return Git(home)


def test_a_soul_that_was_a_link_becomes_a_file(shell: Shell) -> None:
    git = linked_soul(shell)
    (git.path / "SOUL.md").unlink()
    edit(git)
    settle(shell, "--continue")
    assert not is_pending(shell)
    assert git("ls-tree", "main", "SOUL.md").startswith("100644 ")
    git.agrees()


@pytest.mark.parametrize("decision", ["--continue", "--discard", "--fork=bo"])
def test_a_soul_that_became_a_link_is_not_decided_on(shell: Shell, ava: Git, decision: str) -> None:
    (ava.path / "SOUL.md").unlink()
    put(ava.path, {"souls/bo.md": "You are Bo.\n"})
    (ava.path / "SOUL.md").symlink_to("souls/bo.md")
    before = ava("for-each-ref"), ava("status", "--porcelain")
    assert "has become a link" in shell.refused("settle", "./ava", decision)
    assert (ava("for-each-ref"), ava("status", "--porcelain")) == before
    assert (ava.path / "souls/bo.md").read_text() == "You are Bo.\n"
    (ava.path / "SOUL.md").unlink()
    put(ava.path, {"SOUL.md": "You are Bo.\n"})
    settle(shell, decision)
    assert not is_pending(shell)


@pytest.mark.parametrize("decision", ["--continue", "--discard", "--fork=bo"])
def test_the_bytes_behind_a_link_are_edited(shell: Shell, decision: str) -> None:
    git = linked_soul(shell)
    put(git.path, {"souls/ava.md": "You are Bo.\n"})
    settle(shell, decision)
    assert not is_pending(shell)
    assert git("ls-tree", "HEAD", "SOUL.md").startswith("120000 ")
    git.agrees()


def test_a_fork_takes_a_link_to_a_memory_away_too(shell: Shell) -> None:
    home = shell.directory / "ava"
    put(home, {"SOUL.md": "You are Ava.\n", "store/memory.md": "- one\n"})
    (home / "MEMORY.md").symlink_to("store/memory.md")
    assert shell("init", "./ava").code == 0
    edit(Git(home))
    settle(shell, "--fork", "bo")
    assert shell("compose", "./ava").code == 0
    assert not is_pending(shell)
    Git(home).agrees()


def test_a_staged_persona_that_was_taken_back_is_no_decision(shell: Shell, ava: Git) -> None:
    edit(ava)
    ava("add", "SOUL.md")
    put(ava.path, FILES)
    assert shell("memory", "add", "./ava", "x").code in (0, 3)
    assert branches(ava) == ["main", "persona/1"]


def test_only_one_of_many_decisions_is_taken(shell: Shell, ava: Git) -> None:
    edit(ava)
    words = [("--continue",), ("--fork", "bo"), ("--discard",), ("--continue",)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "soulgit", "settle", "./ava", *decision],
            cwd=shell.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for decision in words
    ]
    assert sorted(process.wait(timeout=60) for process in running) == [0, 1, 1, 1]
    assert not is_pending(shell)
    ava.agrees()


# Linked homes


@pytest.fixture
def bo(shell: Shell, ava: Git) -> Git:
    """A sibling with the memories, in a home of its own."""
    done = shell("fork", "./ava", "bo", "--home", "bo", "--keep-memories")
    assert (done.code, done.text) == (0, "bo\n")
    return Git(shell.directory / "bo")


def test_a_forks_home_is_a_home(shell: Shell, ava: Git, bo: Git) -> None:
    main = ava("rev-parse", "main")
    for words in (
        ("status", "./bo"),
        ("compose", "./bo"),
        ("persona", "./bo"),
        ("traits", "./bo"),
        ("log", "./bo"),
        ("memory", "list", "./bo"),
        ("memory", "add", "./bo", "bo's own"),
        ("memory", "replace", "./bo", "bo's own", "--with", "bo's"),
        ("memory", "remove", "./bo", "two"),
        ("sear", "./bo", "one"),
        ("capture", "./bo"),
    ):
        done = shell(*words)
        assert done.code == 0, (words, done)
    assert ava("rev-parse", "main") == main
    assert bo("symbolic-ref", "HEAD") == "refs/heads/bo"
    assert (bo.path / "MEMORY.md").read_text() == "- one <!-- seared -->\n- bo's\n"
    bo.agrees()
    ava.agrees()


def test_settling_in_a_linked_home_moves_its_head_alone(shell: Shell, ava: Git, bo: Git) -> None:
    edit(bo)
    settle(shell, "--fork", "cy", home="./bo")
    assert bo("symbolic-ref", "HEAD") == "refs/heads/cy"
    assert ava("symbolic-ref", "HEAD") == "refs/heads/main"
    assert trailers(ava, "cy")["Soul-Archived"] == "bo"
    assert sorted(path.name for path in bo.path.iterdir()) == [".git", "SOUL.md"]
    assert not is_pending(shell, "./bo")
    assert not is_pending(shell)
    bo.agrees()
    ava.agrees()


def test_frozen_in_one_home_is_frozen_in_all(shell: Shell, ava: Git, bo: Git) -> None:
    edit(ava)
    assert shell("freeze", "./bo").code == 0
    before = view(ava)
    for words in (
        ("memory", "add", "./bo", "x"),
        ("settle", "./ava", "--continue"),
        ("settle", "./ava", "--discard"),
        ("settle", "./ava", "--fork", "cy"),
        ("fork", "./ava", "cy", "--no-home"),
    ):
        assert shell(*words).code == 3
    assert view(ava) == before
    assert shell("thaw", "./ava").code == 0
    assert shell("memory", "add", "./bo", "x").code == 0


def test_a_companion_at_home_elsewhere_is_refused_by_name(shell: Shell, ava: Git, bo: Git) -> None:
    edit(ava)
    assert "bo" in shell.refused("settle", "./ava", "--fork", "bo", code=2)
    assert "bo" in shell.refused("fork", "./ava", "bo", "--home", "cy", code=2)
    assert not (shell.directory / "cy").exists()
    assert is_pending(shell)


@pytest.mark.parametrize("step", [Step(MOVE), Step("soulgit.landing.place_files", after=True)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize(("victim", "next_one"), [("bo", "ava"), ("ava", "bo")])
def test_a_dead_writer_is_healed_from_another_home(
    shell: Shell, ava: Git, bo: Git, victim: str, next_one: str, step: Step
) -> None:
    step.kill(shell.directory, "memory", "add", f"./{victim}", "cut off")
    renewed(Git(shell.directory / next_one))
    assert (shell.directory / victim / "MEMORY.md").read_text() == "- one\n- two\n- cut off\n"
    assert (shell.directory / next_one / "MEMORY.md").read_text() == "- one\n- two\n"
    for git in (ava, bo):
        git.agrees()


FORKING = [
    Step("soulgit.disk.remove", after=True),
    Step(MOVE, between=1),
    Step(MOVE, between=-1),
]


@pytest.mark.parametrize("step", FORKING, ids=str)
@pytest.mark.parametrize(("victim", "next_one"), [("bo", "ava"), ("ava", "bo")])
def test_a_dead_fork_is_ended_from_another_home(
    shell: Shell, ava: Git, bo: Git, victim: str, next_one: str, step: Step
) -> None:
    git, other = Git(shell.directory / victim), Git(shell.directory / next_one)
    edit(git)
    before = view(other)
    step.kill(shell.directory, "settle", f"./{victim}", "--fork", "cy")
    renewed(other)
    assert git("symbolic-ref", "HEAD") == "refs/heads/cy"
    assert sorted(path.name for path in git.path.iterdir()) == [".git", "SOUL.md"]
    assert (other("symbolic-ref", "HEAD"), view(other)[2]) == (before[0], before[2])
    for home in (ava, bo):
        home.agrees()


def test_a_dead_writer_whose_home_is_gone_stands_in_nobodys_way(
    shell: Shell, ava: Git, bo: Git
) -> None:
    Step(MOVE).kill(shell.directory, "memory", "add", "./bo", "cut off")
    shutil.rmtree(bo.path)
    assert shell("memory", "add", "./ava", "x").code == 0


def test_a_dead_fork_in_a_home_that_was_removed_leaves_the_main_home_alone(
    shell: Shell, ava: Git, bo: Git
) -> None:
    edit(bo)
    Step(MOVE, between=1).kill(shell.directory, "settle", "./bo", "--fork", "cy")
    ava("worktree", "remove", "--force", str(bo.path))
    before = view(ava)
    found = renewed(ava)
    assert (found[0], found[2], found[3]) == (before[0], before[2], before[3])
    assert shell("memory", "add", "./ava", "x").code == 0


@pytest.mark.parametrize("is_same", [True, False])
def test_siblings_update_each_their_own(
    shell: Shell, ava: Git, reader: tuple[str, ...], is_same: bool
) -> None:
    """Two companions get a new persona, the same one even; neither sees the other's memories."""
    assert shell("fork", "./ava", "bo", "--home", "bo").code == 0
    bo = Git(shell.directory / "bo")
    assert shell("memory", "add", "./bo", "bo's own").code == 0
    edit(ava)
    edit(bo, files=EDIT if is_same else {"SOUL.md": "You are a third.\n"})
    settle(shell, *UPDATE, *reader, "--review")
    settle(shell, *UPDATE, *reader, home="./bo")
    assert {path.name: path.read_text() for path in bo.path.glob("[MU]*.md")} == {
        "MEMORY.md": "- re-read bo's own\n"
    }
    settle(shell, "--land")
    assert (ava.path / "MEMORY.md").read_text() == "- re-read one\n- re-read two\n"


# A fork that fails leaves nothing


def nothing_but(shell: Shell, *names: str) -> None:
    git = Git(shell.directory / "ava")
    assert branches(git) == ["main", "persona/1"]
    assert git("worktree", "list", "--porcelain").count("worktree ") == 1
    worktrees = git.path / ".git" / "worktrees"
    assert not worktrees.exists() or not list(worktrees.iterdir())
    assert sorted(path.name for path in shell.directory.iterdir()) == sorted(["ava", *names])
    git.agrees()


@pytest.mark.usefixtures("ava")
def test_a_fork_whose_directory_cannot_be_made_leaves_nothing(shell: Shell) -> None:
    put(shell.directory, {"file": "x"})
    shell.refused("fork", "./ava", "bo", "--home", "file/bo")
    nothing_but(shell, "file")
    shell.refused("fork", "./ava", "bo", "--home", "file", code=2)
    nothing_but(shell, "file")


@pytest.mark.usefixtures("ava")
@pytest.mark.parametrize("name", ["main", "persona/1", "persona/9", "persona", "HEAD", "abcd123"])
def test_a_fork_with_a_name_that_is_taken_leaves_nothing(shell: Shell, name: str) -> None:
    shell.refused("fork", "./ava", name, "--home", "deep/bo", code=2)
    nothing_but(shell)


def test_a_fork_on_a_full_disk_leaves_nothing(shell: Shell, ava: Git) -> None:
    disk = shell.directory / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs a file system of its own")
    try:
        put(ava.path, {"AGENTS.md": "x" * 200_000})
        assert shell("capture", "./ava").code == 0
        shell.refused("fork", "./ava", "bo", "--home", "disk/deep/bo")
        assert list(disk.iterdir()) == []
        nothing_but(shell, "disk")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert shell("fork", "./ava", "bo", "--home", "disk/deep/bo").code == 0


# Line ends


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_forks_home_has_the_commits_bytes(shell: Shell, isolated: Path, ends: bytes) -> None:
    put(isolated, {".gitconfig": "[core]\n\tautocrlf = true\n"})
    memory = ends.join([b"- one", b"- two", b""])
    put(shell.directory / "ava", {"SOUL.md": "You are Ava.\n", "MEMORY.md": memory})
    assert shell("init", "./ava").code == 0
    assert shell("fork", "./ava", "bo", "--home", "bo", "--keep-memories").code == 0
    home = Git(shell.directory / "bo")
    assert (home.path / "MEMORY.md").read_bytes() == memory
    assert home.bytes("show", "bo:MEMORY.md") == memory
    assert (home.path / "SOUL.md").read_bytes() == b"You are Ava.\n"
    assert home("status", "--porcelain", "--", "SOUL.md") == ""
    assert Git(shell.directory / "ava")("status", "--porcelain") == home("status", "--porcelain")
    assert "by hand   nothing" in shell("status", "./bo").text
    assert shell("memory", "add", "./bo", "x").code == 0
    assert (home.path / "MEMORY.md").read_bytes() == memory + b"- x" + ends


# Odd ground


@pytest.mark.parametrize("words", [("--continue",), ("--dry-run", "--continue"), ("--land",)])
def test_an_unborn_branch_has_nothing_to_settle(shell: Shell, words: tuple[str, ...]) -> None:
    put(shell.directory / "ava", FILES)
    Git(shell.directory / "ava")("init", "-q")
    shell.refused("settle", "./ava", *words)


@pytest.mark.parametrize("word", ["--land", "--abort"])
def test_a_dry_run_of_an_updates_end_is_no_bug(shell: Shell, ava: Git, word: str) -> None:
    edit(ava)
    assert shell("settle", "./ava", "--dry-run", word).code in (0, 1, 2)


def test_a_home_of_plain_git_is_settled_as_drawn(shell: Shell) -> None:
    git = git_home(shell.directory / "ava", FILES)
    settled = git("rev-parse", "HEAD")
    edit(git)
    settle(shell, "--continue")
    assert git("log", "-1", "--format=%P").split() == [settled, git("rev-parse", "persona/1")]
    git.agrees()
