"""What is remembered of redactions: that there was one, when, by whom and why, but not what.

The record is a commit on a ref of soulgit's own, local to a clone. Beside it stands a file that
maps old ids of commits to new ones, which the owner may keep or delete, and, while a
redaction is under way, a note of which one it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from soulgit import disk
from soulgit.core import record
from soulgit.core.actor import Identity, Moment
from soulgit.core.record import Record
from soulgit.git import Repository
from soulgit.git.objects import Told

REF = "refs/soulgit/redactions"
_UNDER_WAY = "redacting"
_MAP = re.compile(r"redacted-\d{8}T\d{6}Z\.txt")
_COUNT = re.compile(r"(\d+) commits?")


@dataclass(frozen=True)
class Redaction:
    """Who redacted something, when and why, and how many commits were made anew."""

    by: Identity
    time: Moment
    reason: str | None
    commits: int

    def told(self) -> str:
        """Return it in words, like `12 commits on 2026-12-01 by Ann: why`."""
        why = f": {self.reason}" if self.reason else ""
        return f"{_counted(self.commits)} on {self.time.iso()[:10]} by {self.by.name}{why}"


@dataclass(frozen=True)
class UnderWay:
    """A redaction that has begun to move refs: its record, and the name of its map of ids."""

    record: str
    map: str


def last(repository: Repository) -> Redaction | None:
    """Return the last redaction, None where there was none."""
    commit_id = repository.ref(REF)
    if commit_id is None:
        return None
    commit = repository.commit(commit_id)
    told = record.parse(commit.message)
    count = _COUNT.fullmatch(told.text or "")
    return Redaction(commit.author, commit.time, told.reason, int(count[1]) if count else 0)


def build(
    tree: str, previous: str | None, count: int, by: Identity, when: Moment, reason: str | None
) -> bytes:
    """Return the commit that records a redaction."""
    told = Record(
        "redact",
        f"redact: {_counted(count)} made anew without a text",
        _counted(count),
        origin="cli",
        reason=reason,
    )
    hours, minutes = divmod(abs(when.offset_minutes), 60)
    zone = f"{'-' if when.offset_minutes < 0 else '+'}{hours:02}{minutes:02}"
    known = Identity.clean(by.name, by.email)
    person = f"{known.name} <{known.email}> {when.seconds} {zone}".encode()
    headers = [(b"tree", tree.encode())]
    headers += [(b"parent", previous.encode())] if previous else []
    headers += [(b"author", person), (b"committer", person)]
    return Told(tuple(headers), record.build(told).encode()).build()


def _counted(count: int) -> str:
    return f"{count} commit{'' if count == 1 else 's'}"


def map_name(when: Moment) -> str:
    """Return the name of the file that maps old ids to new ones."""
    return f"redacted-{datetime.fromtimestamp(when.seconds, UTC):%Y%m%dT%H%M%SZ}.txt"


def write_map(state_dir: str, name: str, ids: Mapping[str, str], *, durable: bool) -> None:
    """Write which commit each old one has become, a line each."""
    data = "".join(f"{old} {new}\n" for old, new in ids.items()).encode()
    disk.replace(state_dir, name, data, os.path.join(state_dir, "scratch", name), durable=durable)
    if durable:
        disk.sync_directory(state_dir)


def read_map(state_dir: str, name: str) -> dict[str, str]:
    """Return which commit each old one has become; nothing where there is no such file."""
    pairs = (line.split() for line in disk.lines(os.path.join(state_dir, name)))
    return {pair[0].decode(): pair[1].decode() for pair in pairs if len(pair) == 2}


def now_called(state_dir: str, commit_id: str) -> str | None:
    """Return what a commit, by its id or the beginning of it, has become, as far as maps tell."""
    found = None
    for name in sorted(filter(_MAP.fullmatch, disk.names(state_dir))):
        ids = read_map(state_dir, name)
        wanted = found or commit_id.lower()
        matches = [new for old, new in ids.items() if old.startswith(wanted)]
        found = matches[0] if len(matches) == 1 else found
    return found


def note_path(state_dir: str) -> str:
    """Return where it stands that a redaction is under way."""
    return os.path.join(state_dir, _UNDER_WAY)


def under_way(state_dir: str) -> UnderWay | None:
    """Return the redaction that was begun and not ended, None where there is none."""
    try:
        with open(note_path(state_dir), "rb") as file:
            values = json.loads(file.read())
        return UnderWay(str(values["record"]), str(values["map"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def begin(state_dir: str, told: UnderWay, *, durable: bool) -> None:
    """Note that a redaction is under way, before any ref moves."""
    data = json.dumps({"record": told.record, "map": told.map}).encode()
    scratch = os.path.join(state_dir, "scratch", _UNDER_WAY)
    disk.replace(state_dir, _UNDER_WAY, data, scratch, durable=durable)
    if durable:
        disk.sync_directory(state_dir)


def end(state_dir: str) -> None:
    """Note that nothing is left to do."""
    disk.discard(note_path(state_dir))
