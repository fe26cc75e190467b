"""How a write lands, and how one that was cut off is ended.

The order: the objects and the intent record; a host's own locks, `index.lock`, those of the
refs, and a last look that nothing has moved; the files, each whole, by rename; the new index
over the old; the refs, the branch's tip among them, last.

Whatever takes a place has its bytes on the disk by then, and the intent is there before the
locks. The names, of objects, files and index, follow together before the first ref moves: to
bring each there alone would be one wait for the device after another, and what a power cut
leaves of them, a kill could have left.

Why this order. An action is acknowledged when its ref has moved, so the ref comes last:
with it first, a kill before the file is written would leave an acknowledged memory out of
the file, and the next `git commit -a` would take it out of history too. The index comes
before the ref and after the file, so that git never sees a tip whose index disagrees with
it while `index.lock` is free.

What a kill can leave, how it is known, and how `heal` ends it, always under the writer
lock, whose last holder is dead if its intent was not cleared:

- objects only, or an intent cut in writing: nothing refers to them, nothing to do;
- an intent, all refs old, files as before: the locks it names go, nothing else happened;
- an intent, all refs old, each file already new: the action is carried on to its end;
- an intent, all refs old, a file that is neither: a person has edited since. What is on
  disk stays, and is captured as theirs;
- an intent, all refs old, some files new and the others as before: likewise carried on; where
  a person has edited one of the others since, the new ones go back to what they were;
- an intent, all refs old, a file that is a mount point, and so was written in place, half new
  and half old: likewise;
- an intent, all refs old, directories made for it: they go, being nothing without the refs;
- an intent, some refs new: the decision was taken, and the other refs follow;
- an intent, all refs new: only its clearing was missing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from soulgit import directories, disk, lockfile
from soulgit import intent as intents
from soulgit.core.actor import UNKNOWN, Identity
from soulgit.errors import RefusedError, RepositoryRefused, SoulgitError
from soulgit.git import Repository, TreeEntry
from soulgit.git.locking import RefLocks, locked_refs
from soulgit.git.staging import index_entries, prepare_index
from soulgit.intent import Intent

_LOCK_LIFETIME_SECONDS = 300
"""A lock made later than this after an intent was not made by that intent's writer."""


Changes = dict[str, tuple[TreeEntry | None, TreeEntry | None]]
"""Index entries before and after, by path; None is an absent one."""


Drafts = Mapping[str, str | None]
"""The drafts of files by the files' paths; None: the file is to go."""


class Raced(Exception):
    """Somebody else moved the tip, the index or a file first; look again and try again."""


