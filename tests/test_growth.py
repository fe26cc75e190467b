"""A home that is used for years stays small, and nothing of it is ever out of reach.

Packing is made to be due after each action where a test says `eager`; git is the judge of
every pack, and of what is left when a process that packs is killed or fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import soulgit
from soulgit import Home, forking, growth, history, upkeep
from soulgit.core.actor import Identity
from soulgit.errors import BusyError
from soulgit.git import Repository, packs
from soulgit.git.packfile import NotJoinable, join
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Shell
from tests.test_crashes import (
    BOUND,
    each_fault,
    needs_permissions,
    needs_strace,
    traced,
    unwritable,
)

slow = pytest.mark.slow

PAT = Identity("Pat", "pat@example.org")
BASE = {"SOUL.md": "You are Ava.\n", "MEMORY.md": "- a\n"}
Packed = tuple[bytes, bytes]


@contextlib.contextmanager
def thresholds(due: int, tier: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(growth, "_DUE_SAMPLE", due)
        patched.setattr(growth, "_TIER", tier)
        yield


def eager(tier: int = 3) -> contextlib.AbstractContextManager[None]:
    """Let each action pack, and so many packs of like size be made one."""
    return thresholds(0, tier)


@pytest.fixture
def eagerly() -> Iterator[None]:
    with eager():
        yield


def quick(path: Path) -> Home:
    return Home.open(path, durable=False, wait_seconds=60)


def add(home: Home | Path, text: str) -> soulgit.Result:
    result = soulgit.memory_tool(home).execute({"action": "add", "text": text})
    assert not result.is_error, result.output
    return result


def added(home: Home | Path, *texts: object) -> None:
    for text in texts:
        add(home, str(text))


def collected(path: Path) -> growth.Collected:
    return upkeep.gc(Home.open(path, wait_seconds=60))


def counts(git: Git) -> dict[str, int]:
    lines = git("count-objects", "-v").splitlines()
    return {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}


def objects_dir(git: Git) -> Path:
    return Path(git.path, git("rev-parse", "--git-common-dir"), "objects")


def pack_files(git: Git) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in objects_dir(git).glob("pack/*")}


def pack_names(git: Git) -> set[str]:
    return {path.stem for path in objects_dir(git).glob("pack/*.pack")}


def is_loose(git: Git, object_id: str) -> bool:
    return (objects_dir(git) / object_id[:2] / object_id[2:]).exists()


def all_objects(git: Git) -> bytes:
    """Every object with its bytes, in the order of ids, wherever it lies."""
    return git.bytes("cat-file", "--batch-all-objects", "--batch")


def souls(home: Home | Path, git: Git) -> dict[str, str]:
    """What the home was at each revision."""
    opened = home if isinstance(home, Home) else Home.open(home)
    ids = git("rev-list", "HEAD").split()
    return {commit_id: soulgit.compose_soul(opened, at=commit_id).text for commit_id in ids}


def is_tidy(git: Git) -> None:
    """Assert that git agrees and that nothing lies about that is no object."""
    git.agrees()
    assert counts(git)["garbage"] == 0
    scratch = objects_dir(git).parent / "soulgit" / "pack"
    assert list(scratch.iterdir()) == []


# Packs as bytes


@pytest.fixture
def store(tmp_path: Path) -> Git:
    return made_store(tmp_path / "store")


def made_store(path: Path) -> Git:
    path.mkdir()
    git = Git(path)
    git("init", "-q")
    return git


def texts_of(seed: int, count: int) -> list[bytes]:
    """Long texts that differ in a few lines, as versions of a file do, so that git makes deltas."""
    chance = random.Random(seed)
    lines = [chance.randbytes(20).hex() for _ in range(80)]
    texts = []
    for number in range(count):
        lines[chance.randrange(80)] = f"{seed} {number}"
        texts.append("\n".join(lines).encode())
    return texts


def stored(git: Git, blobs: list[bytes]) -> list[str]:
    return [git("hash-object", "-w", "--stdin", stdin=blob) for blob in blobs]


def by_id(ids: list[list[str]], blobs: list[list[bytes]]) -> dict[str, bytes]:
    return dict(zip(itertools.chain(*ids), itertools.chain(*blobs), strict=True))


def packed(git: Git, ids: list[str], *options: str) -> Packed:
    """Let git make a pack of objects, and return its bytes and those of its index."""
    base = str(git.path / "made")
    name = git("pack-objects", "-q", *options, base, stdin="".join(f"{i}\n" for i in ids).encode())
    pack = Path(f"{base}-{name}.pack")
    return pack.read_bytes(), pack.with_suffix(".idx").read_bytes()


def holds(directory: Path, joined: Packed, blobs: dict[str, bytes]) -> None:
    """Assert that git takes a pack and its index for its own, and finds the blobs in it."""
    git = made_store(directory)
    pack = objects_dir(git) / "pack" / f"pack-{joined[0][-20:].hex()}.pack"
    pack.write_bytes(joined[0])
    pack.with_suffix(".idx").write_bytes(joined[1])
    git("verify-pack", "-v", str(pack))
    git("index-pack", "--index-version=2", "-o", str(directory / "its.idx"), str(pack))
    assert (directory / "its.idx").read_bytes() == joined[1]
    assert git("fsck", "--strict", "--full", "--no-dangling") == ""
    found = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert found == sorted(blobs)
    for object_id, blob in blobs.items():
        assert git.bytes("cat-file", "blob", object_id) == blob
    assert counts(git) | {"in-pack": len(blobs), "packs": 1, "garbage": 0} == counts(git)


@pytest.mark.parametrize("deltas", [["--delta-base-offset"], []], ids=["ofs", "ref"])
def test_joined_packs_are_what_git_would_have_made(
    store: Git, tmp_path: Path, deltas: list[str]
) -> None:
    blobs = [texts_of(seed, 12) for seed in range(4)]
    ids = [stored(store, part) for part in blobs]
    packs = [packed(store, part, *deltas) for part in ids]
    kinds = {kind for pack, index in packs for kind in delta_kinds(pack, index)}
    assert kinds & {6, 7} == ({6} if deltas else {7})
    holds(tmp_path / "joined", join(packs), by_id(ids, blobs))


def delta_kinds(pack: bytes, index: bytes) -> set[int]:
    """The kinds that the objects of a pack say they are of: 6 and 7 are deltas."""
    (count,) = struct.unpack_from(">I", index, 8 + 255 * 4)
    offsets = struct.unpack_from(f">{count}I", index, 8 + 256 * 4 + 24 * count)
    return {pack[offset] >> 4 & 7 for offset in offsets}


def test_a_joined_pack_can_be_joined_again(store: Git, tmp_path: Path) -> None:
    blobs = [texts_of(seed, 6) for seed in range(3)]
    ids = [stored(store, part) for part in blobs]
    one, two, three = (packed(store, part, "--delta-base-offset") for part in ids)
    known = by_id(ids, blobs)
    holds(tmp_path / "joined", join([join([one, two]), three]), known)


def test_packs_of_one_object_and_of_none_are_joined(store: Git, tmp_path: Path) -> None:
    blobs = [b"", b"x", b"y" * 100_000]
    ids = stored(store, blobs)
    packs = [packed(store, [object_id]) for object_id in ids]
    known = dict(zip(ids, blobs, strict=True))
    holds(tmp_path / "joined", join([*packs, packed(store, [])]), known)


def test_no_pack_at_all_is_refused_or_an_empty_one(tmp_path: Path) -> None:
    with contextlib.suppress(NotJoinable):
        holds(tmp_path / "joined", join([]), {})


@given(st.lists(st.lists(st.binary(max_size=60), max_size=5), max_size=4), st.booleans())
@settings(max_examples=12, deadline=None)
def test_any_packs_are_joined_or_hold_an_object_twice(
    parts: list[list[bytes]], by_offset: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        git = made_store(Path(directory, "store"))
        ids = [stored(git, blobs) for blobs in parts]
        options = ["--delta-base-offset"] if by_offset else []
        packs = [packed(git, part, *options) for part in ids]
        known = by_id(ids, parts)
        if sum(len(set(part)) for part in ids) > len(known):
            with pytest.raises(NotJoinable):
                join(packs)
        elif packs:
            holds(Path(directory, "joined"), join(packs), known)


@pytest.fixture
def pair(store: Git) -> tuple[Packed, Packed]:
    one, two = (packed(store, stored(store, texts_of(seed, 5))) for seed in (1, 2))
    return one, two


def is_refused(one: Packed, *others: Packed) -> None:
    for order in ((one, *others), (*others, one)):
        with pytest.raises(NotJoinable):
            join(order)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


@pytest.mark.parametrize("place", [0, 5, 11, 0.5, -21, -1])
def test_a_damaged_pack_is_not_joined(pair: tuple[Packed, Packed], place: float) -> None:
    (pack, index), other = pair
    at = place if isinstance(place, int) else int(len(pack) * place)
    is_refused((flipped(pack, at), index), other)


@pytest.mark.parametrize("length", [0, 11, 12, 32, 0.5, -1])
def test_a_pack_that_is_cut_off_is_not_joined(pair: tuple[Packed, Packed], length: float) -> None:
    (pack, index), other = pair
    is_refused((cut(pack, length), index), other)


def cut(data: bytes, length: float) -> bytes:
    return data[: length if isinstance(length, int) else int(len(data) * length)]


@pytest.mark.parametrize("length", [0, 8, 1031, 1032, 0.95, -40, -1])
def test_an_index_that_is_cut_off_is_not_used(pair: tuple[Packed, Packed], length: float) -> None:
    (pack, index), other = pair
    is_refused((pack, cut(index, length)), other)


@pytest.mark.parametrize("part", ["fan-out", "ids", "checksums", "offsets", "trailer"])
def test_a_damaged_index_is_not_used(pair: tuple[Packed, Packed], part: str) -> None:
    (pack, index), other = pair
    ids = 8 + 256 * 4
    at = {"fan-out": ids - 1, "ids": ids + 7, "checksums": ids + 5 * 20, "offsets": -43,
          "trailer": -1}[part]  # fmt: skip
    is_refused((pack, flipped(index, at % len(index))), other)


def test_the_index_of_another_pack_is_not_used(pair: tuple[Packed, Packed]) -> None:
    (one, index), (two, other) = pair
    is_refused((one, other), (two, index))


def test_an_object_that_is_in_two_packs_is_not_joined(store: Git) -> None:
    ids = stored(store, texts_of(1, 5))
    is_refused(packed(store, ids[:3]), packed(store, ids[2:]))
    is_refused(packed(store, ids), packed(store, ids))


def test_an_index_of_version_1_is_not_joined(store: Git, pair: tuple[Packed, Packed]) -> None:
    ids = stored(store, [b"1"])
    is_refused(packed(store, ids, "--index-version=1"), *pair)


# Many actions


def lived(home: Home, rounds: int) -> None:
    """Actions of every kind, in both files, with what a person changes between them."""
    tool = soulgit.memory_tool(home)
    for number in range(rounds):
        actions = [
            {"action": "add", "text": f"{number} " + "word " * number},
            {"action": "add", "text": f"about you {number}", "target": "user"},
            {"action": "replace", "text": f"about you {number}", "with": "x", "target": "user"},
            {"action": "remove", "text": "x", "target": "user"},
        ]
        put(Path(home.path), {"notes/by-hand.txt": str(number), "TOOLS.md": f"{number}\n"})
        for action in actions:
            result = tool.execute(action)
            assert not result.is_error, result.output


def test_what_is_packed_is_what_would_be_there_loose(tmp_path: Path) -> None:
    homes = []
    for name, due in (("loose", 1000), ("packed", 0)):
        git_home(tmp_path / name / "ava", BASE)
        home = Home.open(tmp_path / name / "ava", clock=fixed_clock, durable=False)
        git = Git(tmp_path / name / "ava")
        git("commit", "-q", "--amend", "--no-edit", "--date=@1 +0000", "--reset-author")
        homes.append(home)
        with thresholds(due, 3):
            lived(home, 12)
    loose, small = (Git(Path(home.path)) for home in homes)
    trees = [git("log", "--format=%T %s").splitlines() for git in (loose, small)]
    assert trees[0] == trees[1]
    assert (counts(loose)["packs"], counts(small)["count"] < 10) == (0, True)
    assert counts(small)["packs"] > 0
    texts = [list(souls(home, Git(Path(home.path))).values()) for home in homes]
    assert texts[0] == texts[1]
    fresh = souls(Path(homes[1].path), small)
    assert list(fresh.values()) == texts[1]
    is_tidy(small)


@pytest.mark.usefixtures("eagerly")
def test_content_that_comes_back_again_and_again_is_made_one_pack_too(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    lived(quick(home_dir), 6)
    collected(home_dir)
    assert counts(git) | {"count": 0, "packs": 1} == counts(git)
    is_tidy(git)


@pytest.mark.usefixtures("eagerly")
def test_each_moment_of_a_home_is_read_as_it_was(home_dir: Path, git: Git) -> None:
    git_home(home_dir, BASE)
    home, then = quick(home_dir), {}
    for number in range(40):
        add(home, f"memory {number}")
        then[git("rev-parse", "HEAD")] = soulgit.compose_soul(home, at="HEAD").text
    before = all_objects(git)
    assert then.items() <= souls(home, git).items()
    collected(home_dir)
    assert all_objects(git) == before
    assert then.items() <= souls(home_dir, git).items()
    assert counts(git) | {"count": 0, "packs": 1, "prune-packable": 0} == counts(git)
    is_tidy(git)


@slow
def test_a_home_of_a_thousand_actions_stays_small(home_dir: Path, git: Git) -> None:
    git_home(home_dir, BASE)
    home, most = quick(home_dir), 0
    for number in range(1_500):
        add(home, f"memory {number}")
        most = max(most, number % 50 == 0 and counts(git)["count"])
    assert 500 < most < 2_000
    assert counts(git)["packs"] > 1
    assert len(souls(home, git)) == 1_501
    is_tidy(git)


# What others are about to use


def waiting_objects(git: Git) -> list[str]:
    """Objects that no ref leads to, each made in one of the ways in which git makes them."""
    put(git.path, {"draft.txt": "staged, and not committed\n"})
    git("add", "draft.txt")
    tree = git("write-tree")
    return [
        git("hash-object", "-w", "--stdin", stdin=b"for later"),
        git("rev-parse", ":draft.txt"),
        tree,
        git("commit-tree", "-m", "for later", tree),
    ]


@pytest.mark.usefixtures("eagerly")
def test_what_no_ref_leads_to_stays_loose(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    waiting = waiting_objects(git)
    added(home_dir, *"bcdef")
    collected(home_dir)
    assert [is_loose(git, object_id) for object_id in waiting] == [True] * 4
    assert counts(git)["count"] == 4
    git("commit", "-qm", "later")
    collected(home_dir)
    assert [is_loose(git, object_id) for object_id in waiting] == [True, False, True, True]
    git("fsck", "--strict")


def in_packs(home: Path, count: int = 4) -> Git:
    """A home whose objects lie in so many packs of ours."""
    git = git_home(home, BASE)
    with eager(tier=100):
        added(quick(home), *range(count))
    assert counts(git) | {"count": 0, "packs": count} == counts(git)
    return git


def test_our_packs_are_made_one(home_dir: Path) -> None:
    git = in_packs(home_dir)
    before = all_objects(git)
    assert collected(home_dir).folded == 4
    assert counts(git)["packs"] == 1
    assert all_objects(git) == before
    is_tidy(git)


@pytest.mark.parametrize("ending", [".keep", ".promisor", ".bitmap"])
def test_a_pack_that_somebody_relies_on_stays(home_dir: Path, ending: str) -> None:
    git = in_packs(home_dir)
    kept = sorted(pack_names(git))[1]
    put(home_dir, {f".git/objects/pack/{kept}{ending}": ""})
    before = {name: data for name, data in pack_files(git).items() if name.startswith(kept)}
    assert collected(home_dir).folded == 3
    with eager(tier=2):
        added(home_dir, "x", "y", "z")
    assert before.items() <= pack_files(git).items()
    assert counts(git)["packs"] < 5


@pytest.mark.parametrize("options", [["-ad"], ["-d"], ["-adk"]], ids=" ".join)
def test_a_pack_that_the_user_made_stays(home_dir: Path, options: list[str]) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bc")
    git("repack", "-q", *options)
    theirs = pack_files(git)
    with eager(tier=2):
        added(home_dir, *"defgh")
    collected(home_dir)
    assert theirs.items() <= pack_files(git).items()
    assert counts(git) | {"packs": 2, "count": 0} == counts(git)
    is_tidy(git)


def test_no_pack_goes_that_a_multi_pack_index_names(home_dir: Path) -> None:
    git = in_packs(home_dir)
    git("multi-pack-index", "write")
    before = pack_files(git)
    with eager(tier=2):
        added(home_dir, *"bcd")
    assert collected(home_dir).folded == 0
    assert before.items() <= pack_files(git).items()
    git("multi-pack-index", "verify")
    is_tidy(git)


def gc_pid(git: Git, age_seconds: float) -> None:
    path = git.path / ".git" / "gc.pid"
    path.write_text(f"{os.getpid()} somewhere")
    then = time.time() - age_seconds
    os.utime(path, (then, then))


@pytest.mark.usefixtures("eagerly")
def test_nothing_is_done_while_git_collects(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    gc_pid(git, 60)
    added(home_dir, *"bcd")
    assert counts(git)["packs"] == 0
    assert "collecting garbage" in shell.refused("gc", str(home_dir), code=4)
    assert counts(git)["packs"] == 0
    gc_pid(git, 13 * 3600)
    add(home_dir, "e")
    assert counts(git) | {"count": 0, "packs": 1} == counts(git)
    assert collected(home_dir).packed == 0


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


# Processes beside one another

EAGER = "from soulgit import growth\ngrowth._DUE_SAMPLE, growth._TIER = 0, 3\n"
WRITER = f"""
import sys
import soulgit
{EAGER}
tool = soulgit.memory_tool(soulgit.Home.open(sys.argv[1], wait_seconds=60))
for number in range(int(sys.argv[3])):
    result = tool.execute({{"action": "add", "text": f"<{{sys.argv[2]}}.{{number}}>"}})
    assert not result.is_error, result.output
