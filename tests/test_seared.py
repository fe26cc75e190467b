"""Seared memories: nobody changes them but a person who says so, in both layouts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from soulgit import Home, Result, capturing, compose_soul, homes, memory, memory_tool, souls
from soulgit.adoption import Hand
from soulgit.core.actor import Identity
from soulgit.core.layout import Target
from soulgit.errors import SearedChanged, SearedRefused, TextAmbiguous, TextNotFound
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Shell

PAT = Identity("Pat", "pat@example.org")
MARKER = "<!-- seared -->"
SOUL = {"SOUL.md": "You are Ava.\n"}


@dataclass(frozen=True)
class Place:
    """A layout: where the memory file is, and how it holds a list of entries."""

    path: str
    bullet: str
    between: str
    end: str

    def file(self, *entries: str) -> str:
        return self.between.join(self.bullet + entry for entry in entries) + self.end

    def files(self, *entries: str) -> dict[str, str]:
        return {self.path: self.file(*entries)}


PLAIN = Place("MEMORY.md", "- ", "\n", "\n")
HERMES = Place("memories/MEMORY.md", "", "\n§\n", "")
SEARED = f"likes tea {MARKER}"


@pytest.fixture(params=[PLAIN, HERMES], ids=["plain", "hermes"])
def place(request: pytest.FixtureRequest) -> Place:
    assert isinstance(request.param, Place)
    return request.param


@pytest.fixture
def ava(home_dir: Path, place: Place) -> Git:
    """A home whose second of three memories is seared."""
    return git_home(home_dir, {**SOUL, **place.files("was born in May", SEARED, "likes mate")})


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


def call(git: Git, action: str, text: str, **more: str) -> Result:
    return memory_tool(opened(git.path)).execute({"action": action, "text": text, **more})


def listed(git: Git) -> dict[str, bool]:
    return {entry.text: entry.seared for entry in memory.list_entries(git.path)}


def read(git: Git, place: Place) -> str:
    return (git.path / place.path).read_text()


# sear and unsear


def test_sear_marks_the_entry_and_unsear_takes_the_mark_away(home_dir: Path, place: Place) -> None:
    git = git_home(home_dir, {**SOUL, **place.files("likes tea", "likes mate")})
    memory.sear(opened(home_dir), "likes tea", PAT)
    assert read(git, place) == place.file(SEARED, "likes mate")
    assert listed(git) == {"likes tea": True, "likes mate": False}
    told = git("log", "-1", "--format=%an%n%(trailers:key=Soul-Action,key=Soul-Target)")
    assert told.splitlines() == ["Pat", "Soul-Action: sear", "Soul-Target: self"]
    git.agrees()
    memory.unsear(opened(home_dir), "likes tea", PAT)
    assert read(git, place) == place.file("likes tea", "likes mate")
    assert "Soul-Action: unsear" in git("log", "-1", "--format=%B")
    git.agrees()


def test_a_model_never_sees_the_marker(ava: Git) -> None:
    for at in (None, "HEAD"):
        text = compose_soul(ava.path, at=at).text
        assert "likes tea" in text
        assert "seared" not in text


def test_an_ambiguous_text_lists_the_candidates(home_dir: Path, place: Place) -> None:
    git = git_home(home_dir, {**SOUL, **place.files("likes tea", "likes mate", "sleeps late")})
    with pytest.raises(TextAmbiguous) as caught:
        memory.sear(opened(home_dir), "likes", PAT)
    assert caught.value.facts["notes"] == ("likes tea", "likes mate")
    assert read(git, place) == place.file("likes tea", "likes mate", "sleeps late")
    assert git.subjects() == ["by hand"]


def test_a_whole_entry_comes_before_a_part_of_another(home_dir: Path, place: Place) -> None:
    git = git_home(home_dir, {**SOUL, **place.files("green tea", "tea")})
    memory.sear(opened(home_dir), "tea", PAT)
    assert listed(git) == {"green tea": False, "tea": True}


def test_what_is_seared_is_not_seared_again_and_what_is_not_is_not_unseared(ava: Git) -> None:
    for change, text in ((memory.sear, "likes tea"), (memory.unsear, "likes mate")):
        with pytest.raises(TextNotFound):
            change(opened(ava.path), text, PAT)
    assert ava.subjects() == ["by hand"]


def test_a_text_in_both_memory_files_needs_a_target(home_dir: Path) -> None:
    files = {**SOUL, "MEMORY.md": "- likes tea\n", "USER.md": "- likes tea\n"}
    git_home(home_dir, files)
    with pytest.raises(TextAmbiguous):
        memory.sear(opened(home_dir), "likes tea", PAT)
    memory.sear(opened(home_dir), "likes tea", PAT, target="user")
    seared = {entry.target: entry.seared for entry in memory.list_entries(home_dir)}
    assert seared == {"self": False, "user": True}


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("- a\n  more\n- b\n", "more", f"- a\n  more {MARKER}\n- b\n"),
        ("A text\nof two lines.\n\n- b\n", "two", f"A text\nof two lines. {MARKER}\n\n- b\n"),
        ("1. a\r\n2. b\r\n", "a", f"1. a {MARKER}\r\n2. b\r\n"),
        ("- a  \n\n- b", "b", f"- a  \n\n- b {MARKER}"),
    ],
)  # fmt: skip
def test_the_marker_stands_at_the_end_of_the_entry(
    home_dir: Path, before: str, text: str, after: str
) -> None:
    git_home(home_dir, {**SOUL, "MEMORY.md": before})
    memory.sear(opened(home_dir), text, PAT)
    assert (home_dir / "MEMORY.md").read_bytes() == after.encode()
    memory.unsear(opened(home_dir), text, PAT)
    assert (home_dir / "MEMORY.md").read_bytes() == before.encode()


def test_a_code_fence_is_not_broken_by_a_marker(home_dir: Path) -> None:
    git = git_home(home_dir, {**SOUL, "MEMORY.md": "```\ncode\n```\n"})
    with pytest.raises(SearedRefused, match="fence"):
        memory.sear(opened(home_dir), "code", PAT)
    assert git.subjects() == ["by hand"]


# The tool


def assert_refused(result: Result, git: Git, place: Place, says: str = "seared") -> None:
    assert (result.is_error, result.revision) == (True, None)
    assert says in result.output
    assert "Traceback" not in result.output
    assert read(git, place) == place.file("was born in May", SEARED, "likes mate")
    assert git.subjects() == ["by hand"]


@pytest.mark.parametrize("action", ["replace", "remove"])
@pytest.mark.parametrize("text", ["likes tea", "tea", "l", "likes tea "])
def test_the_tool_refuses_to_touch_a_seared_entry(
    ava: Git, place: Place, action: str, text: str
) -> None:
    put(ava.path, place.files("was born in May", SEARED, "likes mate"))
    assert_refused(call(ava, action, text), ava, place)


@pytest.mark.parametrize("action", ["replace", "remove"])
def test_the_tool_refuses_a_span_that_reaches_into_a_seared_entry(
    ava: Git, place: Place, action: str
) -> None:
    between = place.between + place.bullet
    for text in (f"May{between}likes", f"{between}likes", f"May{between}", f"-->{between}likes m"):
        says = "seared" if place is PLAIN else "§"  # a text with the delimiter never gets so far
        assert_refused(call(ava, action, text), ava, place, says)


def test_the_tool_refuses_another_bullet_for_a_seared_entry(home_dir: Path) -> None:
    git = git_home(home_dir, {**SOUL, **PLAIN.files("was born in May", SEARED, "likes mate")})
    assert_refused(call(git, "replace", "- likes tea", **{"with": "* likes tea"}), git, PLAIN)


def test_the_tool_refuses_to_make_a_seared_entry_longer(ava: Git, place: Place) -> None:
    text = f"{place.between}{place.bullet}likes mate"
    for replacement in ("\n  likes mate", " likes mate"):
        result = call(ava, "replace", text, **{"with": replacement})
        assert_refused(result, ava, place, "seared" if place is PLAIN else "§")


@pytest.mark.parametrize("text", [" <!-- sea", "red", "-->", "<!--", " -->"])
def test_the_tool_refuses_to_break_the_marker(ava: Git, place: Place, text: str) -> None:
    assert_refused(call(ava, "remove", text), ava, place)


@pytest.mark.parametrize("text", [MARKER, f"x {MARKER}", f"x {MARKER} y", f"{MARKER}\n"])
def test_the_tool_refuses_every_text_that_holds_the_marker(
    ava: Git, place: Place, text: str
) -> None:
    assert_refused(call(ava, "add", text), ava, place)
    assert_refused(call(ava, "remove", text), ava, place)
    assert_refused(call(ava, "replace", text, **{"with": "x"}), ava, place)
    assert_refused(call(ava, "replace", "likes mate", **{"with": text}), ava, place)


def test_the_tool_cannot_put_a_marker_together(home_dir: Path, place: Place) -> None:
    git = git_home(home_dir, {**SOUL, **place.files("likes tea")})
    assert not call(git, "add", "x <!-- sea?? -->").is_error
    result = call(git, "replace", "??", **{"with": "red"})
    assert result.is_error
    assert not any(listed(git).values())


def test_the_tool_changes_what_is_not_seared(ava: Git, place: Place) -> None:
    assert not call(ava, "add", "x").is_error
    assert not call(ava, "replace", "mate", **{"with": "coffee"}).is_error
    assert not call(ava, "remove", "was born in May").is_error
    assert read(ava, place) == place.file(SEARED, "likes coffee", "x")
    ava.agrees()


def test_one_of_two_that_are_alike_stays(home_dir: Path, place: Place) -> None:
    git = git_home(home_dir, {**SOUL, **place.files(SEARED, SEARED)})
    assert call(git, "remove", "likes tea").is_error
    assert read(git, place) == place.file(SEARED, SEARED)


def test_a_seared_memory_of_the_user_is_kept_too(home_dir: Path, place: Place) -> None:
    path = place.path.replace("MEMORY", "USER")
    git_home(home_dir, {**SOUL, path: place.file(SEARED)})
    target: Target = "user"
    assert (
        memory_tool(home_dir)
        .execute({"action": "remove", "text": "likes tea", "target": target})
        .is_error
    )


def test_other_actions_of_a_person_refuse_as_well(shell: Shell, ava: Git, place: Place) -> None:
    home = str(ava.path)
    shell.refused("memory", "remove", home, "likes tea")
    put(shell.directory, {"new.md": place.file("was born in May", "likes mate")})
    shell.refused("edit", home, "--file", "MEMORY.md", "--from", "new.md")
    assert read(ava, place) == place.file("was born in May", SEARED, "likes mate")


# By hand

HAND_EDITS: Mapping[str, list[str] | None] = {
    "changed": ["was born in May", f"likes milk {MARKER}", "likes mate"],
    "dropped": ["was born in May", "likes mate"],
    "its marker gone": ["was born in May", "likes tea", "likes mate"],
    "joined": ["was born in May", f"{SEARED} a lot", "likes mate"],
    "file gone": None,
}


@pytest.fixture(params=HAND_EDITS, ids=list(HAND_EDITS))
def by_hand(request: pytest.FixtureRequest, ava: Git, place: Place) -> Git:
    """A home in which a person has changed or dropped the seared memory."""
    entries = HAND_EDITS[request.param]
    if entries is None:
        (ava.path / place.path).unlink()
    else:
        put(ava.path, place.files(*entries))
    return ava


def on_disk(git: Git) -> dict[str, bytes]:
    found = [path for path in git.path.rglob("*.md") if ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in found}


def test_a_hand_edit_of_a_seared_entry_is_named_and_stops_the_next_write(by_hand: Git) -> None:
    before = on_disk(by_hand)
    assert homes.status(opened(by_hand.path)).seared_changed == ("likes tea",)
    errors = [f for f in souls.lint_home(by_hand.path) if f.severity == "error"]
    assert [f.rule for f in errors] == ["seared-changed"]
    assert "likes tea" in errors[0].message
    result = call(by_hand, "add", "x")
    assert result.is_error
    assert "likes tea" in result.output
    with pytest.raises(SearedChanged, match="likes tea"):
        capturing.capture(opened(by_hand.path), Hand())
    with pytest.raises(SearedChanged):
        souls.set_traits(opened(by_hand.path), {"drift": 0.1}, PAT)
    assert by_hand.subjects() == ["by hand"]
    assert on_disk(by_hand) == before


def test_after_unsear_the_hand_edit_is_captured_and_the_write_goes_on(by_hand: Git) -> None:
    before = on_disk(by_hand)
    memory.unsear(opened(by_hand.path), "likes tea", PAT)
    assert on_disk(by_hand) == before
    assert homes.status(opened(by_hand.path)).seared_changed == ()
    assert not call(by_hand, "add", "x").is_error
    actions = by_hand("log", "--format=%(trailers:key=Soul-Action,valueonly,separator=%x2C)")
    assert actions.split() in (["add", "capture", "unsear"], ["add", "unsear"])
    by_hand("fsck", "--strict", "--no-dangling")
    assert by_hand("status", "--porcelain", "-uno") == ""


def test_after_it_is_put_back_the_write_goes_on(by_hand: Git, place: Place) -> None:
    put(by_hand.path, place.files("was born in May", SEARED, "likes mate"))
    assert not call(by_hand, "add", "x").is_error
    assert len(by_hand.subjects()) == 2
    by_hand.agrees()


def test_a_move_to_the_other_layout_does_not_drop_a_seared_entry_silently(
    ava: Git, place: Place
) -> None:
    other = HERMES if place is PLAIN else PLAIN
    (ava.path / place.path).unlink()
    put(ava.path, other.files("was born in May", "likes mate"))
    assert homes.status(opened(ava.path)).seared_changed == ("likes tea",)
    assert call(ava, "add", "x").is_error
    assert ava.subjects() == ["by hand"]


def test_a_move_to_the_other_layout_that_keeps_it_is_captured(ava: Git, place: Place) -> None:
    other = HERMES if place is PLAIN else PLAIN
    (ava.path / place.path).unlink()
    put(ava.path, other.files("was born in May", SEARED))
    assert homes.status(opened(ava.path)).seared_changed == ()
    assert not call(ava, "add", "x").is_error
    ava.agrees()


def test_a_person_may_write_the_marker_by_hand(ava: Git, place: Place) -> None:
    put(ava.path, place.files("was born in May", SEARED, f"likes mate {MARKER}"))
    assert not call(ava, "add", "x").is_error
    assert call(ava, "remove", "likes mate").is_error


def test_a_hand_edit_around_a_seared_entry_is_captured(ava: Git, place: Place) -> None:
    put(ava.path, place.files("new", SEARED, "was born in May"))
    assert not call(ava, "add", "x").is_error
    assert read(ava, place) == place.file("new", SEARED, "was born in May", "x")
    ava.agrees()


# The commands


def test_the_commands_sear_list_and_unsear(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, {**SOUL, "MEMORY.md": "- likes tea\n- likes mate\n"})
    home = str(home_dir)
    err = shell.refused("sear", home, "likes")
    assert "  likes tea\n  likes mate\n" in err
    done = shell("sear", home, "tea")
    assert (done.code, done.text.split()[0]) == (0, git("rev-parse", "HEAD")[:12])
    assert shell("memory", "list", home).text == "self: likes tea (seared)\nself: likes mate\n"
    assert [row["seared"] for row in json.loads(shell("memory", "list", home, "--json").text)] == [
        True,
        False,
    ]
    put(home_dir, {"MEMORY.md": "- likes mate\n"})
    assert "likes tea" in shell("status", home).text
    assert shell("lint", home).code == 1
    assert "likes tea" in shell.refused("memory", "add", home, "x", code=3)
    shell.refused("capture", home, code=3)
    assert shell("unsear", home, "tea").code == 0
    assert shell("capture", home).code == 0
    git.agrees()
