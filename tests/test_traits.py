"""Traits, the persona as it is shown, what IDENTITY.md says, and the soul file edited."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import soulgit
from soulgit import Home, Traits, compose_soul, homes, souls
from soulgit.core import traits
from soulgit.core.actor import Identity
from soulgit.errors import InvalidArgument, InvalidText, PersonaPending
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Done, Shell

PAT = Identity("Pat", "pat@example.org")
BODY = "# Ava\n\nYou are Ava.\n"
SOUL = '+++\nid = "a-1"\nname = "Ava"\n+++\n\n' + BODY


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


def set_traits(path: Path, **values: Any) -> str | None:
    return souls.set_traits(opened(path), values, PAT)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(home_dir: Path) -> Git:
    """A home whose persona is settled and whose memory holds an entry."""
    return git_home(home_dir, {"SOUL.md": SOUL, "MEMORY.md": "- likes tea\n"})


# Values


def kinds(values: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(fault.key, fault.kind) for fault in traits.faults(values)}


BELOW_0, ABOVE_1 = math.nextafter(0, -1), math.nextafter(1, 2)
SHARES = ("contrariness", "persistence", "drift", "tired_at", "sleep_at")
ENDS = [
    *((name, value, value in (0, 1)) for name in SHARES for value in (BELOW_0, 0, 1, ABOVE_1)),
    *(("recall_window", value, 1 <= value <= 5) for value in (0, 1, 5, 6)),
    *(("pushback_window", value, value >= 1) for value in (-1, 0, 1, 10**9)),
    *(("drift", value, False) for value in (math.nan, math.inf, -math.inf)),
]


@pytest.mark.parametrize(("name", "value", "is_in_range"), ENDS)
def test_a_trait_takes_both_ends_of_its_range_and_nothing_beyond(
    name: str, value: float, is_in_range: bool
) -> None:
    assert ((name, "trait-range") in kinds({name: value})) is not is_in_range
    assert (name, "trait-type") not in kinds({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in SHARES for value in (True, "0.5", [0.5], {"a": 1})),
        *((name, value) for name in ("recall_window", "pushback_window") for value in (2.0, True)),
        *(("time_sense", value) for value in (0, 1, "true", 1.0)),
    ],
)
def test_a_value_of_another_type_is_a_fault(name: str, value: Any) -> None:
    assert kinds({name: value}) == {(name, "trait-type")}


@pytest.mark.parametrize("values", [{"time_sense": False}, {"drift": 0}, {"sleep_at": 1}])
def test_a_whole_number_is_a_share_and_false_is_a_value(values: dict[str, Any]) -> None:
    assert kinds(values) == set()
    ((name, value),) = values.items()
    assert getattr(traits.of(values), name) == value


def test_traits_are_frozen_and_have_the_documented_defaults() -> None:
    assert dataclasses.asdict(Traits()) == {
        "contrariness": 0.5, "persistence": 0.5, "time_sense": True, "recall_window": 2,
        "drift": 0.3, "tired_at": 0.7, "sleep_at": 0.9, "pushback_window": 20,
    }  # fmt: skip
    with pytest.raises(dataclasses.FrozenInstanceError):
        Traits().drift = 0.1  # type: ignore[misc]
    assert soulgit.Traits is Traits


def test_a_trait_at_fault_reads_as_its_default_and_the_others_as_they_are(home_dir: Path) -> None:
    put(home_dir, {"SOUL.md": "+++\ndrift = 7\npersistence = 0.1\n+++\n"})
    assert souls.read_traits(home_dir) == Traits(persistence=0.1)
    put(home_dir, {"SOUL.md": "+++\ndrift = \n+++\n"})
    assert souls.read_traits(home_dir) == Traits()


@pytest.mark.parametrize(
    ("old", "new", "is_fine"),
    [
        ({}, {"tired_at": 0.9}, False),
        ({}, {"tired_at": 0.89}, True),
        ({}, {"sleep_at": 0.7}, False),
        ({"tired_at": 0.3, "sleep_at": 0.5}, {"tired_at": 0.6}, False),
        ({"tired_at": 0.3, "sleep_at": 0.5}, {"tired_at": 0.6, "sleep_at": 0.8}, True),
        ({"tired_at": 0.3, "sleep_at": 0.5}, {"sleep_at": 0.3}, False),
        ({"tired_at": 0.8, "sleep_at": 0.2}, {"sleep_at": 0.9}, True),
    ],
)
def test_tired_at_stays_below_sleep_at_across_old_and_new_values(
    home_dir: Path, old: dict[str, float], new: dict[str, float], is_fine: bool
) -> None:
    head = "".join(f"{name} = {value}\n" for name, value in old.items())
    git = git_home(home_dir, {"SOUL.md": f"+++\n{head}+++\n{BODY}"})
    before = (home_dir / "SOUL.md").read_bytes()
    if is_fine:
        set_traits(home_dir, **new)
        assert souls.read_traits(home_dir) == Traits(**{**old, **new})  # type: ignore[arg-type]
    else:
        with pytest.raises(InvalidArgument, match=r"tired_at .* is not below sleep_at"):
            set_traits(home_dir, **new)
        assert (home_dir / "SOUL.md").read_bytes() == before
        assert git.subjects() == ["by hand"]


# The file

HEAD_LINES = (
    b"# who she is\n\nid   =  'a-1'   # spaced\n\n# temper\ndrift = 0.3 # blur\n"
    b'name="Ava"\n\n  # the end\n'
)
RAW_BODY = b"\n\nYou are \xff Ava.  \n\n\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_an_edit_keeps_every_other_byte(home_dir: Path, mark: bytes, end: bytes) -> None:
    soul = mark + (b"+++\n" + HEAD_LINES + b"+++\n" + RAW_BODY).replace(b"\n", end)
    git_home(home_dir, {"SOUL.md": soul})
    set_traits(home_dir, drift=0.45)
    assert (home_dir / "SOUL.md").read_bytes() == soul.replace(b"0.3", b"0.45")
    set_traits(home_dir, recall_window=3)
    changed = (home_dir / "SOUL.md").read_bytes()
    assert changed.replace(b"recall_window = 3" + end, b"") == soul.replace(b"0.3", b"0.45")


@pytest.mark.parametrize(("head_end", "body_end"), [(b"\r\n", b"\n"), (b"\n", b"\r\n")])
def test_line_ends_that_differ_in_head_and_body_stay(
    home_dir: Path, head_end: bytes, body_end: bytes
) -> None:
    head = (b"+++\n" + HEAD_LINES + b"+++\n").replace(b"\n", head_end)
    soul = head + RAW_BODY.replace(b"\n", body_end)
    git_home(home_dir, {"SOUL.md": soul})
    set_traits(home_dir, drift=0.45)
    assert (home_dir / "SOUL.md").read_bytes() == soul.replace(b"0.3", b"0.45")


@pytest.mark.parametrize(
    ("soul", "after"),
    [
        (b"You are Ava.\n", b"+++\ndrift = 0.1\n+++\n\nYou are Ava.\n"),
        (b"You are\r\nAva.\r\n", b"+++\r\ndrift = 0.1\r\n+++\r\n\r\nYou are\r\nAva.\r\n"),
        (b"\xef\xbb\xbfAva \xff", b"\xef\xbb\xbf+++\ndrift = 0.1\n+++\n\nAva \xff"),
        (b"+++\n+++\nAva\n", b"+++\ndrift = 0.1\n+++\nAva\n"),
    ],
    ids=["none", "CRLF", "BOM", "empty"],
)
def test_frontmatter_is_made_where_there_is_none(home_dir: Path, soul: bytes, after: bytes) -> None:
    git_home(home_dir, {"SOUL.md": soul, "MEMORY.md": "- a\n"})
    before = compose_soul(home_dir)
    set_traits(home_dir, drift=0.1)
    assert (home_dir / "SOUL.md").read_bytes() == after
    assert compose_soul(home_dir).text == before.text
    assert compose_soul(home_dir).persona == before.persona


def test_a_soul_file_is_made_where_there_is_none(home_dir: Path) -> None:
    git_home(home_dir, {"MEMORY.md": "- a\n"})
    set_traits(home_dir, drift=0.1)
    assert souls.read_traits(home_dir) == Traits(drift=0.1)


def test_a_trait_never_goes_into_a_table_of_the_hosts(home_dir: Path) -> None:
    git_home(home_dir, {"SOUL.md": '+++\nid = "1"\n\n[host]\ndrift = "x"\n+++\nHi\n'})
    set_traits(home_dir, drift=0.1)
    assert souls.read_traits(home_dir) == Traits(drift=0.1)
    assert '[host]\ndrift = "x"\n' in (home_dir / "SOUL.md").read_text()


@pytest.mark.parametrize("head", ["+++\ndrift = \n+++\n", "+++\ndrift = 0.2\n"])
def test_broken_frontmatter_is_refused(home_dir: Path, head: str) -> None:
    git = git_home(home_dir, {"SOUL.md": head + "Hi\n"})
    with pytest.raises(InvalidText, match="frontmatter"):
        set_traits(home_dir, drift=0.1)
    assert (home_dir / "SOUL.md").read_text() == head + "Hi\n"
    assert git.subjects() == ["by hand"]


def test_an_edit_is_a_commit_of_its_own(ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- likes mate\n"})
    tip = set_traits(ava.path, drift=0.1, time_sense=False)
    assert tip == ava("rev-parse", "HEAD")
    assert ava("log", "-1", "--format=%an <%ae>") == "Pat <pat@example.org>"
    assert ava("show", "--format=", "--name-only", "HEAD") == "SOUL.md"
    told = ava("log", "-1", "--format=%(trailers:only)").splitlines()
    assert "Soul-Action: edit" in told
    assert f"Soul-Persona: {compose_soul(ava.path).persona}" in told
    assert "drift" in ava.subjects()[0]
    assert ava.subjects()[1] == 'memory(self): replace "likes tea" with "likes mate"'
    ava.agrees()


def test_a_trait_edit_is_no_new_persona(ava: Git, shell: Shell) -> None:
    assert shell("init", str(ava.path)).code == 0
    set_traits(ava.path, drift=0.1)
    assert ava("for-each-ref", "--format=%(refname:short)", "refs/heads/persona") == "persona/1"
    assert souls.read_persona(ava.path).name == "persona/1"
    assert not homes.status(opened(ava.path)).pending


def test_the_same_value_again_changes_nothing(ava: Git) -> None:
    set_traits(ava.path, drift=0.1)
    before = ava("rev-parse", "HEAD")
    assert set_traits(ava.path, drift=0.1) is None
    assert ava("rev-parse", "HEAD") == before


def test_one_wrong_assignment_refuses_all(ava: Git) -> None:
    for wrong in ({"drift": 2}, {"mood": 1}, {"id": "b"}, {"doctor_token": "x"}):
        with pytest.raises(InvalidArgument):
            set_traits(ava.path, **{"persistence": 0.1, **wrong})
    assert (ava.path / "SOUL.md").read_text() == SOUL
    assert ava.subjects() == ["by hand"]


@pytest.mark.parametrize("is_committed", [False, True])
def test_traits_wait_until_the_persona_in_the_same_file_is_settled(
    shell: Shell, ava: Git, is_committed: bool
) -> None:
    assert shell("init", str(ava.path)).code == 0
    put(ava.path, {"SOUL.md": SOUL.replace("You are Ava", "You are Eve")})
    if is_committed:
        ava("commit", "-qam", "a new persona")
    before = ava("rev-parse", "HEAD"), (ava.path / "SOUL.md").read_bytes()
    shell.refused("traits", str(ava.path), "drift=0.1", code=3)
    with pytest.raises(PersonaPending):
        set_traits(ava.path, drift=0.1)
    assert (ava("rev-parse", "HEAD"), (ava.path / "SOUL.md").read_bytes()) == before
    assert shell("traits", str(ava.path)).code == 0


def test_an_edit_of_notes_is_no_pending_persona(ava: Git) -> None:
    put(ava.path, {"SOUL.md": SOUL.replace("# Ava", "<!-- a note -->\n#  Ava")})
    assert set_traits(ava.path, drift=0.1) is not None


# The commands


def test_traits_are_shown_with_all_that_is_known_of_them(shell: Shell, ava: Git) -> None:
    put(ava.path, {"SOUL.md": SOUL.replace("+++\n\n", "drift = 0.25\n+++\n\n")})
    rows = json.loads(shell("traits", str(ava.path), "--json").text)
    assert [row["name"] for row in rows] == [field.name for field in dataclasses.fields(Traits)]
    (drift,) = [row for row in rows if row["name"] == "drift"]
    assert (drift["value"], drift["default"], drift["range"]) == (0.25, 0.3, "0 to 1")
    done = shell("traits", str(ava.path))
    for line, row in zip(done.text.splitlines(), rows, strict=True):
        assert all(row[key] in line for key in ("name", "range", "meaning"))
        assert row["acted_on_by"] in done.text + done.err
    then = json.loads(shell("traits", str(ava.path), "--at", "HEAD", "--json").text)
    assert [row["value"] for row in then if row["name"] == "drift"] == [0.3]


def test_traits_are_given_new_values(shell: Shell, ava: Git) -> None:
    words = ("drift=0.1", "time_sense=false", "recall_window=5")
    done = shell("traits", str(ava.path), *words, "--json")
    assert done.code == 0
    values = {row["name"]: row["value"] for row in json.loads(done.text)}
    assert (values["drift"], values["time_sense"], values["recall_window"]) == (0.1, False, 5)
    assert souls.read_traits(ava.path) == Traits(drift=0.1, time_sense=False, recall_window=5)
    ava.agrees()


@pytest.mark.parametrize(
    "word", ["drift", "drift=", "drift=much", "drift=1.5", "drift=nan", "time_sense=1", "mood=1"]
)
def test_an_assignment_that_is_none_is_refused(shell: Shell, ava: Git, word: str) -> None:
    shell.refused("traits", str(ava.path), "persistence=0.1", word, code=2)
    assert ava.subjects() == ["by hand"]
    assert (ava.path / "SOUL.md").read_text() == SOUL


def test_the_persona_is_printed_as_a_model_sees_it_with_its_number(shell: Shell, ava: Git) -> None:
    put(ava.path, {"IDENTITY.md": "- Name: Ava\n"})
    ava("add", "IDENTITY.md")
    ava("commit", "-qm", "identity")
    assert shell("init", str(ava.path)).code == 0
    done = shell("persona", str(ava.path))
    assert "You are Ava." in done.text
    assert "- Name: Ava" in done.text
    for hidden in ("+++", "a-1", "likes tea"):
        assert hidden not in done.text + done.err
    assert "persona/1" in done.text + done.err
    put(ava.path, {"SOUL.md": SOUL.replace("You are Ava", "You are Eve")})
    assert "persona/1" not in shell("persona", str(ava.path)).err
    then = shell("persona", str(ava.path), "--at", "HEAD")
    assert "You are Ava." in then.text
    assert "persona/1" in then.text + then.err
    assert json.loads(shell("persona", str(ava.path), "--json").text)["name"] is None


# IDENTITY.md

IDENTITY = (
    "- **Name:**\n  _(pick something you like)_\n- **Emoji:** `🦉`\n"
    "- **名字**: [起个名字！]\n- **Avatar:** {{AVATAR}}\n"
)


def test_a_placeholder_is_no_name(home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": BODY, "IDENTITY.md": IDENTITY})
    told = homes.status(opened(home_dir))
    assert told.name in (None, home_dir.name)
    assert told.emoji == "🦉"
    assert (
        not soulgit.memory_tool(opened(home_dir)).execute({"action": "add", "text": "x"}).is_error
    )
    assert git("log", "-1", "--format=%an") == home_dir.name
    assert compose_soul(home_dir).text.startswith(
        f"## SOUL.md\n\n{BODY.strip()}\n\n## IDENTITY.md\n\n{IDENTITY.strip()}"
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("- **Name:** Ava", "Ava"),
        ("Name: Ava", "Ava"),
        ("* __Name__: \"Ava B.\"", "Ava B."),
        ("- **Name:**\n  Ava", "Ava"),
        ("- **name**：Ava", "Ava"),
        ("- **Name:**\n- **Emoji:** x", None),
        ("- **Name:** [your name]", None),
        ("- **Name:** ...", None),
        ("- **Full name:** Ava", None),
    ],
)  # fmt: skip
def test_a_name_is_read_from_its_line(home_dir: Path, line: str, name: str | None) -> None:
    git_home(home_dir, {"SOUL.md": BODY, "IDENTITY.md": line + "\n"})
    assert homes.status(opened(home_dir)).name in ((name,) if name else (None, home_dir.name))


def test_the_frontmatter_names_before_identity_does(home_dir: Path) -> None:
    git_home(home_dir, {"SOUL.md": SOUL, "IDENTITY.md": "Name: Eve\n"})
    assert homes.status(opened(home_dir)).name == "Ava"


# edit


@dataclasses.dataclass(frozen=True)
class Editing:
    """`soulgit edit` with an editor that is a shell script; "$1" is the file it edits."""

    shell: Shell
    home: Path

    def __call__(self, script: str, *words: str) -> Done:
        editor = self.home.parent / "editor"
        editor.write_text("#!/bin/sh\n" + script + "\n")
        editor.chmod(0o755)
        return self.shell("edit", str(self.home), *words, VISUAL="", EDITOR=str(editor))

    def drafts(self) -> list[Path]:
        """The files in which the editor's text is kept."""
        found = [path for path in self.home.rglob("*draft*") if path.is_file()]
        return [path for path in found if "refs" not in path.parts]


