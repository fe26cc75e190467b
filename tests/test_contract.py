"""The contract's vectors: composition and memory tool, soul file and entries."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from soulgit import compose_soul, memory_tool
from soulgit.core import composition, entries, persona
from soulgit.core.layout import PLAIN
from tests.support import Git, git_home, put

DATA = Path(__file__).parent / "data"
HOMES: list[dict[str, Any]] = json.loads((DATA / "persona_home.json").read_bytes())
TEXTS: dict[str, list[dict[str, Any]]] = json.loads((DATA / "soul_and_entries.json").read_bytes())


def by_name(vectors: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in vectors]


def content(told: dict[str, Any]) -> bytes:
    if "base64" in told:
        return base64.b64decode(told["base64"])
    if "runs" in told:
        return "".join(text * count for text, count in told["runs"]).encode()
    return str(told["text"]).encode()


def contents(files: dict[str, dict[str, Any]]) -> dict[str, bytes]:
    return {name: content(told) for name, told in files.items()}


def on_disk(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def assert_soul(text: str, told: dict[str, Any]) -> None:
    if "text" in told:
        assert text == told["text"]
        return
    data = text.encode()
    assert len(data) == told["bytes"]
    assert text.endswith(told["tail"])
    assert hashlib.sha256(data).hexdigest() == told["sha256"]


@pytest.mark.parametrize("vector", by_name(HOMES))
def test_actions_are_answered_written_and_composed(
    vector: dict[str, Any], home_dir: Path, git: Git
) -> None:
    put(home_dir, contents(vector["files"]))
    tool = memory_tool(home_dir)
    for arguments, reply in zip(vector["actions"], vector["replies"], strict=True):
        result = tool.execute(arguments)
        assert result.is_error is reply["is_error"]
        if "output" in reply:
            assert result.output.split("\n")[0] == reply["output"]
    assert on_disk(home_dir) == contents(vector["after"])
    soul = compose_soul(home_dir)
    assert soul.found == vector["found"]
    assert_soul(soul.text, vector["soul"])
    if any(not reply["is_error"] for reply in vector["replies"]):
        committed = compose_soul(home_dir, at="HEAD")
        assert (committed.text, committed.found) == (soul.text, soul.found)
        assert committed.revision == git("rev-parse", "HEAD")
        git.agrees()
        assert git("fsck", "--strict") == ""  # and nothing left lying about
    else:
        assert not (home_dir / ".git").exists()


@pytest.mark.parametrize("vector", by_name([v for v in HOMES if v["after"]]))
def test_a_commit_of_the_files_composes_the_same(vector: dict[str, Any], home_dir: Path) -> None:
    git_home(home_dir, contents(vector["after"]))
    soul = compose_soul(home_dir, at="HEAD")
    assert soul.found == vector["found"]
    assert_soul(soul.text, vector["soul"])


def test_a_soul_unpacks_as_text_and_found(home_dir: Path) -> None:
    put(home_dir, {"SOUL.md": "me"})
    soul, found = compose_soul(home_dir)
    assert (soul, found) == ("## SOUL.md\n\nme", ["SOUL.md"])


@pytest.mark.parametrize("vector", by_name(TEXTS["soul"]))
def test_a_soul_file_has_the_body_and_the_digest(vector: dict[str, Any]) -> None:
    names = {"SOUL.md": vector["soul"], "IDENTITY.md": vector.get("identity")}
    files = {name: text.encode() for name, text in names.items() if text is not None}
    if vector["body"] is not None:
        assert composition.body("SOUL.md", files["SOUL.md"]) == vector["body"]
    assert persona.digest(files) == vector["digest"]


@pytest.mark.parametrize("vector", by_name(TEXTS["entries"]))
def test_a_memory_file_splits_into_the_entries(vector: dict[str, Any]) -> None:
    assert [entry.text for entry in entries.split(vector["text"], PLAIN)] == vector["entries"]
