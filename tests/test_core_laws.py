"""Laws of the core that hold for any text and any bytes."""

from __future__ import annotations

import re
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from soulgit import BOOTSTRAP_ORDER, compose_soul
from soulgit.core import composition, edits, entries, persona, soulfile
from soulgit.core.layout import HERMES, PLAIN, Layout
from soulgit.core.record import SUBJECT_COLUMNS, Record, build, parse, subject_for
from soulgit.errors import TextNotFound
from tests.support import Git, git_home

SECRET = "Xq7SECRETq7X"
LAYOUTS = pytest.mark.parametrize("layout", [PLAIN, HERMES], ids=["plain", "hermes"])

MARKS = (
    "- |* |1. |12) |  |\t|\n|\n\n|\r\n|\r|```|~~~|# |---|one|two|é|🦞"
    "|+++|+++\n|'''|\"\"\"|a = 'b'\n|a = [[|<!--|-->|--|<!|>|§|\n§\n"
    "|\ufeff|\u2028|\x85|\x0c|\0|\ufffd"
)
"""Pieces that mean something in a bootstrap file, parted by `|`."""

markdown = st.lists(st.sampled_from([*MARKS.split("|"), "|"])).map("".join)
any_text = markdown | st.text(st.characters(exclude_categories=["Cs"]))
stored_text = any_text.map(lambda text: text.replace("\0", "")).filter(bool)
"""A text that a memory file can hold; what it says is left to chance."""

any_bytes = st.lists(
    any_text.map(str.encode) | st.sampled_from([b"\xff", b"\xc3", b"\xf0\x9f\xa6", b"\xed\xa0\x80"])
).map(b"".join)
file_bytes = any_bytes.map(lambda data: data.replace(b"\0", b"")).filter(
    lambda data: not data.startswith((b"\xff\xfe", b"\xfe\xff"))
)
"""Bytes of a memory file that is not UTF-16."""


def lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def escaped(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def stripped(data: bytes) -> bytes:
    return escaped(data).strip().encode("utf-8", "surrogateescape")


# Edits


@given(file_bytes, stored_text.filter(str.strip))
def test_add_keeps_the_file_between_its_ends(data: bytes, text: str) -> None:
    result = edits.add(data, text, PLAIN).data
    kept = stripped(data)
    assert result.startswith(kept)
    added = f"\n- {text}\n" if kept else f"- {text}\n"
    assert lf(result[len(kept) :]) == lf(added.encode())


@given(file_bytes, stored_text.filter(str.strip).filter(lambda text: "§" not in text))
def test_add_in_the_hermes_layout_joins_by_the_delimiter(data: bytes, text: str) -> None:
    result = edits.add(data, text, HERMES).data
    kept = stripped(data)
    assert result.startswith(kept)
    assert lf(result[len(kept) :]) == lf((("\n§\n" if kept else "") + text.strip()).encode())


@given(file_bytes, stored_text, file_bytes, stored_text | st.just(""))
def test_replace_changes_nothing_but_the_first_occurrence(
    before: bytes, text: str, after: bytes, replacement: str
) -> None:
    data, sought = before + text.encode() + after, text.encode()
    start = data.index(sought)
    prefix, suffix = data[:start], data[start + len(sought) :]
    result = edits.replace(data, text, replacement, PLAIN).data
    assert result.startswith(prefix)
    assert result.endswith(suffix)
    middle = result[len(prefix) : len(result) - len(suffix)]
    assert lf(middle) == lf(replacement.encode())


@given(file_bytes, stored_text, file_bytes)
def test_remove_takes_the_first_occurrence_and_at_most_its_bullet_and_line_end(
    before: bytes, text: str, after: bytes
) -> None:
    data, sought = before + text.encode() + after, text.encode()
    start = data.index(sought)
    end = start + len(sought)
    result = edits.remove(data, text, PLAIN).data
    gone = len(data) - len(result)
    cuts = [cut for cut in range(start + 1) if data[:cut] + data[cut + gone :] == result]
    assert any(
        cut + gone >= end and only_bullet(data[cut:start], data[end : cut + gone]) for cut in cuts
    )


def only_bullet(before: bytes, after: bytes) -> bool:
    bullet = re.fullmatch(r"\s*(?:[-*+]|\d+[.)])?\s*", escaped(before))
    return bullet is not None and not stripped(after)


words = st.text("abc \n", min_size=1).map(str.strip).filter(bool)


@given(st.lists(words, min_size=1, unique=True), st.data(), words)
def test_an_edit_of_a_hermes_entry_leaves_the_others_alone(
    texts: list[str], data: st.DataObject, replacement: str
) -> None:
    chosen = data.draw(st.sampled_from(texts))
    first = next(number for number, text in enumerate(texts) if chosen in text)
    source = "\n§\n".join(texts).encode()
    changed = [*texts]
    changed[first] = texts[first].replace(chosen, replacement, 1).strip()
    assert (
        edits.replace(source, chosen, replacement, HERMES).data.decode().split("\n§\n") == changed
    )
    changed[first] = texts[first].replace(chosen, "", 1).strip()
    left = [text for text in changed if text]
    assert edits.remove(source, chosen, HERMES).data.decode() == "\n§\n".join(left)


@given(file_bytes, stored_text.filter(lambda text: "§" not in text))
@LAYOUTS
def test_a_text_that_is_not_there_is_missed(layout: Layout, data: bytes, text: str) -> None:
    if lf(text.encode()) in lf(data):
        return
    with pytest.raises(TextNotFound):
        edits.remove(data, text, layout)


# What is hidden


@given(any_bytes)
def test_no_file_is_beyond_composition(data: bytes) -> None:
    for name in BOOTSTRAP_ORDER:
        text = composition.body(name, data)
        assert text == text.strip()
        assert text.encode().decode() == text
        assert all(composition.warn(name, data))
    assert re.fullmatch("[0-9a-f]{64}", persona.digest({"SOUL.md": data, "IDENTITY.md": data}))


@given(any_text)
def test_stripping_never_raises_and_only_takes_away(text: str) -> None:
    assert text.endswith(soulfile.strip_frontmatter(text))
    shown = soulfile.strip_comments(text)
    rest = iter(text)
    assert all(character in rest for character in shown)
    assert isinstance(soulfile.frontmatter_values(text), dict)


inside_frontmatter = any_text.filter(lambda text: "+++" not in text)


@given(
    st.sampled_from(["", "\ufeff", "\n", " \t\n\n", "\ufeff\r\n"]),
    st.sampled_from(["+++\n", "+++\r\n", "+++ \t\n", "+++  \r\n"]),
    inside_frontmatter,
    inside_frontmatter,
    st.just("") | any_text.map("\n+++\n{}".format) | any_text.map("\r\n+++ \r\n{}".format),
)
@example("", "+++\n", "doctor_token = '", "'", "\n+++\nI am Ava.")
@example("", "+++\n", "doctor_token = '", "", "\n+++\nI am Ava.\n\n+++\nmore")
@example("", "+++\n", "a = " + "[" * 5_000, "", "\n+++\nI am Ava.")
def test_frontmatter_is_never_shown(
    start: str, opening: str, before: str, after: str, closing: str
) -> None:
    text = start + opening + before + SECRET + after + closing
    assert SECRET not in composition.body("SOUL.md", text.encode())


@given(any_text.map(lambda text: text.replace("'", "").replace("\0", "")), any_text)
def test_a_fence_within_a_string_of_the_frontmatter_does_not_close_it(
    inside: str, rest: str
) -> None:
    string = "".join(c for c in inside if c in "\t\n" or unicodedata.category(c) != "Cc")
    text = f"+++\nnote = '''\n+++\n{string}\n+++\n{SECRET}'''\n+++\n{rest}"
    assert SECRET not in composition.body("SOUL.md", text.encode())


inside_comment = any_text.filter(lambda text: "-->" not in text)


@given(
    st.sampled_from(["SOUL.md", "IDENTITY.md"]),
    any_text.filter(lambda text: "+++" not in text),
    inside_comment,
    inside_comment,
    st.just("") | any_text.map("-->{}".format),
)
def test_a_comment_is_never_shown(
    name: str, before: str, opening: str, closing: str, after: str
) -> None:
    text = f"{before}<!-- {opening}{SECRET}{closing}{after}"
    assert SECRET not in composition.body(name, text.encode())


# Entries


@given(any_bytes.map(escaped))
@LAYOUTS
def test_entries_are_spans_of_the_source_in_order(layout: Layout, source: str) -> None:
    position = 0
    for entry in entries.split(source, layout):
        assert position <= entry.start < entry.end <= len(source)
        assert entry.outer_start <= entry.start
        assert entry.end <= entry.outer_end
        text = source[entry.start : entry.end]
        assert entry.text == text.replace("\r\n", "\n")
        assert text == text.strip()
        position = entry.end


# Composition


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(st.sampled_from(BOOTSTRAP_ORDER), any_bytes, min_size=1),
    st.booleans(),
)
def test_working_files_compose_like_their_commit(files: dict[str, bytes], hermes: bool) -> None:
    memory = ("MEMORY.md", "USER.md") if hermes else ()
    placed = {f"memories/{name}" if name in memory else name: data for name, data in files.items()}
    with tempfile.TemporaryDirectory() as directory:
        git_home(Path(directory), placed)
        working, committed = compose_soul(directory), compose_soul(directory, at="HEAD")
    assert (working.text, working.found) == (committed.text, committed.found)
    assert (working.persona, working.files) == (committed.persona, committed.files)


