"""Rules that tell what is wrong with a home's files, each with what to do about it.

A rule is a pure function of one file, or of all; none of them prints a token.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from soulgit.core import composition, entries, hermes, seared, soulfile, token, traits
from soulgit.core.layout import (
    BOOTSTRAP_ORDER,
    HERMES,
    MAX_FILE_BYTES,
    PERSONA_NAMES,
    PLAIN,
    Layout,
    target_of,
)

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and where; lines and columns begin at 1."""

    file: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str


@dataclass(frozen=True)
class Source:
    """One file under lint: its name, its bytes, and what the last commit held of it."""

    name: str
    data: bytes
    layout: Layout = PLAIN
    committed: bytes = b""
    siblings: Mapping[str, bytes] = field(default_factory=dict)
    """All files of the home by name, this one among them."""

    committed_layout: Layout = PLAIN

    @cached_property
    def text(self) -> str:
        """The file as text, without a byte-order mark."""
        return composition.decode(self.data)

    @cached_property
    def frontmatter(self) -> soulfile.Frontmatter | None:
        """The frontmatter, where this is a soul file that has one."""
        return soulfile.find_frontmatter(self.text) if self.name == "SOUL.md" else None

    @cached_property
    def values(self) -> dict[str, Any]:
        """The keys of the frontmatter; none where it is absent or broken."""
        return soulfile.frontmatter_values(self.text) if self.name == "SOUL.md" else {}

    @cached_property
    def body_start(self) -> int:
        """Where the text begins that is no frontmatter."""
        return self.frontmatter.body_start if self.frontmatter else 0

    def key_offset(self, key: str) -> int:
        """Return where a key of the frontmatter stands."""
        if self.frontmatter is None:
            return 0
        start, end = self.frontmatter.start, self.frontmatter.end
        found = re.compile(rf"^[ \t]*[\"']?{key}\b", re.MULTILINE).search(self.text, start, end)
        return found.end() - len(found.group().lstrip()) if found else start


@dataclass(frozen=True)
class Rule:
    """A rule: its name, how grave it is, what mends it, and what finds it (offset, message)."""

    name: str
    severity: Severity
    mend: str
    find: Callable[[Source], Iterable[tuple[int, str]]]


def check(sources: Iterable[Source]) -> list[Finding]:
    """Return all that the rules find, in the order of files, lines and rules."""
    found = [
        _finding(source, rule, offset, message)
        for source in sources
        for rule in RULES
        for offset, message in rule.find(source)
    ]
    rank = {name: number for number, name in enumerate(BOOTSTRAP_ORDER)}
    return sorted(found, key=lambda f: (rank.get(f.file, len(rank)), f.file, f.line, f.column))


def sources(
    files: Mapping[str, bytes],
    layout: Layout,
    committed: Mapping[str, bytes],
    committed_layout: Layout = PLAIN,
) -> list[Source]:
    """Return the bootstrap files of a home as sources, a vanished memory file as an empty one."""
    vanished = [name for name in committed if name not in files and target_of(name)]
    return [
        Source(
            name,
            files.get(name, b""),
            layout,
            committed.get(name, b""),
            siblings=files,
            committed_layout=committed_layout,
        )
        for name in [*files, *vanished]
    ]


def _finding(source: Source, rule: Rule, offset: int, message: str) -> Finding:
    soul = composition.decode(source.siblings.get("SOUL.md", b""))
    message = token.masked(soulfile.frontmatter_values(soul), message)
    line_start = source.text.rfind("\n", 0, offset) + 1
    line = source.text.count("\n", 0, offset) + 1
    return Finding(
        file=source.name,
        line=line,
        column=offset - line_start + 1,
        rule=rule.name,
        severity=rule.severity,
        message=f"{message}; {rule.mend}",
    )


# Errors


def _broken_frontmatter(source: Source) -> Iterator[tuple[int, str]]:
    head = source.frontmatter
    if head is not None and head.fault is not None and not head.unterminated:
        place = _PLACE.search(head.fault)
        why = _PLACE.sub("", head.fault).strip()
        offset = head.start + (_offset(source.text[head.start :], place) if place else 0)
        yield offset, f"the frontmatter is no valid TOML ({why})"


_PLACE = re.compile(r" ?\(at line (\d+), column (\d+)\)| ?\(at end of document\)")


def _offset(text: str, place: re.Match[str]) -> int:
    """Return the offset of the line and column that a TOML fault names."""
    if place.group(1) is None:
        return 0
    lines = text.split("\n")[: int(place.group(1)) - 1]
    return min(len(text), sum(len(line) + 1 for line in lines) + int(place.group(2)) - 1)


