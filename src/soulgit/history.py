"""History: the log of a home, what one commit did, and how two souls differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from soulgit import personas, revisions
from soulgit.core import composition, record
from soulgit.core.actor import Identity, Moment
from soulgit.core.layout import BOOTSTRAP_ORDER
from soulgit.core.record import Record
from soulgit.errors import ObjectMissing, RevisionNotFound
from soulgit.git import Commit, Repository
from soulgit.home import AnyHome, Home, as_home


@dataclass(frozen=True)
class Entry:
    """One commit of a home and what its record says; `action` is None for another's commit."""

    id: str
    parents: tuple[str, ...]
    time: Moment
    author: Identity
    record: Record
    message: str


@dataclass(frozen=True)
class Wanted:
    """Which commits of a log are wanted; None wants any. Texts are literal, in any case."""

    action: str | None = None
    target: str | None = None
    session: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    grep: str | None = None

    def wants(self, entry: Entry) -> bool:
        """Whether a commit is one of these."""
        told = entry.record
        return (
            self.action in (None, told.action)
            and self.target in (None, told.target)
            and _is(self.session, told.session)
            and _is(self.source, told.source)
            and (self.since is None or entry.time.seconds >= self.since.timestamp())
            and (self.until is None or entry.time.seconds <= self.until.timestamp())
            and (self.grep is None or self.grep.casefold() in _searched(entry).casefold())
        )


@dataclass(frozen=True)
class FileChange:
    """One bootstrap file before and after, as a model sees it; None where it is absent.

    `hidden` says that something differs that no model sees: frontmatter, a comment, bytes.
    """

    name: str
    before: str | None
    after: str | None
    hidden: bool = False


def log(home: AnyHome, *, at: str | None = None, wanted: Wanted = Wanted()) -> Iterator[Entry]:
    """Yield a home's commits, newest first, a child always before its parents.

    Order comes from parents, never from clocks, and nothing is read before it is asked
    for. In a shallow clone it ends where the history is cut.
    """
    home = as_home(home)
    start = revisions.resolve(home, "HEAD" if at is None else at)
    entries = (entry(commit) for commit in _walk(home.repository, start))
    return (entry for entry in entries if wanted.wants(entry))


def is_cut(home: AnyHome) -> bool:
    """Whether the history ends earlier here than it did: a shallow clone."""
    return as_home(home).repository.is_shallow


def show(home: AnyHome, revision: str) -> tuple[Entry, list[FileChange]]:
    """Return what a commit says and how it changed the bootstrap files."""
    home = as_home(home)
    commit_id = revisions.resolve(home, revision)
    with home.reading() as repository:
        commit = repository.commit(commit_id)
        before = _parent_contents(repository, commit)
        return entry(commit), changes(before, personas.readable_contents(repository, commit.tree))


def diff(home: AnyHome, old: str | None = None, new: str | None = None) -> list[FileChange]:
    """Return how the soul differs between two revisions, by file.

    Without `new` it is compared with the working files; without `old` too, what was
    changed by hand since the last commit.
    """
    home = as_home(home)
    before = _contents(home, "HEAD" if old is None else old)
    after = home.look().contents if new is None else _contents(home, new)
    return changes(before, after)


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[FileChange]:
    """Return the bootstrap files that differ, in the order of composition."""
    return [
        _change(name, before.get(name), after.get(name))
        for name in BOOTSTRAP_ORDER
        if before.get(name) != after.get(name)
    ]


def _walk(repository: Repository, start: str) -> Iterator[Commit]:
    """Walk along first parents; where sides were merged, all of them down to a common ancestor.

    A region between a merge and any one ancestor of it, with the ancestor's own history
    behind it, keeps children before parents; so only merged regions are ever sorted.
    """
    following: str | None = start
    while following is not None:
        try:
            commit = repository.commit(following)
        except ObjectMissing:
            if not repository.is_shallow:
                raise
            return
        if len(commit.parents) < 2:
            yield commit
            following = next(iter(commit.parents), None)
            continue
        following = repository.merge_base(commit.parents)
        yield from (repository.commit(part) for part in repository.region(commit.id, following))


def entry(commit: Commit) -> Entry:
    """Return a commit and what its record says."""
    return Entry(
        id=commit.id,
        parents=commit.parents,
        time=commit.time,
        author=commit.author,
        record=record.parse(commit.message),
        message=commit.message,
    )


def _is(wanted: str | None, told: str | None) -> bool:
    return wanted is None or record.one_line(wanted, None) == told


def _searched(entry: Entry) -> str:
    told = entry.record
    if told.action is None:
        return entry.message
    return "\n".join(filter(None, (told.subject, told.text, told.replacement, told.reason)))


def _contents(home: Home, revision: str) -> dict[str, bytes]:
    if revision == "HEAD" and home.is_home and home.head().tip is None:
        return {}
    commit_id = revisions.resolve(home, revision)
    with home.reading() as repository:
        return personas.readable_contents(repository, repository.commit(commit_id).tree)


def _parent_contents(repository: Repository, commit: Commit) -> dict[str, bytes]:
    try:
        parent = next(iter(commit.parents), None)
        tree = repository.commit(parent).tree if parent else None
        return personas.readable_contents(repository, tree) if tree else {}
    except ObjectMissing:
        if not repository.is_shallow:
            raise
        raise RevisionNotFound(
            f"the parent of {commit.id[:12]} is not here: this clone is shallow",
            hint="`git fetch --unshallow` brings the rest",
        ) from None


def _change(name: str, before: bytes | None, after: bytes | None) -> FileChange:
    seen = [None if data is None else _seen(name, data) for data in (before, after)]
    return FileChange(name, seen[0], seen[1], hidden=seen[0] == seen[1])


def _seen(name: str, data: bytes) -> str:
    return composition.body(name, data, limit_bytes=None)
