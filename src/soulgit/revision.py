"""revise(): the one way in which anything is ever written to a home.

An edit is a pure function of a snapshot. It is worked out first, then written in the
order that `landing` explains; when somebody else was faster, it is worked out again on
what is there now.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from soulgit import adoption, directories, disk, freeze, guards, landing, personas, reflogs
from soulgit.adoption import Entries, Hand, Step
from soulgit.core.actor import Identity
from soulgit.core.layout import Layout
from soulgit.core.record import Record, build
from soulgit.errors import (
    BranchRefused,
    BusyError,
    ConflictPending,
    EditRefused,
    InsideRepository,
    NotAHome,
    PersonaPending,
    SoulgitError,
)
from soulgit.gate import Gate, gate
from soulgit.git import Head, Repository, TreeEntry
from soulgit.git.staging import index_entries, unmerged
from soulgit.git.values import FILE_MODE
from soulgit.home import Home
from soulgit.landing import Ground, Plan, Raced
from soulgit.working import Working, look


@dataclass(frozen=True)
class Snapshot:
    """What an edit may depend on: the branch, its tip, and the bootstrap files on disk."""

    head: Head
    working: Working
    companion: Identity

    @property
    def layout(self) -> Layout:
        """The layout of the files on disk."""
        return self.working.layout

    def data(self, name: str) -> bytes:
        """Return a bootstrap file's bytes, none where it is absent."""
        return self.working.contents.get(name, b"")


@dataclass(frozen=True)
class Draft:
    """One commit to be made: its record, its author, and bootstrap files by name (None: gone)."""

    record: Record
    author: Identity
    contents: Mapping[str, bytes | None] = field(default_factory=dict)
    frees: str | None = None
    """The text of a seared entry that may change."""

    keeps_token: bool = False
    """Whether a doctor token may be committed as it is."""

    beneath: bool = False
    """Whether it builds on HEAD and leaves the disk, and what was changed by hand, as it is."""


_BEGIN_TRIES = 5

Edit = Callable[[Snapshot], Draft | None]


def revise(
    home: Home,
    edit: Edit | None = None,
    *,
    hand: Hand = Hand(),
    branch: str | None = None,
    while_frozen: bool = False,
) -> str | None:
    """Write what an edit makes of a home; return the new tip, None where nothing changed.

    What a person changed by hand is recorded first, in commits of its own; with no edit
    that is all. An edit that returns None, or raises, changes nothing at all. `branch` is
    the branch that the caller is bound to. Raises NotAHome for a directory that is none, and
    HomeFrozen while it is frozen, unless a person repairs it `while_frozen`.
    """
    deadline = time.monotonic() + home.wait_seconds
    with home.writing(while_frozen=while_frozen) as ground:
        if not while_frozen:
            freeze.refuse_frozen(home.repository)
        tip = _revise_until(home, ground, edit, hand, branch, deadline)
        if tip is not None:
            with contextlib.suppress(SoulgitError):  # the write is done; a later one tries again
                reflogs.trim(ground)
    if tip is not None:
        from soulgit import growth

        if growth.after_write(ground):
            with home.reading() as repository:  # so that no thread is just writing with it
                repository.release()
    return tip


def _revise_until(
    home: Home,
    ground: Ground,
    edit: Edit | None,
    hand: Hand,
    branch: str | None,
    deadline: float,
) -> str | None:
    while True:
        try:
            return _revise_once(home, ground, edit, hand, branch)
        except Raced:
            if time.monotonic() >= deadline:
                raise BusyError(f"{home.path} keeps changing while it is written to") from None


def revise_or_begin(home: Home, edit: Edit, *, branch: str | None = None) -> str | None:
    """Do as revise() does, and make a directory that is no home one at this first write.

    Raises InsideRepository for a directory in another repository's working tree.
    """
    for _ in range(_BEGIN_TRIES):
        if not home.is_home:
            _refuse_enclosed(home)
            working = home.look()
            if edit(Snapshot(home.head(), working, home.companion(working))) is None:
                return None
        try:
            with begun(home):
                return revise(home, edit, branch=branch)
        except NotAHome:
            home.forget_repository()  # another first write failed and took its repository away
    raise BusyError(f"{home.path} is begun and taken away again by another program")


@contextmanager
def begun(home: Home) -> Iterator[None]:
    """Give a directory a repository where it has none; take it away if the first write fails."""
    is_ours = not home.is_home and begin(home)
    try:
        yield
    except BaseException:
        if is_ours:
            _take_away(home)
        raise


def _take_away(home: Home) -> None:
    """Take an unused repository away, unless somebody else is at it; an empty one is harmless."""
    with contextlib.suppress(SoulgitError), home.writing(wait_seconds=0):
        if home.head().tip is None:
            shutil.rmtree(os.path.join(home.path, ".git"))
    home.forget_repository()


