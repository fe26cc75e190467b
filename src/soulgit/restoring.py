"""Restore: the home, a file or one memory as it was, in a new commit; history stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soulgit import personas, revisions
from soulgit.adoption import Hand
from soulgit.core import composition, entries, seared, undoing
from soulgit.core.actor import Identity
from soulgit.core.layout import BOOTSTRAP_ORDER, PERSONA_NAMES, TARGETS, Layout, Target, memory_name
from soulgit.core.record import Record
from soulgit.core.undoing import Text
from soulgit.errors import InvalidArgument, PersonaPending, TextAmbiguous, TextNotFound
from soulgit.gate import waits
from soulgit.git import Repository
from soulgit.home import AnyHome, Home, as_home
from soulgit.revision import Draft, Snapshot, put_aside, revise

_SHOWN = 5


@dataclass(frozen=True)
class What:
    """What is brought back: a memory file, the one memory that holds a text, a file, or all."""

    target: Target | None = None
    entry: str | None = None
    file: str | None = None


@dataclass(frozen=True)
class Restored:
    """What was brought back: the new tip (None: no commit), the files by name as they become
    (None: gone), and those of the persona, which wait on disk for a decision.
    """

    revision: str | None
    files: Mapping[str, bytes | None]
    waiting: tuple[str, ...]


def restore(
    home: AnyHome,
    revision: str,
    by: Identity,
    what: What = What(),
    *,
    reason: str | None = None,
    dry_run: bool = False,
) -> Restored:
    """Bring back what a revision has; what a person has not committed is captured first.

    A persona that differs is written to the disk and waits for `settle`, like any edit of it.
    Raises TextNotFound for a memory that the revision does not have, SearedRefused where a seared
    memory would change.
    """
    home = as_home(home)
    commit_id = revisions.resolve(home, revision)
    files: dict[str, bytes | None] = {}

    def edit(snapshot: Snapshot) -> Draft | None:
        nonlocal files
        files = _differing(home, commit_id, snapshot, what)
        committed = {name: data for name, data in files.items() if name not in PERSONA_NAMES}
        if dry_run or not committed:
            return None
        return Draft(_record(commit_id, what, committed, reason), by, committed)

    tip = None
    if what.file in PERSONA_NAMES:  # no commit is made, and so no gate asks
        _refuse_pending(home)
        working = home.look()
        edit(Snapshot(home.head(), working, home.companion(working)))
    else:
        tip = revise(home, edit, hand=Hand(by), while_frozen=True)
    waiting = tuple(name for name in files if name in PERSONA_NAMES)
    if not dry_run:
        _put_aside(home, {name: files[name] for name in waiting})
    return Restored(tip, files, waiting)


def _differing(
    home: Home, commit_id: str, snapshot: Snapshot, what: What
) -> dict[str, bytes | None]:
    """Return the files that would change, by name."""
    repository = home.repository
    had = snapshot.working.contents
    if what.entry is not None:
        return _with_entry(repository, commit_id, snapshot, what)
    tree = repository.commit(commit_id).tree
    was = _in_layout(
        personas.contents(repository, tree),
        personas.tree_layout(repository, tree),
        snapshot.layout,
    )
    names = [name for name in _names(what) if was.get(name) != had.get(name)]
    for target in TARGETS:
        name = memory_name(target)
        if name in names:
            seared.refuse_change(had.get(name, b""), was.get(name, b""), snapshot.layout)
    return {name: was.get(name) for name in names}


def _names(what: What) -> tuple[str, ...]:
    if what.file is not None and what.file not in BOOTSTRAP_ORDER:
        raise InvalidArgument(
            f"{what.file} is no bootstrap file", hint=f"one of {', '.join(BOOTSTRAP_ORDER)}"
        )
    if what.file is not None:
        return (what.file,)
    return BOOTSTRAP_ORDER if what.target is None else (memory_name(what.target),)


def _with_entry(
    repository: Repository, commit_id: str, snapshot: Snapshot, what: What
) -> dict[str, bytes | None]:
    tree = repository.commit(commit_id).tree
    layout = personas.tree_layout(repository, tree)
    was = personas.contents(repository, tree)
    wanted = (what.entry or "").strip()
    found = [
        (target, entry.plain)
        for target in (TARGETS if what.target is None else (what.target,))
        for entry in entries.split(composition.decode(was.get(memory_name(target), b"")), layout)
        if wanted and wanted in entry.plain
    ]
    found = [one for one in found if one[1] == wanted] or found
    if not found:
        raise TextNotFound(f"no memory at {commit_id[:12]} holds this: {what.entry}", notes=())
    if len(set(found)) > 1:
        shown = tuple(text for _, text in found[:_SHOWN])
        raise TextAmbiguous(f"{len(found)} memories there hold this: {what.entry}", notes=shown)
    target, text = found[0]
    name = memory_name(target)
    origin, now = (entries.decode(data) for data in (was.get(name), snapshot.data(name)))
    brought = undoing.bring(Text(now, snapshot.layout), Text(origin, layout), text)
    data = entries.encode(brought)
    return {} if data == snapshot.data(name) else {name: data}


def _in_layout(files: dict[str, bytes], was: Layout, now: Layout) -> dict[str, bytes]:
    """Return bootstrap files whose memory is written in another layout, where that is another."""
    if was == now:
        return files
    names = [name for name in map(memory_name, TARGETS) if name in files]
    texts = {name: entries.split(entries.decode(files[name]), was) for name in names}
    return files | {
        name: entries.encode(undoing.written([entry.text for entry in known], now))
        for name, known in texts.items()
    }


def _refuse_pending(home: Home) -> None:
    """Raise PersonaPending where an edit that nobody has settled would be written over."""
    if waits(home):
        raise PersonaPending(f"the persona of {home.path} was edited, and nobody has settled it")


def _put_aside(home: Home, files: Mapping[str, bytes | None]) -> None:
    for name, data in files.items():
        before = home.look().contents.get(name)
        put_aside(home, name, before, data, while_frozen=True)


def _record(
    commit_id: str, what: What, files: Mapping[str, bytes | None], reason: str | None
) -> Record:
    names = ", ".join(files)
    told = f"a memory of {names}" if what.entry is not None else names
    return Record(
        "restore",
        f"restore: {told} from {commit_id[:12]}",
        f"from {commit_id}" + (f"\n{what.entry}" if what.entry is not None else ""),
        target=next((t for t in TARGETS if list(files) == [memory_name(t)]), None),
        origin="cli",
        reason=reason,
    )
