"""The soul: bootstrap files composed into one system prompt."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from soulgit.core import soulfile
from soulgit.core.layout import MAX_FILE_BYTES, PERSONA_NAMES, target_of

SEARED_MARKER = "<!-- seared -->"
"""What stands at the end of an entry that never changes again."""

_TRUNCATION_NOTE = "\n[truncated: exceeds 2 MB bootstrap cap]"
_UNDECODABLE = re.compile("[\udc80-\udcff]")
_CONFLICT_MARKER = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


@dataclass(frozen=True)
class FileReport:
    """One bootstrap file of a soul: its size in bytes as stored and as composed."""

    name: str
    bytes: int
    composed: int
    truncated: bool


@dataclass(frozen=True)
class Soul:
    """A composed system prompt; `soul, found = compose_soul(home)` unpacks it.

    `revision` is the full commit id it was read from, `None` for working files; `persona`
    the digest of who it describes; `warnings` what was cut, replaced or hidden, a
    sentence each.
    """

    text: str
    found: list[str]
    revision: str | None
    persona: str
    files: tuple[FileReport, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[str | list[str]]:
        return iter((self.text, self.found))


@dataclass(frozen=True)
class _Section:
    body: str
    truncated: bool


def compose(files: Mapping[str, bytes], persona: str, *, revision: str | None = None) -> Soul:
    """Compose bootstrap files, given by name in the order in which they shall stand."""
    sections = {name: _section(name, data) for name, data in files.items()}
    return Soul(
        text="\n\n".join(f"## {name}\n\n{part.body}" for name, part in sections.items()),
        found=list(files),
        revision=revision,
        persona=persona,
        files=tuple(
            FileReport(name, len(files[name]), len(part.body.encode()), part.truncated)
            for name, part in sections.items()
        ),
        warnings=tuple(warning for name, data in files.items() for warning in warn(name, data)),
    )


def with_warnings(soul: Soul, warnings: tuple[str, ...]) -> Soul:
    """Return a soul with more warnings."""
    return replace(soul, warnings=soul.warnings + warnings) if warnings else soul


def body(name: str, data: bytes, *, limit_bytes: int | None = MAX_FILE_BYTES) -> str:
    """Return one bootstrap file as a model sees it; with no limit, uncut."""
    if limit_bytes is not None and len(data) > limit_bytes:
        data = _cut(data, limit_bytes)
    return _visible(name, decode(data))


def decode(data: bytes) -> str:
    """Decode UTF-8, each undecodable byte one U+FFFD, without a byte-order mark."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = _UNDECODABLE.sub("\ufffd", data.decode("utf-8", "surrogateescape"))
    return text.removeprefix("\ufeff")


def warn(name: str, data: bytes) -> Iterable[str]:
    """Yield a sentence for all that composition cuts, replaces or hides in a file."""
    if len(data) > MAX_FILE_BYTES:
        yield f"{name} is cut: {MAX_FILE_BYTES:,} of its {len(data):,} bytes are composed"
        data = _cut(data, MAX_FILE_BYTES)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield f"{name} looks like UTF-16; soulgit reads UTF-8"
    elif (offset := undecodable_offset(data)) is not None:
        line = data.count(b"\n", 0, offset) + 1
        yield f"{name} line {line}: byte 0x{data[offset]:02x} is no UTF-8 and reads as U+FFFD"
    text = decode(data)
    is_marked = "<<<<<<< " in text or ">>>>>>> " in text  # asked first, for it is quick
    if is_marked and (marker := _CONFLICT_MARKER.search(text)):
        yield f"{name} line {_line(text, marker.start())}: a conflict marker is composed"
    if name == "SOUL.md":
        yield from _warn_of_frontmatter(text)
        text = soulfile.strip_frontmatter(text)
    if name in PERSONA_NAMES:
        yield from _warn_of_comment(name, decode(data), text)


def undecodable_offset(data: bytes) -> int | None:
    """Return the offset of the first byte that is no UTF-8, if there is one."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as fault:
        return fault.start
    return None


def _section(name: str, data: bytes) -> _Section:
    truncated = len(data) > MAX_FILE_BYTES
    text = body(name, data)
    return _Section(text + _TRUNCATION_NOTE if truncated else text, truncated)


def _visible(name: str, text: str) -> str:
    if name == "SOUL.md":
        text = soulfile.strip_frontmatter(text)
    if name in PERSONA_NAMES:
        text = soulfile.strip_comments(text)
    elif target_of(name):
        text = text.replace(" " + SEARED_MARKER, "").replace(SEARED_MARKER, "")
    return text.strip()


def _cut(data: bytes, limit_bytes: int) -> bytes:
    """Return the first bytes of a file, without a character that the limit cuts in two."""
    for length in (1, 2, 3):
        start = limit_bytes - length
        size = _character_size(data[start]) if start >= 0 else 1
        if size > 1:
            whole = undecodable_offset(data[start : start + size]) is None
            return data[:start] if size > length and whole else data[:limit_bytes]
    return data[:limit_bytes]


def _character_size(lead: int) -> int:
    """Return how many bytes the character has that begins with this byte; 1 for any other."""
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1


def _warn_of_frontmatter(text: str) -> Iterable[str]:
    found = soulfile.find_frontmatter(text)
    if found is None or found.fault is None:
        return
    if found.unterminated:
        yield "SOUL.md: the frontmatter is never closed by a +++ line and hides the whole file"
    else:
        yield "SOUL.md: the frontmatter is no valid TOML and is hidden up to the last +++ line"


def _warn_of_comment(name: str, whole: str, shown: str) -> Iterable[str]:
    offset = soulfile.unclosed_comment(shown)
    if offset is not None:
        line = _line(whole, len(whole) - len(shown) + offset)
        yield f"{name} line {line}: a comment is never closed and hides the rest of the file"


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
