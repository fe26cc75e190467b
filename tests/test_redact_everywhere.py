"""Every place in a repository in which a text can stand, each with what it becomes there."""

from __future__ import annotations

import codecs
import json
import os
import pty
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from soulgit import (
    Home,
    capturing,
    doctor,
    forking,
    homes,
    memory,
    redacting,
    redactions,
    settling,
    undoing,
    updating,
    verification,
)
from soulgit.adoption import Hand
from soulgit.core.actor import Moment
from soulgit.core.redaction import MARK
from soulgit.errors import TextNotFound
from soulgit.memory import Told
from soulgit.undoing import Which
from tests.support import PERSON, Git, fixed_clock, git_home, put
from tests.test_cli import Shell
from tests.test_redact import PAT, files_of, holds, opened, redact, scanned, tip

TEXT = "swordfish"
Spoil = Callable[[Git], None]


def begun(directory: Path, files: dict[str, str | bytes] | None = None) -> Git:
    git = git_home(directory, files or {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- one\n"})
    homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
    return git


@pytest.fixture
def ava(home_dir: Path) -> Git:
    return begun(home_dir)


def committed(git: Git, message: str = "by hand") -> None:
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", message)


def is_gone(git: Git, text: str = TEXT) -> None:
    """The text is nowhere, git is content, and the history holds together."""
    assert scanned(git, text) == []
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert git("status", "--porcelain") == ""
    assert verification.verify(git.path) == []


# Files and their names


def test_names_of_files_and_directories_go_with_what_is_in_them(ava: Git) -> None:
    put(ava.path, {f"{TEXT}/a-{TEXT}.txt": f"of {TEXT}\n", f"plain-{TEXT}": "x\n", "run.sh": TEXT})
    (ava.path / TEXT / "tool").write_text("#!/bin/sh\n")
    for name in (f"{TEXT}/tool", "run.sh", f"plain-{TEXT}"):
        (ava.path / name).chmod(0o755)
    committed(ava)
    redact(ava.path, TEXT)
    is_gone(ava)
    names = [name for name in files_of(ava.path) if MARK in name]
    assert sorted(names) == [
        f"{MARK}/a-{MARK}.txt", f"{MARK}/tool", f"plain-{MARK}",
    ]  # fmt: skip
    assert not (ava.path / TEXT).exists()
    for name in (f"{MARK}/tool", "run.sh", f"plain-{MARK}"):
        assert os.access(ava.path / name, os.X_OK)


def test_two_files_that_would_get_one_name_are_refused(ava: Git) -> None:
    put(ava.path, {f"{TEXT}.txt": "x\n", f"{MARK}.txt": "y\n"})
    committed(ava)
    before = files_of(ava.path)
    shell = Shell(ava.path.parent)
    told = shell.refused("redact", "./ava", TEXT, "--yes")
    assert "one name" in told
    assert files_of(ava.path) == before


def test_links_lead_where_their_targets_went(ava: Git) -> None:
    put(ava.path, {f"{TEXT}.txt": "x\n"})
    (ava.path / "link").symlink_to(f"{TEXT}.txt")
    (ava.path / f"to-{TEXT}").symlink_to("MEMORY.md")
    committed(ava)
    redact(ava.path, TEXT)
    is_gone(ava)
    assert os.readlink(ava.path / "link") == f"{MARK}.txt"
    assert (ava.path / "link").read_text() == "x\n"
    assert os.readlink(ava.path / f"to-{MARK}") == "MEMORY.md"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"x {TEXT}\r\ny", f"x {MARK}\r\ny"),
        (f"\ufeff{TEXT}", f"\ufeff{MARK}"),
        (f"{TEXT}{TEXT}", f"{MARK}{MARK}"),
        (f"sword\u200bfish, SWORDFISH, {TEXT}", f"{MARK}, SWORDFISH, {MARK}"),
    ],
)
def test_a_files_other_characters_stay(ava: Git, before: str, after: str) -> None:
    put(ava.path, {"file.txt": before.encode()})
    committed(ava)
    redact(ava.path, TEXT)
    assert (ava.path / "file.txt").read_bytes() == after.encode()
    is_gone(ava)