def _refuse_enclosed(home: Home) -> None:
    enclosing = Repository.enclosing(home.path)
    if enclosing is not None:
        raise InsideRepository(
            f"{home.path} lies inside another repository ({enclosing}) and has none of its own"
        )


def begin(home: Home) -> bool:
    """Give a directory a repository of its own, complete from the first moment.

    Returns False where another process was faster; its repository is as good.
    """
    draft = os.path.join(home.path, directories.draft_name())
    with disk.storage_faults(f"{home.path} cannot be made a home"):
        try:
            os.mkdir(draft)
            Repository.create(draft)
            if home.durable:
                disk.sync_tree(draft)
            os.rename(os.path.join(draft, ".git"), os.path.join(home.path, ".git"))
            if home.durable:
                disk.sync_directory(home.path)
        except OSError as fault:
            if fault.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            return False
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return True


@dataclass(frozen=True)
class _Work:
    """What one try writes: the commits to make, and the index entries before and after."""

    steps: list[Step]
    staged: Mapping[str, TreeEntry]
    entries: Entries

    def paths(self) -> set[str]:
        """Return the paths that some commit changes."""
        return {path for step in self.steps for path in step.entries}


def _revise_once(
    home: Home, ground: Ground, edit: Edit | None, hand: Hand, branch: str | None
) -> str | None:
    index = disk.read_raw("", home.index_path)
    head = writable_head(home, branch)
    working = home.look()
    state = gate(home.repository, head, working, adopts=hand.adopts)
    if edit and state == "closed":
        raise PersonaPending(f"the persona of {home.path} was edited, and nobody has settled it")
    draft = edit(Snapshot(head, working, home.companion(working))) if edit else None
    if edit and draft is None:
        return None
    head_tree = home.repository.commit(head.tip).tree if head.tip else None
    work = _work_out(home, head_tree, working, draft, hand, state)
    if not work.steps:
        return None
    adoption.refuse_filtered(home.repository, work.paths())
    refs = _commit(home, head, head_tree, work.steps)
    plan = _plan(home, working, draft, work, refs)

    def still() -> bool:
        looked = look(home.path, working.layout)
        return (home.repository.head(), looked) == (head, working) and is_staged_alike()

    def is_staged_alike() -> bool:
        if disk.unchanged("", home.index_path, index):
            return True  # as nearly always, and then it need not be taken apart again
        paths = work.staged.keys() | work.entries.keys()
        return index_entries(home.index_path, paths) == work.staged

    landing.land(ground, plan, still)
    return refs[head.ref or ""][1]


def _work_out(
    home: Home,
    head_tree: str | None,
    working: Working,
    draft: Draft | None,
    hand: Hand,
    state: Gate,
) -> _Work:
    """Work out the commits: what was changed by hand, and then what the draft makes of it."""
    repository = home.repository
    after = _contents_after(working, draft)
    if not hand.keeps_token and guards.has_token(after):
        before = personas.readable_contents(repository, head_tree) if head_tree else {}
        guards.refuse_token(before, after)
    staged = index_entries(home.index_path, adoption.role_paths(repository, working, head_tree))
    entries = dict.fromkeys(staged) | adoption.disk_entries(repository, working, head_tree)
    made = _draft_entries(repository, working, draft, entries, head_tree) if draft else {}
    own = [_draft_step(draft, made)] if draft else []
    if draft is not None and draft.beneath:
        return _Work(own, staged, _unstaged(repository, head_tree, staged, made))
    aside = _aside(repository, head_tree, working, staged, entries, state)
    steps = adoption.found_steps(repository, head_tree, entries, staged, hand, aside)
    adoption.write_blobs(repository, working, {path for step in steps for path in step.entries})
    if state == "settles itself" and not any("SOUL.md" in step.entries for step in steps):
        steps.append(adoption.settling_step(hand))
    kept = {path: entry for path, entry in entries.items() if path not in aside}
    return _Work(steps + own, staged, kept | made)


def _aside(
    repository: Repository,
    head_tree: str | None,
    working: Working,
    staged: Mapping[str, TreeEntry],
    entries: Entries,
    state: Gate,
) -> set[str]:
    """Return the paths of the persona that wait for a person: an edit, or one that is staged."""
    paths = adoption.persona_paths(working)
    if state == "closed":
        return paths
    head = {path: repository.entry(head_tree, path) if head_tree else None for path in paths}
    others = (staged.get(path) not in (None, entries.get(path), head[path]) for path in paths)
    return {path for path, is_other in zip(paths, others, strict=True) if is_other}


def _contents_after(working: Working, draft: Draft | None) -> dict[str, bytes]:
    """Return the bootstrap files as they will be, by name."""
    after: dict[str, bytes | None] = {**working.contents, **(draft.contents if draft else {})}
    return {name: data for name, data in after.items() if data is not None}