def _unterminated_frontmatter(source: Source) -> Iterator[tuple[int, str]]:
    head = source.frontmatter
    if head is not None and head.unterminated:
        yield 0, "the frontmatter is never closed, so the whole file is hidden"


def _trait(kind: str) -> Callable[[Source], Iterator[tuple[int, str]]]:
    def find(source: Source) -> Iterator[tuple[int, str]]:
        for fault in traits.faults(source.values):
            if fault.kind == kind:
                yield source.key_offset(fault.key), fault.message

    return find


_MARKER = re.compile(r"^(?:<{7}(?= )|={7}(?=\r?$)|>{7}(?= )|\|{7}(?= ))", re.MULTILINE)


def _conflict_marker(source: Source) -> Iterator[tuple[int, str]]:
    found = list(_MARKER.finditer(source.text))
    if any(marker.group()[0] in "<>" for marker in found):  # a row of = alone is a heading
        for marker in found:
            yield marker.start(), "a conflict marker of git's is in the text"


def _nul(source: Source) -> Iterator[tuple[int, str]]:
    offset = source.text.find("\0")
    if offset >= 0:
        yield offset, "the file holds a NUL byte"


def _invalid_utf8(source: Source) -> Iterator[tuple[int, str]]:
    if source.data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield 0, "the file is UTF-16, and soulgit reads UTF-8"
        return
    offset = composition.undecodable_offset(source.data)
    if offset is not None:
        before = composition.decode(source.data[:offset])
        yield len(before), f"byte 0x{source.data[offset]:02x} is no UTF-8"


_TOKEN_LINE = re.compile(rf"^[ \t]*[\"']?{token.KEY}[\"']?[ \t]*[=:]", re.MULTILINE)


def _token_outside(source: Source) -> Iterator[tuple[int, str]]:
    for found in _TOKEN_LINE.finditer(source.text, source.body_start):
        yield found.start(), "a doctor token stands outside the frontmatter, where a model sees it"
    values = soulfile.frontmatter_values(composition.decode(source.siblings.get("SOUL.md", b"")))
    offset = token.find(values, source.text[source.body_start :])
    if offset is not None:
        yield source.body_start + offset, "the doctor token stands where a model sees it"


def _seared_changed(source: Source) -> Iterator[tuple[int, str]]:
    for text in seared.lost(source.committed, source.committed_layout, source.data, source.layout):
        yield 0, f'a seared entry was changed or dropped by hand: "{_short(text)}"'


def _over_cap(source: Source) -> Iterator[tuple[int, str]]:
    if len(source.data) > MAX_FILE_BYTES:
        cut = len(composition.decode(source.data[:MAX_FILE_BYTES]))
        yield cut, f"only {MAX_FILE_BYTES:,} of {len(source.data):,} bytes are composed"


# Warnings


def _missing(key: str) -> Callable[[Source], Iterator[tuple[int, str]]]:
    def find(source: Source) -> Iterator[tuple[int, str]]:
        head = source.frontmatter
        if head is not None and head.fault is None and not source.values.get(key):
            yield head.start, f"the frontmatter has no {key}"

    return find


def _unknown_key(source: Source) -> Iterator[tuple[int, str]]:
    for key in source.values:
        if key not in traits.TRAITS and key not in traits.OTHER_KEYS:
            yield source.key_offset(re.escape(key)), f"{key!r} is no key that soulgit knows"


def _plain_token(source: Source) -> Iterator[tuple[int, str]]:
    if token.plain(source.values) is not None:
        yield source.key_offset(token.KEY), "the doctor token is stored as it is"


def _unclosed_comment(source: Source) -> Iterator[tuple[int, str]]:
    if source.name in PERSONA_NAMES:
        offset = soulfile.unclosed_comment(source.text[source.body_start :])
        if offset is not None:
            yield source.body_start + offset, "a comment is never closed and hides the rest"


_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*\r?$", re.MULTILINE)


def is_empty(text: str) -> bool:
    """Whether a text says nothing: headings, rules and white space alone."""
    return not re.sub(r"^[ \t]*(?:#.*|[-*_][-*_ \t]+)?\r?$", "", text, flags=re.MULTILINE).strip()


def _empty_persona(source: Source) -> Iterator[tuple[int, str]]:
    if source.name == "SOUL.md":
        told = [
            composition.body(name, data)
            for name, data in source.siblings.items()
            if name in PERSONA_NAMES
        ]
        if all(map(is_empty, told)):
            yield source.body_start, "the persona is empty: headings, comments and blanks alone"


_SECTIONS = (
    ("who it is", ("who", "identity", "about", "are you", "you are")),
    ("how it talks", ("talk", "speak", "voice", "tone", "style", "communicat", "sound")),
    ("what it cares about", ("care", "interest", "passion", "matter", "love")),
    ("its values", ("value", "principle", "belief", "boundar", "ethic", "integrity", "truth")),
)