def test_bytes_that_are_no_text_stay(ava: Git) -> None:
    put(ava.path, {"file.bin": b"\0\xff\xfe" + TEXT.encode() + b"\xc3\x28\xed\xa0\x80"})
    committed(ava)
    redact(ava.path, TEXT)
    wanted = b"\0\xff\xfe" + MARK.encode() + b"\xc3\x28\xed\xa0\x80"
    assert (ava.path / "file.bin").read_bytes() == wanted


@pytest.mark.parametrize(
    ("mark", "codec"),
    [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
)
def test_a_file_in_utf_16_is_read_as_such(ava: Git, mark: bytes, codec: str) -> None:
    put(ava.path, {"file.txt": mark + f"of {TEXT}.\n".encode(codec)})
    committed(ava)
    redact(ava.path, TEXT)
    assert (ava.path / "file.txt").read_bytes() == mark + f"of {MARK}.\n".encode(codec)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("given", ["NFC", "NFD"])
def test_either_unicode_form_finds_either(home_dir: Path, form: str, given: str) -> None:
    name = "Zoë Çelik"
    git = begun(home_dir)
    memory.add(opened(home_dir), unicodedata.normalize(form, f"she is {name}, mixed: Zoë Çelik"))
    redact(home_dir, unicodedata.normalize(given, name))
    is_gone(git, name)
    assert (home_dir / "MEMORY.md").read_text() == f"- one\n- she is {MARK}, mixed: {MARK}\n"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (f'hint = "{TEXT}"', f'hint = "{MARK}"'),
        (f"{TEXT} = 1", f'"{MARK}" = 1'),
        (f"my_{TEXT} = 1", "my_redacted = 1"),
        ("pin = 47114711", f'pin = "{MARK}"'),
        (f"# {TEXT}", f"# {MARK}"),
    ],
)
def test_frontmatter_stays_readable(home_dir: Path, line: str, wanted: str) -> None:
    soul = f'+++\nname = "Ava"\n{line}\n+++\nYou are Ava.\n'
    begun(home_dir, {"SOUL.md": soul, "MEMORY.md": "- one\n"})
    redact(home_dir, "47114711" if "4711" in line else TEXT)
    assert (home_dir / "SOUL.md").read_text() == soul.replace(line, wanted)
    state = homes.status(home_dir)
    assert (state.name, state.warnings) == ("Ava", ())


# Texts of several lines

LINES = "her address is\nHill Road 7\nin Pune"


@pytest.mark.parametrize(
    ("as_written", "wanted"),
    [
        (f"- {LINES}\n- two\n", f"- {MARK}\n{MARK}\n{MARK}\n- two\n"),
        (
            "- her address is\r\n  Hill Road 7\r\n  in Pune\r\n",
            f"- {MARK}\r\n  {MARK}\r\n  {MARK}\r\n",
        ),
        (f"- known: {' '.join(LINES.split())}.\n", f"- known: {MARK}.\n"),
    ],
)
def test_a_text_of_several_lines_is_found_indented_or_on_one(
    home_dir: Path, as_written: str, wanted: str
) -> None:
    git = begun(home_dir, {"MEMORY.md": as_written.encode(), "USER.md": f"{LINES}\n"})
    memory.add(opened(home_dir), LINES, told=Told(reason=LINES))
    put(home_dir, {"MEMORY.md": as_written.encode()})
    capturing.capture(home_dir, Hand(PAT))
    redact(home_dir, LINES)
    assert (home_dir / "MEMORY.md").read_bytes() == wanted.encode()
    is_gone(git, LINES)
    is_gone(git, " ".join(LINES.split()))


# People


