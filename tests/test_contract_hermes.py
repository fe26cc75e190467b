"""The memory vectors once more in the Hermes layout, worked out by hand from DESIGN 1 and 3."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from soulgit import compose_soul, memory_tool
from tests.support import Git, put

SELF, USER = "memories/MEMORY.md", "memories/USER.md"


@dataclass(frozen=True)
class Case:
    """A vector's name, files before, actions with the first line of the reply, files after."""

    name: str
    before: dict[str, str]
    steps: list[tuple[dict[str, Any], str]]
    after: dict[str, str]


def add(text: str, **more: str) -> dict[str, Any]:
    return {"action": "add", "text": text, **more}


def replace(text: str, **more: str) -> dict[str, Any]:
    return {"action": "replace", "text": text, **more}


def remove(text: str, **more: str) -> dict[str, Any]:
    return {"action": "remove", "text": text, **more}


def ok(action: str, name: str = "MEMORY.md") -> str:
    return f"ok ({action} → {name}); loads next session"


VECTORS = [
    Case(
        "add to nothing",
        {SELF: ""},
        [(add("the user is in IST"), ok("add"))],
        {SELF: "the user is in IST"},
    ),
    Case(
        "add twice",
        {SELF: ""},
        [(add("one"), ok("add")), (add("two"), ok("add"))],
        {SELF: "one\n§\ntwo"},
    ),
    Case(
        "add after missing newline",
        {SELF: "# Notes\none"},
        [(add("two"), ok("add"))],
        {SELF: "# Notes\none\n§\ntwo"},
    ),
    Case(
        "add after trailing blank lines",
        {SELF: "one\n\n\n"},
        [(add("two"), ok("add"))],
        {SELF: "one\n§\ntwo"},
    ),
    Case(
        "add user",
        {SELF: "one"},
        [(add("Speaks Tamil", target="user"), ok("add", "USER.md"))],
        {SELF: "one", USER: "Speaks Tamil"},
    ),
    Case(
        "add unknown target falls to self",
        {USER: "Speaks Tamil"},
        [(add("x", target="other"), ok("add"))],
        {SELF: "x", USER: "Speaks Tamil"},
    ),
    Case(
        "add multiline",
        {SELF: "one"},
        [(add("first line\nsecond line"), ok("add"))],
        {SELF: "one\n§\nfirst line\nsecond line"},
    ),
    Case(
        "add unicode",
        {SELF: "名前はアヴァ"},
        [(add("prefers 🍵 and naïve café"), ok("add"))],
        {SELF: "名前はアヴァ\n§\nprefers 🍵 and naïve café"},
    ),
    Case(
        "add leading whitespace file",
        {SELF: "\n\n  one\n"},
        [(add("two"), ok("add"))],
        {SELF: "one\n§\ntwo"},
    ),
    Case(
        "replace once",
        {SELF: "Likes green tea.\n§\nIs in IST."},
        [(replace("green tea", **{"with": "oolong"}), ok("replace"))],
        {SELF: "Likes oolong.\n§\nIs in IST."},
    ),
    Case(
        "replace without with",
        {SELF: "Likes green tea."},
        [(replace("green tea"), ok("replace"))],
        {SELF: "Likes ."},
    ),
    Case(
        "replace repeated text",
        {SELF: "tea\n§\ntea"},
        [(replace("tea", **{"with": "coffee"}), ok("replace"))],
        {SELF: "coffee\n§\ntea"},
    ),
    Case(
        "replace dollar pattern",
        {SELF: "cost"},
        [(replace("cost", **{"with": "$& and $1"}), ok("replace"))],
        {SELF: "$& and $1"},
    ),
    Case(
        "remove entry",
        {SELF: "one\n§\ntwo"},
        [(remove("one"), ok("remove"))],
        {SELF: "two"},
    ),
    Case(
        "remove substring",
        {SELF: "one two\n§\nthree"},
        [(remove(" two"), ok("remove"))],
        {SELF: "one\n§\nthree"},
    ),
    Case(
        "remove last leaves empty file",
        {SELF: "one"},
        [(remove("one"), ok("remove"))],
        {SELF: ""},
    ),
    Case(
        "miss replace",
        {SELF: "one"},
        [(replace("nope", **{"with": "x"}), "not found: nope")],
        {SELF: "one"},
    ),
    Case(
        "miss remove user",
        {SELF: "one"},
        [(remove("not present anywhere", target="user"), "not found: not present anywhere")],
        {SELF: "one"},
    ),
    Case(
        "unknown action",
        {SELF: "one"},
        [({"action": "bogus", "text": "x"}, "unknown action: bogus")],
        {SELF: "one"},
    ),
    Case(
        "crlf file add",
        {SELF: "one\r\nmore of one"},
        [(add("two"), ok("add"))],
        {SELF: "one\r\nmore of one\n§\ntwo"},
    ),
    Case(
        "replace spanning lines",
        {SELF: "one\nand two\n§\nthree"},
        [(replace("one\nand two", **{"with": "both"}), ok("replace"))],
        {SELF: "both\n§\nthree"},
    ),
    Case(
        "empty text is refused",
        {SELF: "one"},
        [(add(""), ""), (remove(""), ""), (replace("", **{"with": "x"}), "")],
        {SELF: "one"},
    ),
]

