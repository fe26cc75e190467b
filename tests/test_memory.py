"""The memory tool and the commits it makes, with the git program as the judge."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pygit2
import pytest

from soulgit import Home, Result, SoulgitError, Tool, compose_soul, memory_tool
from soulgit.core.persona import digest
from tests.support import Git, fixed_clock, git_home, put

ADDED = "ok (add → MEMORY.md); loads next session"
REPLACED = "ok (replace → MEMORY.md); loads next session"
REMOVED = "ok (remove → MEMORY.md); loads next session"


def call(home: Path | Home | Tool, action: str, text: Any, **more: Any) -> Result:
    tool = home if isinstance(home, Tool) else memory_tool(home)
    return tool.execute({"action": action, "text": text, **more})


def add(home: Path | Home | Tool, text: Any = "one", **more: Any) -> Result:
    return call(home, "add", text, **more)


def lines(result: Result) -> list[str]:
    return result.output.split("\n")


def files(directory: Path) -> dict[str, bytes]:
    """Everything that lies in a directory, its git directory aside."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(directory).parts
    }


def trailers(git: Git, revision: str = "HEAD") -> dict[str, str]:
    told = git("log", "-1", "--format=%(trailers:only,unfold)", revision).splitlines()
    return dict(line.split(": ", 1) for line in told if line)


def actions(git: Git) -> list[str]:
    """The `Soul-Action` of each commit, newest first, a dash where it has none."""
    told = git("log", "--format=%h %(trailers:key=Soul-Action,valueonly,separator=%x2C)")
    return [line.partition(" ")[2] or "-" for line in told.splitlines()]


def changed(git: Git, revision: str = "HEAD") -> list[str]:
    return git("show", "--format=", "--name-only", revision).splitlines()


def assert_refused(result: Result, *says: str) -> None:
    assert result.is_error
    assert result.revision is None
    for words in says:
        assert words in result.output
    assert "Traceback" not in result.output


@pytest.fixture
def ava(home_dir: Path, git: Git) -> Path:
    """A home that soulgit has written to, with one memory."""
    add(home_dir)
    return home_dir


# The tool as a model sees it


def test_the_schema_names_action_target_text_and_with(home_dir: Path) -> None:
    schema = memory_tool(home_dir).input_schema
    assert set(schema["properties"]) == {"action", "target", "text", "with"}
    assert schema["properties"]["action"]["enum"] == ["add", "replace", "remove"]
    assert schema["required"] == ["action", "text"]


def test_the_description_says_when_a_write_loads(home_dir: Path) -> None:
    tool = memory_tool(home_dir)
    assert tool.name == "memory"
    assert "start of the next session" in tool.description
    assert "current context" in tool.description


@pytest.mark.parametrize("target", [None, "self", "other", "", 5, ["user"]])
def test_a_target_that_is_not_user_is_self(home_dir: Path, target: Any) -> None:
    assert lines(add(home_dir, target=target)) == [ADDED]
    assert files(home_dir) == {"MEMORY.md": b"- one\n"}


@pytest.mark.parametrize("action", ["add", "replace", "remove"])
def test_a_reply_names_the_file_of_the_user(home_dir: Path, action: str) -> None:
    put(home_dir, {"USER.md": "- one\n"})
    result = call(home_dir, action, "one", target="user")
    assert lines(result)[0] == f"ok ({action} → USER.md); loads next session"
    assert "MEMORY.md" not in files(home_dir)


def test_an_unknown_action_is_named(ava: Path) -> None:
    assert lines(call(ava, "delete", "one"))[0] == "unknown action: delete"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": "add"},
        {"text": "one"},
        {"action": None, "text": "one"},
        {"action": ["add"], "text": "one"},
        {"action": "add", "text": None},
        {"action": "add", "text": ""},
        {"action": "add", "text": 5},
        {"action": "add", "text": ["one"]},
        {"action": "remove", "text": True},
        {"action": "remove", "text": ""},
        {"action": "replace", "text": "", "with": "x"},
        {"action": "replace", "text": "one", "with": 5},
        {"action": "replace", "text": "one", "wit": "two"},
        {"action": "replace", "text": "one", "with": "two", "because": "x"},
        {"action": "add", "text": "a\0b"},
        {"action": "add", "text": "a\ud83eb"},
        {"action": "remove", "text": "\udc80"},
        {"action": "replace", "text": "one", "with": "a\0b"},
        {"action": "replace", "text": "one", "with": "a\udd9eb"},
        {5: 6},
        None,
        [],
        "add",
    ],
    ids=ascii,
)
def test_what_is_no_call_is_an_error_and_changes_nothing(
    ava: Path, git: Git, arguments: Any
) -> None:
    before = git("rev-parse", "HEAD")
    assert_refused(memory_tool(ava).execute(arguments))
    assert files(ava) == {"MEMORY.md": b"- one\n"}
    assert git("rev-parse", "HEAD") == before