def test_names_and_addresses_of_people_go(ava: Git) -> None:
    people = {**PERSON, "GIT_AUTHOR_NAME": f"Ann {TEXT}", "GIT_AUTHOR_EMAIL": f"{TEXT}@x.org"}
    subprocess.run(
        ["git", "-C", str(ava.path), "commit", "-q", "--allow-empty", "-m", "hers"],
        env={**os.environ, **people}, check=True,
    )  # fmt: skip
    when = ava("log", "-1", "--format=%ad %cd", "--date=raw")
    redact(ava.path, TEXT)
    is_gone(ava)
    assert ava("log", "-1", "--format=%an <%ae>") == f"Ann {MARK} <{MARK}@x.org>"
    assert ava("log", "-1", "--format=%ad %cd", "--date=raw") == when


def test_a_companions_address_goes_with_its_name(home_dir: Path) -> None:
    soul = '+++\nname = "Ann Smith"\n+++\nYou are Ann Smith.\n'
    git = begun(home_dir, {"SOUL.md": soul, "MEMORY.md": "- one\n"})
    memory.add(opened(home_dir), "two")
    assert git("log", "-1", "--format=%ae") == "ann-smith@soulgit.invalid"
    redact(home_dir, "Ann Smith")
    is_gone(git, "Ann Smith")
    is_gone(git, "ann-smith")
    memory.add(opened(home_dir), "three")
    people = git("log", "-2", "--format=%an <%ae>").splitlines()
    assert people == [f"{MARK} <redacted@soulgit.invalid>"] * 2


def test_a_long_name_that_was_cut_keeps_no_half(home_dir: Path) -> None:
    soul = f'+++\nname = "{"x" * 93} {TEXT}"\n+++\nYou are long.\n'
    git = begun(home_dir, {"SOUL.md": soul, "MEMORY.md": "- one\n"})
    memory.add(opened(home_dir), "two")
    assert git("log", "-1", "--format=%an").endswith(" swordf")
    redact(home_dir, TEXT)
    is_gone(git)
    assert git("log", "-1", "--format=%an") == "x" * 93 + f" {MARK}"
    assert "swordf" not in git("log", "--format=%ae")


def test_whoever_redacts_their_own_name_is_not_named_by_it(ava: Git) -> None:
    memory.add(opened(ava.path), "told by Pat Smith")
    ava("config", "user.name", "Pat Smith")
    ava("config", "user.email", "pat@x.org")
    shell = Shell(ava.path.parent)
    done = shell("redact", "./ava", "Pat Smith", "--yes")
    assert done.code == 0
    assert "holds it: " in done.err
    assert ".git/config" in done.err
    last = redactions.last(opened(ava.path).repository)
    assert last is not None
    assert last.by.name == MARK


# Messages


def test_a_cut_subject_keeps_no_half(ava: Git) -> None:
    home = opened(ava.path)
    for length in range(20, 60):
        memory.add(home, "x" * length + " " + TEXT + " behind")
    undone = undoing.undo(home, Which(), PAT).revision
    assert undone
    ava("revert", "--no-edit", "HEAD~2")
    subjects = ava("log", "--format=%s")
    assert "swor…" in subjects
    redact(ava.path, TEXT)
    is_gone(ava, TEXT)
    now = ava("log", "--format=%s")
    for length in range(4, len(TEXT)):
        assert TEXT[:length] + "…" not in now


