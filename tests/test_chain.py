"""A pack that soulgit writes holds versions as what differs between them; git reads it."""

from __future__ import annotations

import hashlib
import itertools
import random
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import soulgit
from soulgit import Home, upkeep
from soulgit.git import packs
from soulgit.git.packfile import Writing
from tests.support import Git, git_home
from tests.test_growth import (
    BASE,
    added,
    all_objects,
    counts,
    eager,
    holds,
    is_tidy,
    made_store,
    objects_dir,
    pack_files,
    packed,
    quick,
    stored,
    thresholds,
)

BLOB = 3


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def written(versions: Iterable[bytes]) -> tuple[bytes, bytes]:
    known = {blob_id(data): data for data in versions}
    writing = Writing()
    objects = ((object_id, BLOB, data) for object_id, data in known.items())
    pack = b"".join(writing.pack(len(known), objects))
    return pack, writing.index()


def come_back(directory: Path, versions: list[bytes]) -> None:
    """Assert that git finds all of them in a pack of ours, whose index is the one it makes."""
    holds(directory, written(versions), {blob_id(data): data for data in versions})


def chain_lengths(git: Git, pattern: str = "pack-*.idx", kind: str = "") -> list[int]:
    """How many deltas each object is behind a whole one, of objects of one kind or of all."""
    lengths = []
    for index in objects_dir(git).glob(f"pack/{pattern}"):
        for line in git("verify-pack", "-v", str(index)).splitlines():
            if re.match(rf"[0-9a-f]{{40}} {kind or '[a-z]+'} ", line):
                words = line.split()
                lengths.append(int(words[5]) if len(words) > 5 else 0)
    return lengths


lines = st.one_of(
    st.sampled_from([b"\n", b"- tea\n", b"- the user likes tea\n", b"author A <a@b> 17\n"]),
    st.binary(max_size=12),
    st.integers(0, 10**6).map(lambda number: b"- memory %d of a long life\n" % number),
)
texts = st.lists(lines, max_size=30).map(b"".join)
edits = st.tuples(st.floats(0, 1), st.integers(0, 90), texts)


def edited(text: bytes, edit: tuple[float, int, bytes]) -> bytes:
    place, length, new = edit
    at = int(place * len(text))
    return text[:at] + new + text[at + length :]


