"""Undo: an action, a session, a source or a time taken back, with every later change kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from soulgit import history, lineage, personas, revisions
from soulgit.adoption import Hand
from soulgit.core import entries, record, seared, tracing, undoing
from soulgit.core.actor import Identity
from soulgit.core.layout import PERSONA_NAMES, TARGETS, Target, memory_name, target_of
from soulgit.core.record import Record
from soulgit.core.undoing import Choice, Text
from soulgit.errors import ChangedSince, InvalidArgument, RevisionNotFound
from soulgit.git import Commit, Past, Repository
from soulgit.history import Entry, Wanted
from soulgit.home import AnyHome, Home, as_home
from soulgit.revision import Draft, Snapshot, revise

_UNDOABLE = (None, "add", "replace", "remove", "capture", "undo", "restore")
"""What can be taken back: changes of memory. None is a commit of plain git."""


@dataclass(frozen=True)
class Which:
    """Which actions are meant: one by its revision, else all of a session, a source, a time on.

    With none of them, the last action that can be taken back.
    """

    revision: str | None = None
    session: str | None = None
    source: str | None = None
    since: datetime | None = None

    @property
    def is_many(self) -> bool:
        """Whether it speaks of all actions that have something in common."""
        return any(part is not None for part in (self.session, self.source, self.since))


@dataclass(frozen=True)
class Taken:
    """What was taken back: the new tip (None: nothing had to change, or it was a dry run), the
    commits, newest first, and the files by name as they become (None: gone).
    """

    revision: str | None
    entries: tuple[Entry, ...]
    files: Mapping[str, bytes | None]


def undo(
    home: AnyHome,
    which: Which,
    by: Identity,
    *,
    choice: Choice | None = None,
    reason: str | None = None,
    dry_run: bool = False,
) -> Taken:
    """Take actions back in one new commit; taking an undo back is a redo.

    Raises ChangedSince, naming them, where entries were changed since and no choice is made,
    and SearedRefused for a seared entry.
    """
    home = as_home(home)
    chosen = tuple(_chosen(home, which))
    files: dict[str, bytes | None] = {}

    def edit(snapshot: Snapshot) -> Draft | None:
        nonlocal files
        files = _taken_back(home, snapshot, chosen, choice)
        if dry_run or not files:
            return None
        return Draft(_record(chosen, files, reason), by, files)

    revision = revise(home, edit, hand=Hand(by), while_frozen=True)
    return Taken(revision, chosen, files)


def _chosen(home: Home, which: Which) -> Iterator[Entry]:
    if which.is_many and which.revision is not None:
        raise InvalidArgument(
            "a revision and a session, source or time are two ways to say what is meant",
            hint="give the one or the others",
        )
    if which.revision is not None:
        yield _one(home, revisions.resolve(home, which.revision))
        return
    wanted = Wanted(session=which.session, source=which.source, since=which.since)
    found = (entry for entry in _own(home) if entry.record.action in _UNDOABLE and entry.parents)
    if which.is_many:
        chosen = [entry for entry in found if wanted.wants(entry)]
    else:
        chosen = [entry for _, entry in zip(range(1), found, strict=False)]
    if not chosen:
        raise InvalidArgument(
            "there is nothing to take back", hint="`soulgit log HOME` shows what happened"
        )
    yield from chosen


def _one(home: Home, commit_id: str) -> Entry:
    """Return an action of the branch's own by its id; raises where it is none that can go."""
    found = next((entry for entry in _own(home) if entry.id == commit_id), None)
    if found is None:
        raise RevisionNotFound(
            f"{commit_id[:12]} is no commit of this branch's own line",
            hint="`soulgit log HOME` shows it; a merged side is taken back by its entries",
        )
    action = found.record.action
    if action not in _UNDOABLE:
        raise InvalidArgument(
            f"{commit_id[:12]} is a decision ({action}), and cannot be taken back like a memory",
            hint=_OTHER_WAYS.get(action or "", "edit SOUL.md again and settle it anew"),
        )
    if not found.parents and home.repository.is_shallow:
        raise RevisionNotFound(
            f"the parent of {commit_id[:12]} is not here: this clone is shallow",
            hint="`git fetch --unshallow` brings the rest",
        )
    if not found.parents:
        raise InvalidArgument(
            f"{commit_id[:12]} is the first commit: nothing was before it",
            hint="`soulgit memory remove` takes single memories away",
        )
    return found


_OTHER_WAYS = {
    "sear": "`soulgit unsear HOME TEXT` lets the memory change again",
    "unsear": "`soulgit sear HOME TEXT` sears it again",
}


def _own(home: Home) -> Iterator[Entry]:
    """Yield the commits of the branch's own line, newest first."""
    with home.reading() as repository:
        tip = repository.head().tip
        for commit_id in personas.first_parents(repository, tip) if tip else ():
            yield history.entry(repository.commit(commit_id))


