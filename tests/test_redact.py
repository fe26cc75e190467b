"""After a redaction the text is nowhere, all else is as it was, and the history holds together."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from soulgit import (
    Home,
    blame,
    capturing,
    forking,
    homes,
    memory,
    redacting,
    redactions,
    search,
    settling,
    undoing,
    verification,
)
from soulgit.adoption import Hand
from soulgit.core.actor import Identity
from soulgit.core.redaction import MARK
from soulgit.memory import Told
from soulgit.undoing import Which
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Shell

PAT = Identity("Pat", "pat@example.org")
SECRET = "swordfish-99 of Zoë"
"""A text with blanks, and with a letter that has two forms."""

LONG = f"a sentence that is so long that its subject ends in it: {SECRET} and goes on"
FILES = {
    "SOUL.md": f'+++\nname = "Ava"\nhint = "{SECRET}"\n+++\nYou are Ava. Never say {SECRET}.\n',
    "MEMORY.md": f"# Mine\n\n- one\n- two\n- kept: {SECRET}\n",
    "USER.md": "- likes tea\n",
    "notes.bin": b"\0\xff" + SECRET.encode() + b"\xfe",
    "deep/er/file.txt": f"x {unicodedata.normalize('NFD', SECRET)} y\r\n",
    "untouched.txt": "as it was\n",
}
HERMES_FILES = {
    "SOUL.md": FILES["SOUL.md"],
    "memories/MEMORY.md": f"one\n§\ntwo\n§\nkept: {SECRET}",
    "memories/USER.md": "likes tea",
    "untouched.txt": "as it was\n",
}


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


def redact(path: Path, text: str = SECRET, **more: object) -> redacting.Redacted:
    return redacting.redact(opened(path), text, PAT, **more)  # type: ignore[arg-type]


def lived(directory: Path, files: dict[str, str | bytes]) -> Git:
    """A home in which the secret went nearly everywhere that a text can go."""
    git = git_home(directory, files)
    home = opened(directory)
    homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
    memory.add(home, LONG, told=Told(source="telegram:zoe", reason=f"she said {SECRET}"))
    memory.add(home, "harmless", told=Told(composed=tip(git)))
    memory.replace(home, "harmless", f"not {SECRET} harmless")
    memory.add(home, f"of two\n  lines with {SECRET}", target="user")
    undoing.undo(home, Which(), PAT)
    memory.sear(home, "two", PAT)
    memory.sear(home, "kept: ", PAT)
    memory.remove(home, f"not {SECRET} ")
    put(directory, {"TOOLS.md": f"say {SECRET}\n"})
    capturing.capture(home, Hand(PAT))
    put(directory, {"SOUL.md": f"You are curt, and {SECRET} is dear to you.\n"})
    settling.decide(home, "continue", PAT, reason="curt")
    put(directory, {"SOUL.md": f"You are mild, and {SECRET} is dear to you.\n"})
    settling.decide(home, "discard", PAT)
    forking.fork(home, "twin", PAT, at="persona/1", directory=str(directory.parent / "twin"))
    forking.fork(home, "heir", PAT, keep_memories=True)
    git("commit", "-q", "--allow-empty", "-m", f"by hand: {SECRET}\n\nsee {tip(git)}")
    git("tag", "-a", "-m", f"a tag of {SECRET}", "noted")
    git("tag", "light")
    git("tag", "before", "HEAD~4")
    git("notes", "add", "-m", f"a note of {SECRET}", "HEAD~1")
    put(directory, {"untouched.txt": f"stashed {SECRET}\n"})
    git("stash", "-q")
    (directory / ".git" / "COMMIT_EDITMSG").write_text(f"draft {SECRET}")
    return git


def archived(directory: Path, files: dict[str, str | bytes]) -> Git:
    """The same with the old branch archived by a fork."""
    git = lived(directory, files)
    put(directory, {"SOUL.md": f"You are somebody else than {SECRET}.\n"})
    settling.decide(opened(directory), "fork", PAT, name="bea", new_id="2", new_token="t" * 32)
    memory.add(opened(directory), f"bea's own {SECRET}")
    return git


def tip(git: Git) -> str:
    return git("rev-parse", "HEAD")


# The scan


def forms(text: str) -> list[bytes]:
    return [unicodedata.normalize(form, text).encode() for form in ("NFC", "NFD")]


def objects(git: Git) -> Iterator[tuple[str, bytes]]:
    """Every object in the store with its kind, as git the program reads it."""
    told = git.bytes("cat-file", "--batch-all-objects", "--batch", "--unordered")
    while told:
        head, _, told = told.partition(b"\n")
        _, kind, size = head.decode().split(" ")
        yield kind, told[: int(size)]
        told = told[int(size) + 1 :]


def scanned(git: Git, text: str, *others: Path) -> list[str]:
    """Where a text, or what a cut subject keeps of it, still is: in an object or in any file."""
    found = [kind for kind, data in objects(git) if holds(data, text)]
    for root in (git.path, *others):
        for path in root.rglob("*"):
            if path.is_file() and holds(read(path), text):
                found.append(str(path))
    return found


def read(path: Path) -> bytes:
    data = path.read_bytes()
    try:  # a loose object
        return data + zlib.decompress(data)
    except zlib.error:
        return data


def holds(data: bytes, text: str) -> bool:
    halves = [f"{text[:n].rstrip()}…".encode() for n in range(len(text) // 2, len(text))]
    flat = b" ".join(data.split())
    return any(part in flat for part in (*forms(text), *halves))


# All else


def tree_of(git: Git, revision: str) -> dict[str, tuple[str, bytes]]:
    listed = git("ls-tree", "-r", revision).splitlines()
    rows = [line.replace("\t", " ", 1).split(" ", 3) for line in listed]
    return {name: (mode, git.bytes("cat-file", "blob", blob)) for mode, _, blob, name in rows}


def replaced(data: bytes) -> bytes:
    for form in forms(SECRET):
        data = data.replace(form, MARK.encode())
    return data


def history(git: Git, ref: str) -> list[str]:
    return git("rev-list", "--topo-order", "--reverse", ref).splitlines()


Commit = tuple[list[str], dict[str, tuple[str, bytes]], str]


def everything(git: Git) -> dict[str, list[Commit]]:
    """Of each ref that is no soulgit record: parents by number, tree, people and times."""
    refs = git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/soulgit")
    known = {}
    for ref in refs.splitlines():
        if ref == redactions.REF:
            continue
        commits = history(git, ref)
        place = {commit: str(number) for number, commit in enumerate(commits)}
        known[ref] = [
            (
                [place[p] for p in git("log", "-1", "--format=%P", commit).split()],
                tree_of(git, commit),
                git("log", "-1", "--format=%an <%ae> %ad %cn <%ce> %cd", "--date=raw", commit),
            )
            for commit in commits
        ]
    return known


def expected(known: dict[str, list[Commit]]) -> dict[str, list[Commit]]:
    return {
        ref: [
            (parents, {n: (m, replaced(data)) for n, (m, data) in tree.items()}, people)
            for parents, tree, people in commits
        ]
        for ref, commits in known.items()
    }


def files_of(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


SCENES = {
    "plain": (lived, FILES),
    "hermes": (lived, HERMES_FILES),
    "archived": (archived, FILES),
}
MADE: dict[str, Path] = {}


@pytest.fixture(params=SCENES)
def git(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Git:
    """A home of each kind, made once and copied; its twin is linked to it."""
    return copied(request.param, tmp_path, tmp_path_factory)


@pytest.fixture
def ava(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Git:
    return copied("archived", tmp_path, tmp_path_factory)


def copied(name: str, tmp_path: Path, factory: pytest.TempPathFactory) -> Git:
    if name not in MADE:
        make, files = SCENES[name]
        MADE[name] = make(factory.mktemp(name) / "ava", files).path.parent
    for home in ("ava", "twin"):
        shutil.copytree(MADE[name] / home, tmp_path / home, symlinks=True)
    (linked,) = (tmp_path / "ava/.git/worktrees").iterdir()
    (linked / "gitdir").write_text(f"{tmp_path}/twin/.git\n")
    (tmp_path / "twin/.git").write_text(f"gitdir: {linked}\n")
    return Git(tmp_path / "ava")


def twin(git: Git) -> Path:
    return git.path.parent / "twin"


def test_the_text_is_nowhere_and_all_else_is_as_it_was(git: Git) -> None:
    assert scanned(git, SECRET, twin(git))
    known = everything(git)
    on_disk = {path: files_of(path) for path in (git.path, twin(git))}
    done = redact(git.path, reason="a leak")
    assert scanned(git, SECRET, twin(git)) == []
    assert everything(git) == expected(known)
    for path, before in on_disk.items():
        wanted = {name: (replaced(data), mode) for name, (data, mode) in before.items()}
        assert files_of(path) == wanted
    for one in (git, Git(twin(git))):
        one.agrees()
        assert one("status", "--porcelain") == ""
    for drafts in ("pack", "scratch"):
        assert list((git.path / ".git/soulgit" / drafts).iterdir()) == []
    assert done.commits > 10
    assert not (git.path / ".git" / "logs").exists()
    assert "refs/stash" in done.dropped
    assert git("stash", "list") == ""


def test_the_history_holds_together(git: Git) -> None:
    assert verification.verify(git.path) == []
    redact(git.path)
    assert verification.verify(git.path) == []


def test_what_a_home_is_asked_goes_on(ava: Git) -> None:
    home = opened(ava.path)
    before = [(p.number, p.decision, p.memories) for p in settling.history(home)]
    companions = {c.branch: (c.persona, c.entries, c.archived_by) for c in forking.companions(home)}
    redact(ava.path)
    home = opened(ava.path)
    assert [(p.number, p.decision, p.memories) for p in settling.history(home)] == before
    assert companions == {
        c.branch: (c.persona, c.entries, c.archived_by) for c in forking.companions(home)
    }
    assert [o.text for o in blame.blame(home)] == [f"bea's own {MARK}"]
    assert [found.came.action for found in search.search(home, "bea's own", ever=True)] == ["add"]
    assert undoing.undo(home, Which(), PAT).revision is not None
    assert memory.list_entries(home) == []
    memory.add(home, "new")
    put(ava.path, {"SOUL.md": "You are new.\n"})
    assert settling.decide(home, "continue", PAT).number == len(before) + 1
    assert verification.verify(ava.path) == []


def test_ids_that_records_name_are_those_of_now(ava: Git) -> None:
    old = {c: ava("log", "-1", "--format=%B", c) for c in ava("rev-list", "--all").splitlines()}
    done = redact(ava.path)
    assert done.map is not None
    ids = dict(line.split() for line in Path(done.map).read_text().splitlines())
    assert len(ids) == done.commits
    assert set(ids) <= set(old)
    assert not set(ids) & set(ava("rev-list", "--all").splitlines())
    for before, message in old.items():
        if before in ids:
            now = ava("log", "-1", "--format=%B", ids[before])
            named = [word for word in message.split() if word in ids]
            assert [word for word in now.split() if word in ids.values()] == [ids[w] for w in named]
            assert not set(now.split()) & set(ids)


def test_messages_are_as_they_were_but_for_the_text_and_what_is_named(git: Git) -> None:
    commits = git("rev-list", "--all").splitlines()
    old = {c: git.bytes("log", "-1", "--format=%B", c).splitlines() for c in commits}
    done = redact(git.path)
    assert done.map is not None
    ids = dict(line.encode().split() for line in Path(done.map).read_text().splitlines())
    compared = 0
    for before, lines in old.items():
        now = ids.get(before.encode(), before.encode()).decode()
        if not git("cat-file", "-t", now, check=False):
            continue  # the stash
        new = git.bytes("log", "-1", "--format=%B", now).splitlines()
        assert len(new) == len(lines)
        for was, became in zip(lines, new, strict=True):
            if was.startswith(b"Soul-Persona: ") or "…".encode() in was:
                continue
            for one, other in ids.items():
                was = was.replace(one, other).replace(one[:12], other[:12])
            assert became == replaced(was)
            compared += 1
    assert compared > 100


def test_a_commit_before_the_text_keeps_its_id(home_dir: Path) -> None:
    git = git_home(home_dir, {"MEMORY.md": "- one\n"})
    homes.init(str(home_dir), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
    first = tip(git)
    memory.add(opened(home_dir), SECRET)
    redact(home_dir)
    assert git("rev-parse", "HEAD~1") == first


def test_a_dry_run_changes_nothing_and_says_the_same(ava: Git) -> None:
    before = {p: p.read_bytes() for p in ava.path.parent.rglob("*") if p.is_file()}
    planned = redact(ava.path, dry_run=True)
    assert {p: p.read_bytes() for p in ava.path.parent.rglob("*") if p.is_file()} == before
    done = redact(ava.path)
    for name in ("commits", "refs", "dropped", "files", "messages", "elsewhere", "signatures"):
        assert getattr(planned, name) == getattr(done, name)


def test_the_record_says_who_and_why_but_not_what(ava: Git, monkeypatch: object) -> None:
    redact(ava.path, reason="a leak")
    last = redactions.last(opened(ava.path).repository)
    assert last is not None
    assert (last.by, last.reason) == (PAT, "a leak")
    message = ava("log", "-1", "--format=%B", redactions.REF)
    assert "Soul-Action: redact" in message
    redact(ava.path, "likes tea")
    again = redactions.last(opened(ava.path).repository)
    assert again is not None and again.reason is None
    assert ava("rev-list", "--count", redactions.REF) == "2"


def test_the_command_asks_and_tells(ava: Git) -> None:
    shell = Shell(ava.path.parent)
    done = shell("redact", "./ava", "-", "--dry-run", "--json", stdin=SECRET.encode() + b"\n")
    planned = json.loads(done.out)
    done = shell("redact", "./ava", "-", "--yes", "--json", stdin=SECRET.encode())
    assert done.code == 0
    assert json.loads(done.out)["commits"] == planned["commits"]
    assert SECRET not in done.err + done.text
    assert os.path.exists(json.loads(done.out)["map"])