OF_THIS_LAYOUT = [
    Case(
        "remove the entry in the middle",
        {SELF: "one\n§\ntwo\n§\nthree"},
        [(remove("two"), ok("remove"))],
        {SELF: "one\n§\nthree"},
    ),
    Case(
        "remove the entry at the end",
        {SELF: "one\n§\ntwo"},
        [(remove("two"), ok("remove"))],
        {SELF: "one"},
    ),
    Case(
        "remove an entry of two lines in a crlf file",
        {SELF: "one\r\nmore of one\n§\ntwo\r\nmore of two"},
        [(remove("one\nmore of one"), ok("remove"))],
        {SELF: "two\r\nmore of two"},
    ),
    Case(
        "replace two lines in a crlf file by two",
        {SELF: "one\r\nmore of one\r\nand more"},
        [(replace("one\nmore of one", **{"with": "uno\ndue"}), ok("replace"))],
        {SELF: "uno\r\ndue\r\nand more"},
    ),
    Case(
        "a text that holds the delimiter is refused",
        {SELF: "one\n§\ntwo"},
        [
            (add("three\n§\nfour"), ""),
            (replace("one\n§\ntwo", **{"with": "both"}), ""),
            (replace("one", **{"with": "uno\n§\ndue"}), ""),
            (remove("one\n§\n"), ""),
        ],
        {SELF: "one\n§\ntwo"},
    ),
    Case(
        "a section sign within a line is no delimiter",
        {SELF: "one"},
        [(add("see § 5 of the contract"), ok("add"))],
        {SELF: "one\n§\nsee § 5 of the contract"},
    ),
]


def memories(directory: Path) -> dict[str, str]:
    paths = sorted((directory / "memories").iterdir())
    return {f"memories/{path.name}": path.read_bytes().decode() for path in paths}


def test_the_table_holds_every_memory_vector() -> None:
    vectors = json.loads((Path(__file__).parent / "data/persona_home.json").read_bytes())
    with_actions = [vector["name"] for vector in vectors if vector["actions"]]
    assert [case.name for case in VECTORS] == with_actions


@pytest.mark.parametrize("case", VECTORS + OF_THIS_LAYOUT, ids=lambda case: case.name)
def test_actions_keep_the_layout(case: Case, home_dir: Path, git: Git) -> None:
    put(home_dir, case.before)
    tool = memory_tool(home_dir)
    written = False
    for arguments, first_line in case.steps:
        result = tool.execute(arguments)
        assert result.is_error is (not first_line.startswith("ok"))
        if first_line:
            assert result.output.split("\n")[0] == first_line
        written |= not result.is_error
    assert memories(home_dir) == case.after
    assert not (home_dir / "MEMORY.md").exists()
    assert not (home_dir / "USER.md").exists()
    if written:
        assert compose_soul(home_dir, at="HEAD").text == compose_soul(home_dir).text
        git.agrees()


def test_a_section_names_the_file_without_its_directory(home_dir: Path) -> None:
    put(home_dir, {"SOUL.md": "I am Ava.", SELF: "one\n§\ntwo", USER: "Speaks Tamil"})
    soul, found = compose_soul(home_dir)
    assert found == ["SOUL.md", "USER.md", "MEMORY.md"]
    assert soul == (
        "## SOUL.md\n\nI am Ava.\n\n## USER.md\n\nSpeaks Tamil\n\n## MEMORY.md\n\none\n§\ntwo"
    )


def test_a_memory_file_at_the_root_makes_the_layout_plain(home_dir: Path) -> None:
    put(home_dir, {"USER.md": "- here\n", SELF: "not read"})
    memory_tool(home_dir).execute(add("one"))
    assert (home_dir / "MEMORY.md").read_text() == "- one\n"
    assert memories(home_dir) == {SELF: "not read"}


def test_an_old_revision_is_read_by_its_own_layout(home_dir: Path, git: Git) -> None:
    put(home_dir, {"MEMORY.md": "- one\n"})
    memory_tool(home_dir).execute(add("two"))
    (home_dir / "memories").mkdir()
    (home_dir / "MEMORY.md").unlink()
    put(home_dir, {SELF: "one\n§\ntwo"})
    memory_tool(home_dir).execute(add("three"))
    assert compose_soul(home_dir, at="HEAD").text == "## MEMORY.md\n\none\n§\ntwo\n§\nthree"
    assert compose_soul(home_dir, at="HEAD~2").text == "## MEMORY.md\n\n- one\n- two"
    git.agrees()


def test_a_linked_memory_directory_is_the_hermes_layout_at_a_revision_too(
    home_dir: Path, git: Git
) -> None:
    put(home_dir, {"store/MEMORY.md": "one"})
    (home_dir / "memories").symlink_to("store")
    memory_tool(home_dir).execute(add("two"))
    assert compose_soul(home_dir).text == "## MEMORY.md\n\none\n§\ntwo"
    assert compose_soul(home_dir, at="HEAD").text == "## MEMORY.md\n\none\n§\ntwo"
    git.agrees()