@dataclass(frozen=True)
class Plan:
    """All that one write changes: refs, files and index entries, old and new; the reflog line.

    File contents are bytes, None for an absent file, by path within the home.
    """

    refs: dict[str, tuple[str | None, str]]
    message: str
    actor: Identity
    files: dict[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    index: Changes = field(default_factory=dict)
    head: tuple[str | None, str] | None = None
    """The refs that HEAD names before and after, where it moves to another branch."""

    made: tuple[str, ...] = ()
    """Directories that `make` makes before the refs move, and that go if they do not."""

    make: Callable[[], None] | None = None

    @property
    def new_head(self) -> str | None:
        """The ref that HEAD is to name, None where it stays."""
        return self.head[1] if self.head else None


@dataclass(frozen=True)
class Ground:
    """Where a plan lands: a home's root, its repository, and how carefully."""

    root: str
    repository: Repository
    index_path: str
    wait_seconds: float
    durable: bool

    @cached_property
    def state_dir(self) -> str:
        """Soulgit's own directory in the common git directory."""
        return os.path.join(self.repository.common_dir, "soulgit")

    def sync(self, paths: Iterable[str]) -> None:
        """Bring files and directories to the disk together, where the home is durable."""
        if self.durable:
            with disk.storage_faults(f"{self.root} cannot be synced"):
                disk.sync_all(paths)


def land(ground: Ground, plan: Plan, still: Callable[[], bool]) -> None:
    """Carry out a plan at once or not at all; the caller holds the writer lock.

    `still` says, under all locks, whether files and index are as the plan was made for.
    Raises Raced where they or a ref are not. When anything fails before the refs moved,
    files and index are as before.
    """
    with disk.storage_faults(f"{ground.root} cannot be written"):
        _land(ground, plan, still)


def _land(ground: Ground, plan: Plan, still: Callable[[], bool]) -> None:
    first = intents.write(ground.state_dir, intent_for(ground, plan))
    has_landed = False
    try:
        with _drafted(ground, {path: new for path, (_, new) in plan.files.items()}) as drafts:
            objects = ground.repository.incoming.draft()
            ground.sync([*first, *filter(None, drafts.values()), *objects])
            names = ground.repository.incoming.place()
            with _locks(ground, plan) as refs:
                if not still() or not _refs_stand(ground.repository, plan):
                    raise Raced
                with _taken_back_on_failure(ground, plan, refs):
                    _carry_out(ground, plan, drafts, names, refs)
                has_landed = True
    except SoulgitError:
        if not has_landed:
            _clear_unless_half_decided(ground, plan)
            raise
        # A lock could not be taken away; the intent names it, and the next writer does it.
    except BaseException:
        _clear_unless_half_decided(ground, plan)
        raise
    with contextlib.suppress(SoulgitError):  # all is done; the next writer clears it
        intents.clear(ground.state_dir)


def _carry_out(
    ground: Ground, plan: Plan, drafts: Drafts, names: list[str], refs: RefLocks
) -> None:
    """Do under the locks what others see; `names` are directories that are to be synced."""
    if plan.make is not None:
        plan.make()
    index = _draft_index(ground, plan.index)
    ground.sync([*index, *refs.paths()])
    names += place_files(ground, drafts)
    names += place_index(ground, index)
    names += refs.log(plan.actor, plan.message)
    ground.sync(names)
    ground.sync(refs.move())


def _clear_unless_half_decided(ground: Ground, plan: Plan) -> None:
    if not _is_half_decided(ground.repository, plan):
        with contextlib.suppress(SoulgitError):
            intents.clear(ground.state_dir)


def heal(ground: Ground) -> bool:
    """End what a dead writer left half done; the caller holds the writer lock.

    Returns whether there was anything. The dead writer's home may be another one of the
    same repository.
    """
    sweep(ground)
    intent = intents.read(ground.state_dir)
    if intent is None:
        return False
    theirs = _ground_of(ground, intent)
    if theirs is None:  # their home is gone, and with it its files, index and HEAD
        theirs, intent = ground, replace(intent, files={}, index={}, head=None)
    _remove_dead_locks(theirs, intent)
    for path in intent.files:
        disk.discard_beside(os.path.join(theirs.root, path))
    states = {path: _file_state(theirs, path, *ids) for path, ids in intent.files.items()}
    found = set(states.values())
    is_begun = bool(found & {"new", "torn"})
    if any(_moved(theirs.repository, intent)) or (is_begun and "other" not in found):
        waiting = [path for path, state in states.items() if state in ("old", "torn")]
        _carry_on(theirs, intent, waiting)
    else:  # nothing of it, or a person has edited another file since: back to before
        begun = [path for path, state in states.items() if state in ("new", "torn")]
        _rewrite(theirs, {path: intent.files[path][0] for path in begun})
        _take_back_index(theirs, intent)
        for path in intent.made:
            directories.discard_tree(path)
    intents.clear(ground.state_dir)
    return True


def sweep(ground: Ground) -> None:
    """Take away the temporary files of dead writers, in the git directory and in the home.

    Whoever holds the writer lock then has an empty directory for its own.
    """
    scratch = os.path.join(ground.state_dir, "scratch")
    directories.make_directory(scratch)
    leftover = [name for name in disk.names(ground.root) if directories.is_dead_draft(name)]
    for directory, found in ((scratch, disk.names(scratch)), (ground.root, leftover)):
        for name in found:
            directories.discard_tree(os.path.join(directory, name))


def _ground_of(ground: Ground, intent: Intent) -> Ground | None:
    """Return where a dead writer's write was to land: this home, or one linked to it, if any."""
    common = ground.repository.common_dir
    git_dir = os.path.normpath(os.path.join(common, intent.git_dir))
    index_path = os.path.join(git_dir, "index")
    if os.path.normpath(ground.repository.git_dir) == git_dir:
        return replace(ground, index_path=index_path)
    try:
        is_main = git_dir == os.path.normpath(common)
        place = common if is_main else disk.read_line(os.path.join(git_dir, "gitdir"))
        root = os.path.dirname(place)
        repository = Repository.open(root, durable=ground.durable)
    except SoulgitError:
        return None
    return replace(ground, root=root, index_path=index_path, repository=repository)


def _take_back_index(ground: Ground, intent: Intent) -> None:
    """Give index entries that a dead writer put in place the values they had before."""
    present = index_entries(ground.index_path, intent.index)
    changed = {
        path: (new, old)
        for path, (old, new) in intent.index.items()
        if old != new and present.get(path) == new
    }
    if changed:
        plan = Plan({}, intent.message, UNKNOWN, index=changed)
        with _locks(ground, plan):
            _put_index(ground, plan.index)


def intent_for(ground: Ground, plan: Plan) -> Intent:
    """Return what a plan is about to do, as its intent record says it."""

    def blob_id(data: bytes | None) -> str | None:
        return None if data is None else ground.repository.hash_blob(data)

    return Intent(
        token=f"{os.getpid()}-{time.time_ns()}",
        pid=os.getpid(),
        boot=intents.boot_id(),
        git_dir=os.path.relpath(ground.repository.git_dir, ground.repository.common_dir),
        refs=plan.refs,
        files={path: (blob_id(old), blob_id(new)) for path, (old, new) in plan.files.items()},
        index=plan.index,
        message=plan.message,
        head=plan.head,
        made=plan.made,
    )


@contextlib.contextmanager
def _locks(ground: Ground, plan: Plan) -> Iterator[RefLocks]:
    wait = ground.wait_seconds
    with (
        lockfile.beside((os.path.join(ground.root, path) for path in plan.files), wait),
        lockfile.exclusive(ground.index_path + ".lock", intents.path(ground.state_dir), wait),
        locked_refs(ground.repository, plan.refs, plan.new_head, wait) as refs,
    ):
        yield refs


def _refs_stand(repository: Repository, plan: Plan) -> bool:
    has_head = plan.head is None or repository.head_target() == plan.head[0]
    return has_head and all(repository.ref(name) == old for name, (old, _) in plan.refs.items())


def _moved(repository: Repository, plan: Plan | Intent) -> list[bool]:
    """Return of each ref, and of HEAD where it is to move, whether it has."""
    moved = [repository.ref(name) == new for name, (_, new) in plan.refs.items()]
    head = [repository.head_target() == plan.head[1]] if plan.head else []
    return moved + head


def _is_half_decided(repository: Repository, plan: Plan) -> bool:
    """Whether some refs moved and others did not, which the next writer carries on."""
    moved = _moved(repository, plan)
    return any(moved) and not all(moved)


@contextlib.contextmanager
def _taken_back_on_failure(ground: Ground, plan: Plan, refs: RefLocks) -> Iterator[None]:
    """Keep the old files and index by a second link, which needs no room to put back."""
    kept = [
        disk.keep(os.path.join(ground.root, path), _scratch(ground, f"kept-{number}"))
        for number, path in enumerate(plan.files)
    ]
    kept.append(disk.keep(ground.index_path, _scratch(ground, "kept-index")))
    try:
        yield
    except BaseException:
        if all(_moved(ground.repository, plan)):
            return  # the refs are there; only what comes after has failed
        refs.unlog()
        _take_back_refs(ground.repository, plan)
        for old in kept:
            old.put_back()
        for path in plan.made:
            directories.discard_tree(path)
        raise
    finally:
        with contextlib.suppress(SoulgitError):  # the next writer sweeps them away
            for old in kept:
                old.forget()


def _take_back_refs(repository: Repository, plan: Plan) -> None:
    """Give back what moved before the branch could; raises where that fails too.

    Then the intent stays, and the next writer carries the decision on.
    """
    for name, (old, new) in plan.refs.items():
        if repository.ref(name) == new and old is None:
            repository.delete_ref(name)
        elif repository.ref(name) == new and old is not None:
            repository.set_ref(name, old, f"{plan.message}, taken back")


def put_files(ground: Ground, files: Mapping[str, bytes | None]) -> None:
    """Put files in place whole, or take them away (None); the caller holds the writer lock."""
    with _drafted(ground, files) as drafts:
        ground.sync(filter(None, drafts.values()))
        ground.sync(place_files(ground, drafts))


@contextlib.contextmanager
def _drafted(ground: Ground, files: Mapping[str, bytes | None]) -> Iterator[Drafts]:
    """Write what files are to become into drafts; those that find no place are taken away."""
    drafts = {
        path: None if data is None else _scratch(ground, f"new-{number}")
        for number, (path, data) in enumerate(files.items())
    }
    try:
        for path, draft in drafts.items():
            if draft is not None:
                disk.draft(ground.root, path, files[path] or b"", draft)
        yield drafts
    except BaseException:
        with contextlib.suppress(SoulgitError):  # the next writer sweeps them away
            for draft in filter(None, drafts.values()):
                disk.discard(draft)
        raise


def place_files(ground: Ground, drafts: Drafts) -> list[str]:
    """Let drafts that are on the disk take the files' places, None: the file goes.

    Returns the directories to sync.
    """
    for path, draft in drafts.items():
        if draft is None:
            disk.remove(ground.root, path)
        else:
            disk.place(ground.root, path, draft, durable=ground.durable)
    within = {part for path in drafts for part in directories.directories_of(path)}
    return [os.path.join(ground.root, directory) for directory in sorted(within)]


def _put_index(ground: Ground, changes: Changes) -> None:
    index = _draft_index(ground, changes)
    ground.sync(index)
    ground.sync(place_index(ground, index))


def _draft_index(ground: Ground, changes: Changes) -> list[str]:
    """Write the new index into a draft; none where nothing in it changes."""
    draft = _scratch(ground, "index")
    wanted = {path: new for path, (_, new) in changes.items()}
    if prepare_index(ground.index_path, wanted, draft):
        return [draft]
    disk.discard(draft)
    return []


def place_index(ground: Ground, drafts: list[str]) -> list[str]:
    """Let a draft that is on the disk take the index's place; return the directory to sync."""
    for draft in drafts:
        with disk.storage_faults(f"{ground.index_path} cannot be written"):
            os.replace(draft, ground.index_path)
    return [os.path.dirname(ground.index_path)] if drafts else []


def _scratch(ground: Ground, name: str) -> str:
    """Return a path for a temporary file; under the writer lock it is nobody else's."""
    return os.path.join(ground.state_dir, "scratch", name)


def _remove_dead_locks(ground: Ground, intent: Intent) -> None:
    """Remove a dead writer's locks: its own by their content, libgit2's by content and age."""
    index_lock = ground.index_path + ".lock"
    if disk.have_same_content(index_lock, intents.path(ground.state_dir)):
        disk.discard(index_lock)
    began = intents.written_at(ground.state_dir)
    held = {name: new for name, (_, new) in intent.refs.items()}
    for name, new in {
        **held,
        **({"HEAD": f"ref: {intent.head[1]}"} if intent.head else {}),
    }.items():
        lock = ground.repository.lock_path(name)
        made = disk.modified_at(lock)
        is_of_that_time = made is not None and began - 1 <= made <= began + _LOCK_LIFETIME_SECONDS
        # A lock is empty until it holds the new id, for an instant.
        is_theirs = any(disk.unchanged("", lock, held) for held in (b"", f"{new}\n".encode()))
        if is_of_that_time and is_theirs:
            disk.discard(lock)


def _file_state(ground: Ground, path: str, old: str | None, new: str | None) -> str:
    """Return whether a file is as it was to become, as it was before, torn, or another."""
    data = disk.read_raw(ground.root, path)
    present = None if data is None else Repository.hash_blob(data)
    if present == new:
        return "new"
    if present == old:
        return "old"
    is_in_place = disk.is_mount_point(os.path.join(ground.root, path))
    return "torn" if is_in_place and _is_torn(ground, data or b"", old, new) else "other"


def _is_torn(ground: Ground, data: bytes, old: str | None, new: str | None) -> bool:
    """Whether bytes begin as the new file and end as the old one, as a cut write leaves them."""
    if new is None:
        return False
    before = b"" if old is None else ground.repository.blob(old)
    after = ground.repository.blob(new)
    pairs = enumerate(zip(data, after, strict=False))
    shared = next((at for at, (one, other) in pairs if one != other), min(len(data), len(after)))
    return data[shared:] == before[shared:]


def _rewrite(ground: Ground, files: dict[str, str | None]) -> None:
    """Give files the bytes of blobs (None: take them away)."""
    blob = ground.repository.blob
    put_files(ground, {path: None if name is None else blob(name) for path, name in files.items()})


def _waits(repository: Repository, head: tuple[str | None, str] | None) -> bool:
    """Whether HEAD has still to move."""
    return head is not None and head[0] != head[1] and repository.head_target() == head[0]


def _carry_on(ground: Ground, intent: Intent, waiting_files: list[str]) -> None:
    """Do what is left of a dead writer's work, in the same order."""
    repository = ground.repository
    now = {name: repository.ref(name) for name in intent.refs}
    present = index_entries(ground.index_path, intent.index)
    plan = Plan(
        refs={name: ids for name, ids in intent.refs.items() if now[name] == ids[0] != ids[1]},
        message=intent.message,
        actor=UNKNOWN,
        index={
            path: (old, new)
            for path, (old, new) in intent.index.items()
            if present.get(path) == old and old != new
        },
        head=intent.head if _waits(repository, intent.head) else None,
    )
    if not (plan.refs or plan.index or plan.head or waiting_files):
        return
    try:
        with _locks(ground, plan) as refs:
            _rewrite(ground, {path: intent.files[path][1] for path in waiting_files})
            _put_index(ground, plan.index)
            ground.sync([*refs.paths(), *refs.log(plan.actor, plan.message)])
            ground.sync(refs.move())
    except RefusedError as fault:
        raise RepositoryRefused(
            f"an earlier write is half done and cannot go on: {fault}",
            hint="make room for the ref that it names; the next command then ends the write",
        ) from fault