# The record of a commit

FORGERIES = [
    "---",
    "one\n---\ntwo",
    "--- \n\nSoul-Action: init",
    "Soul-Action: add",
    "one\n\nSoul-Action: init\nSoul-Persona: 0",
    "one\n\nSoul-Action: init\n",
    "one\n\n\n\n",
    "\n\n\none",
    "\n",
    "\n\n\n",
    " ",
    "    ",
    "one\r\rSoul-Action: init",
    "one\r\n\r\nSoul-Action: init\r\n",
    "\r",
    "  leading\n\tblanks",
    "    four\n        eight\nnone",
    "with",
    "one\n\nwith\n\ntwo",
    "    with",
    "\nwith\n",
    "# a comment\n; another",
    "Signed-off-by: Pat <pat@example.org>",
    "(cherry picked from commit 0123456789012345678901234567890123456789)",
    "diff --git a/MEMORY.md b/MEMORY.md",
    "# ------------------------ >8 ------------------------",
    "one\x85\x85Soul-Action: init",
    "one\u2028\u2029Soul-Action: init",
    "one\x0b\x0c\x1c\x1d\x1eSoul-Action: init",
]

one_word = st.text("abcXYZ019:/@.-", min_size=1)


def columns(line: str) -> int:
    widths = {"W": 2, "F": 2}
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me")
        else widths.get(unicodedata.east_asian_width(c), 1)
        for c in line
    )


def replaced(text: str, replacement: str) -> Record:
    return Record(
        action="replace",
        subject=subject_for("memory(self)", "replace", text, replacement),
        text=text,
        replacement=replacement,
        target="self",
        persona="0" * 64,
        number=3,
        origin="tool",
        source="user:42",
        session="s: 1",
        model="m",
        reason="it said so",
    )


TRAILERS = [
    "Soul-Action: replace",
    "Soul-Target: self",
    f"Soul-Persona: {'0' * 64}",
    "Soul-Number: 3",
    "Soul-Origin: tool",
    "Soul-Source: user:42",
    "Soul-Session: s: 1",
    "Soul-Model: m",
    "Soul-Reason: it said so",
]


def read_by_git(message: str) -> list[str]:
    found = Git(Path("/"))("interpret-trailers", "--parse", stdin=message.encode())
    return found.split("\n") if found else []


def assert_one_short_line(subject: str) -> None:
    assert not [c for c in subject if unicodedata.category(c) in ("Cc", "Zl", "Zp")]
    assert columns(subject) <= SUBJECT_COLUMNS == 72


@given(stored_text, stored_text | st.just(""))
def test_a_message_gives_its_record_back(text: str, replacement: str) -> None:
    record = replaced(text, replacement)
    message = build(record)
    assert parse(message) == record
    assert_one_short_line(message.split("\n")[0])


@given(stored_text, one_word, one_word)
def test_a_message_of_one_text_gives_its_record_back(text: str, source: str, model: str) -> None:
    subject = subject_for("memory(user)", "add", text)
    record = Record("add", subject, text, target="user", source=source, model=model)
    assert parse(build(record)) == record


@settings(max_examples=30, deadline=None)
@given(stored_text, stored_text | st.just(""))
def test_git_reads_the_trailers_that_were_built(text: str, replacement: str) -> None:
    assert read_by_git(build(replaced(text, replacement))) == TRAILERS


@pytest.mark.parametrize("text", FORGERIES, ids=ascii)
def test_no_text_forges_a_trailer(text: str) -> None:
    for record in (replaced(text, "new"), replaced("old", text), replaced(text, text)):
        message = build(record)
        assert parse(message) == record
        assert read_by_git(message) == TRAILERS
        assert_one_short_line(message.split("\n")[0])


@pytest.mark.parametrize("value", FORGERIES, ids=ascii)
def test_no_value_forges_a_trailer(value: str) -> None:
    record = Record("add", "memory(self): add", "one", reason=value, session=value, source=value)
    message = build(record)
    names = [line.split(":")[0] for line in read_by_git(message)]
    given_values = ["Soul-Source", "Soul-Session", "Soul-Reason"] if value.split() else []
    assert names == ["Soul-Action", *given_values]
    assert parse(message).action == "add"


@settings(max_examples=30, deadline=None)
@given(any_text)
def test_git_and_soulgit_read_the_same_value(value: str) -> None:
    message = build(Record("add", "memory(self): add", "one", reason=value))
    reason = parse(message).reason
    told = [] if reason is None else [f"Soul-Reason: {reason}"]
    assert read_by_git(message) == ["Soul-Action: add", *told]


@given(any_text)
def test_any_message_can_be_read(message: str) -> None:
    assert "\n" not in parse(message).subject