def _missing_section(source: Source) -> Iterator[tuple[int, str]]:
    if source.name != "SOUL.md":
        return
    shown = composition.body(source.name, source.data)
    titles = [title.casefold() for title in _HEADING.findall(shown)]
    for section, words in _SECTIONS:
        if not any(word in title for title in titles for word in words):
            yield source.body_start, f"no heading says {section}"


def _byte_order_mark(source: Source) -> Iterator[tuple[int, str]]:
    if source.data.startswith(codecs.BOM_UTF8):
        yield 0, "the file begins with a byte-order mark"


_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\U000e0000-\U000e007f]"
)
_JOINERS = "\u200c\u200d"


def _invisible(source: Source) -> Iterator[tuple[int, str]]:
    for found in _INVISIBLE.finditer(source.text):
        if not _joins(source.text, found.start()):
            code = f"U+{ord(found.group()):04X}"
            yield found.start(), f"an invisible character ({code}) stands in the text"


def _joins(text: str, offset: int) -> bool:
    """Whether a joiner does its work, within an emoji or between letters that it shapes."""
    around = text[max(0, offset - 1) : offset] + text[offset + 1 : offset + 2]
    return text[offset] in _JOINERS and len(around) == 2 and min(around) > "\u024f"


def _foreign_heading(source: Source) -> Iterator[tuple[int, str]]:
    for found in _HEADING.finditer(source.text, source.body_start):
        if found.group(1) in BOOTSTRAP_ORDER and found.group(1) != source.name:
            yield found.start(), f"a heading says {found.group(1)}, like another file's section"


def _duplicate_entry(source: Source) -> Iterator[tuple[int, str]]:
    if target_of(source.name) is None:
        return
    seen: dict[str, int] = {}
    for entry in entries.split(source.text, source.layout):
        plain = " ".join(entry.plain.split())
        line = source.text.count("\n", 0, entry.start) + 1
        first = seen.setdefault(plain, line)
        if first != line:
            yield entry.start, f"the same entry is there twice, first in line {first}"


def _hermes_limit(source: Source) -> Iterator[tuple[int, str]]:
    target = target_of(source.name)
    if target is None or source.layout != HERMES:
        return
    found = hermes.passed_at(source.text, target)
    if found is not None:
        limit = hermes.LIMITS[target]
        yield found[0], f"{found[1]:,} characters; Hermes Agent keeps {limit:,} and adds no more"


RULES = (
    Rule("frontmatter-broken", "error", "mend the TOML between the +++ lines", _broken_frontmatter),
    Rule("frontmatter-unterminated", "error", "end it with a line +++", _unterminated_frontmatter),
    Rule("trait-range", "error", "give a value in its range", _trait("trait-range")),
    Rule("trait-type", "error", "give a value of its type", _trait("trait-type")),
    Rule(
        "tired-not-below-sleep",
        "error",
        "lower tired_at or raise sleep_at",
        _trait("tired-not-below-sleep"),
    ),
    Rule(
        "conflict-marker", "error", "settle the conflict and delete its markers", _conflict_marker
    ),
    Rule("nul-byte", "error", "delete it", _nul),
    Rule("invalid-utf8", "error", "save the file as UTF-8", _invalid_utf8),
    Rule(
        "token-outside-frontmatter",
        "error",
        "delete it, and make a new one with `soulgit token`",
        _token_outside,
    ),
    Rule(
        "seared-changed", "error", "put it back, or run `soulgit unsear` with it", _seared_changed
    ),
    Rule("over-cap", "error", "make the file shorter", _over_cap),
    Rule("missing-id", "warning", 'add a line like id = "ava-1"', _missing("id")),
    Rule("missing-name", "warning", 'add a line like name = "Ava"', _missing("name")),
    Rule("unknown-key", "warning", "check its spelling, or leave it out", _unknown_key),
    Rule(
        "plain-token", "warning", "store its hash: `soulgit init HOME --hash-token`", _plain_token
    ),
    Rule("unclosed-comment", "warning", "close it with -->", _unclosed_comment),
    Rule("empty-persona", "warning", "say who it is", _empty_persona),
    Rule("missing-section", "warning", "add a section that does", _missing_section),
    Rule("byte-order-mark", "warning", "save the file without it", _byte_order_mark),
    Rule("invisible-character", "warning", "delete it", _invisible),
    Rule("foreign-heading", "warning", "call the heading something else", _foreign_heading),
    Rule("duplicate-entry", "warning", "remove one of them", _duplicate_entry),
    Rule("hermes-limit", "warning", "remove some, or shorten them", _hermes_limit),
)
"""All rules, errors first."""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"
