"""Memories merged by entry: nothing is lost, whoever wrote it, and no conflict marker appears."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soulgit.core import entries
from soulgit.core.layout import HERMES, PLAIN, Layout
from soulgit.core.merging import merge

LAYOUTS = pytest.mark.parametrize("layout", [PLAIN, HERMES], ids=["plain", "hermes"])

PIECES = [
    "- one\n", "- two\n", "- three\n", "* four\n", "1. five\n", "- long\n  more of it\n",
    "- a\n\n  b\n", "prose\n", "more prose\n", "two\nlines\n", "# Heading\n", "## Other\n", "---\n",
    "\n", "\n\n", "   \n", "| a | b |\n", "- one", "prose", "  indented\n",
    "- sure <!-- seared -->\n", "- one\r\n", "\r\n", "é 🦞\n", "-\n", "2024. we moved\n",
    "=======\n", "<!-- note -->\n",
]  # fmt: skip
"""Whole lines and blocks of a memory file, in which no code fence is."""

FENCES = ["```\n", "~~~\n", "- ```py\n", "  ```\n", "````\n"]

plain_files = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
fenced_files = st.lists(st.sampled_from(PIECES + FENCES), max_size=8).map("".join)
hermes_files = st.lists(
    st.sampled_from(["one", "two", "three", "two\nlines", "# H", " spaced ", "", "\n", "four\r\n"]),
    max_size=6,
).map("\n§\n".join)
any_files = st.lists(
    st.sampled_from([*PIECES, *FENCES, "§", "\n§\n", "\0", "\r", "\x0c", "\u2028"]), max_size=8
).map("".join)
any_bytes = any_files.map(str.encode) | st.binary(max_size=40)

MARKER = re.compile(rb"^(?:<{7}|>{7}|\|{7})", re.MULTILINE)


def texts(data: bytes, layout: Layout) -> Counter[str]:
    source = data.decode("utf-8", "surrogateescape")
    return Counter(entry.text for entry in entries.split(source, layout))


def lines(data: bytes) -> set[bytes]:
    return {line.strip() for line in data.splitlines() if line.strip()}


# Laws


@LAYOUTS
@given(any_bytes, any_bytes)
def test_a_side_that_changed_nothing_yields(layout: Layout, base: bytes, other: bytes) -> None:
    assert merge(base, base, other, layout).data == other
    assert merge(base, other, base, layout).data == other
    assert merge(base, other, other, layout).data == other
    for merged in (merge(base, base, other, layout), merge(base, other, base, layout)):
        assert merged.kept_twice == ()


@given(plain_files, plain_files, plain_files)
@example("", "- one\n", "  indented\n")
def test_what_one_side_has_and_the_base_has_not_is_there(base: str, ours: str, theirs: str) -> None:
    kept_by_merge(base.encode(), ours.encode(), theirs.encode(), PLAIN)


@given(hermes_files, hermes_files, hermes_files)
def test_what_one_side_has_is_there_in_hermes(base: str, ours: str, theirs: str) -> None:
    kept_by_merge(base.encode(), ours.encode(), theirs.encode(), HERMES)


def kept_by_merge(base: bytes, ours: bytes, theirs: bytes, layout: Layout) -> None:
    merged = merge(base, ours, theirs, layout).data
    had, has = texts(base, layout), texts(merged, layout)
    for side in (ours, theirs):
        lost = [text for text in texts(side, layout) if text not in had and text not in has]
        assert lost == [], merged


@given(plain_files, plain_files, plain_files)
@example("- two\n- one\n- two\n", "- two\n", "- one\n- one\n- two\n")
def test_what_both_sides_still_have_is_there(base: str, ours: str, theirs: str) -> None:
    data = [text.encode() for text in (base, ours, theirs)]
    merged = texts(merge(data[0], data[1], data[2], PLAIN).data, PLAIN)
    both = texts(data[1], PLAIN).keys() & texts(data[2], PLAIN).keys()
    assert both <= merged.keys()


@given(fenced_files, fenced_files, fenced_files)
def test_beside_code_fences_every_line_is_there(base: str, ours: str, theirs: str) -> None:
    data = [text.encode() for text in (base, ours, theirs)]
    merged = lines(merge(data[0], data[1], data[2], PLAIN).data)
    for side in data[1:]:
        assert lines(side) - lines(data[0]) <= merged


@LAYOUTS
@given(any_bytes, any_bytes, any_bytes)
def test_no_conflict_marker_is_ever_written(
    layout: Layout, base: bytes, ours: bytes, theirs: bytes
) -> None:
    known = len(MARKER.findall(base + b"\n" + ours + b"\n" + theirs))
    if known == 0:
        assert MARKER.search(merge(base, ours, theirs, layout).data) is None


@LAYOUTS
@given(any_files, any_files, any_files)
def test_what_is_reported_is_one_line_each(
    layout: Layout, base: str, ours: str, theirs: str
) -> None:
    for text in merge(base.encode(), ours.encode(), theirs.encode(), layout).kept_twice:
        assert text == " ".join(text.split())
        assert text


# Cases, written out

B = "# Mine\n\n- one\n- two\n- three\n"

CASES = {
    "both add": (B, B + "- ours\n", B + "- theirs\n", B + "- ours\n- theirs\n", []),
    "both add the same": (
        B, B + "- new\n", "- zero\n" + B + "- new\n", "- zero\n" + B + "- new\n", [],
    ),
    "one edits, the other adds": (
        B, B.replace("two", "TWO"), B + "- four\n", "# Mine\n\n- one\n- TWO\n- three\n- four\n", [],
    ),
    "each edits another": (
        B, B.replace("one", "ONE"), B.replace("three", "THREE"),
        "# Mine\n\n- ONE\n- two\n- THREE\n", [],
    ),
    "neighbours edited by one each": (
        B, B.replace("one", "ONE"), B.replace("two", "TWO"),
        "# Mine\n\n- ONE\n- TWO\n- three\n", [],
    ),
    "edited on both sides": (
        B, B.replace("two", "2"), B.replace("two", "zwei"),
        "# Mine\n\n- one\n- 2\n- zwei\n- three\n", ["- zwei"],
    ),
    "edited on both sides, all rewritten by one": (
        B, B.replace("two", "2"), "# Mine\n\n- ONE\n- TWO\n- THREE\n",
        "# Mine\n\n- ONE\n- 2\n- TWO\n- THREE\n", ["- TWO"],
    ),
    "edited alike": (
        B, B.replace("two", "2"), B.replace("two", "2") + "- four\n",
        B.replace("two", "2") + "- four\n", [],
    ),
    "we delete, they rewrite": (
        B, B.replace("- two\n", ""), B.replace("two", "zwei"),
        "# Mine\n\n- one\n- zwei\n- three\n", ["- zwei"],
    ),
    "we rewrite, they delete": (
        B, B.replace("two", "zwei"), B.replace("- two\n", ""),
        "# Mine\n\n- one\n- zwei\n- three\n", ["- zwei"],
    ),
    "we delete, they leave": (
        B, B.replace("- two\n", ""), B + "- four\n", "# Mine\n\n- one\n- three\n- four\n", [],
    ),
    "both delete": (
        B, B.replace("- two\n", ""), B.replace("- two\n", "") + "- four\n",
        "# Mine\n\n- one\n- three\n- four\n", [],
    ),
    "a heading is kept where its entries were rewritten": (
        "# A\n\n- one\n\n# B\n\n- two\n",
        "# A\n\n- one\n- more\n\n# B\n\n- two\n",
        "# A\n\n- ONE\n\n# B\n\n- TWO\n",
        "# A\n\n- ONE\n- more\n\n# B\n\n- TWO\n", [],
    ),
    "a heading added on one side": (
        "- one\n- two\n", "- one\n\n# New\n\n- two\n", "- ONE\n- TWO\n",
        "- ONE\n\n# New\n\n- TWO\n", [],
    ),
    "no line end at the end of either": (
        "- one", "- one\n- ours", "- one\n- theirs", "- one\n- ours\n- theirs", [],
    ),
    "no line end at the end of one": (
        "- one\n", "- one\n- ours", "- one\n- theirs\n", "- one\n- ours\n- theirs\n", [],
    ),
    "from nothing": ("", "- ours\n", "- theirs\n", "- ours\n- theirs\n", []),
    "CRLF": (
        "- one\r\n- two\r\n", "- one\r\n- two\r\n- ours\r\n", "- ONE\r\n- TWO\r\n",
        "- ONE\r\n- TWO\r\n- ours\r\n", [],
    ),
    "CRLF without a line end at the end": (
        "- one\r\n- two", "- one\r\n- two\r\n- ours", "- one\r\n- two\r\n- theirs",
        "- one\r\n- two\r\n- ours\r\n- theirs", [],
    ),
    "items of more lines": (
        "- one\n  more\n- two\n", "- one\n  more\n- two\n- ours\n", "- ONE\n  MORE\n- TWO\n",
        "- ONE\n  MORE\n- TWO\n- ours\n", [],
    ),
    "a seared entry between rewritten ones": (
        "- one\n- tea <!-- seared -->\n- two\n",
        "- one\n- tea <!-- seared -->\n- two\n- ours\n",
        "- ONE\n- tea <!-- seared -->\n- TWO\n",
        "- ONE\n- tea <!-- seared -->\n- TWO\n- ours\n", [],
    ),
    "paragraphs": (
        "one\n\ntwo\n", "one\n\ntwo\n\nours\n", "ONE\n\nTWO\n", "ONE\n\nTWO\n\nours\n", [],
    ),
}  # fmt: skip

HERMES_CASES = {
    "both add": (["one"], ["one", "ours"], ["one", "theirs"], ["one", "ours", "theirs"], []),
    "edited on both sides": (
        ["one", "two", "three"], ["one", "2", "three"], ["ONE", "TWO", "THREE"],
        ["ONE", "2", "TWO", "THREE"], ["TWO"],
    ),
    "we delete, they rewrite": (
        ["one", "two", "three"], ["one", "three"], ["ONE", "TWO", "THREE"],
        ["ONE", "TWO", "THREE"], ["TWO"],
    ),
    "we rewrite, they delete": (
        ["one", "two", "three"], ["one", "TWO", "three"], ["one", "three"],
        ["one", "TWO", "three"], ["TWO"],
    ),
    "lines in an entry": (
        ["one\nmore", "two"], ["one\nmore", "two", "ours"], ["ONE\nMORE", "TWO"],
        ["ONE\nMORE", "TWO", "ours"], [],
    ),
    "from nothing": ([], ["ours"], ["theirs"], ["ours", "theirs"], []),
    "all deleted, all rewritten": (
        ["one", "two"], [], ["ONE", "TWO"], ["ONE", "TWO"], ["ONE", "TWO"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    base, ours, theirs, wanted, twice = CASES[case]
    merged = merge(base.encode(), ours.encode(), theirs.encode(), PLAIN)
    assert merged.data.decode() == wanted
    assert list(merged.kept_twice) == twice


@pytest.mark.parametrize("case", HERMES_CASES)
def test_hermes_cases(case: str) -> None:
    *sides, wanted, twice = HERMES_CASES[case]
    base, ours, theirs = ("\n§\n".join(side).encode() for side in sides)
    merged = merge(base, ours, theirs, HERMES)
    assert merged.data.decode() == "\n§\n".join(wanted)
    assert list(merged.kept_twice) == twice


def test_bytes_that_are_no_utf8_are_kept() -> None:
    merged = merge(b"- a\n", b"- a\n- \xff\n", b"- A \xfe\n", PLAIN)
    assert merged.data == b"- A \xfe\n- \xff\n"


def test_a_paragraph_added_by_each_stays_two() -> None:
    merged = merge(b"", b"ours\n", b"theirs\n", PLAIN).data
    assert texts(merged, PLAIN) == Counter(["ours", "theirs"])


def test_an_item_and_an_indented_paragraph_added_by_each_stay_two() -> None:
    merged = merge(b"", b"- ours\n", b"  theirs\n", PLAIN).data
    assert texts(merged, PLAIN) == Counter(["ours", "theirs"])


def test_an_open_fence_swallows_nothing() -> None:
    base = b"- one\n"
    merged = merge(base, base + b"```\nours\n", base + b"- theirs\n", PLAIN).data
    assert "theirs" in texts(merged, PLAIN)
    assert b"ours" in lines(merged)