@given(texts, st.lists(st.lists(edits, max_size=4), max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_versions_come_back(text: bytes, steps: list[list[tuple[float, int, bytes]]]) -> None:
    versions = [text]
    for changes in steps:
        for change in changes:
            text = edited(text, change)
        versions.append(text)
    with tempfile.TemporaryDirectory() as directory:
        come_back(Path(directory, "store"), versions)


LONG = bytes(random.Random(0).randbytes(200_000))
ODD = {
    "nothing": [b""],
    "nothing after something": [b"- a\n", b"", b"- b\n", b"- a\n- b\n"],
    "one byte after another": [bytes([number]) for number in range(40)],
    "longer and longer": [b"a" * number for number in range(0, 3_000, 61)],
    "long copies, far in": [LONG, LONG[:150_000] + b"x" + LONG[150_000:], LONG[66_000:], LONG * 2],
    "long news": [b"- a\n", b"- a\n" + LONG[:1_000] + b"\n- b\n"],
    "no line ends": [b"- a" * 5_000, b"- a" * 4_000 + b"b" * 9 + b"- a" * 1_000],
    "lines in another order": [b"".join(b"- line %d\n" % n for n in order)
                               for order in (range(300), range(299, -1, -1), [*range(9)] * 40)],
    "lengths of two and three digits of seven bits": [LONG[:n] for n in (127, 128, 16_383, 16_384)],
    "longer than what is compared": [LONG * 22, LONG * 22 + b"x", b"x" + LONG * 20],
}  # fmt: skip


@pytest.mark.parametrize("versions", ODD.values(), ids=ODD)
def test_odd_versions_come_back(tmp_path: Path, versions: list[bytes]) -> None:
    come_back(tmp_path / "store", versions)


def memory_file(entries: int, length: int) -> Iterator[bytes]:
    """Versions of a memory file, each with a new entry at its end and without its oldest."""
    chance = random.Random(0)
    texts = (f"- {number} {chance.randbytes(length // 2).hex()}\n" for number in itertools.count())
    kept = list(itertools.islice(texts, entries))
    while True:
        yield "".join(kept).encode()
        kept = [*kept[1:], next(texts)]


@pytest.mark.parametrize("entries", [4, 100, 2_000])
def test_a_version_takes_what_differs_however_long_the_file_is(
    tmp_path: Path, entries: int
) -> None:
    count, length = 300, 80
    versions = list(itertools.islice(memory_file(entries, length), count))
    pack, _ = written(reversed(versions))
    new = length + 20  # a new entry, and what says where it stands
    assert len(pack) - len(zlib.compress(versions[-1])) < 2 * count * new
    if entries == 100:
        git = made_store(tmp_path / "store")
        theirs, _ = packed(git, stored(git, versions), "--delta-base-offset")
        assert len(pack) < len(theirs)


def test_no_version_is_far_from_a_whole_one(tmp_path: Path) -> None:
    versions = list(itertools.islice(memory_file(150, 40), 1_500))
    pack, index = written(versions)
    git = made_store(tmp_path / "store")
    path = objects_dir(git) / "pack" / "pack-1.pack"
    path.write_bytes(pack)
    path.with_suffix(".idx").write_bytes(index)
    lengths = chain_lengths(git)
    assert len(lengths) == 1_500
    assert 10 < max(lengths) <= 50
    assert 1 <= lengths.count(0) < 10
    # The newest, which come first, are read most.
    assert lengths[0] == 0
    newest = git("verify-pack", "-v", str(path)).split()[0]
    assert newest == blob_id(versions[0])


# In a home


def whole(git: Git, kind: str) -> int:
    return chain_lengths(git, kind=kind).count(0)


def test_a_home_holds_one_whole_version_of_each_thing(home_dir: Path) -> None:
    text = "".join(f"- something remembered, {number}\n" for number in range(100))
    files = {**BASE, "MEMORY.md": text, "USER.md": text.upper()}
    git = git_home(home_dir, {**files, "notes/a.txt": "apart\n" * 40, "b.bin": LONG[:5_000]})
    home = quick(home_dir)
    tool = soulgit.memory_tool(home)
    for number in range(20):
        added(home, f"more {number}")
        result = tool.execute({"action": "add", "target": "user", "text": f"also {number}"})
        assert not result.is_error
    before = all_objects(git)
    upkeep.gc(home_dir)
    assert all_objects(git) == before
    names = git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert set(names) == {"SOUL.md", "MEMORY.md", "USER.md", "notes/a.txt", "b.bin"}
    assert whole(git, "blob") == len(names)
    assert whole(git, "tree") <= len({"", "notes"})
    assert whole(git, "commit") < 5 < counts(git)["in-pack"] / 3
    is_tidy(git)


def test_a_home_is_smaller_than_git_would_make_it(home_dir: Path) -> None:
    versions = memory_file(100, 60)
    git = git_home(home_dir, {**BASE, "MEMORY.md": next(versions)})
    tool = soulgit.memory_tool(quick(home_dir))
    for before, after in itertools.pairwise(itertools.islice(versions, 40)):
        for action, text in (("remove", before.split(b"\n")[0]), ("add", after.split(b"\n")[-2])):
            result = tool.execute({"action": action, "text": text.decode().removeprefix("- ")})
            assert not result.is_error, result.output
    theirs = Git(Path(shutil.copytree(home_dir, home_dir.with_name("theirs"))))
    upkeep.gc(home_dir)
    theirs("repack", "-adfq")
    assert sum(map(len, pack_files(git).values())) < sum(map(len, pack_files(theirs).values()))
    assert all_objects(git) == all_objects(theirs)


def test_what_would_be_too_much_for_one_pack_comes_into_several(
    home_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = git_home(home_dir, {**BASE, "b.bin": LONG[:9_000]})
    added(home_dir, *"bcdefgh")
    before = all_objects(git)
    monkeypatch.setattr(packs, "_PACK_BYTES", 1_000)
    with thresholds(due=10_000, tier=8):
        collected = upkeep.gc(home_dir)
    assert (collected.packed, collected.folded > 3) == (counts(git)["in-pack"], True)
    assert all_objects(git) == before
    is_tidy(git)


def test_what_does_not_come_back_is_not_taken_away(
    home_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = git_home(home_dir, BASE)
    added(home_dir, *"bcdef")
    before = set(all_objects(git).splitlines())
    with monkeypatch.context() as patched:
        patched.setattr(zlib, "compress", faulty(zlib.compress))
        with pytest.raises(soulgit.SoulgitError):
            upkeep.gc(home_dir)
        with eager():
            added(home_dir, "g")
    assert counts(git)["packs"] == 0
    assert before < set(all_objects(git).splitlines())
    upkeep.gc(home_dir)
    assert counts(git) | {"packs": 1, "count": 0} == counts(git)
    assert before < set(all_objects(git).splitlines())
    is_tidy(git)


def faulty(compress: Callable[..., bytes]) -> Callable[..., bytes]:
    """As memory that is damaged would have it: one bit of each text in a pack is another."""

    def damaged(data: bytes, *level: int) -> bytes:
        is_loose = bool(level)
        return compress(data if is_loose or not data else data[:-1] + bytes([data[-1] ^ 1]), *level)

    return damaged


def test_a_pack_of_many_versions_is_read_by_the_home_as_it_was(home_dir: Path) -> None:
    git_home(home_dir, BASE)
    home = Home.open(home_dir, durable=False)
    then = {}
    for number in range(70):
        added(home, f"memory {number}")
        soul = soulgit.compose_soul(home, at="HEAD")
        then[str(soul.revision)] = soul.text
    upkeep.gc(home)
    assert max(chain_lengths(Git(home_dir), kind="blob")) > 10
    fresh = Home.open(home_dir)
    assert {at: soulgit.compose_soul(fresh, at=at).text for at in then} == then