def _draft_step(draft: Draft, entries: Entries) -> Step:
    step = Step(draft.record, draft.author, entries)
    return replace(step, frees=draft.frees, keeps_token=draft.keeps_token)


def _plan(
    home: Home,
    working: Working,
    draft: Draft | None,
    work: _Work,
    refs: dict[str, tuple[str | None, str]],
) -> Plan:
    files = {} if draft is None or draft.beneath else _files(working, draft)
    for path in files:
        disk.refuse_write_protected(home.path, path)
    last = work.steps[-1]
    index = {path: (work.staged.get(path), entry) for path, entry in work.entries.items()}
    return Plan(refs, f"soulgit: {last.record.action}", last.author, files, index)


def put_aside(
    home: Home, name: str, before: bytes | None, data: bytes | None, *, while_frozen: bool = False
) -> None:
    """Save a persona file on disk without a commit, where it waits for a person's decision.

    Raises EditRefused where it is no longer as it was `before`.
    """
    with home.writing(while_frozen=while_frozen) as ground:
        if not while_frozen:
            freeze.refuse_frozen(home.repository)
        writable_head(home, None)
        working = home.look()
        if working.contents.get(name) != before:
            raise EditRefused(f"{name} was changed meanwhile, so it was not saved")
        path = working.real_path(name)
        disk.refuse_write_protected(home.path, path)
        landing.put_files(ground, {path: data})


def writable_head(home: Home, branch: str | None) -> Head:
    """Return HEAD; raises where a person must first bring the repository in order."""
    home.repository.refuse_unfinished()
    conflicts = unmerged(home.index_path)
    if conflicts:
        raise ConflictPending(f"unmerged in {home.path}: {', '.join(conflicts)}")
    head = home.repository.head()
    personas.refuse_branch(head.branch, home.path)
    personas.refuse_archived(home.repository, head.branch or "")
    if branch is not None and head.branch != branch:
        raise BranchRefused(
            f"{home.path} is on branch {head.branch}; this was opened on {branch}",
            hint=f"`git switch {branch}` goes back, or open the home again for {head.branch}",
        )
    return head


def _draft_entries(
    repository: Repository, working: Working, draft: Draft, present: Entries, head_tree: str | None
) -> Entries:
    entries: Entries = {}
    committed = personas.tree_layout(repository, head_tree) if head_tree else working.layout
    for name, data in draft.contents.items():
        path = committed.path(name) if draft.beneath else working.real_path(name)
        known = present.get(path)
        mode = known.mode if known else FILE_MODE
        entries[path] = None if data is None else TreeEntry(mode, repository.write_blob(data))
    return entries


def _unstaged(
    repository: Repository, head_tree: str | None, staged: Mapping[str, TreeEntry], made: Entries
) -> Entries:
    """Return those entries whose index is as HEAD has it, so that nothing staged is lost."""
    head = {path: repository.entry(head_tree, path) if head_tree else None for path in made}
    return {path: entry for path, entry in made.items() if staged.get(path) == head[path]}


def _files(working: Working, draft: Draft) -> dict[str, tuple[bytes | None, bytes | None]]:
    known = working.contents
    return {
        working.real_path(name): (known.get(name), data)
        for name, data in draft.contents.items()
        if data != known.get(name)
    }


def _commit(
    home: Home, head: Head, head_tree: str | None, steps: list[Step]
) -> dict[str, tuple[str | None, str]]:
    """Store a commit for each step and return the refs that shall move, the branch's last."""
    repository, when = home.repository, home.clock()
    personas.refuse_blocked(repository)
    is_first = not personas.is_written(repository, head.tip)
    tip, tree = head.tip, head_tree
    digest = personas.settled_digest(repository, head.tip) if head.tip else None
    refs: dict[str, tuple[str | None, str]] = {}
    waiting = list(steps)
    while waiting:
        step = waiting.pop(0)
        if tree is not None and not is_first and step.lines:
            step, *rest = adoption.split_persona(repository, tree, step)
            waiting = rest + waiting
        before, tree = tree, repository.write_tree(tree, step.entries)
        guards.check(repository, before, tree, step)
        step = adoption.retold(repository, before, tree, step)
        begins = is_first and tip == head.tip
        if begins or step.record.action == "edit":
            was, digest = digest, personas.tree_digest(repository, tree)
            begins = begins or digest != was
        # Any other commit carries on under the settled persona, and so settles no pending one.
        number = personas.next_number(repository, tip) if begins else None
        record = replace(step.record, persona=digest, number=number)
        parents = () if tip is None else (tip,)
        tip = repository.write_commit(tree, parents, build(record), step.author, when)
        if number is not None:
            refs[personas.ref_name(number)] = (None, tip)
    assert tip is not None and head.ref is not None
    return {**refs, head.ref: (head.tip, tip)}