def test_a_misnamed_argument_is_named(ava: Path) -> None:
    result = call(ava, "replace", "one", wit="two")
    assert_refused(result, "wit")


def test_an_absent_with_is_empty(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": "- tea and milk\n"})
    assert lines(call(home_dir, "replace", " and milk", **{"with": None})) == [REPLACED]
    assert files(home_dir) == {"MEMORY.md": b"- tea\n"}


def test_a_home_that_is_gone_is_an_error_and_no_exception(ava: Path) -> None:
    tool = memory_tool(ava)
    shutil.rmtree(ava)
    assert_refused(add(tool))


def test_the_tool_can_be_awaited(ava: Path, git: Git) -> None:
    call_two = memory_tool(ava).aexecute({"action": "add", "text": "two"})
    assert lines(asyncio.run(call_two)) == [ADDED]
    assert files(ava) == {"MEMORY.md": b"- one\n- two\n"}


# Further lines


def test_a_miss_shows_the_closest_entries(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": "- The user likes green tea.\n- Deploys on Friday.\n"})
    result = call(home_dir, "remove", "the user liked green teas")
    assert lines(result)[0] == "not found: the user liked green teas"
    assert "The user likes green tea." in lines(result)[1]
    assert "Friday" not in result.output


@pytest.mark.parametrize(
    ("stored", "quoted"),
    [
        ("the “big” one", 'the "big" one'),
        ("it’s here", "it's here"),
        ("now – or never", "now -- or never"),
        ("ten\u00a0km", "ten km"),
        ("café", unicodedata.normalize("NFD", "café")),
        ("The User", "the user"),
    ],
    ids=ascii,
)
def test_a_miss_by_a_trifle_shows_the_entry_and_changes_nothing(
    home_dir: Path, stored: str, quoted: str
) -> None:
    put(home_dir, {"MEMORY.md": f"- {stored}\n- else\n"})
    result = call(home_dir, "replace", quoted, **{"with": "x"})
    assert lines(result)[0] == f"not found: {quoted}"
    assert " ".join(stored.split()) in lines(result)[1]
    assert files(home_dir) == {"MEMORY.md": f"- {stored}\n- else\n".encode()}


def test_an_ambiguous_text_says_how_many_others_there_are(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": "- green tea\n- tea pot\n- tea\n"})
    result = call(home_dir, "replace", "tea", **{"with": "coffee"})
    assert lines(result)[0] == REPLACED
    assert "2" in lines(result)[1]
    assert "green tea" in lines(result)[1]
    assert files(home_dir) == {"MEMORY.md": b"- green coffee\n- tea pot\n- tea\n"}


def test_an_edit_that_changes_nothing_says_so_and_makes_no_commit(ava: Path, git: Git) -> None:
    before = git("rev-parse", "HEAD")
    result = call(ava, "replace", "one", **{"with": "one"})
    assert lines(result) == [REPLACED, "nothing changed"]
    assert (result.is_error, result.revision) == (False, None)
    assert git("rev-parse", "HEAD") == before


def test_the_same_entry_is_added_again_and_said_to_be_there(ava: Path) -> None:
    result = add(ava)
    assert lines(result)[0] == ADDED
    assert "already there" in lines(result)[1]
    assert files(ava) == {"MEMORY.md": b"- one\n- one\n"}


def test_an_add_into_an_open_fence_says_so(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": "```\ncode\n"})
    result = add(home_dir)
    assert lines(result)[0] == ADDED
    assert "fence" in lines(result)[1]


# The file


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("- one\n- two\n", "one", "- two\n"),
        ("- one\n- two\n", "two", "- one\n"),
        ("- one\n- two", "two", "- one\n"),
        ("- one\n  more\n- two\n", "one\n  more", "- two\n"),
        ("1. one\n2. two\n", "one", "2. two\n"),
        ("- one\r\n- two\r\n", "one", "- two\r\n"),
        ("- one\r\n  more\r\n- two\r\n", "one\n  more", "- two\r\n"),
        ("- one two\n", "one", "-  two\n"),
    ],
)
def test_remove_takes_a_whole_entry_with_its_bullet(
    home_dir: Path, before: str, text: str, after: str
) -> None:
    put(home_dir, {"MEMORY.md": before})
    assert lines(call(home_dir, "remove", text))[0] == REMOVED
    assert files(home_dir) == {"MEMORY.md": after.encode()}


def test_a_crlf_file_gets_crlf_and_one_line_more(home_dir: Path, git: Git) -> None:
    put(home_dir, {"MEMORY.md": "- one\r\n- two\r\n"})
    add(home_dir, "three\nand more")
    assert files(home_dir) == {"MEMORY.md": b"- one\r\n- two\r\n- three\r\nand more\r\n"}
    assert git("show", "--format=", "--numstat") == "2\t0\tMEMORY.md"
    assert git.bytes("cat-file", "blob", "HEAD:MEMORY.md") == files(home_dir)["MEMORY.md"]
    git.agrees()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_utf16_file_is_refused_and_stays(home_dir: Path, encoding: str) -> None:
    data = "- the user is in IST\n".encode(encoding)
    put(home_dir, {"MEMORY.md": data})
    assert_refused(add(home_dir), "UTF-16")
    assert files(home_dir) == {"MEMORY.md": data}
    assert not (home_dir / ".git").exists()


def test_single_undecodable_bytes_stay(home_dir: Path, git: Git) -> None:
    put(home_dir, {"MEMORY.md": b"- caf\xe9 \xff\n"})
    assert lines(add(home_dir)) == [ADDED]
    assert files(home_dir) == {"MEMORY.md": b"- caf\xe9 \xff\n- one\n"}
    assert compose_soul(home_dir, at="HEAD").text == compose_soul(home_dir).text
    git.agrees()


def test_a_file_beyond_the_cap_is_written_whole(home_dir: Path) -> None:
    long = b"- " + b"x" * 2_097_152 + b"\n"
    put(home_dir, {"MEMORY.md": long})
    add(home_dir)
    assert files(home_dir) == {"MEMORY.md": long + b"- one\n"}


def test_the_mode_of_a_file_is_kept(home_dir: Path, git: Git) -> None:
    put(home_dir, {"MEMORY.md": "- one\n", "USER.md": "- me\n"})
    (home_dir / "MEMORY.md").chmod(0o750)
    (home_dir / "USER.md").chmod(0o660)
    add(home_dir, "two")
    add(home_dir, "two", target="user")
    assert (home_dir / "MEMORY.md").stat().st_mode & 0o7777 == 0o750
    assert (home_dir / "USER.md").stat().st_mode & 0o7777 == 0o660
    assert git("ls-tree", "HEAD", "MEMORY.md").startswith("100755")
    git.agrees()


@pytest.mark.parametrize("mode", ["100644", "100755"])
def test_where_git_ignores_modes_the_committed_one_stays(home_dir: Path, mode: str) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- one\n"})
    git("update-index", "--chmod=+x" if mode == "100755" else "--chmod=-x", "MEMORY.md")
    git("commit", "-q", "--allow-empty", "-m", "mode")
    git("config", "core.fileMode", "false")
    (home_dir / "MEMORY.md").chmod(0o644 if mode == "100755" else 0o755)
    add(home_dir, "two")
    assert git("ls-tree", "HEAD", "MEMORY.md").startswith(mode)
    assert actions(git) == ["add", "-", "-"]
    git.agrees()


def test_a_write_protected_file_is_refused(ava: Path, git: Git) -> None:
    (ava / "MEMORY.md").chmod(0o444)
    assert_refused(add(ava, "two"), "MEMORY.md")
    assert files(ava) == {"MEMORY.md": b"- one\n"}
    assert git.subjects() == ['memory(self): add "one"']


def test_a_write_leaves_nothing_else_in_the_home(ava: Path, git: Git) -> None:
    add(ava, "two")
    assert files(ava) == {"MEMORY.md": b"- one\n- two\n"}
    assert git("status", "--porcelain", "--ignored") == ""
    assert not list((ava / ".git").rglob("*.lock"))


# Souls


def test_a_soul_composed_before_a_write_never_changes(ava: Path) -> None:
    soul = compose_soul(ava)
    add(ava, "two")
    assert soul.text == "## MEMORY.md\n\n- one"
    assert compose_soul(ava).text == "## MEMORY.md\n\n- one\n- two"
    assert compose_soul(ava, at="HEAD~1").text == soul.text


# History


def test_each_action_is_one_commit_in_history_before_the_reply(ava: Path, git: Git) -> None:
    tool = memory_tool(ava)
    for number, (action, text, more) in enumerate(
        [("add", "two", {}), ("replace", "two", {"with": "2"}), ("remove", "one", {})], start=2
    ):
        result = call(tool, action, text, **more)
        assert result.revision == git("rev-parse", "HEAD")
        assert git("rev-list", "--count", "HEAD") == str(number)
        git.agrees()
    assert actions(git) == ["remove", "replace", "add", "add"]


def test_the_first_write_makes_a_home_with_no_commit_of_its_own(home_dir: Path, git: Git) -> None:
    result = add(home_dir)
    assert git("rev-list", "--all") == result.revision
    assert git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert git("rev-parse", "persona/1") == result.revision
    assert trailers(git)["Soul-Number"] == "1"


def test_the_first_write_keeps_what_was_there_apart(home_dir: Path, git: Git) -> None:
    put(home_dir, {"SOUL.md": "I am Ava.\n", "MEMORY.md": "- old\n", "notes.txt": "mine"})
    add(home_dir)
    assert actions(git) == ["add", "capture"]
    assert sorted(changed(git, "HEAD~1")) == ["MEMORY.md", "SOUL.md"]
    assert git("show", "HEAD~1:MEMORY.md") == "- old"
    assert git("rev-parse", "persona/1") == git("rev-parse", "HEAD~1")
    assert git("status", "--porcelain") == "?? notes.txt"


def test_a_miss_makes_no_home(home_dir: Path) -> None:
    call(home_dir, "remove", "one")
    assert list(home_dir.iterdir()) == []


def test_an_unborn_repository_gets_its_first_commit(home_dir: Path, git: Git) -> None:
    git("init", "-q")
    put(home_dir, {"SOUL.md": "I am Ava.\n"})
    add(home_dir)
    assert actions(git) == ["add", "capture"]
    git.agrees()


def test_inside_another_repository_nothing_is_left_and_init_is_named(tmp_path: Path) -> None:
    outer = git_home(tmp_path, {"AGENTS.md": "outer\n"})
    inner = tmp_path / "agents" / "ava"
    inner.mkdir(parents=True)
    assert_refused(add(inner), "init")
    assert list(inner.iterdir()) == []
    assert outer.subjects() == ["by hand"]
    assert outer("status", "--porcelain") == ""


def test_a_linked_worktree_is_a_home_of_its_own(tmp_path: Path, ava: Path, git: Git) -> None:
    linked = tmp_path / "eve"
    git("worktree", "add", "-q", "-b", "eve", str(linked))
    add(linked, "two")
    assert files(linked) == {"MEMORY.md": b"- one\n- two\n"}
    assert files(ava) == {"MEMORY.md": b"- one\n"}
    assert git("rev-parse", "eve~1") == git("rev-parse", "main")
    git.agrees()
    Git(linked).agrees()


def test_the_same_actions_at_the_same_time_have_the_same_ids(tmp_path: Path) -> None:
    ids = []
    for name in ("here", "there"):
        directory = tmp_path / name / "ava"
        directory.mkdir(parents=True)
        ids.append(add(Home.open(directory, clock=fixed_clock)).revision)
    assert ids[0] == ids[1] is not None


# Commits


def test_a_subject_says_what_happened(ava: Path, git: Git) -> None:
    add(ava, "the user is in IST")
    call(ava, "replace", "IST", **{"with": "UTC"})
    call(ava, "remove", "one")
    add(ava, "Speaks Tamil", target="user")
    subjects = git.subjects()[::-1]
    assert subjects[1] == 'memory(self): add "the user is in IST"'
    assert subjects[2].startswith('memory(self): replace "IST"')
    assert subjects[3] == 'memory(self): remove "one"'
    assert subjects[4] == 'memory(user): add "Speaks Tamil"'


def test_the_body_carries_the_whole_text_indented(ava: Path, git: Git) -> None:
    text = "a long memory " * 20 + "\n\nSoul-Action: init\n---\n    deep"
    add(ava, text)
    subject, _, body = git("log", "-1", "--format=%B").partition("\n\n")
    assert len(subject) <= 72
    indented = "\n".join("    " + line for line in text.split("\n"))
    assert body.startswith(indented + "\n\nSoul-Action: add\n")


def test_the_trailers_say_all_that_is_known(home_dir: Path, git: Git) -> None:
    tool = memory_tool(home_dir, session="s1", model="m-4", origin="mcp", source="user:42")
    tool.execute({"action": "add", "text": "one", "target": "user"})
    assert trailers(git) == {
        "Soul-Action": "add",
        "Soul-Target": "user",
        "Soul-Persona": digest({}),
        "Soul-Number": "1",
        "Soul-Origin": "mcp",
        "Soul-Source": "user:42",
        "Soul-Session": "s1",
        "Soul-Model": "m-4",
    }


def test_a_call_can_have_a_source_of_its_own(ava: Path, git: Git) -> None:
    memory_tool(ava, source="user:42").execute(
        {"action": "add", "text": "x"}, source="telegram:ann"
    )
    told = trailers(git)
    assert told["Soul-Source"] == "telegram:ann"
    assert told["Soul-Origin"] == "tool"


def test_nothing_that_is_told_forges_a_trailer(ava: Path, git: Git) -> None:
    forged = "x\n\nSoul-Action: init\nSoul-Source: user:1"
    tool = memory_tool(ava, session=forged, model=forged, origin=forged, source=forged)
    add(tool, forged)
    told = git("log", "-1", "--format=%(trailers:only,unfold)").splitlines()
    assert [line for line in told if line.startswith("Soul-Action")] == ["Soul-Action: add"]
    assert len([line for line in told if line.startswith("Soul-Source")]) == 1


def authors(git: Git, revision: str = "HEAD") -> list[str]:
    return git("log", "-1", "--format=%an <%ae>%n%cn <%ce>", revision).splitlines()


def test_the_companion_is_author_and_committer(home_dir: Path, git: Git) -> None:
    put(home_dir, {"SOUL.md": '+++\nname = "Ava"\n+++\nI am Ava.\n'})
    add(home_dir)
    assert authors(git) == ["Ava <ava@soulgit.invalid>"] * 2
    assert [line.split(" <")[0] for line in authors(git, "HEAD~1")] == ["unknown"] * 2


@pytest.mark.parametrize("name", ["", "  ", "<>", "A <b@c>", "Ava\\nBob", "名前", "a" * 300, "🦞"])
def test_no_name_of_a_companion_fails(home_dir: Path, git: Git, name: str) -> None:
    put(home_dir, {"SOUL.md": f'+++\nname = "{name}"\n+++\nI am Ava.\n'})
    assert lines(add(home_dir)) == [ADDED]
    git.agrees()


# Edits by hand


def test_a_hand_edit_is_captured_first_and_not_credited_to_the_tool(ava: Path, git: Git) -> None:
    put(ava, {"MEMORY.md": "- one\n- by hand\n", "TOOLS.md": "new\n"})
    add(ava, "two")
    assert actions(git) == ["add", "capture", "add"]
    assert sorted(changed(git, "HEAD~1")) == ["MEMORY.md", "TOOLS.md"]
    assert [line.split(" <")[0] for line in authors(git, "HEAD~1")] == ["unknown"] * 2
    assert trailers(git, "HEAD~1")["Soul-Origin"] == "hand"
    assert files(ava)["MEMORY.md"] == b"- one\n- by hand\n- two\n"
    assert git("show", "--format=", "--numstat") == "1\t0\tMEMORY.md"
    git.agrees()


def test_a_deletion_by_hand_is_captured_and_named(ava: Path, git: Git) -> None:
    add(ava, "Speaks Tamil", target="user")
    (ava / "USER.md").unlink()
    add(ava, "two")
    assert actions(git)[:2] == ["add", "capture"]
    message = git("log", "-1", "--format=%B", "HEAD~1")
    assert "deleted" in message and "USER.md" in message
    assert git("ls-tree", "--name-only", "HEAD") == "MEMORY.md"


def test_a_staged_version_that_differs_is_captured_before_the_disks(ava: Path, git: Git) -> None:
    put(ava, {"MEMORY.md": "- staged\n"})
    git("add", "MEMORY.md")
    put(ava, {"MEMORY.md": "- changed again\n"})
    add(ava, "two")
    assert actions(git)[:3] == ["add", "capture", "capture"]
    assert git("show", "HEAD~2:MEMORY.md") == "- staged"
    assert git("show", "HEAD~1:MEMORY.md") == "- changed again"
    assert git("show", "HEAD:MEMORY.md") == "- changed again\n- two"
    git.agrees()


def test_a_staged_version_that_is_the_disks_is_captured_once(ava: Path, git: Git) -> None:
    put(ava, {"MEMORY.md": "- staged\n"})
    git("add", "MEMORY.md")
    add(ava, "two")
    assert actions(git) == ["add", "capture", "add"]
    git.agrees()


def test_other_files_stay_staged_or_untracked(ava: Path, git: Git) -> None:
    put(ava, {"draft.txt": "staged", "notes.txt": "untracked"})
    git("add", "draft.txt")
    add(ava, "two")
    assert changed(git) == ["MEMORY.md"]
    assert git("status", "--porcelain").splitlines() == ["A  draft.txt", "?? notes.txt"]


def test_a_change_of_another_tracked_file_is_left_to_the_user(home_dir: Path) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- one\n", "notes.txt": "old\n"})
    put(home_dir, {"notes.txt": "changed by hand\n"})
    add(home_dir, "two")
    assert git("status", "--porcelain") == " M notes.txt"


def await_next_second() -> None:
    time.sleep(1 - time.time() % 1)


@pytest.mark.slow
def test_git_still_sees_a_change_made_in_the_second_of_the_last_commit(home_dir: Path) -> None:
    # Git tells such a change from its index's own time, which a rewritten index must not lose.
    await_next_second()
    git = git_home(home_dir, {"MEMORY.md": "- one\n", "notes.txt": "old\n"})
    put(home_dir, {"notes.txt": "new\n"})
    await_next_second()
    add(home_dir, "two")
    assert git("status", "--porcelain") == " M notes.txt"


def test_a_miss_captures_nothing(ava: Path, git: Git) -> None:
    put(ava, {"MEMORY.md": "- by hand\n"})
    call(ava, "remove", "one")
    assert actions(git) == ["add"]
    assert git("status", "--porcelain") == " M MEMORY.md"


def test_two_tools_see_each_others_writes(ava: Path, git: Git) -> None:
    first, second = memory_tool(ava), memory_tool(ava)
    for number in range(4):
        add(first if number % 2 else second, f"number {number}")
    expected = "- one\n" + "".join(f"- number {number}\n" for number in range(4))
    assert files(ava) == {"MEMORY.md": expected.encode()}
    assert actions(git) == ["add"] * 5


# Links and other things in a file's place


def test_a_link_inside_the_home_is_written_through(home_dir: Path, git: Git) -> None:
    put(home_dir, {"notes/memory.md": "- one\n"})
    (home_dir / "MEMORY.md").symlink_to("notes/memory.md")
    assert lines(add(home_dir, "two")) == [ADDED]
    assert os.readlink(home_dir / "MEMORY.md") == "notes/memory.md"
    assert (home_dir / "notes/memory.md").read_text() == "- one\n- two\n"
    assert git("show", "HEAD:notes/memory.md") == "- one\n- two"
    assert compose_soul(home_dir, at="HEAD").text == "## MEMORY.md\n\n- one\n- two"
    git.agrees()


def link_out(path: Path) -> None:
    path.symlink_to("../outside.md")


def link_out_absolutely(path: Path) -> None:
    path.symlink_to(path.parent.parent / "outside.md")


def link_into_git(path: Path) -> None:
    path.symlink_to(".git/config")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing.md")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_a_directory(path: Path) -> None:
    path.symlink_to("memories")
    (path.parent / "memories").mkdir()


STRANGERS = [
    link_out,
    link_out_absolutely,
    link_into_git,
    link_to_nothing,
    link_to_itself,
    link_to_a_directory,
    os.mkfifo,
    os.mkdir,
]


@pytest.mark.parametrize("make", STRANGERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["MEMORY.md", "AGENTS.md"])
def test_what_is_no_file_of_the_home_is_refused_with_nothing_changed(
    home_dir: Path, name: str, make: Callable[[Path], None]
) -> None:
    git = git_home(home_dir, {"USER.md": "- me\n"})
    outside = home_dir.parent / "outside.md"
    outside.write_text("- outside\n")
    config = (home_dir / ".git/config").read_bytes()
    make(home_dir / name)
    was_link = (home_dir / name).is_symlink()
    assert_refused(add(home_dir, "two"), name)
    assert (home_dir / name).is_symlink() is was_link
    assert outside.read_text() == "- outside\n"
    assert (home_dir / ".git/config").read_bytes() == config
    assert git.subjects() == ["by hand"]
    with pytest.raises(SoulgitError, match=name):
        compose_soul(home_dir)


@pytest.mark.parametrize("target", ["../outside.md", "/etc/passwd", "nothing.md", ".git/config"])
def test_a_committed_link_that_leads_out_is_an_error_at_a_revision(
    home_dir: Path, target: str
) -> None:
    (home_dir / "SOUL.md").symlink_to(target)
    git_home(home_dir, {"MEMORY.md": "- one\n"})
    with pytest.raises(SoulgitError, match=r"SOUL\.md"):
        compose_soul(home_dir, at="HEAD")


# Where nothing may be written


def detach(git: Git) -> None:
    git("checkout", "-q", "--detach")


def onto_a_persona(git: Git) -> None:
    git("switch", "-q", "-c", "persona/7")


def into_a_merge(git: Git) -> None:
    git("switch", "-q", "-c", "side")
    git("commit", "-q", "--allow-empty", "-m", "side")
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "--no-commit", "side")


def into_a_conflict(git: Git) -> None:
    git("switch", "-q", "-c", "side")
    put(git.path, {"MEMORY.md": "- side\n"})
    git("commit", "-qam", "side")
    git("switch", "-q", "main")
    put(git.path, {"MEMORY.md": "- main\n"})
    git("commit", "-qam", "main")
    git("merge", "-q", "side", check=False)


def into_a_rebase(git: Git) -> None:
    into_a_conflict(git)
    git("merge", "--abort")
    git("rebase", "-q", "side", check=False)


PLACES = [detach, onto_a_persona, into_a_merge, into_a_conflict, into_a_rebase]


@pytest.mark.parametrize("go", PLACES, ids=lambda go: go.__name__)
def test_where_a_memory_would_be_lost_the_tool_refuses(
    ava: Path, git: Git, go: Callable[[Git], None]
) -> None:
    go(git)
    refs, before, status = git("show-ref", "--head"), files(ava), git("status", "--porcelain")
    assert_refused(add(ava, "two"))
    assert (git("show-ref", "--head"), files(ava)) == (refs, before)
    assert git("status", "--porcelain") == status


def test_a_tool_is_bound_to_its_branch(ava: Path, git: Git) -> None:
    tool = memory_tool(ava)
    git("switch", "-q", "-c", "eve")
    assert_refused(add(tool, "two"), "main", "eve")
    assert files(ava) == {"MEMORY.md": b"- one\n"}
    assert lines(add(ava, "for eve")) == [ADDED]
    git("switch", "-q", "main")
    assert lines(add(tool, "for ava")) == [ADDED]


def test_a_tool_that_made_the_home_is_bound_to_its_branch(home_dir: Path, git: Git) -> None:
    tool = memory_tool(home_dir)
    add(tool)
    git("switch", "-q", "-c", "eve")
    assert_refused(add(tool, "two"), "main")


# Git's configuration


@pytest.mark.parametrize(
    "attribute",
    ["MEMORY.md filter=git-crypt", "*.md filter=lfs", "*.md working-tree-encoding=UTF-16"],
)
def test_a_file_that_git_would_store_otherwise_is_refused(home_dir: Path, attribute: str) -> None:
    git = git_home(home_dir, {"notes.txt": "x", ".gitattributes": attribute + "\n"})
    assert_refused(add(home_dir), "MEMORY.md")
    assert sorted(files(home_dir)) == [".gitattributes", "notes.txt"]
    assert git.subjects() == ["by hand"]


def test_line_end_attributes_do_not_matter(home_dir: Path, git: Git) -> None:
    put(home_dir, {".gitattributes": "* text=auto eol=lf\n", "MEMORY.md": "- one\r\n"})
    add(home_dir, "two")
    assert git.bytes("cat-file", "blob", "HEAD:MEMORY.md") == b"- one\r\n- two\r\n"


def test_configuration_of_the_user_does_not_matter(
    isolated: Path, home_dir: Path, git: Git
) -> None:
    (isolated / ".gitconfig").write_text(
        "[core]\n\tautocrlf = true\n\tsafecrlf = true\n\thooksPath = /nowhere\n"
        "[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n"
        "[user]\n\tname = Pat\n\temail = pat@example.org\n"
        "[init]\n\tdefaultBranch = trunk\n"
    )
    pygit2.settings.search_path[pygit2.enums.ConfigLevel.GLOBAL] = str(isolated)
    put(home_dir, {"MEMORY.md": "- one\n", "USER.md": "- me\r\n"})
    assert lines(add(home_dir, "two")) == [ADDED]
    assert git.bytes("cat-file", "blob", "HEAD:MEMORY.md") == b"- one\n- two\n"
    assert git.bytes("cat-file", "blob", "HEAD:USER.md") == b"- me\r\n"
    assert files(home_dir) == {"MEMORY.md": b"- one\n- two\n", "USER.md": b"- me\r\n"}
    assert authors(git) == ["ava <ava@soulgit.invalid>"] * 2
    assert git("log", "-1", "--format=%G?") == "N"
    assert git("symbolic-ref", "--short", "HEAD") == "main"


def test_a_failing_hook_does_not_matter(ava: Path, git: Git) -> None:
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-commit"):
        hook = ava / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    assert lines(add(ava, "two")) == [ADDED]
    git.agrees()


def test_inherited_variables_of_git_do_not_matter(
    tmp_path: Path, ava: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    theirs = git_home(other, {"MEMORY.md": "- theirs\n"})
    with monkeypatch.context() as inherited:
        inherited.setenv("GIT_DIR", str(other / ".git"))
        inherited.setenv("GIT_WORK_TREE", str(other))
        inherited.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
        inherited.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git/objects"))
        inherited.setenv("GIT_AUTHOR_NAME", "Mallory")
        inherited.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
        assert lines(add(ava, "two")) == [ADDED]
    assert authors(git) == ["ava <ava@soulgit.invalid>"] * 2
    assert git.subjects() == ['memory(self): add "two"', 'memory(self): add "one"']
    assert theirs.subjects() == ["by hand"]
    git.agrees()
    theirs.agrees()


def test_a_model_may_be_asked_why(home_dir: Path) -> None:
    tool = memory_tool(home_dir, ask_reason=True)
    assert "reason" in tool.input_schema["properties"]
    assert "reason" not in memory_tool(home_dir).input_schema["properties"]
    told = {"action": "add", "text": "x", "reason": "she said so\nSoul-Action: init"}
    assert not tool.execute(told).is_error
    trailers = Git(home_dir)("log", "-1", "--format=%(trailers)").splitlines()
    assert "Soul-Reason: she said so Soul-Action: init" in trailers
    assert "Soul-Action: init" not in trailers
    assert tool.execute({"action": "add", "text": "y", "reason": 3}).is_error
    assert memory_tool(home_dir).execute(told).is_error


def test_a_memory_is_found_whatever_line_ends_it_has(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": b"- one\r\n  two\n  three\r\n- four\n"})
    result = call(home_dir, "replace", "one\n  two\n  three", **{"with": "1\n  2"})
    assert not result.is_error
    assert files(home_dir)["MEMORY.md"] == b"- 1\n  2\r\n- four\n"