"""

UNTIL_TOLD = """
import random, subprocess, sys, threading
import soulgit
from soulgit import history
path, rounds, is_over = sys.argv[1], 0, threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
home = soulgit.Home.open(path)
known = {}
print("ready", flush=True)
while not is_over.is_set() or not rounds:
    rounds += 1
    %s
print(rounds)
"""
"""Does something again and again until its standard input ends."""

COMPOSES = """
    ids = [entry.id for entry in history.log(home)]
    for revision in random.sample(ids, min(20, len(ids))):
        text = soulgit.compose_soul(home, at=revision).text
        assert known.setdefault(revision, text) == text
"""
WALKS = """
    opened = home if rounds % 2 else soulgit.Home.open(path)
    assert [entry.message for entry in history.log(opened)][-1] == "by hand\\n"
"""
GIT_READS = """
    for words in (["log", "-p"], ["cat-file", "--batch-all-objects", "--batch-check"]):
        done = subprocess.run(["git", "-C", path, *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), (words, done.stderr)
        assert " missing" not in done.stdout, words
"""
COLLECTS = """
    words = [sys.executable, "-m", "soulgit", "gc", path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode in (0, 4), done
    assert done.returncode == 0 or done.stderr.startswith("soulgit: "), done
"""
COMMITS = """
    words = ["-c", "user.name=Pat", "-c", "user.email=pat@example.org", "-c", "gc.auto=0",
             "commit", "-q", "--allow-empty", "-m", f"commit {rounds}"]
    while (done := subprocess.run(["git", "-C", path, *words], capture_output=True)).returncode:
        assert b".lock" in done.stderr, done.stderr
"""

Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def started() -> Iterator[Start]:
    """Start a process that does not outlive the test."""
    processes: list[Process] = []

    def start(*words: str | Path) -> Process:
        pipe = subprocess.PIPE
        command = [sys.executable, *map(str, words)]
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.returncode is None:
            process.kill()
            process.communicate()


def ended(process: Process) -> str:
    """What a process said, once it has come to its end by itself."""
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    return out


def looping(started: Start, body: str, home: Path) -> Process:
    process = started("-c", UNTIL_TOLD % body.strip("\n").replace("    ", "", 1), home)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=slow)])
def test_readers_meet_no_error_while_packs_come_and_go(
    started: Start, home_dir: Path, count: int
) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *range(5))
    readers = [looping(started, body, home_dir) for body in (COMPOSES, WALKS, GIT_READS)]
    ended(started("-c", WRITER, home_dir, "w", str(count)))
    rounds = [int(ended(reader)) for reader in readers]
    assert min(rounds) > 1, rounds
    assert git("rev-list", "--count", "HEAD") == str(count + 6)
    assert counts(git)["count"] < 10
    is_tidy(git)


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=slow)])
def test_a_collection_beside_four_writers_loses_nothing(
    started: Start, home_dir: Path, count: int
) -> None:
    git = git_home(home_dir, BASE)
    collector = looping(started, COLLECTS, home_dir)
    writers = [started("-c", WRITER, home_dir, str(name), str(count)) for name in range(4)]
    for process in (*writers, collector):
        ended(process)
    texts = [f"- <{name}.{number}>" for name in range(4) for number in range(count)]
    lines = (home_dir / "MEMORY.md").read_text().splitlines()
    assert sorted(lines) == sorted(["- a", *texts])
    assert git("rev-list", "--count", "HEAD") == str(4 * count + 1)
    assert len(souls(home_dir, git)) == 4 * count + 1
    collected(home_dir)
    assert counts(git)["count"] == 0
    is_tidy(git)


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=slow)])
def test_two_collections_at_once(started: Start, home_dir: Path, rounds: int) -> None:
    git = git_home(home_dir, BASE)
    for number in range(rounds):
        added(quick(home_dir), *(f"{number} {part}" for part in range(20)))
        before = all_objects(git)
        both = [started("-m", "soulgit", "gc", home_dir) for _ in range(2)]
        said = [process.communicate(timeout=60)[1] for process in both]
        codes = sorted(process.returncode for process in both)
        assert codes in ([0, 0], [0, 4]), said
        assert all("being packed" in err for err in said if err)
        assert all_objects(git) == before
        assert counts(git)["count"] == 0
        is_tidy(git)


def test_a_second_collection_is_busy_and_a_write_is_not(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, "b")
    with filelock.FileLock(home_dir / ".git" / "soulgit" / "packing"):
        assert "being packed by another process" in shell.refused("gc", str(home_dir), code=4)
        with pytest.raises(BusyError), eager():
            add(home_dir, "c")
            collected(home_dir)
    assert counts(git)["packs"] == 0
    assert shell("gc", str(home_dir)).code == 0
    assert counts(git)["packs"] == 1


# Kills and faults at each system call

GC = ("-m", "soulgit", "gc")
GC_IN_ONE_STREAM = """
import os, runpy, sys
os.dup2(1, 2)
sys.argv = ["soulgit", "gc", sys.argv[1]]
runpy.run_module("soulgit", run_name="__main__")
"""


@pytest.fixture
def worn(home_dir: Path) -> Git:
    """A home with packs to be made one, loose objects to be packed, and one that stays."""
    git = in_packs(home_dir, 3)
    added(quick(home_dir), "x", "y")
    git("hash-object", "-w", "--stdin", stdin=b"for later")
    return git


def copied(git: Git, number: int) -> Git:
    there = git.path.with_name(f"copy-{number}")
    return Git(shutil.copytree(git.path, there, symlinks=True))


KILLS = [
    "rename",
    pytest.param("fsync", marks=slow),
    pytest.param("unlink", marks=slow),
    pytest.param("write", marks=slow),
    pytest.param("pwrite64", marks=slow),
]


def killed_collections(worn: Git, call: str) -> Iterator[Git]:
    """Yield copies of a home, each after a collection that was killed at another call."""
    for number, fault in each_fault(call, "signal=SIGKILL"):
        git = copied(worn, number)
        done = traced(fault, *GC, str(git.path))
        if not done.was_hit:
            assert done.code == 0
            break
        assert done.code == -signal.SIGKILL
        yield git
        shutil.rmtree(git.path)
    assert number > 1, f"a collection makes no {call}"


@needs_strace
@pytest.mark.parametrize("call", KILLS)
def test_a_collection_killed_at_any_call_loses_nothing(worn: Git, call: str) -> None:
    before, texts = all_objects(worn), souls(worn.path, worn)
    for git in killed_collections(worn, call):
        assert all_objects(git) == before
        assert souls(git.path, git) == texts
        git.agrees()
        collected(git.path)
        assert all_objects(git) == before
        assert counts(git)["count"] == 1
        is_tidy(git)


@slow
@needs_strace
@pytest.mark.parametrize("call", ["rename", "fsync", "unlink"])
def test_a_collection_after_a_killed_one_leaves_no_object_twice(worn: Git, call: str) -> None:
    for git in killed_collections(worn, call):
        collected(git.path)
        wanted = {"count": 1, "packs": 1, "in-pack": counts(worn)["in-pack"] + 6}
        assert counts(git) | wanted == counts(git)


@slow
@needs_strace
@pytest.mark.parametrize("call", ["rename", "unlink"])
def test_an_action_after_a_killed_collection_packs_on(worn: Git, call: str) -> None:
    for git in killed_collections(worn, call):
        with eager():
            added(git.path, "next", "and on")
        found = counts(git)
        # What was packed and not yet taken away stays until somebody collects.
        assert found["count"] - found["prune-packable"] == 1
        is_tidy(git)


FAULTS = [
    "rename=ENOSPC",
    pytest.param("rename=EIO", marks=slow),
    pytest.param("fsync=EIO", marks=slow),
    pytest.param("fsync=ENOSPC", marks=slow),
    pytest.param("write=EIO", marks=slow),
    pytest.param("write=ENOSPC", marks=slow),
    pytest.param("pwrite64=ENOSPC", marks=slow),
]


@needs_strace
@pytest.mark.parametrize("fault", [*FAULTS, pytest.param("unlink=EIO", marks=slow)])
def test_a_collection_that_fails_says_so_and_loses_nothing(worn: Git, fault: str) -> None:
    call, _, error = fault.partition("=")
    before, texts = all_objects(worn), souls(worn.path, worn)
    for number, at in each_fault(call, f"error={error}"):
        git = copied(worn, number)
        done = traced(at, "-c", GC_IN_ONE_STREAM, str(git.path))
        told = done.out.splitlines()
        assert done.code in (0, 1), (at, told)
        if done.code == 1:
            assert told[0].startswith("soulgit: "), at
            assert told[-1].startswith("hint: "), at
            assert len(told) == 2, at
        assert all_objects(git) == before, at
        assert souls(git.path, git) == texts, at
        git.agrees()
        collected(git.path)
        assert all_objects(git) == before, at
        is_tidy(git)
        shutil.rmtree(git.path)
        if not done.was_hit:
            break
    assert number > 1, f"a collection makes no {call}"


EAGER_ACT = f"""
import json, os, sys
import soulgit
{EAGER}
result = soulgit.memory_tool(sys.argv[1]).execute({{"action": "add", "text": "cut off"}})
os.writev(1, [json.dumps([result.is_error, result.output]).encode()])
"""


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("stands", ["soulgit/pack", "soulgit/packing/x", "objects/pack"])
def test_an_action_is_done_although_its_packing_cannot_be(home_dir: Path, stands: str) -> None:
    git = git_home(home_dir, BASE)
    place = home_dir / ".git" / stands
    if place.is_dir():
        place.rmdir()
    put(home_dir, {f".git/{stands}": "a file in the way"})
    added(home_dir, *"bcd")
    assert counts(git)["packs"] == 0
    assert len(souls(home_dir, git)) == 4
    place.unlink()
    if stands == "soulgit/packing/x":
        place.parent.rmdir()
    (home_dir / ".git" / "objects" / "pack").mkdir(exist_ok=True)
    collected(home_dir)
    is_tidy(git)


@slow
@needs_strace
@pytest.mark.parametrize("fault", FAULTS)
def test_an_action_is_done_although_its_packing_fails(worn: Git, fault: str) -> None:
    call, _, error = fault.partition("=")
    before, failed_later = all_objects(worn), 0
    for number, at in each_fault(call, f"error={error}"):
        git = copied(worn, number)
        done = traced(at, "-c", EAGER_ACT, str(git.path))
        assert done.code == 0, at
        is_error, told = json.loads(done.out)
        has_landed = 'memory(self): add "cut off"' in git.subjects()
        assert has_landed != is_error, (at, told)
        failed_later += done.was_hit and has_landed
        ids = before.split(b"\n")[0].split()[:1]
        assert ids[0] in all_objects(git), at
        added(git.path, "next")
        git.agrees()
        collected(git.path)
        is_tidy(git)
        shutil.rmtree(git.path)
        if not done.was_hit:
            break
    assert failed_later, f"packing makes no {call}"


# Reflogs

REFLOGS = ("HEAD", "refs/heads/main")


def reflog(git: Git, name: str) -> list[bytes]:
    return (git.path / ".git" / "logs" / name).read_bytes().splitlines(keepends=True)


def with_long_reflogs(home: Path, entries: int = 2_500) -> Git:
    git = git_home(home, BASE)
    tip = git("rev-parse", "HEAD")
    for name in REFLOGS:
        lines = [
            f"{tip} {tip} Zoë <z@example.org> {1_700_000_000 + at} +0100\t{name}: {at} é\n"
            for at in range(entries)
        ]
        put(home, {f".git/logs/{name}": "".join(lines)})
    return git


def test_a_long_reflog_is_cut_to_its_newest_entries(home_dir: Path) -> None:
    git = with_long_reflogs(home_dir)
    before = {name: reflog(git, name) for name in REFLOGS}
    collected(home_dir)
    for name in REFLOGS:
        assert reflog(git, name) == before[name][-1_000:]
        subjects = git("log", "-g", "--format=%gs", name).splitlines()
        assert (len(subjects), subjects[0]) == (1_000, f"{name}: 2499 é")
    git("commit", "-q", "--allow-empty", "-m", "and on")
    assert len(reflog(git, "HEAD")) == 1_001
    is_tidy(git)


@pytest.mark.parametrize("entries", [0, 1, 999, 1_000])
def test_a_reflog_that_is_short_stays(home_dir: Path, entries: int) -> None:
    git = with_long_reflogs(home_dir, entries)
    before = {name: reflog(git, name) for name in REFLOGS}
    collected(home_dir)
    assert {name: reflog(git, name) for name in REFLOGS} == before


@pytest.mark.usefixtures("eagerly")
def test_an_action_cuts_reflogs_too_and_its_own_line_is_the_last(home_dir: Path) -> None:
    git = with_long_reflogs(home_dir, 2_500)
    before = {name: reflog(git, name) for name in REFLOGS}
    add(home_dir, "b")
    assert os.path.getsize(home_dir / ".git" / "logs" / "HEAD") < 300_000
    for name in REFLOGS:
        *others, last = reflog(git, name)
        assert others == before[name][-999:]
        assert last.endswith(b"\tsoulgit: add\n")
        assert last.split()[1].decode() == git("rev-parse", "HEAD")


def test_a_linked_homes_own_reflog_is_cut(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    log = home_dir / ".git" / "worktrees" / "side" / "logs" / "HEAD"
    line = log.read_bytes().splitlines(keepends=True)[-1]
    log.write_bytes(line * 2_500)
    collected(tmp_path / "side")
    assert log.read_bytes() == line * 1_000


@pytest.mark.parametrize("seconds", [1, pytest.param(20, marks=slow)])
def test_a_collection_beside_commits_loses_no_line(
    started: Start, home_dir: Path, seconds: int
) -> None:
    git = with_long_reflogs(home_dir)
    base = git("rev-parse", "HEAD")
    committer = looping(started, COMMITS, home_dir)
    collector = looping(started, COLLECTS, home_dir)
    with contextlib.suppress(subprocess.TimeoutExpired):
        collector.wait(seconds)
    rounds = int(ended(committer))
    ended(collector)
    commits = git("rev-list", "--reverse", f"{base}..HEAD").split()
    assert len(commits) == rounds > 1
    collected(home_dir)
    newest = min(rounds, 1_000)
    for name in REFLOGS:
        lines = reflog(git, name)
        assert len(lines) == 1_000
        assert [line.split()[1].decode() for line in lines[-newest:]] == commits[-newest:]
    is_tidy(git)


@pytest.mark.usefixtures("eagerly")
def test_no_reflog_holds_the_text_of_a_memory(home_dir: Path) -> None:
    git_home(home_dir, BASE)
    lived(quick(home_dir), 3)
    add(home_dir, "TOPSECRET")
    collected(home_dir)
    logs = [path for path in (home_dir / ".git" / "logs").rglob("*") if path.is_file()]
    held = b"".join(path.read_bytes() for path in logs)
    assert (b"soulgit: add" in held, b"TOPSECRET" in held, b"word" in held) == (True, False, False)


# The command


def test_what_was_done_is_told(shell: Shell, home_dir: Path) -> None:
    git_home(home_dir, BASE)
    added(home_dir, *"bcd")
    done = shell("gc", str(home_dir))
    size = r"\d+\.\d [kM]B"
    form = rf"packed 13 objects, made one pack of 0; .* takes {size}, {size} (less|more) than .*\n"
    assert re.fullmatch(form, done.text), done
    assert (done.code, done.err) == (0, "")
    with eager(tier=100):
        added(home_dir, "e")
    assert "packed 0 objects, made one pack of 2;" in shell("gc", str(home_dir)).text
    assert "packed 0 objects, made one pack of 0;" in shell("gc", str(home_dir)).text


def test_what_was_done_is_told_to_programs(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bcd")
    done = shell("gc", str(home_dir), "--json")
    told = json.loads(done.text)
    assert (done.code, done.err) == (0, "")
    assert list(told) == ["packed", "folded", "bytes_before", "bytes_after"]
    assert (told["packed"], told["folded"]) == (13, 0)
    assert told["bytes_before"] > told["bytes_after"] > 0
    is_tidy(git)


def test_a_directory_that_is_no_home_has_nothing_to_collect(shell: Shell, home_dir: Path) -> None:
    assert "is not a home" in shell.refused("gc", str(home_dir))
    assert "no home nobody" in shell.refused("gc", "nobody")
    assert list(home_dir.iterdir()) == []


def test_a_home_without_commits_can_be_collected(shell: Shell, home_dir: Path) -> None:
    git = Git(home_dir)
    git("init", "-q")
    assert shell("gc", str(home_dir)).code == 0
    is_tidy(git)


def test_a_frozen_home_can_be_collected(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bcd")
    assert shell("freeze", str(home_dir), "--reason", "enough").code == 0
    before = git("for-each-ref"), git("rev-parse", "HEAD")
    assert shell("gc", str(home_dir)).code == 0
    assert counts(git) | {"packs": 1, "count": 0} == counts(git)
    assert (git("for-each-ref"), git("rev-parse", "HEAD")) == before
    shell.refused("memory", "add", str(home_dir), "x", code=3)
    is_tidy(git)


@needs_permissions
@pytest.mark.parametrize("place", [".git", ".git/objects", ".git/objects/pack", ".git/soulgit"])
def test_a_repository_that_is_read_only_is_told_once(home_dir: Path, place: str) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bcd")
    before = all_objects(git)
    command = [*(BOUND if os.geteuid() == 0 else []), sys.executable, *GC, str(home_dir)]
    with unwritable(home_dir / place, whole=True):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (1, "", 2), done
    assert lines[0].startswith("soulgit: ")
    assert lines[1].startswith("hint: ")
    assert all_objects(git) == before
    collected(home_dir)
    is_tidy(git)


@pytest.mark.usefixtures("eagerly")
def test_a_shallow_clone_is_collected(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bcd")
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth", "2", f"file://{home_dir}", str(clone))
    added(clone, *"efg")
    collected(clone)
    assert len(list(history.log(clone))) == 5
    assert counts(Git(clone))["count"] == 0
    is_tidy(Git(clone))


@pytest.mark.usefixtures("eagerly")
def test_a_partial_clone_is_collected(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bcd")
    git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git("clone", "-q", "--filter=blob:none", f"file://{home_dir}", str(clone))
    theirs = pack_files(Git(clone))
    assert any(name.endswith(".promisor") for name in theirs)
    added(clone, *"efg")
    collected(clone)
    assert theirs.items() <= pack_files(Git(clone)).items()
    assert counts(Git(clone))["count"] == 0
    is_tidy(Git(clone))


@pytest.mark.usefixtures("eagerly")
def test_linked_homes_share_what_is_packed(home_dir: Path, tmp_path: Path) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, "b")
    side = tmp_path / "eve"
    forking.fork(home_dir, "eve", PAT, keep_memories=True, directory=str(side))
    for number in range(6):
        added(home_dir, f"main {number}")
        added(side, f"side {number}")
    texts = souls(home_dir, git), souls(side, Git(side))
    before = all_objects(git)
    assert collected(side).folded > 1
    assert all_objects(git) == before
    assert (souls(home_dir, git), souls(side, Git(side))) == texts
    assert counts(git) | {"packs": 1, "count": 0} == counts(git)
    is_tidy(git)
    is_tidy(Git(side))


# What a user does between our rounds


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "words",
    [
        ["gc", "-q"],
        ["gc", "-q", "--prune=now", "--aggressive"],
        ["repack", "-q", "-ad"],
        ["repack", "-q", "-Ad"],
        ["prune", "--expire=now"],
        ["prune-packed", "-q"],
        ["pack-refs", "--all"],
        ["reflog", "expire", "--expire=now", "--all"],
    ],
    ids=" ".join,
)
def test_a_round_copes_with_what_git_did_before_it(home_dir: Path, words: list[str]) -> None:
    git = git_home(home_dir, BASE)
    home, kept = quick(home_dir), {}
    for number in range(3):
        added(home, f"{number} one", f"{number} two")
        git(*words)
        add(home, f"{number} three")
        kept |= souls(home, git)
        if number == 1:
            collected(home_dir)
    collected(home_dir)
    assert souls(home_dir, git) == kept
    assert len(kept) == 10
    assert counts(git)["count"] == 0
    is_tidy(git)


@pytest.mark.parametrize("known", ["", "{", "[]", "null", '{"packs": 7}', '{"left": "x"}', "\xff"])
def test_a_note_of_our_packs_that_is_broken_costs_nothing(home_dir: Path, known: str) -> None:
    git = in_packs(home_dir)
    before = all_objects(git)
    put(home_dir, {".git/soulgit/packs.json": known.encode("latin-1")})
    assert collected(home_dir).folded == 0
    with eager():
        added(home_dir, *"bcdef")
    collected(home_dir)
    assert set(before.splitlines()) <= set(all_objects(git).splitlines())
    is_tidy(git)


def blobs_beginning_with(prefix: str) -> Iterator[bytes]:
    for number in itertools.count():
        data = str(number).encode()
        if hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest().startswith(prefix):
            yield data


def text_for_a_file_beginning_with(prefix: str, before: bytes) -> str:
    """A memory that gives the memory file an id that begins so."""
    for number in itertools.count():
        data = before + f"- {number}\n".encode()
        if hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest().startswith(prefix):
            return str(number)
    raise AssertionError


def test_packing_goes_on_when_what_waited_was_pruned(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    home = quick(home_dir)
    for blob in itertools.islice(blobs_beginning_with("17"), 12):
        git("hash-object", "-w", "--stdin", stdin=blob)
    with thresholds(due=2, tier=8):
        add(home, "a round is due, and the twelve are left")
        assert counts(git) | {"packs": 1, "count": 12} == counts(git)
        git("prune", "--expire=now")
        for _ in range(4):
            data = (home_dir / "MEMORY.md").read_bytes()
            add(home, text_for_a_file_beginning_with("17", data))
    assert counts(git)["packs"] == 2


def test_a_tag_and_what_only_a_tag_leads_to_are_no_trouble(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    git("tag", "-am", "of a commit", "v1")
    git("tag", "-am", "of a blob", "v2", "HEAD:MEMORY.md")
    git("tag", "-am", "of a tag", "v3", "v1")
    put(home_dir, {".git/refs/heads/broken": "1" * 40 + "\n"})
    before = all_objects(git)
    added(home_dir, "b")
    collected(home_dir)
    (home_dir / ".git/refs/heads/broken").unlink()
    assert set(before.splitlines()) <= set(all_objects(git).splitlines())
    is_tidy(git)


def test_merged_and_renamed_histories_are_packed_whole(home_dir: Path) -> None:
    git = git_home(home_dir, {**BASE, "a/b/c/d.txt": "deep\n", "a/same.txt": "deep\n"})
    for branch in ("one", "two", "three"):
        git("switch", "-q", "-c", branch, "main")
        put(home_dir, {f"{branch}/x.txt": branch})
        git("add", "-A")
        git("commit", "-qm", branch)
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "octopus", "one", "two", "three")
    git("prune", "--expire=now")  # trees of its steps
    before = all_objects(git)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(growth, "_ROUND_OBJECTS", 3)
        done = collected(home_dir)
    assert all_objects(git) == before
    assert counts(git) | {"packs": 1, "count": 0, "in-pack": done.packed} == counts(git)
    is_tidy(git)


# Packs that are not sound, and who may read them


def test_a_loose_object_stays_where_the_pack_that_names_it_is_cut_off(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    loose = objects_dir(git)
    saved = shutil.copytree(loose, home_dir.parent / "saved")
    git("repack", "-qad")
    (pack,) = loose.glob("pack/*.pack")
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:20])
    shutil.copytree(saved, loose, dirs_exist_ok=True)
    tree = git("rev-parse", "HEAD:MEMORY.md", check=False)
    with contextlib.suppress(soulgit.SoulgitError):
        collected(home_dir)
    assert git("cat-file", "-p", "HEAD:MEMORY.md") == "- a"
    assert is_loose(git, tree) or soulgit.compose_soul(home_dir, at="HEAD").text.endswith("- a")


@pytest.mark.parametrize("length", [0, 8, 1_040])
def test_an_index_that_is_cut_off_stands_in_nobodys_way(
    shell: Shell, home_dir: Path, length: float
) -> None:
    git = in_packs(home_dir)
    put(home_dir, {"theirs.txt": "x"})
    blob = git("hash-object", "-w", "theirs.txt")
    base = str(objects_dir(git) / "pack" / "pack")
    name = git("pack-objects", "-q", base, stdin=f"{blob}\n".encode())
    index = Path(f"{base}-{name}.idx")
    index.chmod(0o644)
    index.write_bytes(cut(index.read_bytes(), length))
    with eager():
        added(home_dir, "b")
    done = shell("gc", str(home_dir))
    assert done.code in (0, 1), done.err
    assert is_loose(git, blob)


@pytest.mark.parametrize("ending", [".idx", ".pack"])
def test_a_pack_of_ours_that_was_damaged_stops_no_memory(home_dir: Path, ending: str) -> None:
    git = in_packs(home_dir)
    damaged = objects_dir(git) / "pack" / (sorted(pack_names(git))[0] + ending)
    damaged.chmod(0o644)
    kept = pack_files(git)
    damaged.write_bytes(damaged.read_bytes()[: -30 if ending == ".pack" else 1_050])
    with eager(tier=2), contextlib.suppress(soulgit.SoulgitError):
        soulgit.memory_tool(home_dir).execute({"action": "add", "text": "b"})
        collected(home_dir)
    damaged.write_bytes(kept[damaged.name])
    collected(home_dir)
    git("fsck", "--strict")
    # A process that saw the damage keeps its view of that pack; another one does not.
    log = [sys.executable, "-m", "soulgit", "log", str(home_dir)]
    told = subprocess.run(log, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(told) == int(git("rev-list", "--count", "HEAD")) > 4


def test_packs_are_read_by_no_more_people_than_loose_objects(home_dir: Path) -> None:
    umask = os.umask(0o077)
    try:
        git = in_packs(home_dir)
        modes = {path.stat().st_mode & 0o077 for path in objects_dir(git).glob("pack/*")}
        collected(home_dir)
        joined = {path.stat().st_mode & 0o077 for path in objects_dir(git).glob("pack/*")}
    finally:
        os.umask(umask)
    assert (modes, joined) == ({0}, {0})


def test_a_pack_that_holds_all_of_another_is_not_taken_away_with_it(home_dir: Path) -> None:
    git = git_home(home_dir, BASE)
    blob = git("rev-parse", "HEAD:MEMORY.md")
    git("repack", "-qad")
    scratch = home_dir.parent / "scratch" / "pack"
    scratch.mkdir(parents=True)
    repository = Repository.open(str(home_dir))
    ours = packs.write(repository, [blob], str(scratch))
    packs.place(repository, ours, str(scratch), durable=False)
    base = str(objects_dir(git) / "pack" / "pack")
    named = git(
        "-c",
        "pack.compression=0",
        "pack-objects",
        "-q",
        "--no-reuse-object",
        base,
        stdin=blob.encode(),
    )
    state = home_dir / ".git" / "soulgit"
    state.mkdir()
    told = {"packs": [ours, f"pack-{named}"], "left": 0}
    (state / "packs.json").write_text(json.dumps(told))
    upkeep.gc(home_dir)
    assert ours in pack_names(git)
    assert f"pack-{named}" not in pack_names(git)
    git("fsck", "--strict")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_writer_that_lives_long_keeps_no_pack_open_that_is_gone(home_dir: Path) -> None:
    git_home(home_dir, BASE)
    home = quick(home_dir)
    with eager(tier=3):
        added(home, *range(20))
    for place in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{place}")
            assert not (target.startswith(str(home_dir)) and target.endswith("(deleted)"))
