"""Which commit a person means by the words of `--at`."""

from __future__ import annotations

from datetime import datetime, time, tzinfo

from soulgit import personas
from soulgit.errors import InvalidTime, RevisionNotFound
from soulgit.git import Repository
from soulgit.home import Home


def resolve(home: Home, revision: str) -> str:
    """Return the full id of the commit that a revision names, as `git rev-parse` would.

    Raises RevisionNotFound, also for a reflog entry: reflogs are local and expire.
    """
    with home.reading() as repository:
        _refuse(revision)
        found = repository.resolve(revision)
        if found is None:
            raise _not_found(repository, revision)
        return found


def resolve_at(home: Home, words: str, zone: tzinfo | None = None) -> tuple[str, bool]:
    """Return the commit that a revision or else an ISO 8601 time names, and whether by time.

    A name wins. A time means the newest first-parent commit not younger than it, by committer time.
    """
    try:
        return resolve(home, words), False
    except RevisionNotFound as fault:
        try:
            when = parse_time(words, zone)
        except InvalidTime:
            raise fault from None
        return at_time(home, when), True


def at_time(home: Home, when: datetime) -> str:
    """Return the newest first-parent commit that was made at that time or before."""
    with home.reading() as repository:
        tip = repository.head().tip
        if tip is None:
            raise RevisionNotFound(f"{home.path} has no commits yet")
        for commit_id in personas.first_parents(repository, tip):
            if repository.commit(commit_id).time.seconds <= when.timestamp():
                return commit_id
        raise RevisionNotFound(f"no commit of {home.path} is as old as {when.isoformat()}")


def parse_time(words: str, zone: tzinfo | None = None, *, starts: bool = False) -> datetime:
    """Parse an ISO 8601 time; without a zone it is in `zone` (None: local).

    A bare date is the end of that day, or with `starts` its start.
    """
    try:
        when = datetime.fromisoformat(words.strip())
    except ValueError:
        raise InvalidTime(f"{words!r} is no time that soulgit can read") from None
    if _is_bare_date(words) and not starts:
        when = datetime.combine(when, time(23, 59, 59, 999999), when.tzinfo)
    try:
        return when if when.tzinfo else when.replace(tzinfo=zone) if zone else when.astimezone()
    except (OverflowError, OSError, ValueError):
        raise InvalidTime(f"{words!r} is outside the calendar that soulgit can read") from None


def _is_bare_date(words: str) -> bool:
    return "T" not in words.upper() and " " not in words.strip() and ":" not in words


def _refuse(revision: str) -> None:
    if not revision.strip():
        raise RevisionNotFound("an empty revision names no commit")
    if "\0" in revision:
        raise RevisionNotFound("a revision cannot hold a NUL character")
    if revision.startswith("-"):
        raise RevisionNotFound(f"{revision!r} is an option, not a revision")
    if "@{" in revision:
        raise RevisionNotFound(
            f"{revision!r} asks the reflog, which is local and expires",
            hint="name the commit by its id, or give --at a time",
        )


def _not_found(repository: Repository, revision: str) -> RevisionNotFound:
    if repository.head().tip is None:
        return RevisionNotFound(
            f"{repository.path} has no commits yet, so {revision!r} names none",
            hint="the first memory, or `soulgit capture`, makes one",
        )
    tip = repository.head().tip
    if tip is not None and not repository.has(tip):
        return RevisionNotFound(
            f"the last commit of {repository.path}, {tip[:12]}, is not in the repository",
            hint="`git fsck` says what is missing",
        )
    if repository.is_shallow:
        return RevisionNotFound(
            f"{revision!r} names no commit here; this clone is shallow, its history is cut",
            hint="`git fetch --unshallow` brings the rest",
        )
    return RevisionNotFound(
        f"{revision!r} names no commit, or more than one",
        hint="`soulgit log HOME` lists them; a time is written like 2026-11-30T14:05",
    )
