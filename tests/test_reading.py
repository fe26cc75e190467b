"""Answers put in the place of memories, and the names that companions' branches can have."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soulgit.core import branches, entries, reading
from soulgit.core.layout import HERMES, PLAIN, Layout
from soulgit.core.reading import Batch
from soulgit.errors import AnswerRefused, InvalidArgument

LAYOUTS = pytest.mark.parametrize("layout", [PLAIN, HERMES], ids=["plain", "hermes"])
MARKER = "<!-- seared -->"


def plain(memory: str, user: str = "") -> dict[str, bytes]:
    return {"MEMORY.md": memory.encode(), "USER.md": user.encode()}


def texts(files: dict[str, bytes], layout: Layout = PLAIN) -> list[str]:
    return [item.entry.text for item in reading.readable(files, layout)]


def put(memory: str, answers: list[str], layout: Layout = PLAIN, first: int = 0) -> str:
    changed = reading.put({"MEMORY.md": memory.encode()}, layout, first, answers)
    return changed["MEMORY.md"].decode()


# What is read


def test_entries_of_both_files_are_read_in_order() -> None:
    files = plain("# H\n\n- one\n\nprose\nof two lines\n", "1. two\n2. three\n")
    assert texts(files) == ["one", "prose\nof two lines", "two", "three"]
    assert [item.target for item in reading.readable(files, PLAIN)] == [
        "self", "self", "user", "user",
    ]  # fmt: skip


@LAYOUTS
def test_seared_entries_are_context_and_never_sent(layout: Layout) -> None:
    between, bullet = ("\n§\n", "") if layout is HERMES else ("\n", "- ")
    source = between.join(bullet + text for text in ["one", f"tea {MARKER}", "two"])
    files = plain(source, f"{bullet}mate {MARKER}")
    assert texts(files, layout) == ["one", "two"]
    assert reading.seared_texts(files, layout) == ["tea", "mate"]
    changed = reading.put(files, layout, 0, ["ONE", "TWO"])
    assert changed["MEMORY.md"].decode() == source.replace("one", "ONE").replace("two", "TWO")
    assert "USER.md" not in changed


def test_a_marker_within_a_memory_does_not_sear_it() -> None:
    assert texts(plain(f"- {MARKER} is how one sears\n")) == [f"{MARKER} is how one sears"]


def test_a_home_without_memory_files_has_nothing_to_read() -> None:
    assert reading.readable({}, PLAIN) == []
    assert reading.seared_texts({}, PLAIN) == []


# put

head = st.sampled_from(["", "\ufeff", "# H\n\n", "\n\n", "---\n", "# H \udcff\r\n\r\n"])
bullets = st.sampled_from(["- ", "* ", "+   ", "1. ", "12) ", "-\t", "  - "])
gaps = st.sampled_from(["\n", "\n\n", "  \n", "\n\n## H\n\n", "\n---\n", "\r\n", "\n\n\n"])
word = st.text("abcé🦞 ", min_size=1).map(str.strip).filter(bool)


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, list[str], str]:
    """A file of list items: what stands before the first, the texts, and what stands between."""
    count = draw(st.integers(1, 5))
    found = draw(st.lists(word, min_size=count, max_size=count))
    pieces = [draw(head)]
    for _ in range(count):
        pieces += [draw(bullets), "{}", draw(gaps)]
    return "".join(pieces), found, draw(st.sampled_from(["", "prose at the end\n"]))


def filled(template: str, found: list[str]) -> str:
    parts = template.split("{}")
    return "".join(part + text for part, text in zip(parts, [*found, ""], strict=True))


@given(sources(), st.lists(word, min_size=5, max_size=5), st.integers(0, 4), st.integers(0, 5))
@example(("- {}\n", ["a"], ""), ["b"] * 5, 0, 1)
def test_put_keeps_every_other_byte(
    source: tuple[str, list[str], str], answers: list[str], first: int, count: int
) -> None:
    template, found, _ = source
    data = filled(template, found).encode("utf-8", "surrogateescape")
    if [item.entry.text for item in reading.readable({"MEMORY.md": data}, PLAIN)] != found:
        return
    told = answers[: max(0, min(count, len(found) - first))]
    wanted = [*found[:first], *told, *found[first + len(told) :]] if told else found
    changed = reading.put({"MEMORY.md": data}, PLAIN, first, told)
    assert changed.get("MEMORY.md", data) == filled(template, wanted).encode(
        "utf-8", "surrogateescape"
    )


MARKDOWN = ["- ", "1. ", "# ", "---", "```", "\n", "\n\n", "  ", "a", "b c", "é", "> ", "|", "\t"]
answer = st.lists(st.sampled_from(MARKDOWN), min_size=1).map("".join).filter(str.strip)
bases = st.sampled_from(
    ["- one\n- two\n- three\n", "one\n\ntwo\n\nthree\n", "# A\n\n- one\n  more\n\nprose\n* two\n",
     "- one\n```\nfence\n```\n- two\n", "1. one\n\n   more\n2. two\n"]
)  # fmt: skip


@given(bases, st.lists(answer, min_size=1, max_size=3), st.integers(0, 2))
@example("one\n\ntwo\n", ["x\n\ny", "# gone"], 0)
def test_any_answer_is_refused_or_stays_one_entry_each(
    source: str, answers: list[str], first: int
) -> None:
    files = {"MEMORY.md": source.encode()}
    had = texts(files)
    told = answers[: len(had) - first]
    try:
        changed = reading.put(files, PLAIN, first, reading.refuse_answer(told, told, PLAIN))
    except AnswerRefused:
        return
    has = texts({**files, **changed})
    assert len(has) == len(had)
    assert has[:first] == had[:first]
    assert has[first + len(told) :] == had[first + len(told) :]
    for text, asked in zip(has[first:], told, strict=False):
        assert letters(text) == letters(asked)


def letters(text: str) -> str:
    return "".join(character for character in text if character.isalpha())


@given(st.lists(word, min_size=1, max_size=5), st.lists(answer, min_size=5, max_size=5))
def test_any_answer_in_hermes_is_put_as_it_is(found: list[str], answers: list[str]) -> None:
    told = [text.strip() for text in answers[: len(found)]]
    changed = reading.put({"MEMORY.md": "\n§\n".join(found).encode()}, HERMES, 0, told)
    assert changed["MEMORY.md"].decode() == "\n§\n".join(told)


def test_lines_of_an_answer_in_a_list_item_are_indented() -> None:
    assert put("- one\n- two\n", ["a\nb\n  c\n\n\td", "e"]) == "- a\n  b\n  c\n\n\td\n- e\n"


def test_lines_of_an_answer_in_a_paragraph_are_not() -> None:
    assert put("one\n\ntwo\n", ["a\nb", "c"]) == "a\nb\n\nc\n"


def test_answers_have_the_line_ends_of_their_file() -> None:
    assert put("- one\r\n- two\r\n", ["a\nb", "c\r\nd"]) == "- a\r\n  b\r\n- c\r\n  d\r\n"
    assert put("- one\n", ["a\r\nb"]) == "- a\n  b\n"


def test_a_batch_across_both_files() -> None:
    changed = reading.put(plain("- one\n- two\n", "- three\n- four\n"), PLAIN, 1, ["2", "3"])
    assert changed == plain("- one\n- 2\n", "- 3\n- four\n")


def test_a_batch_in_one_file_changes_no_other() -> None:
    assert list(reading.put(plain("- one\n", "- two\n"), PLAIN, 1, ["2"])) == ["USER.md"]


@pytest.mark.parametrize(
    ("source", "answers"),
    [
        ("one\n\ntwo\n", ["a\n\nb", "c"]),
        ("one\n\ntwo\n", ["a\n\nb", "# c"]),
        ("one\n\ntwo\n", ["# a", "b\n\nc"]),
        ("one\n\ntwo\n", ["a\n- b", "c"]),
        ("one\n\ntwo\n", ["# a", "b"]),
        ("one\n\ntwo\n", ["---", "b"]),
        ("one\n\ntwo\n", ["```", "b"]),
        ("- one\n- two\n", ["a\n\n - b", "c"]),
        ("- one\n- two\n", ["a\n - b", "c"]),
        ("- one\n- two\n", ["--", "c"]),
    ],
)
def test_an_answer_that_would_not_stay_one_entry_is_refused(
    source: str, answers: list[str]
) -> None:
    with pytest.raises(AnswerRefused):
        put(source, answers)


@pytest.mark.parametrize("text", ["a\n§\nb", "§", "a\n §\nb"])
def test_an_answer_with_the_delimiter_is_refused_in_hermes(text: str) -> None:
    with pytest.raises(AnswerRefused):
        reading.refuse_answer(["one"], [text], HERMES)
    assert reading.refuse_answer(["one"], [text], PLAIN) == [text]


def test_an_answer_that_hides_the_rest_is_refused() -> None:
    with pytest.raises(AnswerRefused):
        put("- one\n\nprose\n- two\n", ["a", "```\nb", "c"])


# What an answer must be


@pytest.mark.parametrize(
    "answer",
    [
        [], ["a"], ["a", "b", "c"], ["a", ""], ["a", "  \n"], ["a", None], ["a", 1], "ab", b"ab",
        None, 7, {"a": "b"}, {"a", "b"}, (text for text in "ab"), ["a", "b\0"], ["a", "\ud800"],
        ["a", f"b {MARKER}"], ["a", [b"b"]],
    ],
    ids=lambda answer: type(answer).__name__,
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(answer: object) -> None:
    with pytest.raises(AnswerRefused):
        reading.refuse_answer(["one", "two"], answer, PLAIN)


def test_an_answer_is_taken_without_the_blanks_around_it() -> None:
    assert reading.refuse_answer(["one", "two"], ("  a\n", "b"), PLAIN) == ["a", "b"]
    assert reading.refuse_answer([], [], PLAIN) == []


# Counts


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_what_a_commit_says_it_covers_can_be_read_back(first: int, count: int, rest: int) -> None:
    assert reading.covered(reading.told(first, count, first + count + rest)) == first + count


@pytest.mark.parametrize("text", [None, "", "x", "entries 1", "entries a to b of c"])
def test_another_text_covers_nothing(text: str | None) -> None:
    assert reading.covered(text) == 0


def test_a_batch_is_its_texts_and_knows_the_seared() -> None:
    batch = Batch(["one", "two"], ["tea"])
    assert (list(batch), len(batch), batch.seared) == (["one", "two"], 2, ("tea",))
    assert batch == ("one", "two")


# Names of branches

REFUSED = [
    ("my persona", []), ("a..b", []), ("HEAD", []), ("head", []), ("-x", []), ("x.lock", []),
    ("x.lock/y", []), (".h", []), ("a/.h", []), ("a/", []), ("/a", []), ("a//b", []), ("@", []),
    ("@{1}", []), ("a~1", []), ("a^", []), ("a:b", []), ("a?", []), ("a*", []), ("a[b", []),
    ("a\\b", []), ("a.", []), ("ada\x07", []), ("ada\n", []), ("\x7f", []), ("", []), (" ", []),
    ("x" * 300, []), ("persona", []), ("Persona", []), ("persona/1", []), ("persona/x", []),
    ("PERSONA/1", []), ("abcd", []), ("ABCD", []), ("0123456789abcdef", []), ("0" * 40, []),
    ("ada", ["ada"]), ("Ada", ["ada"]), ("ada", ["Ada"]), ("ada", ["ada/fork1"]),
    ("ada/fork1", ["ada"]), ("ADA/fork1", ["ada"]), ("Ada", ["ada/fork1"]),
    ("ada", ["ada", "ada-2"]), ("@", ["ava"]), ("my persona", ["my-persona"]),
    ("é", ["e\u0301"]), ("a/b", ["a", "a-b"]), ("abcd", ["abcd-x"]), ("HEAD", ["HEAD-1"]),
    ("x" * 100, ["x" * 100]), ("b" * 39 + "f", []), ("a" * 30 + " " + "b" * 200, []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "existing"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_names_that_no_companion_can_have(name: str, existing: list[str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        branches.check(name, existing)
    told = re.search(r"a name like (\S+) would do", caught.value.hint)
    assert told is not None
    branches.check(told.group(1), existing)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["ada", "测试", "ада", "தமிழ்", "é", "ada/fork1", "a", "ab", "abc", "abcdefg", "ada-2", "x_y",
     "v1.2", "personal", "my-persona", "persona-1", "headline", "a" * 41, "locked", "7"],
)  # fmt: skip
def test_names_that_a_companion_can_have(name: str) -> None:
    branches.check(name, ["main", "persona/1", "eve"])
    done = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False)
    assert done.returncode == 0


@given(
    st.text(max_size=12)
    | st.lists(st.sampled_from(["a", "B", ".", "/", "-", "lock", ".lock", "@", " "])).map("".join)
)
def test_every_name_is_fine_for_git_too_or_refused_with_one_that_is(name: str) -> None:
    try:
        branches.check(name, ["main"])
    except InvalidArgument as refused:
        name = refused.hint.split()[3]
        branches.check(name, ["main"])
    assert is_git_name(name)


def is_git_name(name: str) -> bool:
    """The rules of `git check-ref-format`, as its manual gives them."""
    parts = name.split("/")
    return (
        all(part and not part.startswith(".") and not part.endswith(".lock") for part in parts)
        and not re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{", name)
        and not name.endswith(".")
        and not name.startswith("-")
        and name != "@"
    )


def test_an_entry_read_is_an_entry_of_the_file() -> None:
    source = "# H\n\n- one\n"
    (item,) = reading.readable({"MEMORY.md": source.encode()}, PLAIN)
    assert [item.entry] == entries.split(source, PLAIN)
