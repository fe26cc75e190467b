"""lint: each rule finds its fault where it stands, and spares what only looks like it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from soulgit import BOOTSTRAP_ORDER, MAX_FILE_BYTES, Home, souls
from soulgit.core import lint
from soulgit.core.layout import HERMES, PLAIN, Layout
from soulgit.core.lint import RULES, Finding, Source
from tests.support import git_home, put
from tests.test_cli import Shell

TOKEN = "0123456789abcdef0123456789abcdef"
STORED = "sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest()
SOUL_WITH_TOKEN = f'+++\nid = "1"\nname = "Ava"\ndoctor_token = "{STORED}"\n+++\n'.encode()

SECTIONS = (
    "# Ava\n\n## Who you are\n\nA baker.\n\n## How you talk\n\nDryly.\n\n"
    "## What you care about\n\nBread.\n\n## Your values\n\nHonesty.\n"
)
HEAD = '+++\nid = "1"\nname = "Ava"\n+++\n\n'


@dataclass(frozen=True)
class Case:
    """A file that trips a rule at a place, and one that nearly does."""

    rule: str
    name: str
    trips: str | bytes
    line: int
    column: int
    spares: str | bytes
    committed: bytes = b""
    beside: Mapping[str, bytes] = field(default_factory=dict)
    layout: Layout = PLAIN

    def found(self, data: str | bytes) -> list[Finding]:
        raw = data if isinstance(data, bytes) else data.encode()
        files = {**self.beside, self.name: raw}
        source = Source(self.name, raw, self.layout, self.committed, files)
        return [finding for finding in lint.check([source]) if finding.rule == self.rule]


WITH_TOKEN = {"SOUL.md": SOUL_WITH_TOKEN}
CASES = [
    Case(
        "frontmatter-broken", "SOUL.md", "+++\nname = @\n+++\nHi\n", 2, 8, '+++\nname = "@"\n+++\n'
    ),
    Case(
        "frontmatter-unterminated", "SOUL.md", '+++\nid = "1"\n++\nHi\n', 1, 1,
        '+++\nid = "1"\n+++\nHi\n',
    ),
    Case(
        "trait-range", "SOUL.md", '+++\nid = "1"\n  drift = 1.01\n+++\n', 3, 3,
        '+++\nid = "1"\n  drift = 1.0\n+++\n',
    ),
    Case(
        "trait-type", "SOUL.md", '+++\nid = "1"\nrecall_window = 2.0\n+++\n', 3, 1,
        '+++\nid = "1"\nrecall_window = 2\n+++\n',
    ),
    Case(
        "tired-not-below-sleep", "SOUL.md", "+++\n\ntired_at = 0.9\n+++\n", 3, 1,
        "+++\n\ntired_at = 0.89\n+++\n",
    ),
    Case(
        "conflict-marker", "MEMORY.md", "- a\n<<<<<<< HEAD\n- b\n", 2, 1,
        "Title\n=======\n\n <<<<<<< HEAD\n<<<<<<<< HEAD\n",
    ),
    Case("nul-byte", "TOOLS.md", "- a\n- b\0\n", 2, 4, "- a\n- b\\0\n"),
    Case("invalid-utf8", "USER.md", b"- a\n- \xc3\xa9\xff\n", 2, 4, "- a\n- é\ufffd\n"),
    Case(
        "token-outside-frontmatter", "MEMORY.md", f"- a\n- say {TOKEN} now\n", 2, 7,
        f"- a\n- say {TOKEN[:-1]} now\n", beside=WITH_TOKEN,
    ),
    Case(
        "seared-changed", "MEMORY.md", "- I was born <!-- seared -->\n", 1, 1,
        "- new\n- I was born in May <!-- seared -->\n- more\n",
        committed=b"- I was born in May <!-- seared -->\n",
    ),
    Case(
        "over-cap", "AGENTS.md", b"a\n" * (MAX_FILE_BYTES // 2) + b"b", MAX_FILE_BYTES // 2 + 1, 1,
        b"a\n" * (MAX_FILE_BYTES // 2),
    ),
    Case("missing-id", "SOUL.md", '+++\nname = "Ava"\n+++\n', 2, 1, "No frontmatter.\n"),
    Case("missing-name", "SOUL.md", '+++\nid = "1"\n+++\n', 2, 1, '+++\nname = "Ava"\n+++\n'),
    Case(
        "unknown-key", "SOUL.md", '+++\nid = "1"\ndrfit = 0.2\n+++\n', 3, 1,
        '+++\nid = "1"\ndrift = 0.2\n+++\n',
    ),
    Case(
        "plain-token", "SOUL.md", '+++\nid = "1"\ndoctor_token = "hunter22"\n+++\n', 3, 1,
        SOUL_WITH_TOKEN,
    ),
    Case("unclosed-comment", "SOUL.md", "# Ava\n\nHi <!-- oh\n", 3, 4, "# Ava\n\nHi <!-- oh -->\n"),
    Case("empty-persona", "SOUL.md", "# Ava\n\n<!-- later -->\n\n---\n", 1, 1, "# Ava\n\nHi.\n"),
    Case(
        "missing-section", "SOUL.md", SECTIONS.replace("## Your values", "## Other"), 1, 1, SECTIONS
    ),
    Case("byte-order-mark", "SOUL.md", b"\xef\xbb\xbfHi\n", 1, 1, "Hi\n"),
    Case("invisible-character", "MEMORY.md", "- a\n- b\u202ec\n", 2, 4, "- 👩\u200d🚀\u00a0\n"),
    Case("foreign-heading", "USER.md", "- a\n\n## SOUL.md\n", 3, 1, "- a\n\n## My SOUL.md\n"),
    Case("duplicate-entry", "MEMORY.md", "- a\n- b\n- a\n", 3, 3, "- a\n- b\n- A\n"),
    Case(
        "hermes-limit", "USER.md", f"{'a' * 1371}\n§\nbb", 3, 1,
        f"{'a' * 1371}\n§\nb\n§\nb", layout=HERMES,
    ),
]  # fmt: skip


def test_every_rule_is_in_the_table() -> None:
    assert [case.rule for case in CASES] == [rule.name for rule in RULES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_finds_its_fault_where_it_stands(case: Case) -> None:
    found = case.found(case.trips)
    assert [(f.file, f.line, f.column) for f in found] == [(case.name, case.line, case.column)]
    rule = next(rule for rule in RULES if rule.name == case.rule)
    assert found[0].severity == rule.severity
    assert rule.mend in found[0].message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_spares_what_only_looks_like_its_fault(case: Case) -> None:
    assert case.found(case.spares) == []


def rules(name: str, data: str | bytes) -> list[str]:
    found = souls.lint_text(name, data if isinstance(data, bytes) else data.encode())
    return [finding.rule for finding in found]


def test_a_persona_that_is_whole_has_nothing_wrong() -> None:
    assert rules("SOUL.md", HEAD + SECTIONS) == []


def test_broken_frontmatter_is_found_in_the_line_that_is_broken() -> None:
    found = souls.lint_text("SOUL.md", b'+++\nid = "1"\n\nname = @\n+++\n')
    assert [f.line for f in found if f.rule == "frontmatter-broken"] == [4]


@pytest.mark.parametrize("around", ["{}.", "({})", "**{}**", "<{}>", "the token:{}", "“{}”"])
def test_a_token_is_found_whatever_stands_around_it(around: str) -> None:
    text = f"- {around.format(TOKEN)}\n".encode()
    files = {"SOUL.md": SOUL_WITH_TOKEN, "MEMORY.md": text}
    found = lint.check([Source("MEMORY.md", text, siblings=files)])
    assert [f.rule for f in found] == ["token-outside-frontmatter"]
    assert TOKEN not in found[0].message


@pytest.mark.parametrize("body", ["Say hunter22 to stop.\n", "doctor_token = 'x'\n"])
def test_a_plain_token_is_found_in_the_body_of_its_own_file(body: str) -> None:
    soul = '+++\ndoctor_token = "hunter22"\n+++\n' + body
    assert "token-outside-frontmatter" in rules("SOUL.md", soul)


def test_no_message_holds_the_token() -> None:
    entry = f"- say {TOKEN}\n".encode()
    files = {"SOUL.md": SOUL_WITH_TOKEN, "MEMORY.md": entry * 2}
    committed = {"MEMORY.md": f"- it was {TOKEN} <!-- seared -->\n".encode()}
    found = lint.check(lint.sources(files, PLAIN, committed))
    assert {"token-outside-frontmatter", "seared-changed", "duplicate-entry"} <= {
        f.rule for f in found
    }
    assert not any(TOKEN in f.message for f in found)


def test_a_persona_in_the_other_file_is_not_empty() -> None:
    files = {"SOUL.md": b"# Ava\n", "IDENTITY.md": b"You are Ava.\n"}
    found = lint.check(lint.sources(files, PLAIN, {}))
    assert "empty-persona" not in [f.rule for f in found]


def test_a_seared_entry_of_a_file_that_is_gone_is_found() -> None:
    found = lint.check(lint.sources({}, HERMES, {"MEMORY.md": "a\n§\nb <!-- seared -->".encode()}))
    assert [(f.file, f.rule) for f in found] == [("MEMORY.md", "seared-changed")]


def test_the_delimiter_parts_the_entries_of_a_hermes_file() -> None:
    text = "- a\n- a\n§\n- b\n§\n- a\n- a".encode()
    found = lint.check([Source("MEMORY.md", text, HERMES)])
    assert [(f.rule, f.line, f.column) for f in found] == [("duplicate-entry", 6, 1)]


def test_columns_count_characters_and_leave_the_byte_order_mark_out() -> None:
    found = souls.lint_text("USER.md", "\ufeff- 🦉é\u202e\n".encode())
    assert [(f.rule, f.column) for f in found] == [
        ("byte-order-mark", 1),
        ("invisible-character", 5),
    ]


def test_findings_stand_in_the_order_of_files_lines_and_columns(home_dir: Path) -> None:
    put(
        home_dir,
        {
            "MEMORY.md": "- \u202ea\u202e\n\0- a\n",
            "SOUL.md": '+++\ndrift = 2\nid = "1"\ncolour = 1\n+++\n' + SECTIONS,
            "AGENTS.md": "\0",
        },
    )
    found = souls.lint_home(home_dir)
    places = [(BOOTSTRAP_ORDER.index(f.file), f.line, f.column) for f in found]
    assert places == sorted(places)
    assert [f.file for f in found] == [
        "AGENTS.md", "SOUL.md", "SOUL.md", "SOUL.md", "MEMORY.md", "MEMORY.md", "MEMORY.md",
    ]  # fmt: skip


# Any bytes

FRAGMENTS = [
    b"+++\n", b"+++", b'id = "1"\n', b"drift = 2\n", b"drift = nan\n", b"tired_at = 1e400\n",
    b"doctor_token = ", b'"x"\n', b"[a]\n", b'"""', b"# ", b"- ", b"\n", b"\r\n", b"<!--", b"-->",
    b" <!-- seared -->", b"```", b"\xff", b"\xef\xbb\xbf", b"\0", b"<<<<<<< a\n", "\u202e".encode(),
]  # fmt: skip
FILES = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=6), max_size=14).map(b"".join)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BOOTSTRAP_ORDER), FILES, FILES)
@example("SOUL.md", b"+++\na = " + b"[" * 5000 + b"\n+++\n", b"")
def test_lint_takes_any_bytes_and_names_a_place_in_them(
    name: str, data: bytes, committed: bytes
) -> None:
    for layout in (PLAIN, HERMES):
        for found in lint.check(lint.sources({name: data}, layout, {name: committed})):
            lines = data.decode("utf-8", "replace").split("\n")
            assert 1 <= found.line <= len(lines)
            assert 1 <= found.column <= len(lines[found.line - 1]) + 1


