"""Inputs that broke neighbouring tools, each with what is right here.

Each test names the symptom that people reported of another memory tool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest

import soulgit
from soulgit import forking, settling
from soulgit.core.actor import Identity
from soulgit.errors import RepositoryRefused, RevisionNotFound, SoulgitError, UnsafeFile
from tests.support import Git, git_home, put

BASE = {"SOUL.md": "# Soul\nBe brief.\n", "MEMORY.md": "- a\n", "USER.md": "- u\n"}


def act(path: Path, action: str, text: str | None, **more: str) -> soulgit.Result:
    arguments = {"action": action, "text": text, **more}
    return soulgit.memory_tool(path).execute(arguments)


def memory(path: Path) -> bytes:
    return (path / "MEMORY.md").read_bytes()


def user_config(home: Path, text: str) -> None:
    """Write a global git configuration that git and libgit2 both read."""
    (home / ".gitconfig").write_text(text, encoding="utf-8")
    pygit2.settings.search_path[pygit2.enums.ConfigLevel.GLOBAL] = str(home)


def test_many_writers_at_once_lose_nothing(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    source = (
        "import soulgit, sys\n"
        "tool = soulgit.memory_tool(sys.argv[1])\n"
        "for i in range(15):\n"
        "    result = tool.execute({'action': 'add', 'text': f'w{sys.argv[2]}-{i}'})\n"
        "    assert not result.is_error, result.output\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", source, str(home_dir), str(k)]) for k in range(4)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]
    expected = {f"- w{k}-{i}" for k in range(4) for i in range(15)}
    lines = memory(home_dir).decode().splitlines()
    assert sorted(lines) == sorted(expected | {"- a"})
    assert git("rev-list", "--count", "HEAD") == "61"
    assert git("rev-list", "--min-parents=2", "HEAD") == ""
    git.agrees()


def test_what_a_person_appended_is_kept_and_committed_first(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    act(home_dir, "add", "first")
    table = b"\n# Vendors\n| n | v |\n|---|---|\n| x | 1 |\n"
    put(home_dir, {"MEMORY.md": memory(home_dir) + table})
    assert not act(home_dir, "replace", "first", **{"with": "second"}).is_error
    assert memory(home_dir) == b"- a\n- second\n" + table
    assert git.subjects()[:2] == [
        'memory(self): replace "first" with "second"',
        'memory(self): add "| n | v | |---|---| | x | 1 |"',
    ]
    assert git("log", "-2", "--format=%an").splitlines()[1] == "unknown"
    assert git("show", "--numstat", "--format=", "HEAD") == "1\t1\tMEMORY.md"


def test_one_line_of_many_short_cjk_entries_changes(home_dir: Path) -> None:
    rules = [f"- 规则{i:02d}:先读文件再动手→不要猜" for i in range(28)]
    git_home(home_dir, {"MEMORY.md": "\n".join(rules) + "\n"})
    assert not act(home_dir, "replace", rules[17][2:], **{"with": "规则17:已改"}).is_error
    rules[17] = "- 规则17:已改"
    assert memory(home_dir).decode() == "\n".join(rules) + "\n"


def test_bytes_that_are_no_utf8_stay_and_are_told(home_dir: Path) -> None:
    gbk = "- 喜欢茶\n".encode("gbk")
    git_home(home_dir, {"MEMORY.md": b"- caf\xe9 opens at 9\n", "USER.md": gbk})
    assert not act(home_dir, "add", "x").is_error
    assert memory(home_dir) == b"- caf\xe9 opens at 9\n- x\n"
    soul = soulgit.compose_soul(home_dir)
    assert "- caf\ufffd opens at 9\n- x" in soul.text
    assert any("MEMORY.md line 1: byte 0xe9" in warning for warning in soul.warnings)
    then = soulgit.compose_soul(home_dir, at="HEAD")
    assert (then.text, then.warnings) == (soul.text, soul.warnings)


def test_a_byte_order_mark_reaches_no_prompt_and_stays_on_disk(home_dir: Path) -> None:
    mark = b"\xef\xbb\xbf"
    soul_file = mark + b'+++\nname = "Ada"\n+++\n# Soul\n'
    git = git_home(home_dir, {"SOUL.md": soul_file, "MEMORY.md": mark + b"- a\n"})
    assert not act(home_dir, "add", "b").is_error
    assert soulgit.compose_soul(home_dir).text == "## SOUL.md\n\n# Soul\n\n## MEMORY.md\n\n- a\n- b"
    assert memory(home_dir) == mark + b"- a\n- b\n"
    assert git("show", "--numstat", "--format=", "HEAD") == "1\t0\tMEMORY.md"


def test_a_lone_surrogate_is_refused_and_nothing_is_emptied(home_dir: Path) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- keep me\n"})
    assert act(home_dir, "add", json.loads('"bad \\ud83d end"')).is_error
    assert memory(home_dir) == b"- keep me\n"
    assert len(git.subjects()) == 1


@pytest.mark.parametrize(
    ("quoted", "kept"),
    [
        ('likes "tea" - hot', "likes “tea” — hot"),
        ("café at 9", "cafe\u0301 at 9"),
        ("a b", "a b"),
    ],
)
def test_a_text_quoted_with_other_signs_is_missed_loudly(
    home_dir: Path, quoted: str, kept: str
) -> None:
    text = "- likes “tea” — hot\n- cafe\u0301 at 9\n- a\u00a0b\n"
    git_home(home_dir, {"MEMORY.md": text})
    result = act(home_dir, "replace", quoted, **{"with": "X"})
    first, note = result.output.splitlines()
    assert result.is_error
    assert first == f"not found: {quoted}"
    assert note.startswith("differs only in ")
    assert note.endswith(kept)
    assert memory(home_dir).decode() == text


def test_a_name_that_is_no_utf8_stands_in_nobodys_way(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    put(home_dir, {os.fsdecode(b"notes-caf\xe9.md"): "x"})
    git("add", "-A")
    git("commit", "-qm", "odd name")
    assert not act(home_dir, "add", "x").is_error
    assert "- x" in soulgit.compose_soul(home_dir, at="HEAD").text
    git.agrees()


def test_an_ambiguous_text_changes_its_first_place_and_says_so(home_dir: Path) -> None:
    git_home(home_dir, {"MEMORY.md": "- Max likes tea\n- Maximum 3 calls\n- Max is away\n"})
    result = act(home_dir, "replace", "Max", **{"with": "Sam"})
    assert result.output.splitlines() == [
        "ok (replace → MEMORY.md); loads next session",
        "the text occurs 2 times more; changed was: - Max likes tea",
    ]
    assert memory(home_dir) == b"- Sam likes tea\n- Maximum 3 calls\n- Max is away\n"


@pytest.mark.parametrize(
    ("action", "text"),
    [("replace", ""), ("remove", ""), ("replace", None), ("add", ""), ("add", "   ")],
)
def test_an_empty_text_changes_nothing(home_dir: Path, action: str, text: str | None) -> None:
    git = git_home(home_dir, {"MEMORY.md": "abc\n"})
    assert act(home_dir, action, text).is_error
    assert memory(home_dir) == b"abc\n"
    assert len(git.subjects()) == 1


def test_a_part_of_a_long_entry_leaves_the_rest(home_dir: Path) -> None:
    git_home(home_dir, {"MEMORY.md": "- Box\n  A: one\n\n  B: two\n\n  C: three\n- next\n"})
    assert not act(home_dir, "replace", "B: two", **{"with": "B: 2"}).is_error
    assert memory(home_dir) == b"- Box\n  A: one\n\n  B: 2\n\n  C: three\n- next\n"


def test_a_miss_shows_the_closest_entries(home_dir: Path) -> None:
    git = git_home(
        home_dir, {"MEMORY.md": "- prefers dark mode in the editor\n- uses fish shell\n"}
    )
    result = act(home_dir, "remove", "prefers light mode")
    assert result.is_error
    assert result.output.splitlines()[:2] == [
        "not found: prefers light mode",
        "closest: prefers dark mode in the editor",
    ]
    assert len(git.subjects()) == 1


def test_an_edit_that_changes_nothing_makes_no_commit(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    result = act(home_dir, "replace", "a", **{"with": "a"})
    assert result.output.splitlines() == [
        "ok (replace → MEMORY.md); loads next session",
        "nothing changed",
    ]
    assert (result.is_error, result.revision) == (False, None)
    assert len(git.subjects()) == 1


def test_bullets_go_with_their_entry_and_doubles_are_told(home_dir: Path) -> None:
    git_home(home_dir, {"MEMORY.md": "- a\n- b\n- c\n"})
    assert not act(home_dir, "remove", "b").is_error
    assert memory(home_dir) == b"- a\n- c\n"
    assert "already there" in act(home_dir, "add", "c").output
    act(home_dir, "add", "line1\nline2\n# H")
    assert memory(home_dir) == b"- a\n- c\n- c\n- line1\nline2\n# H\n"


def test_a_delimiter_in_a_text_stays_one_action(home_dir: Path) -> None:
    git = git_home(home_dir, {"MEMORY.md": "one\n§\ntwo"})
    assert not act(home_dir, "add", "x\n§\ny").is_error
    assert memory(home_dir).decode() == "one\n§\ntwo\n- x\n§\ny\n"
    assert "\n    x\n    §\n    y\n" in git("log", "-1", "--format=%B")


def test_free_markdown_is_kept_and_one_line_added(home_dir: Path) -> None:
    markdown = (
        "# Notes\n\n| k | v |\n|---|---|\n| a | 1 |\n\n```sh\nmake  deploy\n```\n\n"
        "1. one\n   - nested\n     text  \n\n\nlast para\n"
    )
    git = git_home(home_dir, {"MEMORY.md": markdown})
    assert not act(home_dir, "add", "new").is_error
    assert memory(home_dir).decode() == markdown + "- new\n"
    assert git("show", "--numstat", "--format=", "HEAD") == "1\t0\tMEMORY.md"


@pytest.mark.parametrize(
    ("start", "inside"), [("```\nopen\n", "fence"), ("<!-- open\n", "comment")]
)
def test_an_open_end_is_told(home_dir: Path, start: str, inside: str) -> None:
    git_home(home_dir, {"MEMORY.md": start})
    result = act(home_dir, "add", "x")
    assert f"ends inside a {inside}" in result.output
    assert memory(home_dir).decode() == start + "- x\n"


def test_a_rule_under_a_paragraph_makes_no_heading_of_it(home_dir: Path) -> None:
    git_home(home_dir, {"MEMORY.md": "Prices checked today.\n"})
    act(home_dir, "add", "---\n## Two\nbody")
    assert memory(home_dir) == b"Prices checked today.\n- ---\n## Two\nbody\n"


def test_comments_go_from_the_persona_alone(home_dir: Path) -> None:
    soul_file = "<!-- edit\nthis -->\nHi\n```html\n<!-- keep -->\n```\nwrite `<!-- two -->`\n"
    git_home(home_dir, {"SOUL.md": soul_file, "USER.md": "<!-- only a comment -->\n"})
    for at in (None, "HEAD"):
        assert soulgit.compose_soul(home_dir, at=at).text == (
            "## SOUL.md\n\nHi\n```html\n```\nwrite ``\n\n## USER.md\n\n<!-- only a comment -->"
        )
    assert (home_dir / "SOUL.md").read_text() == soul_file


def test_frontmatter_of_a_memory_file_is_kept(home_dir: Path) -> None:
    broken = '---\ndescription: "abc "def" ghi"\ntags: [a, b\n---\n- a\n'
    git_home(home_dir, {"MEMORY.md": broken})
    assert not act(home_dir, "add", "b").is_error
    assert memory(home_dir).decode() == broken + "- b\n"


def test_blank_and_empty_files_compose_alike(home_dir: Path) -> None:
    git_home(home_dir, {"SOUL.md": "", "HEARTBEAT.md": "\n \n"})
    for at in (None, "HEAD"):
        assert soulgit.compose_soul(home_dir, at=at).text == "## SOUL.md\n\n\n\n## HEARTBEAT.md\n\n"


def test_crlf_files_gain_one_crlf_line(home_dir: Path, isolated: Path) -> None:
    for number, setting in enumerate(("", "[core]\n\tautocrlf = true\n")):
        user_config(isolated, setting)
        path = home_dir / str(number)
        git = git_home(path, {"MEMORY.md": b"# M\r\n- a\r\n", ".gitattributes": "x -text\n"})
        act(path, "add", "b")  # what autocrlf made of the first commit is captured with it
        assert not act(path, "add", "c").is_error
        assert memory(path) == b"# M\r\n- a\r\n- b\r\n- c\r\n"
        assert git.bytes("show", "HEAD:MEMORY.md") == memory(path)
        assert git("show", "--numstat", "--format=", "HEAD") == "1\t0\tMEMORY.md"
        assert soulgit.compose_soul(path).text == soulgit.compose_soul(path, at="HEAD").text
        assert git("status", "--porcelain") == ""


def test_text_attributes_do_not_make_a_home_dirty_for_ever(home_dir: Path) -> None:
    git = git_home(home_dir, {"MEMORY.md": b"- a\r\n"})
    put(home_dir, {".gitattributes": "* text=auto\n"})
    git("add", ".gitattributes")
    git("commit", "-qm", "attributes")
    for text in ("b", "c"):
        assert not act(home_dir, "add", text).is_error
    assert git.subjects()[:2] == ['memory(self): add "c"', 'memory(self): add "b"']


def test_a_foreign_owner_is_named_and_can_be_trusted(home_dir: Path, isolated: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    git_home(home_dir, BASE)
    for path in (home_dir, home_dir / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(RepositoryRefused, match="another user") as caught:
        soulgit.memory_tool(home_dir)
    assert f"safe.directory {home_dir}" in caught.value.hint
    assert memory(home_dir) == b"- a\n"
    user_config(isolated, f"[safe]\n\tdirectory = {home_dir}\n")
    assert not act(home_dir, "add", "x").is_error


@pytest.mark.parametrize(
    ("extension", "value", "says"),
    [("refStorage", "reftable", "refs migrate"), ("objectFormat", "sha256", "new home")],
)
def test_formats_that_libgit2_cannot_read_are_named_first(
    home_dir: Path, extension: str, value: str, says: str
) -> None:
    git = git_home(home_dir, BASE)
    git("config", "core.repositoryformatversion", "1")
    git("config", f"extensions.{extension}", value)
    with pytest.raises(RepositoryRefused) as caught:
        soulgit.memory_tool(home_dir)
    assert says in caught.value.hint
    assert memory(home_dir) == b"- a\n"


def test_init_is_plain_whatever_git_prefers(home_dir: Path, isolated: Path) -> None:
    user_config(isolated, "[init]\n\tdefaultRefFormat = reftable\n\tdefaultBranch = trunk\n")
    assert not act(home_dir, "add", "x").is_error
    git = Git(home_dir)
    assert git("branch", "--show-current") == "main"
    assert git("config", "core.repositoryformatversion") == "0"


def test_a_shallow_clone_works_as_far_as_it_goes(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    for number in range(4):
        put(home_dir, {"MEMORY.md": f"- {number}\n"})
        git("commit", "-qam", str(number))
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth", "2", f"file://{home_dir}", str(clone))
    with pytest.raises(RevisionNotFound, match="shallow"):
        soulgit.compose_soul(clone, at="HEAD~3")
    assert not act(clone, "add", "x").is_error
    done = subprocess.run(
        [sys.executable, "-m", "soulgit", "log", str(clone)], capture_output=True, check=True
    )
    assert [line.split(": ", 1)[1] for line in done.stdout.decode().splitlines()] == [
        'memory(self): add "x"', "3", "2",
    ]  # fmt: skip
    assert b"the history is cut here" in done.stderr


def test_a_repository_without_commits_is_adopted(home_dir: Path) -> None:
    git = Git(home_dir)
    git("init", "-q")
    put(home_dir, {"SOUL.md": "s\n"})
    with pytest.raises(RevisionNotFound, match="no commits yet"):
        soulgit.compose_soul(home_dir, at="HEAD")
    assert not act(home_dir, "add", "x").is_error
    assert git.subjects() == ['memory(self): add "x"', "capture: added SOUL.md"]
    git.agrees()


def test_a_detached_head_takes_no_memory(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("checkout", "-q", "--detach")
    result = act(home_dir, "add", "x")
    assert result.is_error
    assert "git switch" in result.output
    assert memory(home_dir) == b"- a\n"


def test_a_linked_worktree_is_written_on_its_own_branch(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    side = tmp_path / "side"
    git("worktree", "add", "-q", "-b", "side", str(side))
    assert not act(side, "add", "in side").is_error
    assert git("log", "-1", "--format=%s", "side") == 'memory(self): add "in side"'
    assert git("log", "-1", "--format=%s", "main") == "by hand"
    assert memory(home_dir) == b"- a\n"
    Git(side).agrees()


@pytest.mark.parametrize("signing", ["[commit]\n\tgpgsign = true\n[user]\n\tsigningkey = NOPE\n"])
def test_signing_does_not_touch_a_homes_commits(
    home_dir: Path, isolated: Path, signing: str
) -> None:
    git = git_home(home_dir, BASE)
    user_config(isolated, signing)
    assert not act(home_dir, "add", "x").is_error
    assert "gpgsig" not in git("cat-file", "-p", "HEAD")


def test_the_companion_writes_without_any_configuration(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    assert not act(home_dir, "add", "x").is_error
    who = git("log", "-1", "--format=%an <%ae> / %cn")
    assert who == "ava <ava@soulgit.invalid> / ava"


def test_the_users_hooks_do_not_run(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    hook = home_dir / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert not act(home_dir, "add", "x").is_error
    git.agrees()


def test_what_the_user_staged_stays_staged(home_dir: Path) -> None:
    git = git_home(home_dir, {**BASE, "draft.txt": "1\n"})
    put(home_dir, {"draft.txt": "2\n"})
    git("add", "draft.txt")
    assert not act(home_dir, "add", "x").is_error
    assert git("show", "--name-only", "--format=", "HEAD") == "MEMORY.md"
    assert git("diff", "--cached", "--name-only") == "draft.txt"


def test_a_broken_configuration_is_named_by_file_and_line(home_dir: Path, isolated: Path) -> None:
    git_home(home_dir, BASE)
    user_config(isolated, "[user]\n name = x\n[core\n")
    with pytest.raises(RepositoryRefused, match=r"\.gitconfig line 3"):
        soulgit.memory_tool(home_dir)
    assert memory(home_dir) == b"- a\n"
    for harmless in ("\ufeff[user]\n\tname=Q\n", "[core]\n\tautocrlf\n", "[strange]\n\tx = y\n"):
        user_config(isolated, harmless)
        assert not act(home_dir, "add", "x").is_error


def test_nothing_is_written_to_an_enclosing_repository(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    inner = home_dir / "agents" / "ada"
    put(inner, {"SOUL.md": "s\n", "MEMORY.md": "- a\n"})
    result = act(inner, "add", "x")
    assert result.is_error
    assert "soulgit init" in result.output
    assert len(git.subjects()) == 1
    assert sorted(path.name for path in inner.iterdir()) == ["MEMORY.md", "SOUL.md"]


def test_a_link_that_leads_out_is_refused_and_never_composed(
    home_dir: Path, tmp_path: Path
) -> None:
    put(tmp_path / "shared", {"M.md": "- real\n"})
    git = git_home(home_dir, {"USER.md": "u\n"})
    (home_dir / "MEMORY.md").symlink_to(tmp_path / "shared" / "M.md")
    git("add", "-A")
    git("commit", "-qm", "link")
    assert act(home_dir, "add", "x").is_error
    assert (home_dir / "MEMORY.md").is_symlink()
    assert (tmp_path / "shared" / "M.md").read_text() == "- real\n"
    for at in (None, "HEAD"):
        with pytest.raises(UnsafeFile, match=r"MEMORY\.md is a link to"):
            soulgit.compose_soul(home_dir, at=at)


def test_a_link_inside_the_home_is_written_through(home_dir: Path) -> None:
    git = git_home(home_dir, {"notes/m.md": "- real\n", "SOUL.md": "s\n"})
    (home_dir / "MEMORY.md").symlink_to("notes/m.md")
    assert not act(home_dir, "add", "x").is_error
    assert (home_dir / "MEMORY.md").is_symlink()
    assert (home_dir / "notes/m.md").read_text() == "- real\n- x\n"
    assert git.bytes("show", "HEAD:notes/m.md") == b"- real\n- x\n"
    assert git("ls-tree", "HEAD", "MEMORY.md").startswith("120000 ")
    assert soulgit.compose_soul(home_dir, at="HEAD").text == soulgit.compose_soul(home_dir).text
    git.agrees()


def test_a_write_ends_a_hard_link_to_another_home(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    git_home(one, BASE)
    git_home(other, {"SOUL.md": "s\n"})
    (other / "USER.md").hardlink_to(one / "USER.md")
    assert "- u" in soulgit.compose_soul(other).text
    assert not act(other, "add", "x", target="user").is_error
    assert (one / "USER.md").read_text() == "- u\n"
    assert (other / "USER.md").read_text() == "- u\n- x\n"


def test_names_count_to_the_letter_and_others_are_told(home_dir: Path) -> None:
    put(home_dir, {"MEMORY.md": "- upper\n", "memory.md": "- lower\n", "soul.md": "only lower\n"})
    git_home(home_dir, {})
    for at in (None, "HEAD"):
        soul = soulgit.compose_soul(home_dir, at=at)
        assert soul.found == ["MEMORY.md"]
        assert [warning.split()[0] for warning in soul.warnings] == ["memory.md", "soul.md"]


def test_mode_of_a_file_is_kept(home_dir: Path) -> None:
    git_home(home_dir, BASE)
    (home_dir / "MEMORY.md").chmod(0o660)
    umask = os.umask(0o077)
    try:
        assert not act(home_dir, "add", "x").is_error
    finally:
        os.umask(umask)
    assert (home_dir / "MEMORY.md").stat().st_mode & 0o777 == 0o660


def test_a_sparse_checkout_hides_no_memory_silently(home_dir: Path) -> None:
    git = git_home(home_dir, {**BASE, "docs/x": "x\n"})
    git("sparse-checkout", "set", "--no-cone", "/docs/", "/SOUL.md")
    with pytest.raises(RepositoryRefused, match="sparse checkout hides"):
        soulgit.compose_soul(home_dir)
    assert "sparse-checkout disable" in act(home_dir, "add", "x").output
    assert "- a" in soulgit.compose_soul(home_dir, at="HEAD").text
    assert len(git.subjects()) == 1


def test_nested_repositories_are_left_alone(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git_home(home_dir / "skills" / "x", {"SKILL.md": "x\n"})
    assert not act(home_dir, "add", "x").is_error
    assert git("ls-files", "-s").count("160000") == 0
    assert git("status", "--porcelain") == "?? skills/"


@pytest.mark.parametrize("lock", ["index.lock", "refs/heads/main.lock"])
def test_a_lock_of_gits_is_waited_for_then_named(home_dir: Path, lock: str) -> None:
    git = git_home(home_dir, BASE)
    put(home_dir / ".git", {lock: ""})
    home = soulgit.Home.open(home_dir, wait_seconds=0.05)
    result = soulgit.memory_tool(home).execute({"action": "add", "text": "x"})
    assert result.is_error
    assert str(home_dir / ".git" / lock) in result.output
    assert "seconds old" in result.output
    assert (home_dir / ".git" / lock).exists()
    assert memory(home_dir) == b"- a\n"
    assert len(git.subjects()) == 1
    (home_dir / ".git" / lock).unlink()
    git.agrees()


def test_an_orphan_edit_is_captured_before_the_next_action(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    put(home_dir, {"MEMORY.md": "- a\n- written, then killed\n"})
    assert not act(home_dir, "add", "next").is_error
    captured = 'memory(self): add "written, then killed"'
    assert git.subjects()[:2] == ['memory(self): add "next"', captured]
    assert "Soul-Action: capture" in git("log", "-1", "--format=%B", "HEAD~1")
    assert git("show", "--numstat", "--format=", "HEAD") == "1\t0\tMEMORY.md"


@pytest.mark.parametrize("lead", range(4))
def test_a_cut_is_told_and_falls_between_characters(home_dir: Path, lead: int) -> None:
    whole = ("a" * lead + "🦞" * (524_288 + 3)).encode()
    git_home(home_dir, {"SOUL.md": whole})
    for at in (None, "HEAD"):
        soul = soulgit.compose_soul(home_dir, at=at)
        body = soul.text.removeprefix("## SOUL.md\n\n")
        body = body.removesuffix("\n[truncated: exceeds 2 MB bootstrap cap]")
        assert body == "a" * lead + "🦞" * ((2_097_152 - lead) // 4)
        assert soul.files[0].truncated
        assert "SOUL.md is cut: 2,097,152 of its" in soul.warnings[0]
    assert (home_dir / "SOUL.md").read_bytes() == whole


@pytest.mark.parametrize(
    "name", ["A <b>", "   ", "Ann\nBob", "bad", "世凪 🦞", "x" * 5000, "<>", "..", "\x00x"]
)
def test_any_name_makes_an_author_that_git_accepts(home_dir: Path, name: str) -> None:
    put(home_dir, {"SOUL.md": f"+++\nname = {json.dumps(name)}\n+++\nHi\n"})
    assert not act(home_dir, "add", "x").is_error
    git = Git(home_dir)
    git.agrees()
    assert git("log", "-1", "--format=%an <%ae>").endswith("@soulgit.invalid>")


def test_identities_are_cleaned_where_they_are_made() -> None:
    assert Identity.clean("Ann\0Bob <x>", "a b@c\n") == Identity("Ann Bob x", "ab@c")
    assert Identity.clean("\ud83d", "") == Identity("unknown", "unknown@soulgit.invalid")
    assert Identity.companion("Ava Lovelace").email == "ava-lovelace@soulgit.invalid"


def test_errors_of_the_library_are_all_soulgits_own(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", "a\0b", "", "x" * 5000):
        with pytest.raises(SoulgitError):
            soulgit.compose_soul(path)


def test_a_session_keeps_the_soul_it_was_opened_with(home_dir: Path) -> None:
    git_home(home_dir, BASE)
    opened = soulgit.compose_soul(home_dir, at="HEAD")
    put(home_dir, {"SOUL.md": "# Soul v2\n"})
    assert act(home_dir, "add", "later").is_error
    done = settling.decide(home_dir, "continue", Identity("Pat", "pat@example.org"))
    assert not act(home_dir, "add", "later").is_error
    assert soulgit.compose_soul(home_dir, at=opened.revision) == opened
    now = soulgit.compose_soul(home_dir)
    assert now.text == soulgit.compose_soul(home_dir, at="HEAD").text
    assert (now.persona, done.number) != (opened.persona, 1)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_companion_made_of_another_takes_along_what_is_said(
    home_dir: Path, tmp_path: Path, keeps: bool
) -> None:
    git = git_home(home_dir, BASE)
    act(home_dir, "add", "private fact")
    twin = tmp_path / "twin"
    by = Identity("Pat", "pat@example.org")
    forking.fork(home_dir, "twin", by, keep_memories=keeps, directory=str(twin))
    act(twin, "add", "fact of the twin")
    act(home_dir, "add", "fact of the first")
    assert (b"private fact" in memory(twin)) == keeps
    assert (twin / "USER.md").exists() == keeps
    assert b"fact of the first" not in memory(twin)
    assert b"fact of the twin" not in memory(home_dir)
    assert git("log", "-1", "--format=%s", "twin~1").startswith("fork: twin from ")


def test_a_group_keeps_its_rights_and_the_doctor_tells_of_the_setting(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("config", "core.sharedRepository", "group")
    (home_dir / "MEMORY.md").chmod(0o660)
    umask = os.umask(0o077)
    try:
        assert not act(home_dir, "add", "x").is_error
    finally:
        os.umask(umask)
    assert (home_dir / "MEMORY.md").stat().st_mode & 0o777 == 0o660
    assert memory(home_dir) == b"- a\n- x\n"
    done = subprocess.run(
        [sys.executable, "-m", "soulgit", "doctor", str(home_dir)], capture_output=True, check=True
    )
    assert b"core.sharedRepository=group" in done.stdout
    git.agrees()


@pytest.fixture
def mounted(home_dir: Path, tmp_path: Path) -> Iterator[Path]:
    """What is mounted where a home has its memory, as `docker -v FILE:FILE` does."""
    source = tmp_path / "mounted.md"
    source.write_text("- mounted\n")
    git_home(home_dir, BASE)
    mount = ["mount", "--bind", str(source), str(home_dir / "MEMORY.md")]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs leave to mount")
    yield source
    subprocess.run(["umount", str(home_dir / "MEMORY.md")], check=True)


def test_a_file_that_is_a_mount_point_is_written_in_place(home_dir: Path, mounted: Path) -> None:
    names = sorted(path.name for path in home_dir.iterdir())
    for action, text, more in (
        ("add", "x", {}),
        ("add", "a longer one " * 500, {}),
        ("replace", "a longer one " * 500, {"with": "y"}),
    ):
        result = act(home_dir, action, text, **more)
        assert not result.is_error, result.output
    assert mounted.read_bytes() == memory(home_dir) == b"- mounted\n- x\n- y\n"
    assert mounted.samefile(home_dir / "MEMORY.md")
    assert sorted(path.name for path in home_dir.iterdir()) == names
    assert list((home_dir / ".git" / "soulgit" / "scratch").iterdir()) == []
    git = Git(home_dir)
    assert git.bytes("show", "HEAD:MEMORY.md") == memory(home_dir)
    assert git.subjects()[3:] == ["memory(self): 1 entry gone, 1 added", "by hand"]
    git.agrees()
