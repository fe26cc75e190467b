"""The branches persona/N, and the digest that a history is settled under."""

from __future__ import annotations

from pathlib import Path

import pytest

import soulgit
from soulgit import capturing, personas, settling
from soulgit.adoption import Hand
from soulgit.core.actor import Identity
from soulgit.git import Repository
from tests.support import Git, git_home, put

PAT = Identity("Pat", "pat@example.org")
SOUL = {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- one\n"}
NO_ENTRIES = {"SOUL.md": "You are Ava.\n", "MEMORY.md": "# Memory\n", "TOOLS.md": "a hammer\n"}


def add(path: Path, text: str) -> soulgit.Result:
    return soulgit.memory_tool(path).execute({"action": "add", "text": text})


def soulgit_captures(path: Path) -> None:
    capturing.capture(soulgit.Home.open(path), Hand(PAT))


def settle(path: Path) -> None:
    settling.decide(soulgit.Home.open(path), "continue", PAT)


def trailer(git: Git, name: str, revision: str = "HEAD") -> str:
    return git("log", "-1", f"--format=%(trailers:key=Soul-{name},valueonly)", revision).strip()


def test_the_first_commit_of_soulgits_is_persona_1(home_dir: Path) -> None:
    git = git_home(home_dir, SOUL)
    add(home_dir, "two")
    add(home_dir, "three")
    assert git("rev-parse", "persona/1") == git("rev-parse", "HEAD~1")
    assert trailer(git, "Number", "HEAD~1") == "1"
    assert trailer(git, "Number") == ""


def test_an_edit_by_hand_where_no_entry_is_is_the_next_persona(home_dir: Path) -> None:
    git = git_home(home_dir, NO_ENTRIES)
    put(home_dir, {"TOOLS.md": "a saw\n"})
    soulgit_captures(home_dir)
    put(home_dir, {"SOUL.md": "You are Eve.\n", "TOOLS.md": "a drill\n"})
    add(home_dir, "first")
    assert git.subjects()[:3] == [
        'memory(self): add "first"',
        "persona: edit SOUL.md by hand",
        "capture: changed TOOLS.md",
    ]
    assert git("rev-parse", "persona/2") == git("rev-parse", "HEAD~1")
    assert trailer(git, "Action", "HEAD~1") == "edit"
    assert trailer(git, "Number", "HEAD~1") == "2"
    assert git("diff", "--name-only", "HEAD~2", "HEAD~1") == "SOUL.md"
    assert trailer(git, "Persona") == trailer(git, "Persona", "HEAD~1")
    assert trailer(git, "Persona") != trailer(git, "Persona", "HEAD~2")
    assert trailer(git, "Persona") == soulgit.compose_soul(home_dir).persona


def test_notes_and_frontmatter_make_no_new_persona(home_dir: Path) -> None:
    git = git_home(home_dir, SOUL)
    add(home_dir, "two")
    put(home_dir, {"SOUL.md": '+++\nname = "Ava"\n+++\n<!-- note -->\nYou are   Ava.\n\n'})
    add(home_dir, "three")
    assert git.subjects()[1] == "capture: changed SOUL.md"
    assert git("branch", "--list", "--format=%(refname:short)", "persona/*") == "persona/1"


def test_numbers_count_on_from_remotes_and_trailers(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, SOUL)
    add(home_dir, "two")
    put(home_dir, {"SOUL.md": "You are Eve.\n"})
    settle(home_dir)
    assert trailer(git, "Number", "persona/2") == "2"
    clone = Git(tmp_path / "clone")
    git("clone", "-q", str(home_dir), str(clone.path))
    for text, number in (("You are Liv.\n", "3"), ("You are Kim.\n", "4")):
        put(clone.path, {"SOUL.md": text})
        settle(clone.path)
        assert trailer(clone, "Number", f"persona/{number}") == number
        assert clone("rev-parse", "HEAD^2") == clone("rev-parse", f"persona/{number}")
        clone("update-ref", "-d", "refs/remotes/origin/persona/2")


def test_numbers_count_on_from_trailers_alone(home_dir: Path) -> None:
    git = git_home(home_dir, NO_ENTRIES)
    for text in ("You are Ava, too.\n", "You are Eve.\n", "You are Liv.\n"):
        put(home_dir, {"SOUL.md": text})
        soulgit_captures(home_dir)
    for number in (1, 2, 3):
        git("update-ref", "-d", f"refs/heads/persona/{number}")
    put(home_dir, {"SOUL.md": "You are Kim.\n"})
    soulgit_captures(home_dir)
    assert trailer(git, "Number") == "4"
    assert git("rev-parse", "persona/4") == git("rev-parse", "HEAD")


def test_a_forged_trailer_does_not_settle(home_dir: Path) -> None:
    git = git_home(home_dir, SOUL)
    add(home_dir, "two")
    settled = trailer(git, "Persona")
    put(home_dir, {"TOOLS.md": "x\n"})
    git("add", "TOOLS.md")
    git("commit", "-qm", f"x\n\nSoul-Action: edit\nSoul-Persona: {'0' * 64}")
    repository = Repository.open(str(home_dir))
    assert personas.settled_digest(repository, git("rev-parse", "HEAD")) == settled


def test_a_history_without_records_is_settled_under_its_tip(home_dir: Path) -> None:
    git = git_home(home_dir, SOUL)
    repository = Repository.open(str(home_dir))
    digest = personas.settled_digest(repository, git("rev-parse", "HEAD"))
    assert digest == soulgit.compose_soul(home_dir).persona


def test_a_branch_named_persona_is_named_and_nothing_written(home_dir: Path) -> None:
    git = git_home(home_dir, SOUL)
    git("branch", "persona")
    result = add(home_dir, "two")
    assert result.is_error
    assert "branch -m persona" in result.output
    assert (home_dir / "MEMORY.md").read_text() == "- one\n"


@pytest.mark.parametrize("branch", ["persona/1", "persona/x"])
def test_a_branch_that_shows_a_persona_takes_no_memory(home_dir: Path, branch: str) -> None:
    git = git_home(home_dir, SOUL)
    add(home_dir, "two")
    git("switch", "-q", *([] if branch == "persona/1" else ["-c"]), branch)
    result = add(home_dir, "three")
    assert result.is_error
    assert branch in result.output