def test_a_number_too_long_to_print_is_a_finding() -> None:
    assert "trait-range" in rules("SOUL.md", f"+++\nrecall_window = 0x{'f' * 5000}\n+++\n")


# The command


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_command_prints_a_line_or_an_object_for_each_and_exits_1_for_an_error(
    shell: Shell,
) -> None:
    put(shell.directory, {"plain/SOUL.md": HEAD + SECTIONS, "plain/MEMORY.md": "- a\n- b\0\n"})
    told = shell("lint", "./plain")
    assert told.code == 1
    assert told.text.startswith("MEMORY.md:2:4: error: ")
    assert len(told.text.splitlines()) == 1
    done = shell("lint", "./plain", "--json")
    assert done.code == 1
    (found,) = json.loads(done.text)
    assert list(found) == ["file", "line", "column", "rule", "severity", "message"]
    assert [found[key] for key in list(found)[:5]] == ["MEMORY.md", 2, 4, "nul-byte", "error"]
    assert [path.name for path in (shell.directory / "plain" / ".git").rglob("*")] == []


def test_warnings_alone_exit_0_and_nothing_wrong_prints_nothing(shell: Shell) -> None:
    put(shell.directory, {"plain/SOUL.md": HEAD + SECTIONS, "plain/MEMORY.md": "- a\n- a\n"})
    done = shell("lint", "./plain")
    assert (done.code, done.text.count("warning")) == (0, 1)
    put(shell.directory, {"plain/MEMORY.md": "- a\n"})
    assert (shell("lint", "./plain").code, shell("lint", "./plain").out) == (0, b"")
    assert shell("lint", "./plain", "--json").text == "[]\n"