def _taken_back(
    home: Home, snapshot: Snapshot, chosen: tuple[Entry, ...], choice: Choice | None
) -> dict[str, bytes | None]:
    """Return the files that change, by name, with all of the chosen commits taken back."""
    work = _Work(home.repository, snapshot, {entry.id for entry in chosen}, choice)
    for entry in chosen:
        work.take_back(home.repository.commit(entry.id))
    if work.in_the_way:
        raise ChangedSince(
            "some of what would be taken back was changed since",
            notes=tuple(dict.fromkeys(work.in_the_way)),
        )
    had = snapshot.working.contents
    return {name: data for name, data in work.files.items() if data != had.get(name)}


class _Work:
    """The files of a home under change: one commit after the other is taken back in them."""

    def __init__(
        self, repository: Repository, snapshot: Snapshot, ids: set[str], choice: Choice | None
    ) -> None:
        self.files: dict[str, bytes | None] = dict(snapshot.working.contents)
        self.in_the_way: list[str] = []
        self._repository = repository
        self._layout = snapshot.layout
        self._choice = choice
        tip = snapshot.head.tip or ""
        self._later = {
            target: _Later(repository, tip, target, ids, self._text(memory_name(target)))
            for target in TARGETS
        }

    def take_back(self, commit: Commit) -> None:
        for name, before, after in _changed(self._repository, commit):
            target = target_of(name)
            if target is None:
                self.files[name] = self._whole(name, before, after)
            else:
                self.files[name] = self._memory(commit, name, target, before, after)

    def _whole(self, name: str, before: bytes | None, after: bytes | None) -> bytes | None:
        """Return what a file that has no entries becomes."""
        now = self.files.get(name)
        if now in (before, after) or self._choice == "drop":
            return before
        if self._choice is None:
            self.in_the_way.append(name)
        return now

    def _memory(
        self, commit: Commit, name: str, target: Target, before: bytes | None, after: bytes | None
    ) -> bytes | None:
        now = self.files.get(name)
        trees = [self._repository.commit(one).tree for one in (commit.parents[0], commit.id)]
        was, became = (personas.tree_layout(self._repository, tree) for tree in trees)
        if now == after and was == became == self._layout:
            seared.refuse_change(now or b"", before or b"", self._layout)
            return before
        done = undoing.take_back(
            self._text(name),
            Text(entries.decode(before), was),
            Text(entries.decode(after), became),
            is_paired=partial(lineage.is_paired, commit.message),
            later=self._later[target].than(commit.id),
            choice=self._choice,
        )
        self.in_the_way += [f"{target}: {text}" for text in done.in_the_way]
        data = entries.encode(done.source)
        seared.refuse_change(now or b"", data, self._layout)
        return data if data or now is not None else None

    def _text(self, name: str) -> Text:
        return Text(entries.decode(self.files.get(name)), self._layout)


def _changed(
    repository: Repository, commit: Commit
) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Yield the bootstrap files that a commit changed, before and after; no persona file."""
    after = personas.readable_contents(repository, commit.tree)
    before = personas.readable_contents(repository, repository.commit(commit.parents[0]).tree)
    for name in {**before, **after}:
        if before.get(name) != after.get(name) and name not in PERSONA_NAMES:
            yield name, before.get(name), after.get(name)


class _Later:
    """What the entries of a memory file became in commits that are not taken back."""

    def __init__(
        self, repository: Repository, tip: str, target: Target, but: set[str], now: Text
    ) -> None:
        self._steps: Iterator[lineage.Step] = iter(())
        self._but = but
        self._became: dict[str, str] = {}
        if tip:  # what a person reworded and nobody has recorded yet
            recorded = lineage.version(repository, tip, target)
            by_hand = tracing.compare(recorded, tracing.read(now.source, now.layout))
            self._steps = lineage.walk(Past(repository), tip, {target: recorded})
            self._became = {old.text: new.text for old, new in by_hand.reworded}

    def than(self, commit_id: str) -> Mapping[str, str]:
        """Return, for each text that was reworded after a commit, what it is now."""
        for step in self._steps:
            if step.id == commit_id:
                break
            if step.id not in self._but:
                for old, new in step.change.reworded:
                    self._became[old.text] = self._became.get(new.text, new.text)
        return self._became


def _record(
    chosen: tuple[Entry, ...], files: Mapping[str, bytes | None], reason: str | None
) -> Record:
    told = [f"{entry.id} {record.one_line(entry.record.subject, None)}" for entry in chosen]
    targets = {target_of(name) for name in files}
    what = chosen[0].record.subject if len(chosen) == 1 else f"{len(chosen)} commits"
    is_redo = what.startswith("undo: ") and chosen[0].record.action == "undo"
    return Record(
        "undo",
        f"redo: {what.removeprefix('undo: ')}" if is_redo else f"undo: {what}",
        "\n".join(told),
        target=targets.pop() if len(targets) == 1 else None,
        origin="cli",
        reason=reason,
    )
