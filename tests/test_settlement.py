"""Decisions as plans, from facts made by hand, and the same table on real repositories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from soulgit import Home, homes, settling, updating
from soulgit.core import settlement
from soulgit.core.actor import Identity
from soulgit.core.record import Record
from soulgit.core.settlement import Facts, Plan
from tests.support import Git, fixed_clock, git_home, put

PAT = Identity("Pat", "pat@example.org")
AVA, EVE = b"You are Ava.\n", b"You are Eve.\n"
MAIN, PERSONA = "refs/heads/main", "refs/heads/persona/4"
FACTS = Facts(
    branch="main",
    tip="tip",
    settled="settled",
    number=4,
    edited={"SOUL.md": EVE, "IDENTITY.md": None},
    restored={"SOUL.md": AVA, "IDENTITY.md": b"- Name: Ava\n"},
    is_at_tip=False,
    memory=("MEMORY.md", "USER.md"),
    told=Record(None, origin="cli", reason="why"),
)

PLANS: dict[str, Callable[[Facts], Plan]] = {
    "continue": settlement.continued,
    "begun": settlement.update_begun,
    "landed": lambda facts: settlement.update_landed(facts, "read", {"MEMORY.md": b"- ONE\n"}),
    "fork": lambda facts: settlement.forked(facts, "eve"),
    "discard": settlement.discarded,
}


# Plans


@pytest.mark.parametrize("is_at_tip", [False, True])
def test_continue_is_a_persona_and_a_merge_of_it(is_at_tip: bool) -> None:
    plan = settlement.continued(replace(FACTS, is_at_tip=is_at_tip))
    shown, merge = plan.commits
    assert (shown.parents, shown.base, shown.contents) == (("settled",), "settled", FACTS.edited)
    assert (merge.parents, merge.base, merge.contents) == (
        ("tip", shown.name), "tip", FACTS.edited,
    )  # fmt: skip
    assert plan.refs == {PERSONA: (None, shown.name), MAIN: ("tip", merge.name)}
    assert (plan.files, plan.head) == (FACTS.edited, None)
    assert (shown.record.action, merge.record.action) == ("continue", "continue")
    assert (shown.record.number, merge.record.number) == (4, None)


def test_update_begins_with_a_persona_and_moves_nothing_else() -> None:
    plan = settlement.update_begun(FACTS)
    (shown,) = plan.commits
    assert (shown.parents, shown.base, shown.contents) == (("settled",), "settled", FACTS.edited)
    assert plan.refs == {PERSONA: (None, shown.name)}
    assert (dict(plan.files), plan.head) == ({}, None)
    assert (shown.record.action, shown.record.number) == ("update", 4)


def test_update_lands_as_a_merge_of_what_was_read() -> None:
    plan = settlement.update_landed(FACTS, "read", {"MEMORY.md": b"- ONE\n"})
    (merge,) = plan.commits
    wanted = {**FACTS.edited, "MEMORY.md": b"- ONE\n"}
    assert (merge.parents, merge.base, merge.contents) == (("tip", "read"), "tip", wanted)
    assert plan.refs == {MAIN: ("tip", merge.name)}
    assert (plan.files, plan.head) == (wanted, None)
    assert (merge.record.action, merge.record.number) == ("update", None)


@pytest.mark.parametrize("memory", [(), ("MEMORY.md",), ("memories/MEMORY.md", "memories/USER.md")])
def test_fork_is_a_beginning_without_memory(memory: tuple[str, ...]) -> None:
    plan = settlement.forked(replace(FACTS, memory=memory), "eve")
    (first,) = plan.commits
    wanted = {**dict.fromkeys(memory), **FACTS.edited}
    assert (first.parents, first.base, first.contents) == ((), "tip", wanted)
    assert plan.refs == {
        "refs/heads/eve": (None, first.name), PERSONA: (None, first.name),
    }  # fmt: skip
    assert (plan.files, plan.head) == (wanted, "refs/heads/eve")
    told = first.record
    assert (told.action, told.number, told.forked_from, told.archived) == ("fork", 4, "tip", "main")


def test_discard_keeps_the_edit_and_moves_no_branch() -> None:
    plan = settlement.discarded(FACTS)
    (kept,) = plan.commits
    assert kept.contents == FACTS.edited
    ((ref, ids),) = plan.refs.items()
    assert ref.startswith("refs/soulgit/")
    assert ids == (None, kept.name)
    assert (plan.files, plan.head) == (FACTS.restored, None)


def test_discard_of_an_edit_at_the_tip_takes_it_back_above() -> None:
    plan = settlement.discarded(replace(FACTS, is_at_tip=True))
    restored = plan.commits[-1]
    assert (restored.parents, restored.base, restored.contents) == (
        ("tip",), "tip", FACTS.restored,
    )  # fmt: skip
    assert plan.refs[MAIN] == ("tip", restored.name)
    assert len([ref for ref in plan.refs if ref.startswith("refs/soulgit/")]) == 1
    assert restored.record.action == "restore"


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("is_at_tip", [False, True])
def test_every_plan_holds_together(name: str, is_at_tip: bool) -> None:
    plan = PLANS[name](replace(FACTS, is_at_tip=is_at_tip))
    known = {"tip", "settled", "read"}
    for commit in plan.commits:
        assert {*commit.parents, commit.base} <= known
        assert commit.name not in known
        known.add(commit.name)
        assert commit.record.reason == "why"
        assert commit.record.origin == "cli"
        assert commit.record.subject
        assert len(commit.record.subject) <= 72
    assert {new for _, new in plan.refs.values()} <= known
    assert all(old in (None, "tip") for old, _ in plan.refs.values())
    assert PLANS[name](replace(FACTS, is_at_tip=is_at_tip)) == plan


# The same, on repositories

Memories = Literal["memories", "seared", "mixed"]


@dataclass(frozen=True)
class Case:
    """A home whose persona was edited: where the edit is, its memories, and its layout."""

    is_committed: bool
    memories: Memories
    is_hermes: bool
    meanwhile: bool

    @property
    def path(self) -> str:
        return "memories/MEMORY.md" if self.is_hermes else "MEMORY.md"

    def file(self, *texts: str) -> str:
        if self.is_hermes:
            return "\n§\n".join(texts)
        return "".join(f"- {text}\n" for text in texts)

    @property
    def texts(self) -> list[str]:
        seared = "tea <!-- seared -->"
        return {"memories": ["one", "two"], "seared": [seared], "mixed": ["one", seared, "two"]}[
            self.memories
        ]

    def begin(self, directory: Path) -> Git:
        files: dict[str, str | bytes] = {
            "SOUL.md": AVA,
            self.path: self.file(*self.texts),
            "TOOLS.md": "x\n",
        }
        git = git_home(directory, files)
        homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
        put(directory, {"SOUL.md": EVE})
        if self.is_committed:
            git("commit", "-qam", "by hand")
        if self.meanwhile:
            put(directory, {self.path: self.file(*self.texts, "new")})
        return git

    def now(self, change: Callable[[str], str] = str) -> str:
        kept = [text if "<!--" in text else change(text) for text in self.texts]
        return self.file(*kept, *(["new"] if self.meanwhile else []))


CASES = [
    Case(is_committed, memories, is_hermes, meanwhile)
    for is_committed in (False, True)
    for memories in ("memories", "seared", "mixed")
    for is_hermes in (False, True)
    for meanwhile in (False, True)
]


def named(case: Case) -> str:
    where = "tip" if case.is_committed else "disk"
    layout = "hermes" if case.is_hermes else "plain"
    return f"{where}-{case.memories}-{layout}{'-meanwhile' if case.meanwhile else ''}"


EACH = pytest.mark.parametrize("case", CASES, ids=named)


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


def shows_the_edit(git: Git, revision: str, base: str) -> None:
    """Assert that a commit differs from its only parent by the persona alone."""
    assert git("rev-parse", f"{revision}^@") == base
    assert git("diff", "--name-only", base, revision) == "SOUL.md"
    assert git.bytes("show", f"{revision}:SOUL.md") == EVE


@EACH
def test_continue_on_a_repository(home_dir: Path, case: Case) -> None:
    git = case.begin(home_dir)
    before, first = git("rev-parse", "main"), git("rev-parse", "persona/1")
    done = settling.decide(opened(home_dir), "continue", PAT)
    assert git("rev-parse", "main") == done.revision
    if case.meanwhile:
        assert git("rev-parse", "main^1^1") == before
    else:
        assert git("rev-parse", "main^1") == before
    assert git("rev-parse", "main^2") == git("rev-parse", "persona/2")
    settled = git("rev-parse", "persona/2^")
    assert settled == (git("rev-parse", "main^1") if case.meanwhile and not case.is_committed
                       else first)  # fmt: skip
    shows_the_edit(git, "persona/2", settled)
    assert git.bytes("show", "main:SOUL.md") == EVE
    assert git.bytes("show", f"main:{case.path}").decode() == case.now()
    assert git("show", "main:TOOLS.md") == "x"
    assert git("symbolic-ref", "HEAD") == MAIN
    git.agrees()


@EACH
def test_fork_on_a_repository(home_dir: Path, case: Case) -> None:
    git = case.begin(home_dir)
    before = git("rev-parse", "main")
    done = settling.decide(opened(home_dir), "fork", PAT, name="eve")
    assert git("rev-parse", "eve", "persona/2").split() == [done.revision] * 2
    assert git("rev-parse", "eve^@") == ""
    assert git("rev-parse", "main^1" if case.meanwhile else "main") == before
    assert git("ls-tree", "-r", "--name-only", "eve").split() == ["SOUL.md", "TOOLS.md"]
    assert git.bytes("show", "eve:SOUL.md") == EVE
    assert git.bytes("show", f"main:{case.path}").decode() == case.now()
    assert git("symbolic-ref", "HEAD") == "refs/heads/eve"
    assert not (home_dir / case.path).exists()
    git.agrees()


@EACH
def test_discard_on_a_repository(home_dir: Path, case: Case) -> None:
    git = case.begin(home_dir)
    before = git("rev-parse", "main")
    settling.decide(opened(home_dir), "discard", PAT)
    above = case.is_committed + case.meanwhile
    assert git("rev-parse", f"main~{above}") == before
    assert git.bytes("show", "main:SOUL.md") == AVA
    assert (home_dir / "SOUL.md").read_bytes() == AVA
    assert git.bytes("show", f"main:{case.path}").decode() == case.now()
    kept = git("for-each-ref", "--format=%(refname)", "refs/soulgit").split()
    assert [git.bytes("show", f"{ref}:SOUL.md") for ref in kept] == [EVE]
    assert git("for-each-ref", "--format=%(refname)", "refs/heads").split() == [
        MAIN, "refs/heads/persona/1",
    ]  # fmt: skip
    git.agrees()


@EACH
def test_update_on_a_repository(home_dir: Path, case: Case) -> None:
    git = case.begin(home_dir)
    before = git("rev-parse", "main")
    asked: list[str] = []

    def reader(persona: str, batch: tuple[str, ...]) -> list[str]:
        asked.extend(batch)
        return [text.upper() for text in batch]

    done = updating.update(opened(home_dir), reader, PAT, batch_size=1)
    # What was captured above the settled commit is read too; what came after it is merged.
    is_read = case.meanwhile and not case.is_committed
    wanted = [text for text in case.texts if "<!--" not in text] + ["new"] * is_read
    assert asked == wanted
    assert git("rev-parse", "main", "main^2").split() == [
        done.revision, git("rev-parse", "persona/2"),
    ]  # fmt: skip
    assert git("rev-parse", "main^1^1" if case.meanwhile else "main^1") == before
    shows_the_edit(
        git, f"persona/2~{len(wanted)}", git("rev-parse", f"persona/2~{len(wanted) + 1}")
    )
    text = case.now(str.upper)
    if is_read:
        text = text.replace("new", "NEW")
    assert git.bytes("show", f"main:{case.path}").decode() == text
    assert git.bytes("show", "main:SOUL.md") == EVE
    git.agrees()


@pytest.mark.parametrize("decision", ["continue", "fork", "discard", "update"])
@pytest.mark.parametrize("case", CASES[::5], ids=named)
def test_a_preview_is_what_is_done(
    home_dir: Path, case: Case, decision: settlement.Decision
) -> None:
    git = replace(case, meanwhile=False).begin(home_dir)
    before = git("for-each-ref")
    plan = settling.preview(opened(home_dir), decision, name="eve")
    assert git("for-each-ref") == before
    if decision == "update":
        return
    settling.decide(opened(home_dir), decision, PAT, name="eve")
    for ref, (_, new) in plan.refs.items():
        made = next(commit for commit in plan.commits if commit.name == new)
        assert len(git("rev-parse", f"{ref}^@").split()) == len(made.parents)
        for path, data in made.contents.items():
            there = git("ls-tree", "--name-only", ref, path)
            assert there == ("" if data is None else path)
            assert data is None or git.bytes("show", f"{ref}:{path}") == data
    assert git("symbolic-ref", "HEAD") == (plan.head or MAIN)
