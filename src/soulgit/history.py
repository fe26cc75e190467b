"""History: the log of a home, what one commit did, and how two souls differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from soulgit import personas, revisions
from soulgit.core import composition, record, tracing
from soulgit.core.actor import Identity, Moment
from soulgit.core.layout import BOOTSTRAP_ORDER, PLAIN, Layout, target_of
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
class EntryChanges:
    """How a memory file differs by entry; the reworded ones are pairs of old and new."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    reworded: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FileChange:
    """One bootstrap file before and after, as a model sees it; None where it is absent.

    `hidden` says that something differs that no model sees: frontmatter, a comment, bytes.
    `entries` is told of memory files, where entries differ.
    """

    name: str
    before: str | None
    after: str | None
    hidden: bool = False
    entries: EntryChanges | None = None


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
        before = _parent_side(repository, commit)
        return entry(commit), changes(before, _tree_side(repository, commit.tree))


def diff(home: AnyHome, old: str | None = None, new: str | None = None) -> list[FileChange]:
    """Return how the soul differs between two revisions, by file.

    Without `new` it is compared with the working files; without `old` too, what was
    changed by hand since the last commit.
    """
    home = as_home(home)
    before = _side(home, "HEAD" if old is None else old)
    if new is not None:
        return changes(before, _side(home, new))
    working = home.look()
    return changes(before, Side(working.contents, working.layout))


@dataclass(frozen=True)
class Side:
    """Bootstrap files by name, and their layout: one side of a comparison."""

    contents: Mapping[str, bytes]
    layout: Layout = PLAIN


def changes(before: Side, after: Side) -> list[FileChange]:
    """Return the bootstrap files that differ, in the order of composition."""
    return [
        _change(name, before, after)
        for name in BOOTSTRAP_ORDER
        if before.contents.get(name) != after.contents.get(name)
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


def _side(home: Home, revision: str) -> Side:
    if revision == "HEAD" and home.is_home and home.head().tip is None:
        return Side({})
    commit_id = revisions.resolve(home, revision)
    with home.reading() as repository:
        return _tree_side(repository, repository.commit(commit_id).tree)


def _tree_side(repository: Repository, tree: str) -> Side:
    contents = personas.readable_contents(repository, tree)
    return Side(contents, personas.tree_layout(repository, tree))


def _parent_side(repository: Repository, commit: Commit) -> Side:
    try:
        parent = next(iter(commit.parents), None)
        return _tree_side(repository, repository.commit(parent).tree) if parent else Side({})
    except ObjectMissing:
        if not repository.is_shallow:
            raise
        raise RevisionNotFound(
            f"the parent of {commit.id[:12]} is not here: this clone is shallow",
            hint="`git fetch --unshallow` brings the rest",
        ) from None


def _change(name: str, before: Side, after: Side) -> FileChange:
    sides = [(side.contents.get(name), side.layout) for side in (before, after)]
    seen = [None if data is None else _seen(name, data) for data, _ in sides]
    entries = _entry_changes(sides[0], sides[1]) if target_of(name) else None
    return FileChange(name, seen[0], seen[1], hidden=seen[0] == seen[1], entries=entries)


def _entry_changes(
    before: tuple[bytes | None, Layout], after: tuple[bytes | None, Layout]
) -> EntryChanges | None:
    """Return how the entries differ, None where none does, but their order or what is between."""
    old, new = (
        tracing.read(composition.decode(data or b""), layout) for data, layout in (before, after)
    )
    change = tracing.compare(old, new)
    found = EntryChanges(
        added=tuple(item.text for item in change.added),
        removed=tuple(item.text for item in change.removed),
        reworded=tuple((was.text, now.text) for was, now in change.reworded),
    )
    return found if found.added or found.removed or found.reworded else None


def _seen(name: str, data: bytes) -> str:
    return composition.body(name, data, limit_bytes=None)