@pytest.fixture
def bo(shell: Shell, tmp_path: Path) -> Git:
    """A home without memories, so that no edit of its persona waits for a decision."""
    git = git_home(tmp_path / "bo", {"SOUL.md": SOUL})
    assert shell("init", str(git.path)).code == 0
    return git


@pytest.fixture
def editing(shell: Shell, bo: Git) -> Editing:
    return Editing(shell, bo.path)


def test_what_the_editor_saves_is_committed(editing: Editing, bo: Git) -> None:
    done = editing('sed -i "s/You are Ava/You are Eve/" "$1"')
    assert done.code == 0
    assert (bo.path / "SOUL.md").read_text() == SOUL.replace("You are Ava", "You are Eve")
    assert "Soul-Action: edit" in bo("log", "-1", "--format=%B")
    assert editing.drafts() == []
    bo.agrees()


def test_an_editor_that_changes_nothing_makes_no_commit(editing: Editing, bo: Git) -> None:
    assert editing("true").code == 0
    assert len(bo.subjects()) == 2
    assert editing.drafts() == []


def test_a_file_with_errors_is_kept_as_a_draft_and_both_places_are_told(
    editing: Editing, bo: Git
) -> None:
    done = editing('printf "\\n<<<<<<< one\\n" >> "$1"')
    assert done.code == 1
    assert (bo.path / "SOUL.md").read_text() == SOUL
    assert len(bo.subjects()) == 2
    assert f"line {SOUL.count(chr(10)) + 2}" in done.err
    (draft,) = editing.drafts()
    assert draft.read_text() == SOUL + "\n<<<<<<< one\n"
    assert str(draft) in done.err
    assert done.err.count("soulgit: ") == 1


