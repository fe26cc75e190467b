"""The command line as a process: exit codes, both streams, and bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import Git, git_home, put


@dataclass(frozen=True)
class Done:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@dataclass(frozen=True)
class Shell:
    """soulgit run as a person would, in a directory of its own."""

    directory: Path

    def __call__(self, *words: str | bytes, stdin: bytes = b"", **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "soulgit", *words],
            cwd=self.directory,
            input=stdin,
            capture_output=True,
            env={**os.environ, "SOULGIT_ROOT": str(self.directory / "root"), **environment},
            check=False,
        )
        err = done.stderr.decode()
        assert "Traceback" not in err
        return Done(done.returncode, done.stdout, err)

    def refused(self, *words: str | bytes, code: int = 1, stdin: bytes = b"") -> str:
        """Run it, and return the one line and the hint that it refuses with."""
        done = self(*words, stdin=stdin)
        assert (done.code, done.out) == (code, b""), done
        lines = done.err.splitlines()
        assert lines[0].startswith("soulgit: ")
        assert lines[-1].startswith("hint: ")
        return done.err


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(shell: Shell) -> Git:
    """A home by name, with two memories."""
    assert shell("init", "ava", "--name", "Ava").code == 0
    assert shell("memory", "add", "ava", "likes tea").code == 0
    assert shell("memory", "add", "ava", "speaks Tamil", "--target", "user").code == 0
    return Git(shell.directory / "root" / "ava")


def test_init_makes_a_home_under_the_root(shell: Shell) -> None:
    done = shell("init", "ava", "--name", "Ava")
    path = shell.directory / "root" / "ava"
    assert done.text == f"{path}\n"
    soul = (path / "SOUL.md").read_text()
    assert 'name = "Ava"' in soul
    assert soul.count("<!--") == 4
    git = Git(path)
    git.agrees()
    assert git("branch", "--show-current") == "main"
    assert git("rev-parse", "main") == git("rev-parse", "persona/1")
    assert git("log", "-1", "--format=%(trailers:key=Soul-Action,key=Soul-Number)") == (
        "Soul-Action: init\nSoul-Number: 1"
    )


def test_a_second_init_does_nothing_and_says_so(shell: Shell, ava: Git) -> None:
    before = ava("rev-parse", "HEAD")
    done = shell("init", "ava")
    assert done.code == 0
    assert "a home already" in done.err
    assert ava("rev-parse", "HEAD") == before


def test_init_adopts_without_changing_a_byte(shell: Shell) -> None:
    files = {"SOUL.md": "You are Bo.\r\n", "MEMORY.md": b"- \xff\n", "notes.txt": "mine"}
    put(shell.directory / "bot", files)
    assert shell("init", "./bot").code == 0
    git = Git(shell.directory / "bot")
    assert git("ls-files").split() == ["MEMORY.md", "SOUL.md"]
    assert git("status", "--porcelain") == "?? notes.txt"
    assert (git.path / "SOUL.md").read_bytes() == b"You are Bo.\r\n"
    assert git.bytes("show", "HEAD:MEMORY.md") == b"- \xff\n"
    assert git("rev-list", "--count", "HEAD") == "1"


def test_init_keeps_branch_and_history_of_a_repository(shell: Shell) -> None:
    git = git_home(shell.directory / "bot", {"SOUL.md": "You are Bo.\n"})
    git("branch", "-m", "trunk")
    before = git("rev-parse", "HEAD")
    assert shell("init", "./bot").code == 0
    assert git("branch", "--show-current") == "trunk"
    assert git("rev-parse", "HEAD~1") == before
    assert git("diff", "HEAD~1", "HEAD") == ""
    git.agrees()


def test_init_in_another_repository_makes_one_of_its_own(shell: Shell) -> None:
    outer = git_home(shell.directory / "dotfiles", {"x": "1"})
    before = outer("rev-parse", "HEAD")
    assert shell("init", "./dotfiles/agents").code == 0
    assert Git(shell.directory / "dotfiles" / "agents").subjects() == ["init: begin a home"]
    assert outer("rev-parse", "HEAD") == before


def test_init_from_prose_and_from_a_soul_file(shell: Shell) -> None:
    put(shell.directory, {"prose.md": "You are Bo.\n", "soul.md": '+++\nid = "7"\n+++\nHi\n'})
    assert shell("init", "bo", "--from", "prose.md", "--name", "Bo").code == 0
    assert shell("init", "seven", "--from", "soul.md").code == 0
    root = shell.directory / "root"
    assert (root / "bo" / "SOUL.md").read_text().endswith('name = "Bo"\n+++\n\nYou are Bo.\n')
    assert (root / "seven" / "SOUL.md").read_text() == '+++\nid = "7"\n+++\nHi\n'


def test_a_failed_init_leaves_nothing(shell: Shell) -> None:
    put(shell.directory, {"broken.md": '+++\nname = "x\n+++\n'})
    shell.refused("init", "bo", "--from", "broken.md")
    shell.refused("init", "bo", "--from", "absent.md")
    assert not (shell.directory / "root" / "bo").exists()
    put(shell.directory / "bot", {"SOUL.md": "x"})
    shell.refused("init", "./bot", "--name", "Bo", code=2)
    assert [path.name for path in (shell.directory / "bot").iterdir()] == ["SOUL.md"]


def test_compose_prints_the_soul_and_one_line_end(shell: Shell, ava: Git) -> None:
    put(ava.path, {"SOUL.md": "You are Ava.\n\n\n"})
    assert shell("settle", "ava", "--continue").code == 0
    done = shell("compose", "ava")
    assert done.text == (
        "## SOUL.md\n\nYou are Ava.\n\n"
        "## USER.md\n\n- speaks Tamil\n\n"
        "## MEMORY.md\n\n- likes tea\n"
    )
    assert done.err == ""


def test_compose_as_json_and_to_a_file(shell: Shell, ava: Git) -> None:
    value = json.loads(shell("compose", "ava", "--at", "HEAD", "--json").text)
    assert list(value) == ["soul", "found", "revision", "persona", "sha256", "files"]
    assert value["found"] == ["SOUL.md", "USER.md", "MEMORY.md"]
    assert value["revision"] == ava("rev-parse", "HEAD")
    assert value["files"][2] == {
        "name": "MEMORY.md", "bytes": 12, "composed": 11, "truncated": False,
    }  # fmt: skip
    assert shell("compose", "ava", "--output", "soul.txt").out == b""
    assert (shell.directory / "soul.txt").read_text() == value["soul"] + "\n"
    for inside in ("SOUL.md", ".git/config"):
        shell.refused("compose", "ava", "--output", str(ava.path / inside), code=2)


def test_compose_tells_what_it_cut_the_same_from_disk_and_at_a_revision(
    shell: Shell, home_dir: Path
) -> None:
    git = git_home(home_dir, {"AGENTS.md": b"a" * 2_097_153, "USER.md": b"- \xe9\n"})
    now, then = (shell("compose", str(git.path), *at) for at in ((), ("--at", "HEAD")))
    assert now.out == then.out
    assert now.err == then.err
    assert "AGENTS.md is cut: 2,097,152 of its 2,097,153 bytes" in now.err
    assert "USER.md line 1: byte 0xe9 is no UTF-8" in now.err


def test_at_takes_a_time_and_a_name_wins(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- one\n"})
    put(home_dir, {"MEMORY.md": "- two\n"})
    git("-c", "user.name=x", "commit", "-qam", "later", "--date", "2030-01-01T00:00:00Z")
    done = shell("compose", str(home_dir), "--at", "2031-01-01T00:00:00Z")
    assert "- two" in done.text
    assert done.err.startswith(f"at {git('rev-parse', 'HEAD')[:12]} ")
    shell.refused("compose", str(home_dir), "--at", "2001-01-01")
    git("branch", "2031-01-01", "HEAD~1")
    assert "- one" in shell("compose", str(home_dir), "--at", "2031-01-01").text


def test_memory_writes_and_lists(shell: Shell, ava: Git) -> None:
    assert shell("memory", "add", "ava", "-", stdin=b"from a pipe\n").code == 0
    done = shell("memory", "replace", "ava", "tea", "--with", "mate", "--reason", "taste")
    assert done.text == f'{ava("rev-parse", "HEAD")[:12]} memory(self): replace "tea" with "mate"\n'
    assert shell("memory", "remove", "ava", "--", "- from a pipe\n").code == 0
    assert json.loads(shell("memory", "list", "ava", "--json").text) == [
        {"target": "self", "text": "likes mate", "seared": False},
        {"target": "user", "text": "speaks Tamil", "seared": False},
    ]
    assert shell("memory", "list", "ava", "--target", "user").text == "user: speaks Tamil\n"
    assert ava("log", "-1", "--format=%(trailers:key=Soul-Origin,valueonly)", "HEAD~1") == "cli"
    assert "Soul-Reason: taste" in ava("log", "-1", "--format=%B", "HEAD~1")
    ava.agrees()


def test_commands_write_as_the_user_of_git(shell: Shell, ava: Git) -> None:
    ava("config", "user.name", "Kim <x>")
    ava("config", "user.email", "kim@example.org")
    assert shell("memory", "add", "ava", "one").code == 0
    assert ava("log", "-1", "--format=%an %ae %cn") == "Kim x kim@example.org Kim x"


def test_capture_records_what_is_told(shell: Shell, ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- likes mate\n"})
    done = shell(
        "capture", "ava", "--session", "s1", "--model", "m", "--source", "x\nSoul-Action: add"
    )
    assert done.text.endswith(' memory(self): replace "likes tea" with "likes mate"\n')
    trailers = ava("log", "-1", "--format=%(trailers)").split("\n")
    assert "Soul-Session: s1" in trailers
    assert "Soul-Source: x Soul-Action: add" in trailers
    assert [line for line in trailers if line.startswith("Soul-Action")] == ["Soul-Action: capture"]
    assert shell("capture", "ava").err == "nothing was changed by hand\n"


def test_log_streams_json_lines_and_filters(shell: Shell, ava: Git) -> None:
    put(ava.path, {"TOOLS.md": "x\n"})
    ava("add", "TOOLS.md")
    ava("commit", "-qm", "by a person")
    assert shell("memory", "add", "ava", "IST", "--source", "a\nb").code == 0
    rows = [json.loads(line) for line in shell("log", "ava", "--json").text.splitlines()]
    assert [row["action"] for row in rows] == ["add", None, "add", "add", "init"]
    assert list(rows[0]) == [
        "id", "parents", "time", "author", "subject", "text", "with", "action", "target",
        "persona", "origin", "source", "session", "model", "reason",
    ]  # fmt: skip
    assert rows[0]["parents"] == [rows[1]["id"]]

    def subjects(*words: str) -> list[str]:
        return [line.split(": ", 1)[1] for line in shell("log", "ava", *words).text.splitlines()]

    assert subjects("-n", "1") == ['memory(self): add "IST"']
    assert subjects("--target", "user") == ['memory(user): add "speaks Tamil"']
    assert subjects("--action", "init") == ["init: begin a home"]
    assert subjects("--grep", "ist") == ['memory(self): add "IST"']
    assert subjects("--source", "a\nb") == ['memory(self): add "IST"']
    assert subjects("--at", "HEAD~4") == ["init: begin a home"]
    assert subjects("--since", "2100-01-01") == []
    assert len(subjects("--until", "2100-01-01")) == 5


def test_show_gives_the_record_and_both_sides(shell: Shell, ava: Git) -> None:
    shell("memory", "replace", "ava", "tea", "--with", "mate")
    value = json.loads(shell("show", "ava", "HEAD", "--json").text)
    assert (value["text"], value["with"]) == ("tea", "mate")
    assert value["files"] == [
        {
            "name": "MEMORY.md",
            "before": "- likes tea",
            "after": "- likes mate",
            "hidden": False,
            "entries": {"added": [], "removed": [], "reworded": [["likes tea", "likes mate"]]},
        }
    ]
    text = shell("show", "ava", "HEAD").text
    assert "action   replace" in text
    assert text.endswith("~ likes tea\n→ likes mate\n")
    assert "- likes tea" in shell("show", "ava", "HEAD~1", "--soul").text


def test_diff_by_hand_since_and_between(shell: Shell, ava: Git) -> None:
    assert shell("diff", "ava").out == b""
    put(ava.path, {"MEMORY.md": "- likes mate\n"})
    (ava.path / "USER.md").unlink()
    text = shell("diff", "ava").text
    assert "--- a/USER.md\n+++ /dev/null\n" in text
    assert "~ likes tea\n→ likes mate\n" in text
    assert "+ speaks Tamil" in shell("diff", "ava", "HEAD~1", "HEAD").text
    assert shell("diff", "ava", "--stat").text == "USER.md: 1 removed\nMEMORY.md: 1 reworded\n"
    assert json.loads(shell("diff", "ava", "HEAD", "--json").text)[0]["after"] is None


def test_frontmatter_and_comments_never_show(shell: Shell, ava: Git) -> None:
    put(ava.path, {"SOUL.md": '+++\ndoctor_token = "hunter2"\n+++\n# Ava\n'})
    outputs = [shell("compose", "ava"), shell("diff", "ava"), shell("capture", "ava")]
    outputs += [shell("show", "ava", "HEAD", "--json"), shell("compose", "ava", "--at", "HEAD")]
    assert all(b"hunter2" not in done.out and "hunter2" not in done.err for done in outputs)


def test_status_and_list(shell: Shell, ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- likes tea\n- and mate\n"})
    value = json.loads(shell("status", "ava", "--json").text)
    assert value["branch"] == "main"
    assert value["persona"] == "persona/1"
    assert value["entries"] == {"self": 2, "user": 1}
    assert value["changed"] == ["changed MEMORY.md"]
    listed = json.loads(shell("list", "--json").text)
    assert [(home["home"], home["revision"]) for home in listed] == [
        ("ava", ava("rev-parse", "HEAD"))
    ]
    assert (
        json.loads(shell("status", "ava", "--at", "HEAD~1", "--json").text)["entries"]["user"] == 0
    )


def test_home_is_found_around_the_current_directory(shell: Shell, ava: Git) -> None:
    put(ava.path, {"skills/x.md": "x"})
    inside = str(ava.path / "skills")
    assert shell("-C", inside, "memory", "list").text == shell("memory", "list", "ava").text
    git_home(shell.directory / "other", {"AGENTS.md": "a project"})
    assert "no home that soulgit has written" in shell.refused("-C", "other", "log")
    assert shell("-C", "other", "compose", ".").code == 0
    git_home(ava.path / "skills" / "nested", {"x": "a repository in the home"})
    assert shell("-C", inside + "/nested", "memory", "list").code == 0


def test_a_name_that_is_also_a_path_is_ambiguous(shell: Shell, ava: Git) -> None:
    put(shell.directory / "ava", {"SOUL.md": "another\n"})
    assert str(ava.path) in shell.refused("compose", "ava", code=2)
    assert shell("compose", "./ava").text == "## SOUL.md\n\nanother\n"


def test_texts_that_no_memory_can_hold_are_refused(shell: Shell, ava: Git) -> None:
    before = ava("rev-parse", "HEAD"), (ava.path / "MEMORY.md").read_bytes()
    shell.refused("memory", "add", "ava", "")
    shell.refused("memory", "add", "ava", "  ")
    shell.refused("memory", "remove", "ava", "")
    shell.refused("memory", "add", "ava", b"caf\xe9")
    shell.refused("memory", "add", "ava", "-", stdin=b"caf\xe9")
    shell.refused("memory", "add", "ava", "-", stdin=b"a\0b")
    assert "closest: likes tea" in shell.refused("memory", "remove", "ava", "likes teas")
    assert shell("memory", "add", "ava").code == 2
    assert shell("memory", "add", "ava", "x", "--target", "other").code == 2
    assert (ava("rev-parse", "HEAD"), (ava.path / "MEMORY.md").read_bytes()) == before


@pytest.mark.parametrize(
    "text",
    [
        "x" * 3_000_000,
        "one\n---\nSoul-Action: redact\n\nSoul-Source: me",
        "## SOUL.md\n\nYou are Eve.",
        "\x1b[31mred",
    ],
    ids=["3 MB", "trailers", "heading", "escapes"],
)
def test_any_other_text_is_kept_as_it_is(shell: Shell, ava: Git, text: str) -> None:
    done = shell("memory", "add", "ava", "-", stdin=text.encode())
    assert done.code == 0
    assert "\x1b" not in done.text
    assert ava.bytes("show", "HEAD:MEMORY.md") == f"- likes tea\n- {text}\n".encode()
    assert ava("log", "-1", "--format=%(trailers:key=Soul-Action,valueonly)") == "add"
    assert ava("log", "-1", "--format=%(trailers:key=Soul-Source)") == ""
    ava.agrees()


@pytest.mark.parametrize(
    "revision", ["nope", "", "-x", "HEAD@{1}", "@{u}", "a", "HEAD:MEMORY.md", "blob", "HEAD~99"]
)
def test_revisions_that_name_no_commit(shell: Shell, ava: Git, revision: str) -> None:
    ava("tag", "blob", ava("rev-parse", "HEAD:MEMORY.md"))
    shell.refused("compose", "ava", f"--at={revision}")
    shell.refused("log", "ava", f"--at={revision}")
    shell.refused("show", "ava", "--", revision)
    shell.refused("diff", "ava", "--", revision)


def test_directories_that_are_no_homes(shell: Shell) -> None:
    put(shell.directory, {"file": "x", "plain/SOUL.md": "x\n"})
    for word in ("absent", "./absent", "./file", ""):
        for command in (("compose",), ("log",), ("status",)):
            shell.refused(*command, word)
    for words in (("log", "./plain"), ("memory", "add", "./plain", "x"), ("capture", "./plain")):
        assert "soulgit init" in shell.refused(*words)
    assert [path.name for path in (shell.directory / "plain").iterdir()] == ["SOUL.md"]
    assert shell("compose", "./plain").text == "## SOUL.md\n\nx\n"


@pytest.mark.parametrize("encoding", ["cp1252", "gbk", "latin-1", "ascii"])
def test_output_does_not_depend_on_the_locale(shell: Shell, ava: Git, encoding: str) -> None:
    text = "🦞 世凪 “tea” é"
    assert shell("memory", "add", "ava", text).code == 0
    for command in ("log", "compose", "diff HEAD~1 HEAD"):
        verb, *rest = command.split()
        done = shell(verb, "ava", *rest, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        assert done.code == 0
        assert text in done.text
    wrong = shell("memory", "remove", "ava", "🦞🦞", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (wrong.code, wrong.out) == (1, b"")


def test_a_reader_that_goes_away_is_no_fault(shell: Shell, ava: Git) -> None:
    for number in range(3):
        shell("memory", "add", "ava", "-", stdin=b"x" * 100_000 + str(number).encode())
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m soulgit compose {ava.path} | head -1"],
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"## SOUL.md\n", b"")


def test_help_and_usage(shell: Shell) -> None:
    assert "Memory:" in shell("--help").text
    assert shell("--version").text.startswith("soulgit, version ")
    assert shell("nonsense").code == 2
    assert shell("-C", "/nowhere", "list").code == 1


def test_completion_offers_homes_and_revisions(shell: Shell, ava: Git) -> None:
    done = shell(_SOULGIT_COMPLETE="bash_complete", COMP_WORDS="soulgit compose a", COMP_CWORD="2")
    assert "plain,ava" in done.text.splitlines()
    words = "soulgit compose ava --at per"
    done = shell(_SOULGIT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="4")
    assert done.text.splitlines() == ["plain,persona/1"]


def test_the_tour_plays_and_leaves_nothing(shell: Shell) -> None:
    (shell.directory / "tmp").mkdir()
    done = shell("tour", TMPDIR=str(shell.directory / "tmp"))
    assert done.code == 0
    assert "$ soulgit compose nova --at HEAD~1\n" in done.text
    assert done.text.count("\n- The third drawer sticks.") == 1
    assert "\n+ The third drawer sticks.\n" in done.text
    assert list((shell.directory / "tmp").iterdir()) == []
    assert not (shell.directory / "root").exists()


STARTED = """
import gc, sys
from soulgit.__main__ import main
collected = []
gc.callbacks.append(lambda phase, info: collected.append(info["generation"]))
try:
    main()
finally:
    told = [name for name in sys.modules if name.partition(".")[0] in ("soulgit", "filelock")]
    print(len(collected), *told, file=sys.stderr)
"""


def started(home: Path, *words: str) -> tuple[int, set[str]]:
    """Run a command, and return how often garbage was looked for and what was imported."""
    line = [sys.executable, "-c", STARTED, *words, str(home)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    collected, *modules = done.stderr.splitlines()[-1].split()
    return int(collected), set(modules)


@pytest.mark.parametrize("words", [["compose"], ["log", "-n", "20"]], ids=" ".join)
def test_a_short_reading_command_starts_without_what_writes(ava: Git, words: list[str]) -> None:
    collected, modules = started(ava.path, *words)
    assert "soulgit.home" in modules
    writing = {"soulgit.adoption", "soulgit.revision", "soulgit.landing", "soulgit.growth"}
    assert not modules & {*writing, "soulgit.core.token", "filelock"}
    assert collected == 0
