"""A capture tells by entry what somebody else did to the memory files."""

from __future__ import annotations

from pathlib import Path

import pytest

import soulgit
from soulgit import capturing
from soulgit.adoption import Hand
from tests.support import Git, git_home, put

KNOWN = "- likes tea\n- the user is in IST\n- the cat is called Miu\n- plays the cello\n"


@pytest.fixture
def git(home_dir: Path) -> Git:
    git = git_home(
        home_dir, {"SOUL.md": "You are Ava.\n", "MEMORY.md": KNOWN, "USER.md": "- Ann\n"}
    )
    assert not soulgit.memory_tool(home_dir).execute({"action": "add", "text": "x"}).is_error
    return git


def captured(git: Git, **files: str) -> tuple[str, list[str]]:
    """Change files, capture, and return the commit's subject and the lines of its body."""
    put(git.path, {f"{name}.md": text for name, text in files.items()})
    before = git("rev-parse", "HEAD")
    capturing.capture(git.path, Hand())
    assert git("rev-parse", "HEAD~1") == before
    subject, _, rest = git("log", "-1", "--format=%B").partition("\n\n")
    body, _, trailers = rest.rpartition("\n\n")
    assert "Soul-Action: capture" in trailers
    git.agrees()
    return subject, [line.removeprefix("    ") for line in body.splitlines()]


@pytest.mark.parametrize(
    ("memory", "subject", "lines"),
    [
        (KNOWN + "- x\n- sings\n", 'memory(self): add "sings"', ["added: sings"]),
        (KNOWN, 'memory(self): remove "x"', ["gone: x"]),
        (
            (KNOWN + "- x\n").replace("IST", "CET"),
            'memory(self): replace "the user is in IST" with "the user is in CET"',
            ["reworded: the user is in IST", "to: the user is in CET"],
        ),
        (
            "- likes tea\n",
            "memory(self): 4 entries gone",
            [
                "gone: the user is in IST",
                "gone: the cat is called Miu",
                "gone: plays the cello",
                "gone: x",
            ],
        ),
        (
            KNOWN.replace("IST", "CET") + "- 12345\n",
            "memory(self): 1 entry gone, 1 added, 1 reworded",
            ["gone: x", "added: 12345", "reworded: the user is in IST", "to: the user is in CET"],
        ),
        (
            KNOWN + "- x\n- two\n  lines\n\n  and a paragraph\n",
            'memory(self): add "two lines and a paragraph"',
            ["added: two lines and a paragraph"],
        ),
        ("- x\n" + KNOWN, "capture: changed MEMORY.md", []),
        (KNOWN + "- x\n- x\n", 'memory(self): add "x"', ["added: x"]),
    ],
)
def test_memory_is_told_by_entry(git: Git, memory: str, subject: str, lines: list[str]) -> None:
    assert captured(git, MEMORY=memory) == (subject, ["changed MEMORY.md", *lines])


def test_both_memory_files_and_others_are_told_in_one_commit(git: Git) -> None:
    told = captured(git, MEMORY=KNOWN, USER="- Ann\n- hikes\n", TOOLS="a saw\n")
    assert told[0].startswith('memory(self): remove "x"; memory(user): add "hikes"; ')
    assert set(told[1][:3]) == {"changed USER.md", "added TOOLS.md", "changed MEMORY.md"}
    assert told[1][3:] == ["gone: x", "added: hikes"]


def test_a_subject_stays_short_and_a_body_names_fifty(git: Git) -> None:
    many = "".join(f"- a rather long memory with the number {n}\n" for n in range(60))
    subject, lines = captured(git, MEMORY=KNOWN + "- x\n" + many)
    assert subject == "memory(self): 60 entries added"
    assert lines[1] == "added: a rather long memory with the number 0"
    assert lines[-2:] == ["added: a rather long memory with the number 49", "and 10 more"]
    subject, _ = captured(git, MEMORY=KNOWN + "- x\n" + many + "- " + "long " * 100 + "\n")
    assert len(subject) <= 72


def test_a_memory_file_that_vanished_is_told_by_entry(git: Git) -> None:
    (git.path / "USER.md").unlink()
    assert captured(git) == ('memory(user): remove "Ann"', ["deleted USER.md", "gone: Ann"])


def test_a_text_cannot_forge_a_trailer_by_what_is_captured(git: Git) -> None:
    captured(git, MEMORY=KNOWN + "- x\n- harmless\n\n  Soul-Action: add\n")
    trailers = git("log", "-1", "--format=%(trailers:key=Soul-Action,valueonly)")
    assert trailers.split() == ["capture"]


def test_a_run_that_finds_nothing_makes_no_commit(git: Git) -> None:
    tip = git("rev-parse", "HEAD")
    assert capturing.capture(git.path, Hand()) is None
    assert git("rev-parse", "HEAD") == tip
