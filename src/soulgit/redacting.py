"""Redact: what must not exist is taken out of the whole history, of every home, and of the store.

The order: new objects, in packs of their own; a note that a redaction is under way, and the map
of ids; then home after home, each with its files, its index and its branch at once as any
write lands, the home that was named last, with it all other refs and the record; then what is
old goes; then everything that is left is read. Killed before the note, it has done nothing.
Killed after it, it is run again: the same text makes the same objects of the same history, so
what has moved is found as it shall be, and the rest follows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from soulgit import disk, growth, landing, purging, readiness, redactions, remaking
from soulgit import intent as intents
from soulgit.core.actor import Identity
from soulgit.core.redaction import Redactor
from soulgit.errors import (
    BugError,
    BusyError,
    InvalidText,
    RepositoryRefused,
    SoulgitError,
    TextNotFound,
)
from soulgit.git import Repository, TreeEntry
from soulgit.git.deleting import delete_refs, discard_dead_locks
from soulgit.git.freshpack import FreshPacks
from soulgit.git.indexfile import staged
from soulgit.git.objects import Item, changed_files, files, id_of, read
from soulgit.git.packfile import NotJoinable
from soulgit.git.staging import index_entries
from soulgit.git.values import LINK_MODE
from soulgit.home import AnyHome, Home, as_home
from soulgit.landing import Ground, Plan, Raced
from soulgit.places import homes_of
from soulgit.redactions import UnderWay
from soulgit.remaking import Remade

Progress = Callable[[str, int, int], None]
"""Told what is done, and how much of how much of it."""


@dataclass(frozen=True)
class Redacted:
    """What was redacted, or would be: commits made anew, refs that move and that go, files and
    messages that held the text, objects that nothing led to, signatures that are false now.

    `map` is the path of the file that maps old ids to new ones; `left` names what still holds
    the text and is not reached.
    """

    commits: int
    refs: tuple[str, ...]
    dropped: tuple[str, ...]
    files: tuple[str, ...]
    messages: int
    elsewhere: int
    signatures: int
    map: str | None
    left: tuple[str, ...]


def redact(
    home: AnyHome,
    text: str,
    by: Identity,
    *,
    reason: str | None = None,
    dry_run: bool = False,
    progress: Progress = lambda what, done, of: None,
) -> Redacted:
    """Take a text out of every commit, tag, note, file and message of a repository, for ever.

    Raises InvalidText for a text that cannot be told from others, TextNotFound where nothing
    holds it, ChangesUncommitted where a home has changes that no commit has.
    """
    home = as_home(home)
    redactor = Redactor(text)
    if reason is not None and redactor.finds(reason):
        raise InvalidText("the reason holds the text itself", hint="say why in other words")
    if dry_run:
        with home.reading():
            return _Work(home, redactor, progress).preview()
    since = time.time()
    with home.writing(while_frozen=True) as ground, growth.alone(ground) as (packer, known):
        work = _Work(home, redactor, progress)
        try:
            with disk.storage_faults(f"{home.path} cannot be redacted"):
                return work.carry_out(ground, packer, known, by, reason, since)
        except SoulgitError as fault:
            if redactions.under_way(ground.state_dir) is not None:
                fault.hint = f"it has begun, so run it again with the same text; {fault.hint}"
            raise


class _Work:
    """One redaction of a repository, from the look at its homes to the look at what is left."""

    def __init__(self, home: Home, redactor: Redactor, progress: Progress) -> None:
        self._home = home
        self._repository = home.repository
        self._redactor = redactor
        self._progress = progress
        readiness.refuse_unreachable(self._repository, redactor)
        self._places = list(homes_of(home))
        self._homes = [readiness.opened(home, place) for place in self._places]
        for there in self._homes:
            readiness.refuse_changes(there, redactor)
        self._git_dirs = purging.git_dirs(self._places, self._repository)

    def preview(self) -> Redacted:
        """Return what would be done."""
        remade = self._remade(id_of)
        self._refuse_nothing(remade)
        return self._told(remade, tuple(self._left(before=True)))

    def carry_out(
        self,
        ground: Ground,
        packer: Repository,
        known: growth.Known,
        by: Identity,
        reason: str | None,
        since: float,
    ) -> Redacted:
        """Do it, or go on with what was cut off; the caller holds the writer lock."""
        discard_dead_locks(self._repository, redactions.note_path(ground.state_dir))
        fresh = FreshPacks(growth.scratch(ground))
        remade = self._remade(fresh.add)
        begun = redactions.under_way(ground.state_dir)
        if begun is None:
            self._refuse_nothing(remade)
        is_recorded = begun is not None and begun.record == self._repository.ref(redactions.REF)
        ids, note = remade.commits, begun
        if begun is not None:
            ids = {**redactions.read_map(ground.state_dir, begun.map), **ids}
        record = None
        if remade.moves or not is_recorded:
            record = self._record(fresh, remade, len(ids), by, reason)
        try:
            made = fresh.finish()
        except NotJoinable as fault:
            raise RepositoryRefused(f"{self._home.path} cannot be redacted: {fault}") from fault
        growth.add(ground, packer, known, made)
        if record is not None:
            plans = self._plans(remade, record, by)
            name = begun.map if begun else redactions.map_name(self._home.clock())
            note = UnderWay(record, name)
            redactions.begin(ground.state_dir, note, durable=ground.durable)
            if ids:
                redactions.write_map(ground.state_dir, name, ids, durable=ground.durable)
            for there, plan in plans:
                self._land(there, plan)
        for there in self._homes:
            self._rename(there)
        self._purge(ground, packer, known, remade, made, since)
        path = os.path.join(ground.state_dir, note.map) if note is not None else None
        self._refuse_left()
        done = self._told(remade, tuple(self._left()), path if ids else None, len(ids))
        redactions.end(ground.state_dir)
        return done

    def _remade(self, put: Callable[[str, bytes], str]) -> Remade:
        def told(done: int, of: int) -> None:
            self._progress("redacting", done, of)

        return remaking.remake(self._repository, self._redactor, put, told)

    def _refuse_nothing(self, remade: Remade) -> None:
        is_anywhere = remade.moves or remade.elsewhere
        if is_anywhere or purging.remembered(self._git_dirs, self._redactor):
            return
        raise TextNotFound(
            f"nothing in the history of {self._home.path} holds this text",
            hint="it is found letter for letter: `soulgit search HOME TEXT --ever` helps",
            notes=tuple(f"not reached, but holds it: {path}" for path in self._left()),
        )

    # What moves

    def _record(
        self, fresh: FreshPacks, remade: Remade, count: int, by: Identity, reason: str | None
    ) -> str:
        """Add the commit that says that there was a redaction; it names nobody by the text."""
        previous = self._repository.ref(redactions.REF)
        if redactions.REF in remade.moves:
            previous = remade.moves[redactions.REF][1]
        text = self._redactor.text
        person = Identity(text(by.name), text(by.email))
        tree = fresh.add("tree", b"")
        when = self._home.clock()
        return fresh.add("commit", redactions.build(tree, previous, count, person, when, reason))

    def _plans(self, remade: Remade, record: str, by: Identity) -> list[tuple[Home, Plan]]:
        """Return what lands in each home, in order; the last one's has the other refs too."""
        moves: dict[str, tuple[str | None, str]] = dict(remade.moves)
        moves[redactions.REF] = (self._repository.ref(redactions.REF), record)
        plans = []
        for there in self._homes:
            ref = there.repository.head().ref or ""
            own = {ref: moves.pop(ref)} if ref in moves else {}
            plans.append((there, self._plan(there, remade.moves.get(ref), own, by)))
        last, plan = plans[-1]
        plans[-1] = (last, replace(plan, refs={**moves, **plan.refs}))
        return [(there, plan) for there, plan in plans if plan.refs or plan.index]

    def _plan(
        self,
        there: Home,
        move: tuple[str, str] | None,
        own: dict[str, tuple[str | None, str]],
        by: Identity,
    ) -> Plan:
        """Return how a home changes with its branch: the files and index entries that do."""
        plan = Plan(own, "soulgit: redact", Identity.clean(by.name, by.email))
        if move is None:
            return plan
        before, after = (there.repository.commit(commit_id).tree for commit_id in move)
        changed = list(changed_files(there.repository, before, after))
        wanted = {self._as_text(path): (old, new) for path, old, new in changed}
        present = index_entries(there.index_path, wanted)
        index = {path: (present.get(path), _entry(new)) for path, (_, new) in wanted.items()}
        contents = {}
        for path, (old, new) in wanted.items():
            if old is not None and new is not None and int(new.mode, 8) != LINK_MODE:
                disk.refuse_write_protected(there.path, path)
                had = disk.read_raw(there.path, path)
                has = None if had is None else self._redactor.data(had)
                contents[path] = (had, has)
        return replace(plan, files=contents, index=index)

    def _as_text(self, path: bytes) -> str:
        try:
            return path.decode("utf-8")
        except UnicodeDecodeError as fault:
            raise RepositoryRefused(
                f"the name of a file is no UTF-8: {self._redactor.name(path)!r}",
                hint="rename it with `git mv`, and commit",
            ) from fault

    def _land(self, there: Home, plan: Plan) -> None:
        head = there.repository.head()
        before = {path: old for path, (old, _) in plan.index.items()}

        def still() -> bool:
            now = index_entries(there.index_path, plan.index)
            return (
                there.repository.head() == head
                and all(now.get(path) == entry for path, entry in before.items())
                and all(disk.unchanged(there.path, p, old) for p, (old, _) in plan.files.items())
            )

        try:
            landing.land(there.ground(), plan, still)
        except Raced:
            raise BusyError(f"{there.path} was changed while it was redacted") from None

    def _rename(self, there: Home) -> None:
        """Give files and links whose names or targets hold the text those that their commit has."""
        tip = there.repository.head().tip
        if tip is None:
            return
        tree = Item(b"40000", b"", there.repository.commit(tip).tree)
        tracked = dict(files(there.repository, tree, b""))
        root = os.fsencode(there.path)
        for path in list(readiness.named_for(there.path, self._redactor)):
            new = self._redactor.name(path)
            if new in tracked and not os.path.lexists(os.path.join(root, new)):
                self._rename_one(there, path, new)
        for path, item in tracked.items():
            full = os.path.join(root, path)
            if int(item.mode, 8) == LINK_MODE and os.path.islink(full):
                wanted = read(there.repository, item.id)[1]
                if os.readlink(full) != wanted:
                    disk.relink(os.fsdecode(full), os.fsdecode(wanted), durable=there.durable)

    def _rename_one(self, there: Home, old: bytes, new: bytes) -> None:
        root = os.fsencode(there.path)
        source, target = os.path.join(root, old), os.path.join(root, new)
        if not os.path.islink(source):
            path = os.fsdecode(old)
            data = disk.read_raw(there.path, path) or b""
            scratch = os.path.join(there.ground().state_dir, "scratch", "renamed")
            disk.replace(
                there.path, path, self._redactor.data(data), scratch, durable=there.durable
            )
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)
        directory = os.path.dirname(source)
        while directory != root and not os.listdir(directory):
            os.rmdir(directory)
            directory = os.path.dirname(directory)
        if there.durable:
            disk.sync_directory(os.fsdecode(os.path.dirname(target)))
            disk.sync_directory(os.fsdecode(directory))

    # What goes, and what is left

    def _purge(
        self,
        ground: Ground,
        packer: Repository,
        known: growth.Known,
        remade: Remade,
        made: list[str],
        since: float,
    ) -> None:
        note = redactions.note_path(ground.state_dir)
        wait, durable = ground.wait_seconds, ground.durable
        landing.sweep(ground)  # old files that a landing kept, and could not take away
        delete_refs(self._repository, remade.drops, note, wait, durable=durable)
        for there in self._homes:
            purging.strip_index(there.ground())
        purging.drop_remembered(self._git_dirs, self._redactor, durable=ground.durable)
        purging.Purge(ground, packer, known, since).objects(self._redactor, made)
        # A cleared intent still holds ids from which a short text could be guessed.
        disk.write(intents.path(ground.state_dir), b"-\n", durable=ground.durable)

    def _refuse_left(self) -> None:
        """Raise BugError where the text is still somewhere from where it should be gone."""

        def told(done: int, of: int) -> None:
            self._progress("verifying", done, of)

        repository = Repository.open(self._home.path, durable=self._home.durable)
        found = list(purging.in_store(repository, self._redactor, told))
        found += [
            f"the index of {there.path}"
            for there in self._homes
            if purging.in_index(there.index_path, self._redactor)
        ]
        if found:
            raise BugError(
                f"the text is still in {found[0]}",
                hint="run it again; if that does not help, please report it",
                notes=tuple(found[1:]),
            )

    def _left(self, *, before: bool = False) -> Iterator[str]:
        """Yield what holds the text and is not reached: other files, git's configuration.

        What will be reached is left out where it is told `before`.
        """
        for path in purging.in_git_dirs(self._git_dirs, self._redactor, but_remembered=before):
            yield path
        for there in self._homes:
            tracked = {entry.path for entry in staged(there.index_path)} if before else set()
            for path in purging.in_files(there.path, self._redactor):
                if os.fsencode(path) not in tracked:
                    yield self._redactor.text(os.path.join(there.path, path))

    def _told(
        self,
        remade: Remade,
        left: tuple[str, ...],
        path: str | None = None,
        count: int | None = None,
    ) -> Redacted:
        return Redacted(
            commits=len(remade.commits) if count is None else count,
            refs=tuple(remade.moves),
            dropped=remade.drops,
            files=tuple(remade.tally.files),
            messages=remade.tally.messages,
            elsewhere=remade.elsewhere,
            signatures=remade.tally.signatures,
            map=path,
            left=left,
        )


def _entry(item: Item | None) -> TreeEntry | None:
    return None if item is None else TreeEntry(int(item.mode, 8), item.id)