def test_ids_in_messages_of_plain_git_are_those_of_now(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    named = tip(ava)
    committed(ava, f"see {named}\n\nand {named[:9]}, not {'0' * 40}")
    ava("cherry-pick", "--allow-empty", "-x", named, check=False)
    ava("cherry-pick", "--skip", check=False)
    redact(ava.path, TEXT)
    now = ava("rev-parse", "HEAD~1")
    assert ava("log", "-1", "--format=%B") == f"see {now}\n\nand {now[:9]}, not {'0' * 40}"


def test_an_id_in_a_memory_is_data(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    named = tip(ava)
    memory.add(opened(ava.path), f"learned in {named}")
    redact(ava.path, TEXT)
    assert f"learned in {named}" in ava("log", "-1", "--format=%B")
    is_gone(ava)


def test_a_message_in_another_encoding_keeps_it(ava: Git) -> None:
    message = "für Zoë Müller\n".encode("latin-1")
    ava("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-F", "-",
        stdin=message)  # fmt: skip
    redact(ava.path, "Zoë Müller")
    raw = ava.bytes("cat-file", "commit", "HEAD")
    assert b"encoding ISO-8859-1\n" in raw
    assert raw.endswith(f"\nfür {MARK}\n".encode("latin-1"))


def test_a_signature_that_would_be_false_goes_and_another_stays(ava: Git) -> None:
    def signed(parent: str, message: str) -> str:
        tree = ava("rev-parse", "HEAD^{tree}")
        who = "A U Thor <a@x.org> 1700000000 +0530"
        raw = (
            f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n"
            f"gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n\n"
            f"{message}"
        )
        return ava("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw.encode())

    first = signed(tip(ava), "clean\n")
    ava("reset", "-q", "--hard", signed(first, f"of {TEXT}\n"))
    done = redact(ava.path, TEXT)
    assert done.signatures == 1
    assert ava("rev-parse", "HEAD~1") == first
    assert "gpgsig" not in ava("cat-file", "commit", "HEAD")


def test_a_record_that_cannot_be_true_any_more_says_less(ava: Git) -> None:
    home = opened(ava.path)
    memory.add(home, "the key is sword-12")
    memory.replace(home, "rd-12", "rdfish and more")
    redact(ava.path, TEXT)
    is_gone(ava)
    told = ava("log", "-1", "--format=%B")
    assert "Soul-Action: redact" in told
    assert "rd-12" not in told
    assert (ava.path / "MEMORY.md").read_text() == f"- one\n- the key is {MARK} and more\n"


# Refs


def test_tags_of_every_kind_are_made_anew(ava: Git) -> None:
    ava("tag", "before")
    memory.add(opened(ava.path), TEXT)
    ava("tag", "light")
    ava("tag", "-a", "-m", f"says {TEXT}", "noted")
    ava("tag", "-a", "-m", "of a tag", "twice", "noted")
    blob = ava("hash-object", "-w", "--stdin", stdin=f"only {TEXT}".encode())
    ava("tag", "of-a-blob", blob)
    ava("tag", "of-a-tree", "HEAD^{tree}")
    kept = ava("rev-parse", "before")
    ava("pack-refs", "--all")
    redact(ava.path, TEXT)
    is_gone(ava)
    assert ava("rev-parse", "before") == kept
    assert ava("rev-parse", "light", "noted^{commit}", "twice^{commit}").split() == [tip(ava)] * 3
    assert ava("cat-file", "tag", "noted").endswith(f"says {MARK}")
    assert ava("cat-file", "blob", "of-a-blob") == f"only {MARK}"
    assert ava("rev-parse", "of-a-tree") == ava("rev-parse", "HEAD^{tree}")


def test_notes_stay_with_what_they_speak_of(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    memory.add(opened(ava.path), "more")
    for commit, note in (("HEAD", f"of {TEXT}"), ("HEAD~1", "plain"), ("HEAD~2", "old")):
        ava("notes", "add", "-m", note, commit)
    redact(ava.path, TEXT)
    is_gone(ava)
    assert [ava("notes", "show", c) for c in ("HEAD", "HEAD~1", "HEAD~2")] == [
        f"of {MARK}", "plain", "old",
    ]  # fmt: skip


def test_remote_branches_that_lead_to_the_text_go_and_others_stay(ava: Git, tmp_path: Path) -> None:
    ava("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    ava("remote", "add", "origin", str(tmp_path / "bare"))
    ava("push", "-q", "origin", "main:old")
    memory.add(opened(ava.path), TEXT)
    ava("push", "-q", "origin", "main")
    ava("fetch", "-q", "origin")
    ava("remote", "set-head", "origin", "main")
    assert (ava.path / ".git/FETCH_HEAD").exists()
    done = redact(ava.path, TEXT)
    is_gone(ava)
    gone = {"refs/remotes/origin/main", "refs/remotes/origin/HEAD"}
    assert set(done.dropped) == gone
    assert "refs/remotes/origin/old" in ava("for-each-ref", "--format=%(refname)")
    assert ava("pack-refs", "--all") == ""


def test_what_nothing_leads_to_is_gone_and_what_is_being_made_stays(ava: Git) -> None:
    ava("hash-object", "-w", "--stdin", stdin=TEXT.encode())
    old = ava("hash-object", "-w", "--stdin", stdin=b"long ago")
    path = ava.path / ".git/objects" / old[:2] / old[2:]
    os.utime(path, (1, 1))
    memory.add(opened(ava.path), f"x {TEXT}")
    undoing.undo(opened(ava.path), Which(), PAT)
    ava("reset", "-q", "--hard", "HEAD~2")
    done = redact(ava.path, TEXT)
    assert (done.commits, done.refs) == (0, ())
    assert done.elsewhere >= 3
    is_gone(ava)
    assert not path.exists()
    with pytest.raises(TextNotFound):
        redact(ava.path, TEXT)


@pytest.mark.parametrize("how", ["gc", "repack", "midx", "graph", "bitmap", "cruft"])
def test_packs_of_gits_are_made_one_without_it(ava: Git, how: str) -> None:
    memory.add(opened(ava.path), TEXT)
    memory.add(opened(ava.path), "more")
    commands = {
        "gc": [["gc", "-q"]],
        "repack": [["repack", "-q", "-d"], ["commit", "-q", "--allow-empty", "-m", "x"],
                   ["repack", "-q", "-d"]],
        "midx": [["repack", "-q", "-d"], ["multi-pack-index", "write"]],
        "graph": [["commit-graph", "write", "--reachable"]],
        "bitmap": [["repack", "-q", "-a", "-d", "-b"]],
        "cruft": [["repack", "-q", "--cruft", "-d"]],
    }  # fmt: skip
    for command in commands[how]:
        ava(*command)
    redact(ava.path, TEXT)
    is_gone(ava)
    packs = sorted(path.suffix for path in (ava.path / ".git/objects/pack").iterdir())
    assert packs == [".idx", ".pack"]


def test_an_index_forgets_a_merge_that_was_resolved(ava: Git) -> None:
    put(ava.path, {"file.txt": "a\n"})
    committed(ava)
    ava("switch", "-q", "-c", "side")
    put(ava.path, {"file.txt": f"{TEXT}\n"})
    committed(ava)
    ava("switch", "-q", "main")
    put(ava.path, {"file.txt": "b\n"})
    committed(ava)
    ava("config", "rerere.enabled", "true")
    ava("merge", "-q", "side", check=False)
    put(ava.path, {"file.txt": "c\n"})
    committed(ava, "merged")
    redact(ava.path, TEXT)
    is_gone(ava)
    assert ava("ls-files", "--resolve-undo") == ""


# What is asked afterwards


def test_an_old_id_is_still_known_while_its_map_is_there(ava: Git) -> None:
    shell = Shell(ava.path.parent)
    memory.add(opened(ava.path), f"{TEXT} and trout")
    old = tip(ava)
    first = redact(ava.path, TEXT)
    later = Home.open(ava.path, clock=lambda: Moment(fixed_clock().seconds + 60), durable=False)
    second = redacting.redact(later, "and trout", PAT)
    assert shell("verify", "./ava", "--contains", old).code == 0
    assert shell("verify", "./ava", "--contains", old[:10]).code == 0
    assert shell("verify", "./ava", "--contains", "0" * 40).code == 1
    for done in (first, second):
        assert done.map is not None
        os.unlink(done.map)
    assert shell("verify", "./ava", "--contains", old).code == 1


def test_status_and_doctor_tell_of_it(ava: Git) -> None:
    shell = Shell(ava.path.parent)
    memory.add(opened(ava.path), TEXT)
    redact(ava.path, TEXT, reason="a leak")
    assert "redacted  1 commit on 2027-01-15 by Pat: a leak" in shell("status", "./ava").text
    told = json.loads(shell("status", "./ava", "--json").out)["redacted"]
    assert (told["by"]["name"], told["reason"], told["commits"]) == ("Pat", "a leak", 1)
    state = ava.path / ".git/soulgit"
    redactions.begin(str(state), redactions.UnderWay("0" * 40, "x"), durable=False)
    (trouble,) = (t for t in doctor.examine(ava.path) if t.kind == "redaction")
    assert "again" in trouble.mend


def test_an_update_under_way_is_gone_on_with(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": f"You are Ava, {TEXT}.\n", "MEMORY.md": f"- {TEXT}\n- two\n"})
    home = opened(home_dir)
    put(home_dir, {"SOUL.md": f"You are curt, {TEXT}.\n"})
    git("commit", "-qam", "an edit by plain git")
    updating.update(home, lambda _, batch: [f"{t}!" for t in batch], PAT, review=True)
    redact(home_dir, TEXT)
    is_gone(git)
    done = updating.land(opened(home_dir), PAT)
    assert done.number == 2
    assert (home_dir / "MEMORY.md").read_text() == f"- {MARK}!\n- two!\n"
    is_gone(git)


def test_a_record_of_a_redaction_is_redacted_too(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    redact(ava.path, TEXT, reason="the trout leak")
    redact(ava.path, "trout leak")
    is_gone(ava, "trout leak")
    reasons = ava("log", "--format=%(trailers:key=Soul-Reason,valueonly)", redactions.REF)
    assert reasons.split("\n") == ["", f"the {MARK}"]


def test_a_frozen_home_is_redacted_and_stays_frozen(ava: Git) -> None:
    home = opened(ava.path)
    memory.add(home, TEXT)
    home.freeze(PAT, f"it says {TEXT}")
    redact(ava.path, TEXT)
    is_gone(ava)
    state = homes.status(ava.path).frozen
    assert state is not None
    assert state.reason == f"it says {MARK}"


def test_what_is_discarded_stays_reachable_without_it(ava: Git) -> None:
    put(ava.path, {"SOUL.md": f"You are {TEXT}.\n"})
    settling.decide(opened(ava.path), "discard", PAT)
    redact(ava.path, TEXT)
    is_gone(ava)
    assert ava("show", "refs/soulgit/discarded/1:SOUL.md") == f"You are {MARK}."


def test_files_that_git_does_not_know_are_named(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    put(ava.path, {".gitignore": "*.log\n"})
    committed(ava)
    put(ava.path, {"a.log": TEXT, "b.txt": TEXT, f"c-{TEXT}": "x"})
    ava("config", "remote.origin.url", f"https://{TEXT}@example.org/x.git")
    done = redact(ava.path, TEXT)
    wanted = [".git/config", "a.log", "b.txt", f"c-{MARK}"]
    assert sorted(done.left) == [str(ava.path / name) for name in wanted]
    assert holds((ava.path / "a.log").read_bytes(), TEXT)


def test_a_person_writes_on_at_once(ava: Git) -> None:
    home = opened(ava.path)
    memory.add(home, TEXT)
    redact(ava.path, TEXT)
    memory.add(home, "afterwards")
    assert undoing.undo(home, Which(), PAT).revision
    is_gone(ava)


@pytest.mark.parametrize("start", [0, 7, 30])
def test_a_short_text_of_hex_digits_leaves_ids_alone(ava: Git, start: int) -> None:
    digest = ava("log", "-1", "--format=%(trailers:key=Soul-Persona,valueonly)").strip()
    text = digest[start : start + 4]
    memory.add(opened(ava.path), f"the code is {text}, or x{text}y", told=Told(session=text))
    named = tip(ava)
    committed(ava, f"of {text}, see {named} and {named[:12]}")
    assert undoing.undo(opened(ava.path), Which(named), PAT).revision
    redact(ava.path, text)
    assert verification.verify(ava.path) == []
    assert ava("log", "-1", "HEAD~2", "--format=%s") == (
        f'memory(self): add "the code is {MARK}, or x{MARK}y"'
    )
    now = ava("rev-parse", "HEAD~2")
    assert ava("log", "-1", "HEAD~1", "--format=%s") == f"of {MARK}, see {now} and {now[:12]}"
    ava.agrees()


def test_a_submodule_is_another_repository(ava: Git) -> None:
    ava("update-index", "--add", "--cacheinfo", f"160000,{tip(ava)},sub")
    (ava.path / "sub").mkdir()
    ava("commit", "-q", "-m", "a submodule")
    memory.add(opened(ava.path), TEXT)
    before = ava("ls-tree", "HEAD", "sub")
    redact(ava.path, TEXT)
    assert scanned(ava, TEXT) == []
    assert ava("ls-tree", "HEAD", "sub") == before
    ava.agrees()


def test_a_file_whose_line_ends_git_changes_stays_unchanged_to_it(ava: Git) -> None:
    put(ava.path, {".gitattributes": "*.txt text eol=crlf\n", "a.txt": f"x\r\n{TEXT}\r\n"})
    committed(ava)
    assert ava("show", "HEAD:a.txt") == f"x\n{TEXT}"
    redact(ava.path, TEXT)
    is_gone(ava)
    assert (ava.path / "a.txt").read_bytes() == f"x\r\n{MARK}\r\n".encode()


def test_a_tracked_file_that_a_filter_stores_otherwise_is_named(ava: Git) -> None:
    ava("config", "filter.hide.clean", "printf pointer")
    ava("config", "filter.hide.smudge", "cat")
    put(ava.path, {".gitattributes": "*.big filter=hide\n", "a.big": f"{TEXT}\n"})
    committed(ava)
    memory.add(opened(ava.path), TEXT)
    assert ava("show", "HEAD:a.big") == "pointer"
    done = redact(ava.path, TEXT)
    assert done.left == (str(ava.path / "a.big"),)
    assert (ava.path / "a.big").read_text() == f"{TEXT}\n"


def test_a_linked_home_redacts_the_others(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    place = ava.path.parent / "twin"
    forking.fork(opened(ava.path), "twin", PAT, keep_memories=True, directory=str(place))
    redact(place, TEXT)
    assert scanned(ava, TEXT, place) == []
    for home in (ava, Git(place)):
        home.agrees()
        assert home("show", "HEAD:MEMORY.md") == f"- one\n- {MARK}"


def test_a_git_directory_that_lies_elsewhere_is_redacted(tmp_path: Path) -> None:
    home, other = tmp_path / "ava", tmp_path / "store"
    home.mkdir()
    git = Git(home)
    git("init", "-q", "--separate-git-dir", str(other))
    put(home, {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- one\n"})
    homes.init(str(home), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
    memory.add(opened(home), TEXT)
    redact(home, TEXT)
    assert scanned(git, TEXT, other) == []
    git.agrees()


def test_a_person_at_a_terminal_is_asked(ava: Git) -> None:
    memory.add(opened(ava.path), TEXT)
    before = tip(ava)
    told = at_a_terminal(ava.path, "n")
    assert "1 would be made anew" in told
    assert "nothing was changed" in told
    assert tip(ava) == before
    assert "redacted: 1 commit" in at_a_terminal(ava.path, "y")
    is_gone(ava)


def at_a_terminal(home: Path, answer: str) -> str:
    """Run the command with a terminal as its input, and answer what it asks."""
    theirs, ours = pty.openpty()
    command = [sys.executable, "-m", "soulgit", "redact", str(home), TEXT]
    with subprocess.Popen(
        command, stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        os.write(theirs, f"{answer}\n".encode())
        told, _ = process.communicate()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, told
    return told
