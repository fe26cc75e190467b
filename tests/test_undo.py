"""What was learned taken back, what was lost brought back, and who taught it, on the way."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from soulgit import (
    Home,
    blame,
    capturing,
    homes,
    memory,
    memory_tool,
    restoring,
    search,
    settling,
    undoing,
    updating,
)
from soulgit.adoption import Hand
from soulgit.core.actor import Identity, Moment
from soulgit.core.layout import HERMES, HERMES_DELIMITER, PLAIN, Layout
from soulgit.errors import (
    ChangedSince,
    HomeFrozen,
    InvalidArgument,
    PersonaPending,
    RevisionNotFound,
    SearedRefused,
    SoulgitError,
    TextAmbiguous,
    TextNotFound,
)
from soulgit.memory import Told
from soulgit.restoring import What
from soulgit.undoing import Which
from tests.support import Git, fixed_clock, git_home, put
from tests.test_cli import Shell
from tests.test_settle import Reader, state, trailer

PAT = Identity("Pat", "pat@example.org")
AVA, EVE = "You are Ava.\n", "You are Eve.\n"
MEMORY = "# Mine\n\n- one\n- two\n\nSome prose.\n\n## Later\n\n* three\n"
FILES = {"SOUL.md": AVA, "MEMORY.md": MEMORY, "USER.md": "- four\n- five\n", "TOOLS.md": "saw\n"}
ORIGIN_KEYS = [
    "target", "text", "id", "time", "action", "origin", "source", "session", "model", "persona",
    "seared",
]  # fmt: skip


def opened(path: Path) -> Home:
    return Home.open(path, clock=fixed_clock, durable=False)


def begun(directory: Path, files: dict[str, str] = FILES) -> Git:
    git = git_home(directory, files)
    homes.init(str(directory), identifier="1", identify=lambda _: PAT, clock=fixed_clock)
    return git


def add(git: Git, text: str, **told: str) -> str:
    done = memory.add(opened(git.path), text, told=Told(**told))
    assert done.revision is not None
    return done.revision


def replace(git: Git, text: str, replacement: str, **told: str) -> str:
    done = memory.replace(opened(git.path), text, replacement, told=Told(**told))
    assert done.revision is not None
    return done.revision


def capture(git: Git, files: dict[str, str]) -> str:
    put(git.path, files)
    revision = capturing.capture(opened(git.path), Hand(PAT))
    assert revision is not None
    return revision


def undo(git: Git, revision: str | None = None, **more: object) -> undoing.Taken:
    return undoing.undo(opened(git.path), Which(revision), PAT, **more)  # type: ignore[arg-type]


def restore(git: Git, revision: str, **what: str) -> restoring.Restored:
    return restoring.restore(opened(git.path), revision, PAT, What(**what))  # type: ignore[arg-type]


def texts(git: Git) -> list[str]:
    return [entry.text for entry in memory.list_entries(opened(git.path), target="self")]


def everything(git: Git) -> tuple[object, ...]:
    """Refs, HEAD, the files, the index and the reflogs."""
    logs = {str(path): path.read_bytes() for path in (git.path / ".git/logs").rglob("*")
            if path.is_file()}  # fmt: skip
    return *state(git), (git.path / ".git/index").read_bytes(), logs


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def ava(home_dir: Path) -> Git:
    """A settled home with four memories of its own and two of its user."""
    return begun(home_dir)


# Laws


SOURCES = st.lists(
    st.sampled_from(
        ["- a\n", "- b b\n", "* c\r\n", "  more\n", "  - nested\n", "\n", "# head\n", "prose\n",
         "1. one\n", "2. two\r\n", "```\ncode\n```\n", "---\n", "- tail", "\r\n"]
    ),
    max_size=9,
).map("".join)  # fmt: skip
ENTRIES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)
ACTIONS = st.sampled_from(["add", "first", "last", "replace", "hand", "clobber", "delete"])


def acted(git: Git, action: str, layout: Layout) -> str | None:
    """Do something to the memory file; return the commit, None where there is nothing to do."""
    home, path = opened(git.path), git.path / layout.memory_path("self")
    known = texts(git)
    if action == "add":
        return memory.add(home, "new").revision
    if not known:
        return None
    if action == "replace":
        return memory.replace(home, known[0], "another").revision
    if action in ("first", "last"):
        return memory.remove(home, known[0 if action == "first" else -1]).revision
    if action == "hand":
        path.write_bytes(
            path.read_bytes() + (b"\n- by hand" if layout is PLAIN else b"\n\xc2\xa7\nx")
        )
    elif action == "clobber":
        path.write_bytes(b"- only this" if layout is PLAIN else b"only this")
    else:
        path.unlink()
    return capturing.capture(home, Hand(PAT))


def twice_undone(source: str | None, layout: Layout, actions: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        git, path = Git(Path(name)), Path(name) / layout.memory_path("self")
        other = layout.memory_path("user")
        put(git.path, {"SOUL.md": AVA, other: "- me" if layout is PLAIN else "me"})
        if source is not None:
            put(git.path, {layout.memory_path("self"): source})
        memory.add(opened(git.path), "begin", target="user")
        for action in actions:
            before = path.read_bytes() if path.exists() else None
            revision = acted(git, action, layout)
            if revision is None:
                continue
            after = path.read_bytes() if path.exists() else None
            for wanted in (before, after, before, after):
                undo(git)
                assert (path.read_bytes() if path.exists() else None) == wanted
        git.agrees()


@settings(max_examples=40, deadline=None)
@given(st.none() | SOURCES, st.lists(ACTIONS, min_size=1, max_size=2))
def test_undo_gives_the_bytes_before_and_undo_again_those_after(
    source: str | None, actions: list[str]
) -> None:
    twice_undone(source, PLAIN, actions)


@settings(max_examples=20, deadline=None)
@given(ENTRIES, st.lists(ACTIONS, min_size=1, max_size=2))
def test_the_same_in_the_hermes_layout(entries: list[str], actions: list[str]) -> None:
    twice_undone(HERMES_DELIMITER.join(entries), HERMES, actions)


@pytest.mark.parametrize("action", ["add", "first", "last", "replace", "hand", "clobber", "delete"])
@pytest.mark.parametrize(
    "source",
    [None, "", "- a\n- b", "- a\r\n- b\r\n", MEMORY, "- a\n  - b\n    - c\n- d\n", "\n\n- a\n\n\n",
     "- a\n\n  more of a\n\n- b\n"],
    ids=ascii,
)  # fmt: skip
def test_every_kind_of_action_and_file(source: str | None, action: str) -> None:
    twice_undone(source, PLAIN, [action])


@settings(max_examples=30, deadline=None)
@given(SOURCES, st.integers(0, 8), st.sampled_from(["undo", "restore"]))
def test_one_entry_of_any_file_comes_back_as_itself(source: str, number: int, way: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        git = Git(Path(name))
        put(git.path, {"SOUL.md": AVA, "MEMORY.md": source})
        memory.add(opened(git.path), "begin", target="user")
        known = texts(git)
        assume(number < len(known) and known.count(known[number]) == 1)
        forms = (known[number], known[number].replace("\n", "\r\n"))
        assume(any(form.encode() in (git.path / "MEMORY.md").read_bytes() for form in forms))
        left = [*known[:number], *known[number + 1 :], "later"]
        removed = memory.remove(opened(git.path), known[number]).revision
        memory.add(opened(git.path), "later")
        assume(removed is not None and texts(git) == left)
        if way == "undo":
            undo(git, removed)
        else:
            restore(git, f"{removed}~1", entry=known[number])
        assert texts(git) == [*known, "later"]
        git.agrees()


def independent(chance: Callable[[int], int], count: int) -> Iterator[tuple[str, int]]:
    """Actions no two of which touch the same memory."""
    left = list(range(6))
    for number in range(count):
        kind = ("add", "replace", "remove")[chance(3)]
        if kind == "add" or not left:
            yield "add", 100 + number
        else:
            yield kind, left.pop(chance(len(left)))


@settings(max_examples=30, deadline=None)
@given(st.data(), st.sampled_from([PLAIN, HERMES]))
def test_undoing_one_of_many_leaves_the_others_in_order(
    data: st.DataObject, layout: Layout
) -> None:
    actions = list(independent(lambda n: data.draw(st.integers(0, n - 1)), 6))
    chosen = data.draw(st.integers(0, 5))
    with tempfile.TemporaryDirectory() as name:
        git = Git(Path(name))
        known = [f"fact {number} of six" for number in range(6)]
        source = "".join(f"- {text}\n" for text in known)
        source = source if layout is PLAIN else HERMES_DELIMITER.join(known)
        put(git.path, {"SOUL.md": AVA, layout.memory_path("self"): source})
        home = opened(git.path)
        ids = [_do(home, kind, number) for kind, number in actions]
        undo(git, ids[chosen])
        wanted = known
        for place, (kind, number) in enumerate(actions):
            if place != chosen:
                wanted = _expected(wanted, kind, number)
        kind, number = actions[chosen]
        back = f"fact {number} of six" if kind == "remove" else None
        assert [t for t in texts(git) if t != back] == [t for t in wanted if t != back]
        assert back is None or texts(git).count(back) == 1
        git.agrees()


def _do(home: Home, kind: str, number: int) -> str:
    text = f"fact {number} of six"
    if kind == "replace":
        done = memory.replace(home, text, f"now {number} is otherwise")
    else:
        done = (memory.add if kind == "add" else memory.remove)(home, text)
    assert done.revision is not None
    return done.revision


def _expected(known: list[str], kind: str, number: int) -> list[str]:
    text = f"fact {number} of six"
    if kind == "add":
        return [*known, text]
    other = [f"now {number} is otherwise"] if kind == "replace" else []
    at = known.index(text)
    return [*known[:at], *other, *known[at + 1 :]]


# Undo: an entry, its place, and what came later


def test_the_last_action_is_the_one_that_is_meant(ava: Git) -> None:
    add(ava, "six")
    last = add(ava, "seven")
    done = undo(ava)
    assert [entry.id for entry in done.entries] == [last]
    assert texts(ava) == ["one", "two", "Some prose.", "three", "six"]
    ava.agrees()


def test_a_removed_entry_comes_back_between_its_neighbours(ava: Git) -> None:
    removed = memory.remove(opened(ava.path), "two").revision
    add(ava, "six")
    undo(ava, removed)
    assert (ava.path / "MEMORY.md").read_text() == MEMORY + "- six\n"


def test_it_comes_back_behind_a_neighbour_that_was_reworded_since(ava: Git) -> None:
    removed = memory.remove(opened(ava.path), "two").revision
    replace(ava, "one", "the first of all")
    undo(ava, removed)
    assert texts(ava) == ["the first of all", "two", "Some prose.", "three"]


def test_an_entry_that_was_removed_since_stays_away(ava: Git) -> None:
    added = add(ava, "six")
    memory.remove(opened(ava.path), "six")
    before = everything(ava)
    assert undo(ava, added).revision is None
    assert everything(ava) == before


def test_an_action_that_was_taken_back_has_nothing_left_to_take_back(ava: Git) -> None:
    replaced = replace(ava, "Some prose.", "Some verse.")
    undo(ava, replaced)
    before = everything(ava)
    done = undo(ava, replaced)
    assert (done.revision, done.files) == (None, {})
    assert everything(ava) == before


def test_a_removal_is_not_taken_back_beside_what_the_entry_became(ava: Git) -> None:
    removed = memory.remove(opened(ava.path), "two").revision
    undo(ava, removed)
    replace(ava, "two", "two and a half")
    with pytest.raises(ChangedSince, match="changed since"):
        undo(ava, removed)
    assert texts(ava) == ["one", "two and a half", "Some prose.", "three"]


def test_an_entry_that_was_changed_since_is_named(shell: Shell, ava: Git) -> None:
    added = add(ava, "the user lives in Paris")
    replace(ava, "Paris", "Berlin")
    before = everything(ava)
    told = shell.refused("undo", str(ava.path), added, code=3)
    assert "the user lives in Berlin" in told
    assert "--keep" in told
    assert "--drop" in told
    assert everything(ava) == before


def test_keep_leaves_what_was_changed_since_and_drop_takes_it_back(shell: Shell, ava: Git) -> None:
    added = capture(ava, {"MEMORY.md": MEMORY + "- the user lives in Paris\n- seven\n"})
    replace(ava, "Paris", "Berlin")
    assert shell("undo", str(ava.path), added, "--keep").code == 0
    assert texts(ava)[4:] == ["the user lives in Berlin"]
    undo(ava)
    assert texts(ava)[4:] == ["the user lives in Berlin", "seven"]
    assert shell("undo", str(ava.path), added, "--drop").code == 0
    assert texts(ava)[4:] == []
    ava.agrees()


def test_a_replacement_whose_entry_was_replaced_again(ava: Git) -> None:
    first = replace(ava, "two", "zwei")
    replace(ava, "zwei", "deux")
    with pytest.raises(ChangedSince) as caught:
        undo(ava, first)
    assert caught.value.facts["notes"] == ("self: deux",)
    undo(ava, first, choice="drop")
    assert texts(ava)[1] == "two"


@pytest.mark.parametrize(
    ("words", "left"),
    [(["--session", "s1"], ["b", "d"]), (["--source", "chat:mallory"], ["c", "d"]),
     (["--since", "2027-01-15T08:00:11Z"], ["a", "b"])],
)  # fmt: skip
def test_all_of_a_session_a_source_or_since_a_time_go_in_one_commit(
    shell: Shell, ava: Git, words: list[str], left: list[str]
) -> None:
    for number, (text, session, source) in enumerate(
        [("a", "s1", "chat:mallory"), ("b", "s2", "chat:mallory"), ("c", "s1", "chat:ann"),
         ("d", "s2", "chat:ann")]
    ):  # fmt: skip
        when = Moment(1_800_000_009 + number)
        home = Home.open(ava.path, clock=lambda when=when: when, durable=False)
        memory.add(home, text, told=Told(session=session, source=source))
    before = ava("rev-parse", "HEAD")
    done = shell("undo", str(ava.path), *words)
    assert done.code == 0, done
    assert texts(ava)[4:] == left
    assert ava("rev-parse", "HEAD~1") == before
    assert done.err.count("takes back") == 2
    assert ava.subjects()[0] == "undo: 2 commits"
    undo(ava)
    assert texts(ava)[4:] == ["a", "b", "c", "d"]
    ava.agrees()


def test_rewordings_of_one_session_are_taken_back_to_its_beginning(ava: Git) -> None:
    replace(ava, "two", "zwei", session="s")
    replace(ava, "zwei", "deux", session="s")
    add(ava, "six", session="s")
    replace(ava, "six", "sechs", session="s")
    undoing.undo(opened(ava.path), Which(session="s"), PAT)
    assert (ava.path / "MEMORY.md").read_text() == MEMORY


def test_a_session_that_did_nothing_is_told(shell: Shell, ava: Git) -> None:
    assert "nothing to take back" in shell.refused("undo", str(ava.path), "--session", "x", code=2)
    assert "two ways" in shell.refused("undo", str(ava.path), "HEAD", "--session", "x", code=2)


@pytest.mark.parametrize("layout", [PLAIN, HERMES], ids=["plain", "hermes"])
def test_fourteen_entries_that_a_host_overwrote_come_back(home_dir: Path, layout: Layout) -> None:
    known = [f"fact {number}" for number in range(14)]
    path = layout.memory_path("self")
    source = "".join(f"- {text}\n" for text in known)
    git = begun(
        home_dir,
        {"SOUL.md": AVA, path: source if layout is PLAIN else HERMES_DELIMITER.join(known)},
    )
    put(home_dir, {path: "- fact 5\n" if layout is PLAIN else "fact 5"})
    for text in ("later", "latest"):
        add(git, text)
    clobber = git("rev-parse", "HEAD~2")
    assert trailer(git, "Action", clobber) == "capture"
    undo(git, clobber)
    assert texts(git) == [*known, "later", "latest"]
    git.agrees()


def test_a_line_of_crlf_comes_back_with_its_line_end(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "- a\r\n- b\r\n  more\r\n- c\r\n"})
    removed = memory.remove(opened(home_dir), "b\n  more").revision
    add(git, "d")
    undo(git, removed)
    assert (home_dir / "MEMORY.md").read_bytes() == b"- a\r\n- b\r\n  more\r\n- c\r\n- d\r\n"


def test_bytes_that_are_no_utf8_come_back(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA})
    put(home_dir, {"MEMORY.md": b"- caf\xe9\n- b\n"})
    capturing.capture(opened(home_dir), Hand(PAT))
    put(home_dir, {"MEMORY.md": b"- b\n"})
    clobber = capturing.capture(opened(home_dir), Hand(PAT))
    add(git, "c")
    undo(git, clobber)
    assert (home_dir / "MEMORY.md").read_bytes() == b"- caf\xe9\n- b\n- c\n"


def test_the_second_of_two_same_entries_goes(ava: Git) -> None:
    added = add(ava, "one")
    add(ava, "six")
    undo(ava, added)
    assert (ava.path / "MEMORY.md").read_text() == MEMORY + "- six\n"


def test_an_entry_comes_back_under_its_heading(ava: Git) -> None:
    removed = memory.remove(opened(ava.path), "three").revision
    add(ava, "six")
    undo(ava, removed)
    assert (ava.path / "MEMORY.md").read_text() == MEMORY + "- six\n"


@pytest.mark.parametrize("left", ["- x\n", "- x\n- one\n"])
def test_one_of_two_same_entries_comes_back(home_dir: Path, left: str) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "- one\n- x\n- one\n"})
    lost = capture(git, {"MEMORY.md": left})
    add(git, "later")
    undo(git, lost)
    assert texts(git) == ["one", "x", "one", "later"]


def test_other_entries_keep_their_bytes_in_the_hermes_layout(home_dir: Path) -> None:
    path = "memories/MEMORY.md"
    git = begun(home_dir, {"SOUL.md": AVA, path: "a\r\nb\n§\ntwo\n§\nthree"})
    removed = memory.remove(opened(home_dir), "two").revision
    add(git, "later")
    undo(git, removed)
    wanted = "a\r\nb\n§\ntwo\n§\nthree\n§\nlater"
    assert (home_dir / path).read_bytes() == wanted.encode()


def test_it_comes_back_between_two_that_are_the_same(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "- a\n- one\n- a\n"})
    removed = memory.remove(opened(home_dir), "one").revision
    add(git, "later")
    undo(git, removed)
    assert texts(git) == ["a", "one", "a", "later"]


def test_all_that_one_change_added_goes(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "prose\n"})
    added = capture(git, {"MEMORY.md": "prose\n- d\n2. two\n"})
    add(git, "later")
    undo(git, added)
    assert texts(git) == ["prose", "later"]


def moved_to_hermes(git: Git) -> str:
    """Let a host move the memories to the other layout; return the commit that records it."""
    (git.path / "MEMORY.md").unlink()
    return capture(git, {"memories/MEMORY.md": HERMES_DELIMITER.join(["one", "two"])})


def test_a_change_of_layout_taken_back_fuses_no_memories(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "- one\n- two\n"})
    moved_to_hermes(git)
    undo(git)
    assert texts(git) == ["one", "two"]


def test_a_revision_of_the_other_layout_comes_back_with_its_memories(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "- one\n- two\n"})
    before = git("rev-parse", "HEAD")
    moved_to_hermes(git)
    add(git, "three")
    memory.remove(opened(home_dir), "two")
    restore(git, before, entry="two")
    assert texts(git) == ["one", "two", "three"]
    restore(git, before)
    assert texts(git) == ["one", "two"]
    git.agrees()


def test_an_add_before_a_reread_settlement_was_changed_since(ava: Git) -> None:
    added = add(ava, "six")
    put(ava.path, {"SOUL.md": EVE})
    updating.update(opened(ava.path), Reader(), PAT)
    with pytest.raises(ChangedSince) as caught:
        undo(ava, added)
    assert caught.value.facts["notes"] == ("self: SIX",)


def test_the_same_where_very_many_were_read(ava: Git) -> None:
    capture(ava, {"MEMORY.md": "".join(f"- fact number {number}\n" for number in range(60))})
    added = add(ava, "six")
    put(ava.path, {"SOUL.md": EVE})
    updating.update(opened(ava.path), Reader(), PAT)
    with pytest.raises(ChangedSince) as caught:
        undo(ava, added)
    assert caught.value.facts["notes"] == ("self: SIX",)
    (found,) = search.search(opened(ava.path), "six", ever=True, exact=True)
    assert found.gone is not None
    assert found.gone.became == "SIX"


# Undo: what is refused


def test_a_seared_entry_is_not_taken_back(ava: Git) -> None:
    added = add(ava, "six")
    later = add(ava, "seven")
    memory.sear(opened(ava.path), "six", PAT)
    before = everything(ava)
    with pytest.raises(SearedRefused):
        undo(ava, added)
    with pytest.raises(SearedRefused):
        undo(ava, added, choice="drop")
    assert everything(ava) == before
    undo(ava, later)
    assert texts(ava)[-1] == "six"
    ava.agrees()


def test_what_cannot_be_taken_back_is_refused_in_one_line(shell: Shell, ava: Git) -> None:
    first = ava("rev-list", "--max-parents=0", "HEAD")
    put(ava.path, {"SOUL.md": EVE})
    settling.decide(opened(ava.path), "continue", PAT)
    decision = ava("rev-parse", "HEAD")
    memory.sear(opened(ava.path), "one", PAT)
    seared = ava("rev-parse", "HEAD")
    before = everything(ava)
    home = str(ava.path)
    assert "continue" in shell.refused("undo", home, decision, code=2)
    assert "unsear" in shell.refused("undo", home, seared, code=2)
    assert "first commit" in shell.refused("undo", home, first, code=2)
    shell.refused("undo", home, "nothing-like-this")
    shell.refused("undo", home, "persona/2")
    assert everything(ava) == before


def by_plain_merge(git: Git) -> tuple[str, str]:
    """Merge by git alone a side that has a memory on top; return that commit and the merge."""
    git("switch", "-qc", "side")
    put(git.path, {"MEMORY.md": "- of the side\n" + MEMORY})
    git("commit", "-qam", "by hand")
    side = git("rev-parse", "HEAD")
    git("switch", "-q", "main")
    add(git, "of the main line", source="chat:ann")
    git("merge", "-q", "--no-ff", "-m", "merged", "side")
    return side, git("rev-parse", "HEAD")


def test_a_merged_sides_commit_is_none_of_the_branch(shell: Shell, ava: Git) -> None:
    side, merge = by_plain_merge(ava)
    before = everything(ava)
    assert "own line" in shell.refused("undo", str(ava.path), side)
    assert everything(ava) == before
    undo(ava, merge)
    assert texts(ava) == ["one", "two", "Some prose.", "three", "of the main line"]
    ava.agrees()


def test_what_was_changed_by_hand_is_captured_first_and_kept(ava: Git) -> None:
    added = add(ava, "six")
    put(ava.path, {"MEMORY.md": MEMORY.replace("- one", "- one by hand") + "- six\n- seven\n",
                   "AGENTS.md": "new\n"})  # fmt: skip
    undo(ava, added)
    assert texts(ava) == ["one by hand", "two", "Some prose.", "three", "seven"]
    assert [trailer(ava, "Action", f"HEAD~{n}") for n in (0, 1)] == ["undo", "capture"]
    assert ava("show", "HEAD:AGENTS.md") == "new"
    ava.agrees()


def test_an_entry_that_was_reworded_by_hand_and_not_captured_yet_was_changed_since(
    ava: Git,
) -> None:
    added = add(ava, "the user lives in Paris")
    put(ava.path, {"MEMORY.md": MEMORY + "- the user lives in Berlin\n"})
    with pytest.raises(ChangedSince) as caught:
        undo(ava, added)
    assert caught.value.facts["notes"] == ("self: the user lives in Berlin",)
    assert (ava.path / "MEMORY.md").read_text() == MEMORY + "- the user lives in Berlin\n"


def test_a_person_takes_back_while_frozen_and_the_tool_does_not_write(
    shell: Shell, ava: Git
) -> None:
    add(ava, "six")
    opened(ava.path).freeze(PAT, "it is confused")
    assert shell("undo", str(ava.path)).code == 0
    assert texts(ava) == ["one", "two", "Some prose.", "three"]
    assert shell("restore", str(ava.path), "HEAD~1").code == 0
    assert texts(ava)[-1] == "six"
    assert memory_tool(ava.path).execute({"action": "add", "text": "x"}).is_error
    with pytest.raises(HomeFrozen):
        memory.add(opened(ava.path), "x")
    ava.agrees()


def test_while_a_persona_edit_is_pending_nothing_is_taken_back(shell: Shell, ava: Git) -> None:
    add(ava, "six")
    put(ava.path, {"SOUL.md": EVE})
    before = everything(ava)
    told = shell.refused("undo", str(ava.path), code=3)
    assert "settle" in told
    assert everything(ava) == before


def test_a_file_without_memories_is_taken_back_whole(ava: Git) -> None:
    changed = capture(ava, {"TOOLS.md": "saw\nhammer\n", "AGENTS.md": "new\n"})
    add(ava, "six")
    undo(ava, changed)
    assert (ava.path / "TOOLS.md").read_text() == "saw\n"
    assert not (ava.path / "AGENTS.md").exists()
    assert texts(ava)[-1] == "six"
    ava.agrees()


def test_one_that_was_changed_since_is_named(ava: Git) -> None:
    changed = capture(ava, {"TOOLS.md": "saw\nhammer\n", "MEMORY.md": MEMORY + "- six\n"})
    capture(ava, {"TOOLS.md": "axe\n"})
    before = everything(ava)
    with pytest.raises(ChangedSince) as caught:
        undo(ava, changed)
    assert caught.value.facts["notes"] == ("TOOLS.md",)
    assert everything(ava) == before
    undo(ava, changed, choice="keep")
    assert (ava.path / "TOOLS.md").read_text() == "axe\n"
    assert (ava.path / "MEMORY.md").read_text() == MEMORY
    undo(ava)
    undo(ava, changed, choice="drop")
    assert (ava.path / "TOOLS.md").read_text() == "saw\n"
    ava.agrees()


@pytest.mark.parametrize("hand", [{}, {"MEMORY.md": MEMORY + "- by hand\n", "AGENTS.md": "x\n"}])
def test_a_dry_run_changes_nothing_at_all(shell: Shell, ava: Git, hand: dict[str, str]) -> None:
    added = add(ava, "six")
    put(ava.path, hand)
    before = everything(ava)
    done = shell("undo", str(ava.path), added, "--dry-run")
    assert done.code == 0, done
    assert everything(ava) == before
    done = shell("restore", str(ava.path), f"{added}~1", "--dry-run")
    assert done.code == 0
    assert "MEMORY.md" in done.text
    assert everything(ava) == before


def test_a_dry_run_shows_what_would_change(shell: Shell, ava: Git) -> None:
    added = add(ava, "six")
    done = shell("undo", str(ava.path), "--dry-run")
    assert done.code == 0
    assert "- six" in done.text.splitlines()[-1]
    assert f"would take back {added[:12]}" in done.err


# Undo: the commit


def test_the_commit_says_what_it_takes_back(ava: Git) -> None:
    added = add(ava, "six", source="chat:mallory", session="s")
    undo(ava, added, reason="it is a lie")
    assert ava.subjects()[0] == 'undo: memory(self): add "six"'
    assert (trailer(ava, "Action"), trailer(ava, "Target")) == ("undo", "self")
    assert trailer(ava, "Reason") == "it is a lie"
    assert (trailer(ava, "Source"), trailer(ava, "Session")) == ("", "")
    assert f"    {added}" in ava("log", "-1", "--format=%b")
    assert ava("log", "-1", "--format=%an <%ae>") == "Pat <pat@example.org>"
    undo(ava)
    assert ava.subjects()[0] == 'redo: memory(self): add "six"'
    assert trailer(ava, "Action") == "undo"
    undo(ava)
    assert ava.subjects()[0].startswith("undo: ")
    assert texts(ava) == ["one", "two", "Some prose.", "three"]
    ava.agrees()


def test_no_text_can_forge_a_trailer_of_the_commit(ava: Git) -> None:
    text = "x\n\nSoul-Action: add\nSoul-Source: chat:mallory"
    add(ava, text)
    undo(ava, reason="x\n\nSoul-Action: add")
    told = ava("log", "-1", "--format=%(trailers:only,unfold)").splitlines()
    assert "Soul-Action: undo" in told
    assert [line for line in told if line.startswith(("Soul-Action: add", "Soul-Source"))] == []
    undo(ava)
    assert trailer(ava, "Action") == "undo"
    assert trailer(ava, "Source") == ""
    ava.agrees()


def test_the_commits_before_stay_as_they_were(ava: Git) -> None:
    add(ava, "six")
    replace(ava, "two", "zwei")
    before = ava("log", "--format=%H %s")
    undo(ava)
    restore(ava, "HEAD~3")
    assert ava("log", "--format=%H %s", "HEAD~2") == before
    ava.agrees()


# Restore


def test_every_revision_comes_back_to_the_byte(ava: Git) -> None:
    revisions = [ava("rev-parse", "HEAD"), add(ava, "six")]
    revisions.append(capture(ava, {"TOOLS.md": "axe\r\n", "AGENTS.md": "by hand"}))
    (ava.path / "USER.md").unlink()
    revisions.append(capture(ava, {"MEMORY.md": "\n\n- a\n\n\n- b", "HEARTBEAT.md": ""}))
    for revision in [*revisions, *reversed(revisions)]:
        restore(ava, revision)
        names = ava("ls-tree", "--name-only", revision).splitlines()
        assert sorted(path.name for path in ava.path.glob("*.md")) == sorted(names)
        for name in names:
            assert (ava.path / name).read_bytes() == ava.bytes("show", f"{revision}:{name}")
        ava.agrees()


def test_restoring_twice_changes_nothing_the_second_time(shell: Shell, ava: Git) -> None:
    add(ava, "six")
    assert shell("restore", str(ava.path), "HEAD~1", "--reason", "r").code == 0
    assert trailer(ava, "Action") == "restore"
    assert trailer(ava, "Reason") == "r"
    before = everything(ava)
    done = shell("restore", str(ava.path), "HEAD~1~1")
    assert (done.code, done.text) == (0, "")
    assert everything(ava) == before


def settled_as_eve(git: Git) -> str:
    """Let the companion become Eve; return the revision before."""
    before = git("rev-parse", "HEAD")
    put(git.path, {"SOUL.md": EVE})
    settling.decide(opened(git.path), "continue", PAT)
    add(git, "as Eve")
    return before


def test_a_persona_that_differs_waits_on_disk(shell: Shell, ava: Git) -> None:
    before = settled_as_eve(ava)
    done = shell("restore", str(ava.path), before)
    assert done.code == 0, done
    assert "SOUL.md waits" in done.err
    assert (ava.path / "SOUL.md").read_bytes() == AVA.encode()
    assert (ava.path / "MEMORY.md").read_text() == MEMORY
    assert ava("show", "HEAD:SOUL.md") == EVE.strip()
    assert settling.is_pending(opened(ava.path))
    assert memory_tool(ava.path).execute({"action": "add", "text": "x"}).is_error
    assert shell("settle", str(ava.path), "--continue").code == 0
    assert ava("show", "HEAD:SOUL.md") == AVA.strip()
    add(ava, "x")
    ava.agrees()


def test_a_persona_alone_makes_no_commit(shell: Shell, ava: Git) -> None:
    before = ava("rev-parse", "HEAD")
    settled_as_eve(ava)
    tip = ava("rev-parse", "HEAD")
    done = shell("restore", str(ava.path), before, "--file", "SOUL.md")
    assert (done.code, done.text) == (0, "")
    assert ava("rev-parse", "HEAD") == tip
    assert (ava.path / "SOUL.md").read_text() == AVA
    settling.decide(opened(ava.path), "discard", PAT)
    assert (ava.path / "SOUL.md").read_text() == EVE


@pytest.mark.parametrize("words", [[], ["--file", "SOUL.md"], ["--target", "self"]])
@pytest.mark.parametrize("committed", [False, True])
def test_an_unsettled_persona_edit_is_not_written_over(
    shell: Shell, ava: Git, words: list[str], committed: bool
) -> None:
    before = settled_as_eve(ava)
    put(ava.path, {"SOUL.md": "You are Liv, and this is not settled.\n"})
    if committed:
        ava("commit", "-qam", "by hand")
    had = everything(ava)
    shell.refused("restore", str(ava.path), before, *words, code=3)
    assert everything(ava) == had


def test_one_memory_file_comes_back(ava: Git) -> None:
    before = ava("rev-parse", "HEAD")
    add(ava, "six")
    memory.add(opened(ava.path), "seven", target="user")
    restore(ava, before, target="user")
    assert (ava.path / "USER.md").read_text() == FILES["USER.md"]
    assert texts(ava)[-1] == "six"
    assert trailer(ava, "Target") == "user"


@pytest.mark.parametrize("text", ["one", "two", "Some prose.", "three"])
def test_one_memory_comes_back_among_its_neighbours(ava: Git, text: str) -> None:
    before = ava("rev-parse", "HEAD")
    memory.remove(opened(ava.path), text)
    add(ava, "six")
    restore(ava, before, entry=text)
    assert texts(ava) == ["one", "two", "Some prose.", "three", "six"]
    ava.agrees()
    assert restore(ava, before, entry=text).revision is None


def test_one_memory_comes_back_in_the_hermes_layout(home_dir: Path) -> None:
    source = HERMES_DELIMITER.join(["one", "two", "three"])
    git = begun(home_dir, {"SOUL.md": AVA, "memories/MEMORY.md": source})
    before = git("rev-parse", "HEAD")
    for text in ("one", "two", "three"):
        memory.remove(opened(home_dir), text)
    for text in ("three", "one", "two"):
        restore(git, before, entry=text)
    assert sorted(texts(git)) == ["one", "three", "two"]
    git.agrees()


def test_a_memory_that_was_not_there_or_not_alone_is_told(shell: Shell, ava: Git) -> None:
    before = everything(ava)
    shell.refused("restore", str(ava.path), "HEAD", "--entry", "nothing like this")
    with pytest.raises(TextNotFound):
        restore(ava, "HEAD", entry="")
    with pytest.raises(TextAmbiguous):
        restore(ava, "HEAD", entry="o")
    assert everything(ava) == before


def test_two_same_memories_are_no_choice_to_make(home_dir: Path) -> None:
    git = begun(home_dir, {"SOUL.md": AVA, "MEMORY.md": "- one\n- one\n"})
    lost = capture(git, {"MEMORY.md": "- x\n"})
    restore(git, f"{lost}~1", entry="one")
    assert set(texts(git)) == {"one", "x"}


def test_one_file_comes_back_and_one_that_was_not_there_goes(ava: Git) -> None:
    before = ava("rev-parse", "HEAD")
    capture(ava, {"AGENTS.md": "one\n"})
    capture(ava, {"AGENTS.md": "two\n", "TOOLS.md": "axe\n"})
    restore(ava, "HEAD~1", file="AGENTS.md")
    assert (ava.path / "AGENTS.md").read_text() == "one\n"
    assert (ava.path / "TOOLS.md").read_text() == "axe\n"
    restore(ava, before, file="AGENTS.md")
    assert not (ava.path / "AGENTS.md").exists()
    assert ava("ls-files", "AGENTS.md") == ""
    ava.agrees()


def test_what_no_restore_means_is_refused(shell: Shell, ava: Git) -> None:
    home = str(ava.path)
    shell.refused("restore", home, "HEAD", "--file", "notes.txt", code=2)
    shell.refused("restore", home, "HEAD", "--file", "USER.md", "--entry", "x", code=2)
    shell.refused("restore", home, "nothing-like-this")


def test_a_hand_edit_is_captured_before_it_is_restored_over(ava: Git) -> None:
    put(ava.path, {"MEMORY.md": "- by hand\n"})
    restore(ava, "HEAD")
    assert (ava.path / "MEMORY.md").read_text() == MEMORY
    assert ava("show", "HEAD~1:MEMORY.md") == "- by hand"
    ava.agrees()


def test_no_restore_drops_or_frees_a_seared_entry(ava: Git) -> None:
    before = ava("rev-parse", "HEAD")
    add(ava, "six")
    unseared = ava("rev-parse", "HEAD")
    memory.sear(opened(ava.path), "six", PAT)
    had = everything(ava)
    for revision in (before, unseared):
        with pytest.raises(SearedRefused):
            restore(ava, revision)
        with pytest.raises(SearedRefused):
            restore(ava, revision, target="self")
    assert everything(ava) == had
    restore(ava, before, target="user")


def test_an_older_wording_of_a_seared_entry_is_refused_by_entry_too(ava: Git) -> None:
    memory.sear(opened(ava.path), "two", PAT)
    had = everything(ava)
    assert restore(ava, "HEAD~1", entry="two").revision is None
    assert everything(ava) == had


# Blame and search on the command line


def blamed(shell: Shell, git: Git, *words: str) -> dict[str, str]:
    """The commit of each memory, by its text."""
    rows = json.loads(shell("blame", str(git.path), "--json", *words).text)
    return {row["text"]: row["id"] for row in rows}


def test_blame_and_search_print_json_as_documented(shell: Shell, ava: Git) -> None:
    told = {"source": "chat:ann", "session": "s", "model": "m"}
    added = add(ava, "six", **told)
    memory.sear(opened(ava.path), "one", PAT)
    removed = memory.remove(opened(ava.path), "six", told=Told(reason="a lie")).revision
    rows = json.loads(shell("blame", str(ava.path), "--json").text)
    assert [list(row) for row in rows] == [ORIGIN_KEYS] * 6
    assert [row["text"] for row in rows if row["seared"]] == ["one"]
    (row,) = json.loads(shell("search", str(ava.path), "SIX", "--ever", "--json").text)
    assert list(row) == [*ORIGIN_KEYS, "gone"]
    assert {key: row[key] for key in (*told, "id", "action", "target", "text", "persona")} == {
        **told, "id": added, "action": "add", "target": "self", "text": "six",
        "persona": "persona/1",
    }  # fmt: skip
    assert row["time"] == "2027-01-15T09:00:00+01:00"
    assert row["gone"] == {
        "id": removed, "time": row["time"], "action": "remove", "reason": "a lie", "became": None,
    }  # fmt: skip
    (row,) = json.loads(shell("search", str(ava.path), "two", "--json").text)
    assert row["gone"] is None


def test_sear_keeps_the_origin(shell: Shell, ava: Git) -> None:
    added = add(ava, "six")
    memory.sear(opened(ava.path), "six", PAT)
    assert blamed(shell, ava)["six"] == added


def test_a_search_that_finds_nothing_exits_1(shell: Shell, ava: Git) -> None:
    home = str(ava.path)
    done = shell("search", home, "nothing like this")
    assert (done.code, done.text) == (1, "")
    done = shell("search", home, "nothing like this", "--json")
    assert (done.code, json.loads(done.text)) == (1, [])
    assert shell("search", home, "ONE", "--exact").code == 1
    assert shell("search", home, "ONE").code == 0
    assert shell("search", home, "one", "--target", "user").code == 1
    assert shell("search", home, "one", "--source", "nobody").code == 1
    shell.refused("search", home, " ")
    shell.refused("search", home, "one", "--at", "nothing-like-this")


def test_blame_and_search_at_a_revision(shell: Shell, ava: Git) -> None:
    added = add(ava, "six")
    replace(ava, "six", "sechs")
    assert blamed(shell, ava, "--at", "HEAD~1")["six"] == added
    assert "six" not in blamed(shell, ava)
    assert list(blamed(shell, ava, "--target", "user")) == ["four", "five"]
    assert shell("search", str(ava.path), "six", "--at", "HEAD~1").code == 0
    assert shell("search", str(ava.path), "six").code == 1


def test_the_history_of_one_memory_through_likely_rewordings(shell: Shell, ava: Git) -> None:
    add(ava, "the user lives in Paris")
    replace(ava, "Paris", "Berlin")
    undo(ava)
    undo(ava)
    rows = json.loads(shell("blame", str(ava.path), "--history", "the user", "--json").text)
    assert [(row["text"].rpartition(" ")[2], row["action"]) for row in reversed(rows)] == [
        ("Paris", "add"), ("Berlin", "replace"), ("Paris", "undo"), ("Berlin", "undo"),
    ]  # fmt: skip


def test_the_history_of_one_memory_through_all_that_rewords(shell: Shell, ava: Git) -> None:
    ids = [add(ava, "six"), replace(ava, "six", "half a dozen")]
    undo(ava)
    ids.append(ava("rev-parse", "HEAD"))
    put(ava.path, {"SOUL.md": EVE})
    updating.update(opened(ava.path), Reader(), PAT)
    ids.append(ava("rev-parse", "HEAD^2"))
    ids.append(replace(ava, "SIX", "six, all in all"))
    rows = json.loads(shell("blame", str(ava.path), "--history", "all in all", "--json").text)
    assert [row["text"] for row in reversed(rows)] == [
        "six", "half a dozen", "six", "SIX", "six, all in all",
    ]  # fmt: skip
    assert [row["id"] for row in reversed(rows)] == ids
    actions = [row["action"] for row in reversed(rows)]
    assert actions == ["add", "replace", "undo", "reread", "replace"]
    shell.refused("blame", str(ava.path), "--history", "nothing like this")


def test_blame_in_an_empty_home(shell: Shell) -> None:
    assert shell("init", "ava").code == 0
    done = shell("blame", "ava")
    assert (done.code, done.text) == (0, "")
    assert json.loads(shell("blame", "ava", "--json").text) == []
    assert shell("search", "ava", "x").code == 1
    shell.refused("undo", "ava", code=2)
    Git(shell.directory)("init", "-q", "unborn")
    shell.refused("blame", "./unborn")
    shell.refused("search", "./unborn", "x")
    assert shell("undo", "./unborn").code in (1, 2)
    shell.refused("restore", "./unborn", "HEAD")


def test_blame_in_a_shallow_clone(shell: Shell, ava: Git, tmp_path: Path) -> None:
    for text in ("six", "seven", "eight"):
        add(ava, text)
    clone = tmp_path / "clone"
    ava("clone", "-q", "--depth", "2", f"file://{ava.path}", str(clone))
    found = blamed(shell, Git(clone))
    assert list(found) == ["one", "two", "Some prose.", "three", "six", "seven", "eight", "four",
                           "five"]  # fmt: skip
    assert found["eight"] == ava("rev-parse", "HEAD")
    assert shell("search", str(clone), "six", "--ever").code == 0
    assert shell("undo", str(clone)).code == 0
    told = shell.refused("undo", str(clone), ava("rev-parse", "HEAD~1"), code=1)
    assert "shallow" in told


def test_blame_on_another_branch(shell: Shell, ava: Git) -> None:
    ava("switch", "-qc", "other")
    added = add(ava, "six")
    ava("switch", "-q", "main")
    assert "six" not in blamed(shell, ava)
    assert blamed(shell, ava, "--at", "other")["six"] == added
    ava("switch", "-q", "other")
    assert blamed(shell, ava)["six"] == added


def test_entries_of_two_merged_sides_keep_their_origins(shell: Shell, ava: Git) -> None:
    first = ava("rev-list", "--max-parents=0", "HEAD")
    side, merge = by_plain_merge(ava)
    main = ava("rev-parse", f"{merge}^1")
    found = blamed(shell, ava)
    assert (found["of the side"], found["of the main line"], found["two"]) == (side, main, first)
    rows = json.loads(shell("search", str(ava.path), "of the", "--ever", "--json").text)
    assert {row["text"]: row["id"] for row in rows} == {
        "of the side": side, "of the main line": main,
    }  # fmt: skip


def test_errors_are_the_ones_that_are_documented(ava: Git) -> None:
    for error, which in (
        (RevisionNotFound, Which("nothing-like-this")),
        (InvalidArgument, Which("HEAD", session="s")),
        (InvalidArgument, Which(session="s")),
    ):
        with pytest.raises(error) as caught:
            undoing.undo(opened(ava.path), which, PAT)
        assert isinstance(caught.value, SoulgitError)
        assert caught.value.hint
    put(ava.path, {"SOUL.md": EVE})
    with pytest.raises(PersonaPending):
        undo(ava, add_by_git(ava))


def add_by_git(git: Git) -> str:
    """A memory that somebody commits with git alone."""
    put(git.path, {"MEMORY.md": MEMORY + "- by git\n"})
    git("commit", "-q", "-m", "by git", "MEMORY.md")
    return git("rev-parse", "HEAD")


def test_a_commit_of_plain_git_can_be_taken_back(ava: Git) -> None:
    made = add_by_git(ava)
    add(ava, "six")
    assert blame.blame(opened(ava.path), target="self")[-2].action is None
    undo(ava, made)
    assert (ava.path / "MEMORY.md").read_text() == MEMORY + "- six\n"