def test_a_kept_draft_is_gone_on_with(editing: Editing, bo: Git) -> None:
    assert editing('printf "<<<<<<< one\\n" >> "$1"').code == 1
    assert editing('sed -i "s/^<<<<<<< one/Once more./" "$1"').code == 0
    assert (bo.path / "SOUL.md").read_text() == SOUL + "Once more.\n"
    assert editing.drafts() == []


@pytest.mark.parametrize("script", ["exit 1", 'printf "<<<<<<< one\\n" >> "$1"'])
def test_a_kept_draft_never_takes_back_what_was_changed_since(
    editing: Editing, bo: Git, script: str
) -> None:
    assert editing(script).code != 0
    set_traits(bo.path, drift=0.1)
    editing('sed -i "/^<<<<<<< one/d" "$1"; echo "<!-- a note -->" >> "$1"')
    assert souls.read_traits(bo.path) == Traits(drift=0.1)


def test_an_editor_that_fails_saves_nothing(editing: Editing, bo: Git) -> None:
    done = editing('echo x >> "$1"; exit 1')
    assert (done.code != 0, done.out) == (True, b"")
    assert done.err.splitlines()[-1].startswith("hint: ")
    assert (bo.path / "SOUL.md").read_text() == SOUL
    assert len(bo.subjects()) == 2


