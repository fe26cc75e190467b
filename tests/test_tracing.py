"""Entries followed step by step are those that a whole split gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from soulgit.core import entries, tracing
from soulgit.core.layout import HERMES, PLAIN, Layout

LINES = st.sampled_from(
    ["- a\n", "- b\n", "- a longer one\n", "  more of it\n", "\n", "a paragraph\n", "1. one\n",
     "2. two\n", "# head\n", "---\n", "```\n", "~~~\n", "- \n", "- c\r\n", "§\n", "    code\n",
     "* star\n", "- tail", "| t |\n", "<!-- x -->\n", "\t- deep\n"]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=14).map("".join)
EDITS = st.tuples(st.integers(0, 40), st.integers(0, 12), st.lists(LINES, max_size=3).map("".join))


def edited(text: str, edit: tuple[int, int, str]) -> str:
    start, length, new = edit
    return text[:start] + new + text[start + length :]


def never() -> bool:
    return False


def agrees(version: tracing.Version) -> None:
    whole = entries.split(version.source, version.layout)
    assert [item.text for item in version.items] == [entry.plain for entry in whole]
    assert version.starts == [entry.outer_start for entry in whole]


@settings(max_examples=600, deadline=None)
@given(TEXTS, st.lists(EDITS, min_size=1, max_size=4), st.sampled_from([PLAIN, HERMES]))
def test_a_version_reached_by_steps_is_the_one_that_is_read(
    text: str, edits: list[tuple[int, int, str]], layout: Layout
) -> None:
    version = tracing.read(text, layout)
    for edit in edits:
        version, _ = tracing.before(version, edited(version.source, edit), layout, never)
        agrees(version)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.booleans())
def test_every_item_stays_comes_goes_or_is_reworded(new: str, old: str, paired: bool) -> None:
    after = tracing.read(new, PLAIN)
    before, change = tracing.before(after, old, PLAIN, lambda: paired)
    came = {*change.added, *(item for _, item in change.reworded)}
    went = {*change.removed, *(item for item, _ in change.reworded)}
    assert came == set(after.items) - set(before.items)
    assert went == set(before.items) - set(after.items)
    assert not {item.text for item in came} & {item.text for item in went}


def test_a_replacement_is_one_rewording_however_unlike() -> None:
    after = tracing.read("- a\n- quite another\n", PLAIN)
    _, change = tracing.before(after, "- a\n- b\n", PLAIN, lambda: True)
    assert [(old.text, new.text) for old, new in change.reworded] == [("b", "quite another")]


def test_alike_texts_are_a_rewording_and_unlike_ones_are_not() -> None:
    after = tracing.read("- the user lives in Berlin\n- z\n", PLAIN)
    _, change = tracing.before(after, "- the user lives in Paris\n- q\n", PLAIN, never)
    assert [(old.text, new.text) for old, new in change.reworded] == [
        ("the user lives in Paris", "the user lives in Berlin")
    ]
    assert [item.text for item in change.added] == ["z"]
    assert [item.text for item in change.removed] == ["q"]