def test_a_new_home_has_warnings_and_no_errors(shell: Shell) -> None:
    assert shell("init", "ava").code == 0
    done = shell("lint", "ava", "--json")
    assert done.code == 0
    assert {found["severity"] for found in json.loads(done.text)} == {"warning"}


def test_one_file_is_linted_by_its_name_and_any_other_as_a_soul_file(shell: Shell) -> None:
    put(shell.directory, {"MEMORY.md": "- a\n- a\n", "nova.md": "+++\ndrift = 7\n+++\n" + SECTIONS})
    memory = json.loads(shell("lint", "./MEMORY.md", "--json").text)
    assert [(found["file"], found["rule"]) for found in memory] == [
        ("MEMORY.md", "duplicate-entry")
    ]
    done = shell("lint", "./nova.md", "--json")
    assert done.code == 1
    errors = [found for found in json.loads(done.text) if found["severity"] == "error"]
    assert [(found["file"], found["line"], found["rule"]) for found in errors] == [
        ("nova.md", 2, "trait-range")
    ]


def test_at_lints_a_revision_and_not_the_disk(shell: Shell, home_dir: Path) -> None:
    git = git_home(home_dir, {"SOUL.md": HEAD + SECTIONS, "MEMORY.md": "- a\0\n"})
    put(home_dir, {"MEMORY.md": "- a\n"})
    assert shell("lint", str(home_dir)).code == 0
    done = shell("lint", str(home_dir), "--at", "HEAD")
    assert (done.code, "nul-byte" in done.text) == (1, True)
    git("commit", "-qam", "mended")
    assert shell("lint", str(home_dir), "--at", "HEAD").out == b""


def test_a_place_that_is_not_there_is_refused(shell: Shell) -> None:
    shell.refused("lint", "./absent")


def test_a_home_of_the_library_and_of_a_path_read_alike(home_dir: Path) -> None:
    git_home(home_dir, {"MEMORY.md": "- a\n- a\n"})
    assert souls.lint_home(Home.open(home_dir)) == souls.lint_home(home_dir) != []
