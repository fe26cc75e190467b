"""The gate that a persona edit closes, and the commands that decide it."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import soulgit
from soulgit import Home, capturing, forking, homes, memory, settling, updating
from soulgit.adoption import Hand
from soulgit.core import persona
from soulgit.core.actor import Identity
from soulgit.core.layout import HERMES_DELIMITER
from soulgit.core.reading import Batch
from soulgit.core.settlement import Decision
from soulgit.errors import (
    AnswerRefused,
    BranchRefused,
    InvalidArgument,
    NothingPending,
    PersonaPending,
    ReaderFailed,
    SoulgitError,
)
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Shell

PAT = Identity("Pat", "pat@example.org")
AVA, EVE, LIV = "You are Ava.\n", "You are Eve.\n", "You are Liv.\n"
MEMORY = "# Mine\n\n- one\n- two\n\nSome prose.\n\n## Later\n\n* three\n"
USER = "- four\n- five\n"
FILES = {"SOUL.md": AVA, "MEMORY.md": MEMORY, "USER.md": USER, "TOOLS.md": "a hammer\n"}
HERMES_FILES = {
    "SOUL.md": AVA,
    "memories/MEMORY.md": HERMES_DELIMITER.join(["one", "two", "three"]),
    "memories/USER.md": "four",
}
TEXTS = ["one", "two", "Some prose.", "three", "four", "five"]
DECISIONS = ("--continue", "--update", "--fork", "--discard")


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


def begun(directory: Path, files: dict[str, str]) -> Git:
    """A home that a person began with git and soulgit has adopted."""
    git = git_home(directory, files)
    homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
    return git


def add(path: Path | Home, text: str = "x") -> soulgit.Result:
    return soulgit.memory_tool(path).execute({"action": "add", "text": text})


def trailer(git: Git, name: str, revision: str = "HEAD") -> str:
    return git("log", "-1", f"--format=%(trailers:key=Soul-{name},valueonly)", revision).strip()


def refs(git: Git) -> dict[str, str]:
    lines = git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split() for line in lines)


def state(git: Git) -> tuple[dict[str, str], str, dict[str, bytes]]:
    """Refs, HEAD, and the files on disk: all that a refusal must leave as it was."""
    files = {
        str(path.relative_to(git.path)): path.read_bytes()
        for path in sorted(git.path.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(git.path).parts
    }
    return refs(git), git("symbolic-ref", "HEAD"), files


@dataclass
class Reader:
    """A reader that shouts, remembers what it was asked, and fails when it is told to."""

    answer: Callable[[int, Batch], Sequence[str]] = lambda call, batch: shouted(batch)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    personas: list[str] = field(default_factory=list)
    seared: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, persona: str, batch: Batch) -> Sequence[str]:
        self.asked.append(tuple(batch))
        self.personas.append(persona)
        self.seared.append(batch.seared)
        return self.answer(len(self.asked), batch)


def shouted(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


def failing_at(call: int, fault: BaseException) -> Reader:
    def answer(now: int, batch: Batch) -> Sequence[str]:
        if now == call:
            raise fault
        return shouted(batch)

    return Reader(answer)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(home_dir: Path) -> Git:
    """A settled home with four memories of its own and two of its user."""
    return begun(home_dir, FILES)


@pytest.fixture
def edited(ava: Git) -> Git:
    """The same, with another persona in its working files."""
    put(ava.path, {"SOUL.md": EVE})
    return ava


# The gate


def in_the_working_files(git: Git) -> None:
    put(git.path, {"SOUL.md": EVE})


def by_commit(git: Git) -> None:
    put(git.path, {"SOUL.md": EVE})
    git("commit", "-qam", "by hand")


def by_pull(git: Git) -> None:
    clone = Git(git.path.parent / "clone")
    git("clone", "-q", str(git.path), str(clone.path))
    by_commit(clone)
    git("pull", "-q", "--ff-only", str(clone.path), "main")


def by_merge(git: Git) -> None:
    git("switch", "-qc", "side")
    by_commit(git)
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "merged", "side")


def by_cherry_pick(git: Git) -> None:
    git("switch", "-qc", "side")
    by_commit(git)
    git("switch", "-q", "main")
    git("commit", "-q", "--allow-empty", "-m", "apart")
    git("cherry-pick", "side")


def by_checkout_of_a_branch(git: Git) -> None:
    git("switch", "-qc", "side")
    by_commit(git)
    git("switch", "-q", "main")
    git("switch", "-q", "side")


def by_checkout_of_a_file(git: Git) -> None:
    git("switch", "-qc", "side")
    by_commit(git)
    git("switch", "-q", "main")
    git("checkout", "-q", "side", "--", "SOUL.md")


def by_hard_reset(git: Git) -> None:
    git("switch", "-qc", "side")
    by_commit(git)
    git("switch", "-q", "main")
    git("reset", "-q", "--hard", "side")


def by_mixed_reset(git: Git) -> None:
    by_commit(git)
    git("reset", "-q", "HEAD~1")


WAYS = [
    in_the_working_files,
    by_commit,
    by_pull,
    by_merge,
    by_cherry_pick,
    by_checkout_of_a_branch,
    by_checkout_of_a_file,
    by_hard_reset,
    by_mixed_reset,
]
EACH_WAY = pytest.mark.parametrize("arrives", WAYS, ids=lambda way: way.__name__)


@EACH_WAY
def test_an_edit_closes_the_gate_however_it_arrives(
    ava: Git, arrives: Callable[[Git], None]
) -> None:
    arrives(ava)
    before = state(ava)
    result = add(ava.path)
    assert result.is_error
    assert "soulgit settle" in result.output
    assert all(decision in result.output for decision in DECISIONS)
    assert state(ava) == before
    assert settling.is_pending(opened(ava.path))
    assert homes.status(opened(ava.path)).pending
    settling.decide(opened(ava.path), "continue", PAT)
    assert not homes.status(opened(ava.path)).pending
    assert not add(ava.path).is_error
    assert (ava.path / "SOUL.md").read_text() == EVE
    ava.agrees()


@pytest.mark.parametrize("files", [HERMES_FILES, {"SOUL.md": AVA, "MEMORY.md": "- a\n"}])
def test_every_action_of_the_tool_waits(home_dir: Path, files: dict[str, str]) -> None:
    git = begun(home_dir, files)
    put(home_dir, {"IDENTITY.md": "- Name: Eve\n"})
    before = state(git)
    tool = soulgit.memory_tool(home_dir)
    for words in (
        {"action": "add", "text": "x"},
        {"action": "replace", "text": "one", "with": "y"},
        {"action": "remove", "text": "one", "target": "user"},
    ):
        assert tool.execute(words).is_error
    with pytest.raises(PersonaPending):
        memory.add(home_dir, "x")
    assert state(git) == before


def test_commands_tell_of_the_pending_edit(shell: Shell, edited: Git) -> None:
    home = str(edited.path)
    told = shell.refused("memory", "add", home, "x", code=3)
    assert "settle" in told
    assert "--continue" in told
    status = shell("status", home)
    assert status.code == 0
    assert "pending" in status.text
    assert json.loads(shell("status", home, "--json").text)["pending"] is True
    composed = shell("compose", home)
    assert "You are Eve." in composed.text
    assert "settle" in composed.err
    then = shell("compose", home, "--at", "HEAD")
    assert (then.code, "You are Ava." in then.text, "preview" in then.err) == (0, True, False)


@pytest.mark.parametrize("arrives", [in_the_working_files, by_commit])
@pytest.mark.parametrize("memories", [{}, {"MEMORY.md": "# Mine\n\n"}])
def test_without_entries_an_edit_settles_itself(
    home_dir: Path, arrives: Callable[[Git], None], memories: dict[str, str]
) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, **memories})
    arrives(git)
    assert not homes.status(opened(home_dir)).pending
    assert not add(home_dir, "first").is_error
    assert trailer(git, "Action", "HEAD~1") == "edit"
    assert trailer(git, "Persona", "HEAD~1") == soulgit.compose_soul(home_dir).persona
    assert git("rev-parse", "persona/2") == git("rev-parse", "HEAD~1")
    assert trailer(git, "Number", "persona/2") == "2"
    git.agrees()


def test_a_home_of_seared_memories_alone_has_something_to_decide(home_dir: Path) -> None:
    begun(home_dir, {"SOUL.md": AVA, "USER.md": "- likes tea <!-- seared -->\n"})
    put(home_dir, {"SOUL.md": EVE})
    assert add(home_dir).is_error


def test_capturing_memories_beside_a_pending_edit_does_not_settle_it(edited: Git) -> None:
    put(edited.path, {"MEMORY.md": MEMORY + "* by hand\n"})
    capturing.capture(opened(edited.path), Hand(PAT))
    assert edited("show", "HEAD:MEMORY.md").endswith("* by hand")
    assert edited("show", "HEAD:SOUL.md") == AVA.strip()
    assert add(edited.path).is_error


def test_capturing_memories_above_a_plain_commit_does_not_settle_it(ava: Git) -> None:
    by_commit(ava)
    put(ava.path, {"MEMORY.md": MEMORY + "* by hand\n"})
    capturing.capture(opened(ava.path), Hand(PAT))
    assert settling.is_pending(opened(ava.path))
    assert add(ava.path).is_error
    settling.decide(opened(ava.path), "continue", PAT)
    assert "* by hand" in ava("show", "HEAD:MEMORY.md")


@pytest.mark.parametrize("decision", ["continue", "discard"])
def test_a_committed_edit_that_was_put_back_on_disk_can_be_decided(
    ava: Git, decision: Decision
) -> None:
    by_commit(ava)
    put(ava.path, {"SOUL.md": AVA})
    assert settling.is_pending(opened(ava.path))
    settling.decide(opened(ava.path), decision, PAT)
    assert not settling.is_pending(opened(ava.path))
    assert not add(ava.path).is_error


# `settle`


def test_settle_shows_the_edit_and_the_memories_and_asks_nobody(shell: Shell, edited: Git) -> None:
    before = state(edited)
    done = shell("settle", str(edited.path))
    assert done.code == 3
    assert "-You are Ava." in done.text.replace("- You", "-You")
    assert "+You are Eve." in done.text.replace("+ You", "+You")
    assert "6 memories" in done.err
    assert all(decision in done.err for decision in DECISIONS)
    assert state(edited) == before


def on_a_terminal(git: Git, answers: str, *words: str) -> tuple[int, str, str]:
    """Run settle on a pseudo-terminal; return its code, its output and what the terminal shows."""
    master, slave = pty.openpty()
    try:
        os.write(master, answers.encode())
        with subprocess.Popen(
            [sys.executable, "-m", "soulgit", "settle", str(git.path), *words],
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
            start_new_session=True,
        ) as process:
            out, _ = process.communicate(timeout=60)
        shown = os.read(master, 65536).decode()
    finally:
        os.close(master)
        os.close(slave)
    assert "Traceback" not in shown
    return process.returncode, out.decode(), shown


def test_the_question_takes_a_decision(edited: Git) -> None:
    code, out, shown = on_a_terminal(edited, "continue\n")
    assert code == 0, shown
    assert "You are Eve." in out
    assert "6 memories" in shown
    assert "continue" in shown
    assert trailer(edited, "Action") == "continue"
    assert edited("rev-parse", "HEAD^2") == edited("rev-parse", "persona/2")
    edited.agrees()


def test_the_question_can_be_left_open(edited: Git) -> None:
    before = state(edited)
    for answers in ("nothing\n", "\n"):
        code, _, shown = on_a_terminal(edited, answers)
        assert code == 0, shown
        assert state(edited) == before


def test_the_question_asks_for_the_name_of_a_fork(edited: Git) -> None:
    code, _, shown = on_a_terminal(edited, "fork\neve\n")
    assert code == 0, shown
    assert edited("branch", "--show-current") == "eve"
    assert trailer(edited, "Archived") == "main"


def test_a_person_who_asks_again_is_asked_again(edited: Git) -> None:
    code, _, shown = on_a_terminal(edited, "perhaps\ndiscard\n")
    assert code == 0, shown
    assert (edited.path / "SOUL.md").read_text() == AVA


def test_settle_by_continue(shell: Shell, edited: Git) -> None:
    before = edited("rev-parse", "HEAD")
    done = shell("settle", str(edited.path), "--continue", "--reason", "she\ngrew: up")
    assert done.code == 0
    assert done.text == edited("rev-parse", "HEAD") + "\n"
    assert edited("rev-parse", "HEAD^1") == before
    assert edited("rev-parse", "HEAD^2") == edited("rev-parse", "persona/2")
    for revision in ("HEAD", "persona/2"):
        assert trailer(edited, "Action", revision) == "continue"
        assert trailer(edited, "Reason", revision) == "she grew: up"
        assert trailer(edited, "Persona", revision) == soulgit.compose_soul(edited.path).persona
    assert edited("diff", "--name-only", "HEAD~1", "HEAD") == "SOUL.md"
    assert "restart" in done.err
    edited.agrees()


@EACH_WAY
def test_settle_by_discard(shell: Shell, ava: Git, arrives: Callable[[Git], None]) -> None:
    arrives(ava)
    put(ava.path, {"USER.md": "- by hand\n"})
    done = shell("settle", str(ava.path), "--discard", "--reason", "no")
    assert done.code == 0, done
    assert (ava.path / "SOUL.md").read_text() == AVA
    assert ava("show", "HEAD:SOUL.md") == AVA.strip()
    assert ava("show", "HEAD:USER.md") == "- by hand"
    kept = [name for name in refs(ava) if name.startswith("refs/soulgit/")]
    assert [ava("show", f"{name}:SOUL.md") for name in kept] == [EVE.strip()]
    assert not settling.is_pending(opened(ava.path))
    assert not add(ava.path).is_error
    ava.agrees()


def test_discarding_twice_keeps_both_edits(shell: Shell, ava: Git) -> None:
    for soul in (EVE, LIV):
        put(ava.path, {"SOUL.md": soul})
        done = shell("settle", str(ava.path), "--discard")
        assert done.code == 0, done
        assert (ava.path / "SOUL.md").read_text() == AVA
    kept = [name for name in refs(ava) if name.startswith("refs/soulgit/")]
    assert {ava("show", f"{name}:SOUL.md") for name in kept} == {EVE.strip(), LIV.strip()}


def test_discarding_a_new_identity_takes_the_file_away(ava: Git) -> None:
    put(ava.path, {"IDENTITY.md": "- Name: Eve\n"})
    settling.decide(opened(ava.path), "discard", PAT)
    assert not (ava.path / "IDENTITY.md").exists()
    ava.agrees()


@pytest.mark.parametrize(
    "words", [["--continue"], ["--discard"], ["--fork", "eve"], ["--update"]], ids=lambda w: w[0]
)
@pytest.mark.parametrize("arrives", [in_the_working_files, by_commit])
def test_a_dry_run_prints_the_plan_and_does_nothing(
    shell: Shell, ava: Git, arrives: Callable[[Git], None], words: list[str]
) -> None:
    arrives(ava)
    put(ava.path, {"MEMORY.md": MEMORY + "* by hand\n"})
    before = state(ava)
    done = shell("settle", str(ava.path), *words, "--dry-run")
    assert done.code == 0, done
    wanted = {
        "--continue": ["refs/heads/persona/2", "refs/heads/main"],
        "--discard": ["refs/soulgit/discarded/"],
        "--fork": ["refs/heads/persona/2", "refs/heads/eve"],
        "--update": ["refs/heads/persona/2"],
    }[words[0]]
    assert all(ref in done.text for ref in wanted)
    assert state(ava) == before
    assert settling.is_pending(opened(ava.path))


@pytest.mark.parametrize("words", [["--land"], ["--abort"], ["--fork", "a..b"], []])
def test_a_dry_run_of_nothing_is_no_bug(shell: Shell, edited: Git, words: list[str]) -> None:
    before = state(edited)
    assert shell("settle", str(edited.path), *words, "--dry-run").code in (0, 1, 2)
    assert state(edited) == before


@pytest.mark.parametrize(
    "words",
    [
        ["--continue"],
        ["--discard"],
        ["--fork", "eve"],
        ["--update", "--reader", "true"],
        ["--land"],
        ["--abort"],
        ["--continue", "--dry-run"],
        [],
    ],
    ids=" ".join,
)
def test_a_decision_with_nothing_pending_says_so(shell: Shell, ava: Git, words: list[str]) -> None:
    before = state(ava)
    told = shell.refused("settle", str(ava.path), *words)
    assert "nothing to" in told
    assert state(ava) == before


def test_two_decisions_are_none(shell: Shell, edited: Git) -> None:
    before = state(edited)
    for words in (["--continue", "--discard"], ["--fork", "x", "--update"], ["--land", "--abort"]):
        shell.refused("settle", str(edited.path), *words, code=2)
    assert state(edited) == before


def test_nobody_settles_a_frozen_home(shell: Shell, edited: Git) -> None:
    assert shell("freeze", str(edited.path)).code == 0
    before = state(edited)
    for words in (["--continue"], ["--discard"], ["--fork", "eve"]):
        shell.refused("settle", str(edited.path), *words, code=3)
    assert state(edited) == before


# fork, as a decision

HEAD = '+++\nid = "old"\nname = "Ava"\ndoctor_token = "sha256:{}"\n+++\n'.format("0" * 64)


def frontmatter(git: Git, revision: str) -> dict[str, object]:
    return tomllib.loads(git("show", f"{revision}:SOUL.md").split("+++")[1])


@pytest.mark.parametrize("files", [FILES, HERMES_FILES], ids=["plain", "hermes"])
def test_settle_by_fork(shell: Shell, home_dir: Path, files: dict[str, str]) -> None:
    git = begun(home_dir, {**files, "SOUL.md": HEAD + AVA})
    old = git("rev-parse", "HEAD")
    put(home_dir, {"SOUL.md": HEAD + EVE})
    done = shell("settle", str(home_dir), "--fork", "eve", "--reason", "why not")
    assert done.code == 0, done
    assert git("branch", "--show-current") == "eve"
    assert git("rev-list", "--count", "eve") == "1"
    assert git("rev-parse", "eve") == git("rev-parse", "persona/2")
    assert git("rev-parse", "main") == old
    assert trailer(git, "Forked-From") == old
    assert trailer(git, "Archived") == "main"
    assert trailer(git, "Action") == "fork"
    assert trailer(git, "Number") == "2"
    assert trailer(git, "Reason") == "why not"
    left = {"SOUL.md", "TOOLS.md"} if "TOOLS.md" in files else {"SOUL.md"}
    assert set(git("ls-tree", "-r", "--name-only", "HEAD").split()) == left
    assert not any(path.exists() for path in map(home_dir.joinpath, files) if path.name not in left)
    told, had = frontmatter(git, "eve"), frontmatter(git, "main")
    assert told["name"] == "eve"
    assert told["id"] not in (had["id"], "", None)
    token = told["doctor_token"]
    assert isinstance(token, str)
    assert token.startswith("sha256:")
    assert token != had["doctor_token"]
    (shown,) = (line for line in done.err.splitlines() if "token" in line)
    assert soulgit.is_doctor_token(home_dir, shown.rsplit(" ", 1)[1])
    assert shown.rsplit(" ", 1)[1] not in git("log", "-p", "--all")
    git.agrees()
    assert not add(home_dir, "new life").is_error


def test_a_fork_by_another_identity_has_an_id_of_its_own(shell: Shell, home_dir: Path) -> None:
    git = begun(home_dir, {**FILES, "SOUL.md": HEAD + AVA})
    put(home_dir, {"IDENTITY.md": "- Creature: a fox\n"})
    assert shell("settle", str(home_dir), "--fork", "eve").code == 0
    told, had = frontmatter(git, "eve"), frontmatter(git, "main")
    assert told["name"] == "eve"
    assert told["id"] != had["id"]
    assert told["doctor_token"] != had["doctor_token"]


def test_a_fork_without_frontmatter_gets_none(shell: Shell, edited: Git) -> None:
    done = shell("settle", str(edited.path), "--fork", "eve")
    assert (done.code, "token" in done.err) == (0, False)
    assert (edited.path / "SOUL.md").read_text() == EVE


@pytest.mark.parametrize("name", ["a..b", "main", "persona/9", "Main", "abcd", "main/x"])
def test_a_forks_name_is_checked_before_anything_is_written(
    shell: Shell, edited: Git, name: str
) -> None:
    put(edited.path, {"MEMORY.md": MEMORY + "* by hand\n"})
    before = state(edited)
    shell.refused("settle", str(edited.path), "--fork", name, code=2)
    assert state(edited) == before


def test_an_archived_branch_takes_no_more_writes(shell: Shell, edited: Git) -> None:
    assert shell("settle", str(edited.path), "--fork", "eve").code == 0
    edited("switch", "-q", "main")
    home, before = str(edited.path), state(edited)
    put(edited.path.parent, {"new.md": LIV, "tools.md": "a saw\n"})
    assert add(edited.path).is_error
    for words in (
        ["memory", "add", home, "x"],
        ["sear", home, "one"],
        ["traits", home, "drift=0.1"],
        ["edit", home, "--file", "TOOLS.md", "--from", "tools.md"],
        ["edit", home, "--from", "new.md"],
        ["edit", home, "--from", "new.md", "--continue"],
        ["edit", home, "--from", "new.md", "--fork", "liv"],
        ["capture", home],
    ):
        told = shell.refused(*words)
        assert "archived" in told, words
        assert state(edited) == before, words
    put(edited.path, {"SOUL.md": LIV})
    before = state(edited)
    for decision in (["--continue"], ["--discard"], ["--update", "--reader", "true"]):
        assert "archived" in shell.refused("settle", home, *decision)
        assert state(edited) == before


# edit, with a decision


def test_edit_and_continue_in_one_step(shell: Shell, ava: Git) -> None:
    before = ava("rev-parse", "HEAD")
    done = shell("edit", str(ava.path), "--from", "-", "--continue", stdin=EVE.encode())
    assert done.code == 0, done
    assert ava("rev-parse", "HEAD^1", "HEAD^2").split() == [before, ava("rev-parse", "persona/2")]
    assert (ava.path / "SOUL.md").read_text() == EVE
    ava.agrees()


def test_edit_and_update_in_one_step(shell: Shell, ava: Git) -> None:
    done = shell(
        "edit", str(ava.path), "--from", "-", "--update", "--reader", SHOUT, stdin=EVE.encode()
    )
    assert done.code == 0, done
    assert (ava.path / "SOUL.md").read_text() == EVE
    assert (ava.path / "USER.md").read_text() == "- FOUR\n- FIVE\n"
    ava.agrees()


def test_edit_and_fork_in_one_step(shell: Shell, ava: Git) -> None:
    done = shell("edit", str(ava.path), "--from", "-", "--fork", "eve", stdin=EVE.encode())
    assert done.code == 0, done
    assert ava("branch", "--show-current") == "eve"
    assert sorted(ava("ls-files").split()) == ["SOUL.md", "TOOLS.md"]
    ava.agrees()


def test_edit_without_a_decision_waits(shell: Shell, ava: Git) -> None:
    before = refs(ava)
    done = shell("edit", str(ava.path), "--from", "-", stdin=EVE.encode())
    assert (done.code, "settle" in done.err) == (0, True)
    assert refs(ava) == before
    assert add(ava.path).is_error


def test_edit_that_edits_nothing_decides_nothing(shell: Shell, ava: Git) -> None:
    before = state(ava)
    told = shell.refused("edit", str(ava.path), "--from", "-", "--continue", stdin=AVA.encode())
    assert "nothing" in told
    assert state(ava) == before


def test_edit_of_another_file_with_a_decision_loses_no_word(shell: Shell, edited: Git) -> None:
    words = ["edit", str(edited.path), "--file", "TOOLS.md", "--from", "-", "--continue"]
    done = shell(*words, stdin=b"a saw\n")
    tools = (edited.path / "TOOLS.md").read_text()
    assert (done.code == 0) == (tools == "a saw\n")


def test_an_edit_read_for_review_can_be_landed(shell: Shell, ava: Git) -> None:
    words = ["edit", str(ava.path), "--from", "-", "--update", "--review", "--reader", SHOUT]
    assert shell(*words, stdin=EVE.encode()).code == 0
    done = shell("settle", str(ava.path), "--land")
    assert done.code == 0, done
    assert (ava.path / "SOUL.md").read_text() == EVE
    assert (ava.path / "USER.md").read_text() == "- FOUR\n- FIVE\n"


def test_a_faulty_edit_is_neither_saved_nor_decided(shell: Shell, ava: Git) -> None:
    before = state(ava)
    broken = b'+++\nname = "x\n+++\nYou are Eve.\n'
    shell.refused("edit", str(ava.path), "--from", "-", "--continue", stdin=broken)
    assert state(ava) == before


# update

SHOUT = shlex.join(
    [
        sys.executable,
        "-c",
        "import json, sys; asked = json.load(sys.stdin)\n"
        "print(json.dumps({'entries': [{'id': e['id'], 'text': e['text'].upper()}"
        " for e in asked['entries']]}))",
    ]
)
SHOUTED = {
    "MEMORY.md": "# Mine\n\n- ONE\n- TWO\n\nSOME PROSE.\n\n## Later\n\n* THREE\n",
    "USER.md": "- FOUR\n- FIVE\n",
}


def memories(git: Git) -> dict[str, str]:
    return {name: (git.path / name).read_bytes().decode() for name in SHOUTED}


def test_an_update_reads_all_in_batches_and_lands_once(edited: Git) -> None:
    before, reader = edited("rev-parse", "HEAD"), Reader()
    told: list[tuple[int, int]] = []
    done = updating.update(
        opened(edited.path),
        reader,
        PAT,
        batch_size=4,
        model="gpt-x",
        reason="grown",
        progress=lambda count, total: told.append((count, total)),
    )
    assert reader.asked == [tuple(TEXTS[:4]), tuple(TEXTS[4:])]
    assert all("You are Eve." in text for text in reader.personas)
    assert not any("Ava" in text or "one" in text for text in reader.personas)
    assert told == [(0, 6), (4, 6), (6, 6)]
    assert memories(edited) == SHOUTED
    assert (done.number, done.is_landed, done.kept_twice) == (2, True, ())
    assert edited("rev-parse", "HEAD", "HEAD^1", "HEAD^2").split() == [
        done.revision, before, edited("rev-parse", "persona/2"),
    ]  # fmt: skip
    assert edited("rev-parse", "persona/2~3") == before
    assert edited("diff", "--name-only", before, "persona/2~2") == "SOUL.md"
    assert [trailer(edited, "Action", f"persona/2~{n}") for n in range(3)] == [
        "reread", "reread", "update",
    ]  # fmt: skip
    assert [trailer(edited, "Model", f"persona/2~{n}") for n in range(3)] == ["gpt-x", "gpt-x", ""]
    assert trailer(edited, "Number", "persona/2~2") == "2"
    assert trailer(edited, "Action") == "update"
    assert trailer(edited, "Reason") == "grown"
    digest = soulgit.compose_soul(edited.path).persona
    for revision in ("HEAD", "persona/2", "persona/2~1", "persona/2~2"):
        assert trailer(edited, "Persona", revision) == digest
    edited.agrees()


def test_seared_memories_are_context_and_stay(home_dir: Path) -> None:
    source = "- one\n- likes tea <!-- seared -->\n- two\n"
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": source, "USER.md": USER})
    put(home_dir, {"SOUL.md": EVE})
    reader = Reader()
    updating.update(opened(home_dir), reader, PAT, batch_size=3)
    assert reader.asked == [("one", "two", "four"), ("five",)]
    assert reader.seared == [("likes tea",), ("likes tea",)]
    text = (home_dir / "MEMORY.md").read_text()
    assert text == "- ONE\n- likes tea <!-- seared -->\n- TWO\n"
    git.agrees()


def test_seared_memories_alone_need_no_reader(home_dir: Path) -> None:
    source = "- likes tea <!-- seared -->\n"
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": source})
    put(home_dir, {"SOUL.md": EVE})
    reader = Reader()
    updating.update(opened(home_dir), reader, PAT)
    assert reader.asked == []
    assert (home_dir / "MEMORY.md").read_text() == source
    assert trailer(git, "Action") == "update"


def test_hermes_memories_are_read_where_they_lie(home_dir: Path) -> None:
    git = begun(home_dir, HERMES_FILES)
    put(home_dir, {"SOUL.md": EVE})
    reader = Reader()
    updating.update(opened(home_dir), reader, PAT, batch_size=2)
    assert reader.asked == [("one", "two"), ("three", "four")]
    assert (home_dir / "memories/MEMORY.md").read_text() == "ONE\n§\nTWO\n§\nTHREE"
    assert (home_dir / "memories/USER.md").read_text() == "FOUR"
    assert not (home_dir / "MEMORY.md").exists()
    git.agrees()


def test_crlf_and_strange_bytes_around_the_entries_stay(home_dir: Path) -> None:
    source = b"\xef\xbb\xbf# H \xff\r\n\r\n-   one  \r\n\r\n\r\n1. two\r\n---\r\nlast"
    git = git_home(home_dir, {"SOUL.md": AVA, "MEMORY.md": source})
    add(home_dir, "more")
    put(home_dir, {"SOUL.md": EVE})
    before = (home_dir / "MEMORY.md").read_bytes()
    updating.update(opened(home_dir), Reader(), PAT)
    wanted = before.replace(b"one", b"ONE").replace(b"two", b"TWO")
    wanted = wanted.replace(b"last", b"LAST").replace(b"more", b"MORE")
    assert (home_dir / "MEMORY.md").read_bytes() == wanted
    git.agrees()


FAULTS = [KeyboardInterrupt(), RuntimeError("crash"), ReaderFailed("it ended with 3")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_update_that_was_cut_off_goes_on_at_the_first_unread_batch(
    edited: Git, fault: BaseException
) -> None:
    before = edited("rev-parse", "HEAD")
    first = failing_at(2, fault)
    with pytest.raises(type(fault)):
        updating.update(opened(edited.path), first, PAT, batch_size=2)
    assert edited("rev-parse", "main") == before
    assert memories(edited) == {"MEMORY.md": MEMORY, "USER.md": USER}
    assert add(edited.path).is_error
    assert "- ONE\n- TWO\n" in edited("show", "persona/2:MEMORY.md")
    second = Reader()
    done = updating.update(opened(edited.path), second, PAT, batch_size=2)
    assert first.asked[:1] + second.asked == [
        ("one", "two"), ("Some prose.", "three"), ("four", "five"),
    ]  # fmt: skip
    assert done.number == 2
    assert memories(edited) == SHOUTED
    edited.agrees()


def test_another_batch_size_goes_on_just_the_same(edited: Git) -> None:
    with pytest.raises(RuntimeError):
        updating.update(opened(edited.path), failing_at(2, RuntimeError()), PAT, batch_size=1)
    reader = Reader()
    updating.update(opened(edited.path), reader, PAT, batch_size=20)
    assert reader.asked == [tuple(TEXTS[1:])]
    assert memories(edited) == SHOUTED


WRONG: dict[str, Callable[[Batch], Any]] = {
    "loses": lambda batch: list(batch)[:-1],
    "adds": lambda batch: [*batch, "more"],
    "empties": lambda batch: ["", *batch[1:]],
    "blanks": lambda batch: [" \n", *batch[1:]],
    "sears": lambda batch: ["x <!-- seared -->", *batch[1:]],
    "numbers": lambda batch: [1] * len(batch),
    "text": lambda batch: "x" * len(batch),
    "nothing": lambda batch: None,
    "NUL": lambda batch: [text + "\0" for text in batch],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_asked_again_once_then_reported(edited: Git, wrong: str) -> None:
    before = state(edited)
    reader = Reader(lambda call, batch: shouted(batch) if call == 1 else WRONG[wrong](batch))
    with pytest.raises(AnswerRefused) as caught:
        updating.update(opened(edited.path), reader, PAT, batch_size=3)
    assert caught.value.exit_code == 1
    assert reader.asked == [tuple(TEXTS[:3]), tuple(TEXTS[3:]), tuple(TEXTS[3:])]
    assert state(edited)[0]["refs/heads/main"] == before[0]["refs/heads/main"]
    assert state(edited)[1:] == before[1:]
    again = Reader()
    updating.update(opened(edited.path), again, PAT, batch_size=3)
    assert again.asked == [tuple(TEXTS[3:])]
    assert memories(edited) == SHOUTED


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_and_then_a_right_one_lands(edited: Git, wrong: str) -> None:
    reader = Reader(lambda call, batch: WRONG[wrong](batch) if call == 1 else shouted(batch))
    updating.update(opened(edited.path), reader, PAT)
    assert reader.asked == [tuple(TEXTS)] * 2
    assert memories(edited) == SHOUTED


def cut_off(git: Git) -> None:
    """An update whose first batch of two was read, and no more."""
    with pytest.raises(RuntimeError):
        updating.update(opened(git.path), failing_at(2, RuntimeError()), PAT, batch_size=2)


def test_what_is_written_meanwhile_is_merged_by_entry(edited: Git) -> None:
    cut_off(edited)
    put(edited.path, {"TOOLS.md": "a saw\n", "USER.md": USER + "- six\n"})
    edited("commit", "-qm", "plainly", "--", "TOOLS.md", "USER.md")
    put(edited.path, {"MEMORY.md": MEMORY.replace("- two\n", "- two\n- and a half\n")})
    done = updating.update(opened(edited.path), Reader(), PAT)
    assert done.kept_twice == ()
    assert memories(edited) == {
        "MEMORY.md": SHOUTED["MEMORY.md"].replace("- TWO\n", "- TWO\n- and a half\n"),
        "USER.md": SHOUTED["USER.md"] + "- six\n",
    }
    assert (edited.path / "TOOLS.md").read_text() == "a saw\n"
    edited.agrees()


def test_an_entry_edited_on_both_sides_is_kept_twice_and_told(shell: Shell, edited: Git) -> None:
    cut_off(edited)
    put(edited.path, {"MEMORY.md": MEMORY.replace("- two\n", "- two, no: three\n")})
    done = shell("settle", str(edited.path), "--update", "--reader", SHOUT)
    assert done.code == 0, done
    text = (edited.path / "MEMORY.md").read_text()
    assert "- ONE\n- two, no: three\n- TWO\n" in text
    assert "TWO" in done.err
    assert "<<<<" not in text
    edited.agrees()


def test_an_entry_deleted_meanwhile_and_rewritten_is_kept(edited: Git) -> None:
    cut_off(edited)
    put(edited.path, {"MEMORY.md": MEMORY.replace("- two\n", "")})
    done = updating.update(opened(edited.path), Reader(), PAT)
    assert memories(edited) == SHOUTED
    assert len(done.kept_twice) == 1
    assert "TWO" in done.kept_twice[0]


def test_memories_deleted_whole_meanwhile_are_kept_where_they_were_rewritten(edited: Git) -> None:
    cut_off(edited)
    (edited.path / "USER.md").unlink()
    done = updating.update(opened(edited.path), Reader(), PAT)
    assert (edited.path / "USER.md").read_text() == SHOUTED["USER.md"]
    assert len(done.kept_twice) == 2
    edited.agrees()


def test_a_persona_edited_again_starts_a_new_number(edited: Git) -> None:
    cut_off(edited)
    stale = edited("rev-parse", "persona/2")
    put(edited.path, {"SOUL.md": LIV})
    reader = Reader()
    done = updating.update(opened(edited.path), reader, PAT)
    assert reader.asked == [tuple(TEXTS)]
    assert done.number == 3
    assert edited("show", "persona/3:SOUL.md") == LIV.strip()
    assert stale in refs(edited).values()
    assert memories(edited) == SHOUTED


def test_review_stops_before_landing(shell: Shell, edited: Git) -> None:
    before = edited("rev-parse", "main")
    done = shell("settle", str(edited.path), "--update", "--review", "--reader", SHOUT)
    assert done.code == 0, done
    assert "TWO" in done.text
    assert edited("rev-parse", "main") == before
    assert memories(edited) == {"MEMORY.md": MEMORY, "USER.md": USER}
    assert add(edited.path).is_error
    put(edited.path, {"USER.md": USER + "- six\n"})
    landed = shell("settle", str(edited.path), "--land", "--reason", "good")
    assert landed.code == 0, landed
    assert memories(edited) == {**SHOUTED, "USER.md": SHOUTED["USER.md"] + "- six\n"}
    assert trailer(edited, "Reason") == "good"
    assert edited("rev-parse", "HEAD^2") == edited("rev-parse", "persona/2")
    edited.agrees()


def test_only_an_update_that_is_read_to_its_end_lands(shell: Shell, edited: Git) -> None:
    shell.refused("settle", str(edited.path), "--land")
    cut_off(edited)
    before = state(edited)
    shell.refused("settle", str(edited.path), "--land")
    assert state(edited) == before


def test_abort_ends_an_update_and_keeps_its_work(shell: Shell, edited: Git) -> None:
    before, read = edited("rev-parse", "main"), []
    for _ in range(2):
        cut_off(edited)
        read.append(edited("rev-parse", "persona/2"))
        assert shell("settle", str(edited.path), "--abort").code == 0
        assert "refs/heads/persona/2" not in refs(edited)
    assert edited("rev-parse", "main") == before
    assert settling.is_pending(opened(edited.path))
    shell.refused("settle", str(edited.path), "--abort")
    reachable = edited("rev-list", "--all", "--glob=refs/soulgit").split()
    assert all(commit in reachable for commit in read)
    settling.decide(opened(edited.path), "continue", PAT)
    assert memories(edited) == {"MEMORY.md": MEMORY, "USER.md": USER}


def test_aborted_work_of_another_reading_stays_reachable_too(edited: Git) -> None:
    read = []
    for soul in (EVE, LIV):
        put(edited.path, {"SOUL.md": soul})
        cut_off(edited)
        read += edited("rev-list", "--glob=refs/heads/persona", "^main").split()
        updating.abort(opened(edited.path))
    assert set(read) <= set(edited("rev-list", "--all", "--glob=refs/soulgit").split())


def test_continue_instead_leaves_the_memories(edited: Git) -> None:
    cut_off(edited)
    settling.decide(opened(edited.path), "continue", PAT)
    assert memories(edited) == {"MEMORY.md": MEMORY, "USER.md": USER}
    assert not add(edited.path).is_error
    edited.agrees()


def test_a_siblings_update_is_left_alone(edited: Git, tmp_path: Path) -> None:
    side = tmp_path / "side"
    forking.fork(opened(edited.path), "side", PAT, keep_memories=True, directory=str(side))
    cut_off(edited)
    read = edited("rev-parse", "persona/2")
    put(side, {"SOUL.md": LIV})
    with pytest.raises(NothingPending):
        updating.abort(opened(side))
    updating.update(opened(side), Reader(), PAT)
    assert edited("rev-parse", "persona/2") == read
    reader = Reader()
    updating.update(opened(edited.path), reader, PAT)
    assert reader.asked == [tuple(TEXTS[2:])]
    assert memories(edited) == SHOUTED


def test_a_sibling_that_becomes_the_same_is_read_for_itself(edited: Git, tmp_path: Path) -> None:
    side = tmp_path / "side"
    forking.fork(opened(edited.path), "side", PAT, keep_memories=True, directory=str(side))
    memory.add(opened(side), "of the side alone")
    cut_off(edited)
    put(side, {"SOUL.md": EVE})
    reader = Reader()
    updating.update(opened(side), reader, PAT)
    assert [text for batch in reader.asked for text in batch] == [
        *TEXTS[:4], "of the side alone", *TEXTS[4:],
    ]  # fmt: skip


def test_a_batch_has_at_least_one_entry(shell: Shell, edited: Git) -> None:
    before = state(edited)
    with pytest.raises(InvalidArgument):
        updating.update(opened(edited.path), Reader(), PAT, batch_size=0)
    words = ["settle", str(edited.path), "--update", "--reader", SHOUT, "--batch-size", "0"]
    assert shell(*words).code == 2
    assert state(edited) == before


def test_update_on_the_command_line(shell: Shell, edited: Git) -> None:
    words = ["settle", str(edited.path), "--update", "--reader", SHOUT, "--batch-size", "2"]
    done = shell(*words, "--model", "shouter", "--reason", "r")
    assert done.code == 0, done
    assert done.text == edited("rev-parse", "HEAD") + "\n"
    assert edited("rev-list", "--count", "persona/2", "^HEAD^1") == "4"
    assert trailer(edited, "Model", "persona/2") == "shouter"
    assert memories(edited) == SHOUTED
    edited.agrees()


@pytest.mark.parametrize(
    ("reader", "code"),
    [("false", 5), ("sh -c 'cat >&2; exit 3'", 5), ("/no/such/program", 5), ("true", 1),
     ("'unclosed", 2), ("", 2), (None, 2)],
)  # fmt: skip
def test_a_reader_that_fails_ends_the_run(
    shell: Shell, edited: Git, reader: str | None, code: int
) -> None:
    before = state(edited)
    shell.refused(
        "settle", str(edited.path), "--update", *([] if reader is None else ["--reader", reader]),
        code=code,
    )  # fmt: skip
    assert state(edited)[0]["refs/heads/main"] == before[0]["refs/heads/main"]
    assert state(edited)[1:] == before[1:]
    if code == 2:
        assert state(edited) == before


# `fork`, `branch`, `persona --history`


def test_a_sibling_without_memories(shell: Shell, home_dir: Path) -> None:
    git = begun(home_dir, {**FILES, "SOUL.md": HEAD + AVA})
    before = state(git)
    done = shell("fork", str(home_dir), "eve")
    assert done.code == 0, done
    place = Path(done.text.strip())
    assert place == home_dir.parent / "eve"
    other = Git(place)
    assert other("branch", "--show-current") == "eve"
    assert other("rev-list", "--count", "HEAD") == "1"
    assert sorted(other("ls-files").split()) == ["SOUL.md", "TOOLS.md"]
    assert sorted(path.name for path in place.iterdir()) == [".git", "SOUL.md", "TOOLS.md"]
    assert trailer(other, "Forked-From") == git("rev-parse", "main")
    assert trailer(other, "Archived") == ""
    assert trailer(other, "Action") == "fork"
    told = frontmatter(other, "HEAD")
    assert (told["name"], told["id"] == "old") == ("eve", False)
    (shown,) = (line for line in done.err.splitlines() if "token" in line)
    assert soulgit.is_doctor_token(place, shown.rsplit(" ", 1)[1])
    after = state(git)
    assert after[1:] == before[1:]
    assert after[0] == {**before[0], "refs/heads/eve": other("rev-parse", "HEAD")}
    other.agrees()
    git.agrees()
    assert not add(place, "hers").is_error
    assert not add(home_dir, "mine").is_error
    assert other("log", "-1", "--format=%an") == "eve"


def test_a_sibling_with_memories_descends(shell: Shell, ava: Git) -> None:
    add(ava.path, "later")
    done = shell("fork", str(ava.path), "eve", "--at", "HEAD~1", "--keep-memories", "--home", "e")
    assert done.code == 0, done
    other = Git(shell.directory / "e")
    assert other("rev-parse", "HEAD~1") == ava("rev-parse", "HEAD~1")
    assert (other.path / "MEMORY.md").read_text() == MEMORY
    other.agrees()
    assert not add(other.path).is_error


def test_a_sibling_without_a_home(shell: Shell, ava: Git) -> None:
    done = shell("fork", str(ava.path), "ava/two", "--no-home")
    assert (done.code, done.text) == (0, "ava/two\n")
    assert ava("rev-parse", "--verify", "-q", "refs/heads/ava/two")
    assert ava("worktree", "list").count("\n") == 0


def test_a_named_home_forks_under_the_root(shell: Shell) -> None:
    assert shell("init", "ava").code == 0
    assert shell("fork", "ava", "kids/eve").code == 0
    assert shell("memory", "add", "kids-eve", "x").code == 0
    names = [home["home"] for home in json.loads(shell("list", "--json").text)]
    assert names == ["ava", "kids-eve"]


def test_forking_neither_decides_nor_needs_a_decision(shell: Shell, edited: Git) -> None:
    before = state(edited)
    assert shell("fork", str(edited.path), "sib", "--no-home").code == 0
    assert state(edited)[2] == before[2]
    assert edited("show", "sib:SOUL.md") == AVA.strip()
    assert settling.is_pending(opened(edited.path))


def test_an_archived_companion_can_be_forked(shell: Shell, edited: Git) -> None:
    assert shell("settle", str(edited.path), "--fork", "eve").code == 0
    words = ["fork", str(edited.path), "ava2", "--at", "main", "--keep-memories"]
    assert shell(*words).code == 0
    assert not add(edited.path.parent / "ava2").is_error


def test_memories_do_not_come_along_from_an_unsettled_persona(shell: Shell, ava: Git) -> None:
    by_commit(ava)
    before = state(ava)
    done = shell("fork", str(ava.path), "eve", "--keep-memories", "--no-home")
    assert done.code in (1, 2, 3)
    assert state(ava) == before
    assert shell("fork", str(ava.path), "eve", "--no-home").code == 0
    assert ava("show", "eve:SOUL.md") == EVE.strip()


@pytest.mark.parametrize(
    "words",
    [
        ["a..b"],
        ["main"],
        ["persona/3"],
        ["eve", "--at", "nothing"],
        ["eve", "--home", "taken"],
        ["eve", "--home", "file/below"],
        ["eve", "--home", "new/file\0"],
        ["eve", "--home", "x", "--no-home"],
    ],
    ids=lambda words: ascii(" ".join(words)),
)
def test_a_failed_fork_leaves_nothing_behind(shell: Shell, ava: Git, words: list[str]) -> None:
    put(shell.directory, {"file": "", "taken/mine.txt": "mine"})
    before, there = state(ava), sorted(map(str, shell.directory.rglob("*")))
    if any("\0" in word for word in words):
        with pytest.raises((SoulgitError, ValueError)):
            forking.fork(opened(ava.path), "eve", PAT, directory=str(shell.directory / words[2]))
    else:
        assert shell("fork", str(ava.path), *words).code in (1, 2)
    assert state(ava) == before
    gone = [path for path in map(str, shell.directory.rglob("*")) if path not in there]
    assert [path for path in gone if "/.git/" not in path] == []
    assert ava("worktree", "list").count("\n") == 0
    ava.agrees()
    assert shell("fork", str(ava.path), "eve", "--home", "good").code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_fork_that_cannot_make_its_home_leaves_nothing(shell: Shell, ava: Git) -> None:
    shut = shell.directory / "shut"
    shut.mkdir(mode=0o500)
    before = state(ava)
    shell.refused("fork", str(ava.path), "eve", "--home", "shut/a/b")
    assert state(ava) == before
    assert list(shut.iterdir()) == []


def test_branch_lists_the_companions(shell: Shell, edited: Git) -> None:
    old = edited("rev-parse", "main")
    assert shell("fork", str(edited.path), "sib", "--keep-memories").code == 0
    assert shell("settle", str(edited.path), "--fork", "eve").code == 0
    rows = {row["branch"]: row for row in json.loads(shell("branch", "ava", "--json").text)}
    assert set(rows) == {"main", "sib", "eve"}
    assert rows["main"]["archived_by"] == "persona/2"
    assert rows["main"]["home"] is None
    assert rows["main"]["revision"] == old
    assert rows["main"]["persona"] == "persona/1"
    assert rows["main"]["entries"] == {"self": 4, "user": 2}
    assert rows["sib"]["archived_by"] is None
    assert rows["sib"]["home"] == str(edited.path.parent / "sib")
    assert rows["eve"]["home"] == str(edited.path)
    assert rows["eve"]["persona"] == "persona/2"
    assert rows["eve"]["entries"] == {"self": 0, "user": 0}
    lines = shell("branch", str(edited.path.parent / "sib")).text.splitlines()
    assert len(lines) == 3
    assert "archived" in next(line for line in lines if line.startswith("main"))
    assert sum("alive" in line for line in lines) == 2


def test_history_lists_who_the_companion_has_been(shell: Shell, ava: Git) -> None:
    add(ava.path, "six")
    put(ava.path, {"SOUL.md": EVE})
    assert shell("settle", str(ava.path), "--continue", "--reason", "grown").code == 0
    for text in ("seven", "eight"):
        add(ava.path, text)
    put(ava.path, {"SOUL.md": LIV})
    words = ["settle", str(ava.path), "--update", "--reader", SHOUT, "--batch-size", "3"]
    assert shell(*words).code == 0
    rows = json.loads(shell("persona", str(ava.path), "--history", "--json").text)
    assert [(row["number"], row["decision"], row["reason"], row["memories"]) for row in rows] == [
        (1, "init", None, 1), (2, "continue", "grown", 2), (3, "update", None, 0),
    ]  # fmt: skip
    assert [row["digest"] for row in rows] == [
        trailer(ava, "Persona", f"persona/{number}") for number in (1, 2, 3)
    ]
    lines = shell("persona", str(ava.path), "--history").text.splitlines()
    assert [line.split()[0] for line in lines] == ["persona/1", "persona/2", "persona/3"]
    assert "grown" in lines[1]


def test_a_discarded_edit_is_nobody_the_companion_has_been(edited: Git) -> None:
    cut_off(edited)
    settling.decide(opened(edited.path), "discard", PAT)
    assert [past.number for past in settling.history(opened(edited.path))] == [1]


def test_a_persona_that_came_back_counts_only_its_own_memories(ava: Git) -> None:
    add(ava.path, "as Ava")
    for soul in (EVE, AVA):
        put(ava.path, {"SOUL.md": soul})
        settling.decide(opened(ava.path), "continue", PAT)
    add(ava.path, "as Ava again")
    add(ava.path, "and again")
    had = settling.history(opened(ava.path))
    assert [(past.number, past.memories) for past in had] == [(1, 1), (2, 0), (3, 2)]


def test_a_tool_stays_bound_to_its_branch_across_a_fork(edited: Git) -> None:
    put(edited.path, {"SOUL.md": AVA})
    tool = soulgit.memory_tool(edited.path)
    put(edited.path, {"SOUL.md": EVE})
    settling.decide(opened(edited.path), "fork", PAT, name="eve")
    assert tool.execute({"action": "add", "text": "x"}).is_error
    assert edited("rev-list", "--count", "eve") == "1"
    with pytest.raises(BranchRefused):
        edited("switch", "-q", "main")
        memory.add(edited.path, "x")


def test_the_digest_that_is_settled_is_that_of_the_files(edited: Git) -> None:
    settling.decide(opened(edited.path), "continue", PAT)
    assert trailer(edited, "Persona") == persona.digest({"SOUL.md": EVE.encode()})
