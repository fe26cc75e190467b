"""What a redaction refuses, each with what to do about it, and with nothing changed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from soulgit import forking, memory, redacting
from soulgit.core.redaction import MARK, Redactor
from soulgit.errors import (
    BranchRefused,
    BusyError,
    ChangesUncommitted,
    ConflictPending,
    InvalidText,
    PersonaPending,
    RepositoryRefused,
    SoulgitError,
    TextNotFound,
    UnsafeFile,
)
from tests.support import Git, put
from tests.test_cli import Shell
from tests.test_crashes import state
from tests.test_redact import PAT, opened, redact
from tests.test_redact_everywhere import begun, committed

TEXT = "swordfish"
Spoil = Callable[[Git], object]


@pytest.fixture
def ava(home_dir: Path) -> Git:
    """A home with the text, and a twin that is linked to it."""
    git = begun(home_dir)
    memory.add(opened(home_dir), f"of {TEXT}")
    put(home_dir, {"a.txt": f"{TEXT}\n"})
    committed(git)
    place = str(home_dir.parent / "twin")
    forking.fork(opened(home_dir), "twin", PAT, keep_memories=True, directory=place)
    return git


def twin(git: Git) -> Git:
    return Git(git.path.parent / "twin")


def conflict(git: Git) -> None:
    git("switch", "-q", "-c", "side")
    put(git.path, {"a.txt": "side\n"})
    committed(git)
    git("switch", "-q", "main" if git.path.name == "ava" else "twin")
    put(git.path, {"a.txt": "other\n"})
    committed(git)
    git("merge", "-q", "side", check=False)


def bisect(git: Git) -> None:
    git("bisect", "start", "--no-checkout", "HEAD", "HEAD~2")


def staged_alone(git: Git) -> None:
    put(git.path, {"a.txt": "staged\n"})
    git("add", "a.txt")
    put(git.path, {"a.txt": f"{TEXT}\n"})


def hidden_from_git(git: Git) -> None:
    git("update-index", "--assume-unchanged", "a.txt")
    put(git.path, {"a.txt": "changed\n"})


def is_executable(git: Git) -> None:
    path = git.path / "a.txt"
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


Errors = type[SoulgitError] | tuple[type[SoulgitError], ...]
OF_A_HOME: list[tuple[Spoil, Errors]] = [
    (lambda git: git("switch", "-q", "--detach"), BranchRefused),
    (conflict, ConflictPending),
    (bisect, (ConflictPending, RepositoryRefused)),
    (lambda git: put(git.path, {"a.txt": "x\n"}), ChangesUncommitted),
    (lambda git: (git.path / "a.txt").unlink(), ChangesUncommitted),
    (lambda git: git("rm", "-q", "--cached", "a.txt"), ChangesUncommitted),
    (lambda git: (put(git.path, {"b": "x"}), git("add", "b")), ChangesUncommitted),
    (lambda git: (put(git.path, {"b": "x"}), git("add", "-N", "b")), ChangesUncommitted),
    (lambda git: put(git.path, {"USER.md": "- new\n"}), ChangesUncommitted),
    (staged_alone, ChangesUncommitted),
    (hidden_from_git, ChangesUncommitted),
    (is_executable, ChangesUncommitted),
    (lambda git: put(git.path, {"SOUL.md": "You are new.\n"}), PersonaPending),
    (lambda git: git("sparse-checkout", "set", "deep"), RepositoryRefused),
    (lambda git: (git.path / "a.txt").chmod(0o444), UnsafeFile),
]


@pytest.mark.parametrize("home", ["ava", "twin"])
@pytest.mark.parametrize(("spoil", "error"), OF_A_HOME)
def test_a_home_that_is_not_as_its_last_commit_has_it_is_refused(
    ava: Git, home: str, spoil: Spoil, error: Errors
) -> None:
    spoil(ava if home == "ava" else twin(ava))
    refused(ava, error, names=home)


def refused(git: Git, error: Errors, names: str = "", text: str = TEXT) -> None:
    """Assert that it is refused, naming the home, and that nothing was changed."""
    homes = [git.path, *(place for place in (twin(git).path,) if place.exists())]
    before = [as_it_stands(home) for home in homes]
    with pytest.raises(error) as raised:
        redact(git.path, text)
    assert [as_it_stands(home) for home in homes] == before
    assert raised.value.hint
    if error not in (UnsafeFile, OF_A_HOME[2][1]):
        assert names in raised.value.message
    assert TEXT not in raised.value.message
    assert not (git.path / ".git/soulgit/redacting").exists()


def as_it_stands(home: Path) -> object:
    git = Git(home)
    if git("symbolic-ref", "-q", "HEAD", check=False):
        return state(home), git("reflog", "--all")
    return git("rev-parse", "HEAD"), git("reflog", "--all")


def shallow(git: Git) -> None:
    (git.path / ".git/shallow").write_text(git("rev-parse", "HEAD") + "\n")


def borrowing(git: Git) -> None:
    other = git.path.parent / "other"
    git("clone", "-q", "--bare", ".", str(other))
    info = git.path / ".git/objects/info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_text(f"{other}/objects\n")


def grafted(git: Git) -> None:
    (git.path / ".git/info/grafts").write_text(git("rev-parse", "HEAD") + "\n")


def kept(git: Git) -> None:
    git("repack", "-q", "-a", "-d")
    (pack,) = (git.path / ".git/objects/pack").glob("*.pack")
    pack.with_suffix(".keep").write_text("")


def promised(git: Git) -> None:
    git("repack", "-q", "-a", "-d")
    (pack,) = (git.path / ".git/objects/pack").glob("*.pack")
    pack.with_suffix(".promisor").write_text("")


def collecting(git: Git) -> None:
    (git.path / ".git/gc.pid").write_text("1 here")


def gone(git: Git) -> None:
    shutil.rmtree(git.path.parent / "twin")


def moved(git: Git) -> None:
    (git.path.parent / "twin").rename(git.path.parent / "elsewhere")


OF_A_REPOSITORY: list[tuple[Spoil, type[SoulgitError]]] = [
    (shallow, RepositoryRefused),
    (borrowing, RepositoryRefused),
    (grafted, RepositoryRefused),
    (lambda git: git("replace", "--graft", "HEAD"), RepositoryRefused),
    (kept, RepositoryRefused),
    (promised, RepositoryRefused),
    (collecting, BusyError),
    (gone, RepositoryRefused),
    (moved, RepositoryRefused),
    (lambda git: git("branch", f"of-{TEXT}"), InvalidText),
    (lambda git: git("tag", f"of-{TEXT}"), InvalidText),
    (lambda git: twin(git)("update-ref", "refs/worktree/mine", "HEAD"), RepositoryRefused),
]


@pytest.mark.parametrize(("spoil", "error"), OF_A_REPOSITORY)
def test_a_repository_of_which_a_part_is_out_of_reach_is_refused(
    ava: Git, spoil: Spoil, error: type[SoulgitError]
) -> None:
    spoil(ava)
    refused(ava, error)


def test_a_copy_does_not_touch_the_home_that_is_linked_to_the_original(ava: Git) -> None:
    other = shutil.copytree(ava.path, ava.path.parent / "copy")
    before = (twin(ava).path / "MEMORY.md").read_bytes()
    with pytest.raises(RepositoryRefused):
        redact(other, TEXT)
    assert (twin(ava).path / "MEMORY.md").read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "", " \n", "abc", "a b", "a\0bcd", "half \ud800", "memory", "memories", "MEMORY.md",
        "Soul-", "Action: add", "capture", "persona", "unknown", "soulgit", "redacted", MARK,
        "[redacted", "ends in [", "d] begins", f"a {MARK} b", "- a bullet", "two\n- bullets",
        "two\n\nparagraphs", "# heading", "a <!-- comment", "```", "x\n§\ny", "+++\nx = 1\n+++",
        "seared <!-- seared -->", "\u200b\u200b\u200b\u200b",
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_told_from_others_is_refused(text: str) -> None:
    with pytest.raises(InvalidText) as raised:
        Redactor(text)
    assert raised.value.hint


@pytest.mark.parametrize("text", ["4711", "王明", "Zoë!", "+49 123", "  Ann B ", "-----BEGIN KEY"])
def test_a_short_text_that_says_enough_is_taken(text: str) -> None:
    redactor = Redactor(text)
    assert redactor.text(f"x{text.strip()}y") == f"x{MARK}y"


def test_a_reason_that_holds_the_text_is_refused(ava: Git) -> None:
    with pytest.raises(InvalidText):
        redact(ava.path, TEXT, reason=f"{TEXT} leaked")


def test_a_text_that_nothing_holds_changes_nothing(ava: Git) -> None:
    ava("stash", "list")
    put(ava.path, {"a.txt": "stashed\n"})
    ava("stash", "-q")
    refused(ava, TextNotFound, text="trout or salmon")
    assert ava("stash", "list")


def test_nobody_is_asked_where_nobody_can_answer(ava: Git) -> None:
    shell = Shell(ava.path.parent)
    before = state(ava.path)
    done = shell("redact", "./ava", TEXT)
    assert (done.code, done.out) == (3, b"")
    assert "commits   3 would be made anew" in done.err
    assert "--yes" in done.err.splitlines()[-1]
    assert state(ava.path) == before


def test_a_redaction_that_somebody_overtakes_changes_nothing(
    ava: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain commit comes between the look at the home and the moving of its refs."""
    home = opened(ava.path)
    looked = []

    def interrupted(what: str, done: int, of: int) -> None:
        if not looked:
            looked.append(what)
            put(ava.path, {"b.txt": "by hand\n"})
            committed(ava, "meanwhile")

    with pytest.raises(BusyError):
        redacting.redact(home, TEXT, PAT, progress=interrupted)
    assert ava("log", "-1", "--format=%s") == "meanwhile"
    assert ava("fsck", "--strict", "--no-dangling") == ""
    redact(ava.path, TEXT)
    assert TEXT not in ava("log", "-p", "--all")
    assert ava("log", "-1", "--format=%s") == "meanwhile"


def test_a_file_that_is_changed_meanwhile_is_not_written_over(ava: Git) -> None:
    def interrupted(what: str, done: int, of: int) -> None:
        if what == "redacting":
            put(ava.path, {"a.txt": f"mine, of {TEXT}\n"})

    redacting.redact(opened(ava.path), TEXT, PAT, progress=interrupted)
    assert (ava.path / "a.txt").read_text() == f"mine, of {MARK}\n"
    assert ava("show", "HEAD:a.txt") == MARK
    assert ava("status", "--porcelain") == " M a.txt"


def test_what_is_stored_meanwhile_stays(ava: Git) -> None:
    """An object that another program has stored, and that nothing leads to yet."""
    stored = []

    def interrupted(what: str, done: int, of: int) -> None:
        if not stored:
            stored.append(ava("hash-object", "-w", "--stdin", stdin=b"being added\n"))

    redacting.redact(opened(ava.path), TEXT, PAT, progress=interrupted)
    assert ava("cat-file", "-p", stored[0]) == "being added"
    assert os.listdir(ava.path / ".git/objects" / stored[0][:2])