def test_an_editor_that_is_not_there_is_named(shell: Shell, bo: Git) -> None:
    done = shell("edit", str(bo.path), VISUAL="", EDITOR="/nowhere/vi")
    assert done.code in (1, 2)
    assert "/nowhere/vi" in done.err
    assert len(bo.subjects()) == 2


def test_a_file_that_changed_meanwhile_is_not_overwritten(editing: Editing, bo: Git) -> None:
    done = editing(f'echo mine >> "$1"; echo theirs >> "{bo.path}/SOUL.md"')
    assert done.code != 0
    assert (bo.path / "SOUL.md").read_text() == SOUL + "theirs\n"
    (draft,) = editing.drafts()
    assert draft.read_text() == SOUL + "mine\n"
    assert str(draft) in done.err


def test_another_file_is_edited_by_name_and_from_a_file(editing: Editing, bo: Git) -> None:
    assert editing('echo "- likes mate" >> "$1"', "--file", "MEMORY.md").code == 0
    assert (bo.path / "MEMORY.md").read_text() == "- likes mate\n"
    put(editing.shell.directory, {"tools.md": "A hammer.\n"})
    done = editing.shell("edit", str(bo.path), "--file", "TOOLS.md", "--from", "tools.md")
    assert done.code == 0
    assert (bo.path / "TOOLS.md").read_text() == "A hammer.\n"
    words = ("edit", str(bo.path), "--file", "TOOLS.md", "--from", "-")
    assert editing.shell(*words, stdin=b"A saw.\n").code == 0
    assert bo("show", "HEAD:TOOLS.md") == "A saw."
    bo.agrees()


def test_a_file_to_edit_from_is_linted_first(shell: Shell, bo: Git) -> None:
    put(shell.directory, {"soul.md": "+++\ndrift = 2\n+++\nHi\n"})
    err = shell.refused("edit", str(bo.path), "--from", "soul.md")
    assert "line 2" in err
    shell.refused("edit", str(bo.path), "--from", "absent.md")
    shell.refused("edit", str(bo.path), "--file", "notes.txt", "--from", "soul.md", code=2)
    assert (bo.path / "SOUL.md").read_text() == SOUL
    assert len(bo.subjects()) == 2
