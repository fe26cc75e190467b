"""Verify: whether a home's history holds together, told commit by commit where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from soulgit import memory, personas, redactions, revisions
from soulgit.core import composition, entries, record, seared
from soulgit.core.layout import PERSONA_NAMES, TARGETS, Layout, Target, memory_name
from soulgit.core.record import Record, subject_for
from soulgit.errors import SoulgitError
from soulgit.git import Commit, Repository, packs
from soulgit.git.values import BRANCHES
from soulgit.history import Side
from soulgit.home import AnyHome, as_home
from soulgit.memory import Write

_EDITS = ("add", "replace", "remove")
_MARKS = ("sear", "unsear")
TOLD_OF_MEMORY = (*_EDITS, *_MARKS)
"""Actions whose record says all that they did."""

_SETTLES = ("init", "edit", "continue", "update", "fork", "capture", "undo", "restore", "redact")
"""Actions of a commit that may be the first under a persona; the last four where no memory is."""

_LEAVES_PERSONA = (*TOLD_OF_MEMORY, "reread", "undo", "redact")


@dataclass(frozen=True)
class Fault:
    """One thing that does not hold: the commit (None: no single one), its kind, a sentence."""

    id: str | None
    kind: str
    message: str


Progress = Callable[[int, int], None]
"""Told how many commits of how many were looked at."""


def verify(home: AnyHome, progress: Progress = lambda done, of: None) -> list[Fault]:
    """Return all that does not hold in the history of every branch.

    Objects are intact; each commit of soulgit's did what its record says and nothing else;
    digests agree with the files; a persona changed only where it may; seared memories are as
    they were when they were seared; no archived branch has moved.
    """
    home = as_home(home)
    with home.reading() as repository:
        faults = [*_damaged_packs(repository), *_moved_archives(repository)]
        commits = list(_commits(repository, faults))
        for done, commit in enumerate(commits, 1):
            faults += _of_commit(repository, commit)
            progress(done, len(commits))
        return faults


def contains(home: AnyHome, commit_id: str) -> bool:
    """Whether a commit, by its full id or the beginning of it, is in the history of HEAD.

    One that was made anew is looked for by its id of now, as long as that is remembered.
    """
    home = as_home(home)
    tip = revisions.resolve(home, "HEAD")
    if not _is_id(commit_id):
        return False
    with home.reading() as repository:
        found = repository.resolve(commit_id)
        if found is None:
            found = redactions.now_called(home.state_dir, commit_id)
        return found is not None and repository.is_ancestor(found, tip)


def _is_id(text: str) -> bool:
    return len(text) >= 7 and all(sign in "0123456789abcdef" for sign in text.lower())


def _commits(repository: Repository, faults: list[Fault]) -> Iterator[Commit]:
    """Yield the commits of every branch, each once; one that cannot be read is a fault."""
    waiting = [tip for name in repository.refs(BRANCHES) if (tip := repository.ref(name))]
    seen = set(waiting)
    while waiting:
        commit_id = waiting.pop()
        try:
            commit = repository.commit(commit_id)
        except SoulgitError as error:
            if not repository.is_shallow:
                faults.append(Fault(commit_id, "object", error.message))
            continue
        yield commit
        waiting += [parent for parent in commit.parents if parent not in seen]
        seen.update(commit.parents)


def _of_commit(repository: Repository, commit: Commit) -> Iterator[Fault]:
    try:
        repository.read_all(commit.id)
        told = record.parse(commit.message)
        for kind, message in _kinds(repository, commit, told):
            yield Fault(commit.id, kind, message)
    except SoulgitError as error:
        yield Fault(commit.id, "object", error.message)


def _kinds(repository: Repository, commit: Commit, told: Record) -> Iterator[tuple[str, str]]:
    """Yield kind and sentence of all that does not hold of one commit."""
    parent = _parent(repository, commit)
    yield from _of_seared(repository, parent, commit, told)
    if told.action is None:
        return
    if not repository.is_made_at_once(commit.id):
        yield "amended", "author and committer differ, so it was made anew by hand"
    yield from _of_digest(repository, parent, commit, told)
    if parent is not None and told.action in _LEAVES_PERSONA:
        yield from _of_persona(repository, parent, commit, told.action)
    if told.action in TOLD_OF_MEMORY:
        yield from _of_record(repository, parent, commit, told)


def _parent(repository: Repository, commit: Commit) -> Commit | None:
    if not commit.parents or not repository.has(commit.parents[0]):
        return None
    return repository.commit(commit.parents[0])


def record_faults(
    told: Record, before: Side | None, after: Side, *, is_first: bool = False
) -> Iterator[str]:
    """Yield what an action on memory says of itself that its files, before and after, deny."""
    if told.action in _EDITS:
        yield from _edit_faults(told, before, after, is_first=is_first)
    elif told.action in _MARKS and before is not None:
        yield from _mark_faults(told, before, after)


def _of_record(
    repository: Repository, parent: Commit | None, commit: Commit, told: Record
) -> Iterator[tuple[str, str]]:
    if parent is None and commit.parents:
        return  # the history is cut here
    before = None if parent is None else side(repository, parent.tree)
    after = side(repository, commit.tree)
    for message in record_faults(told, before, after, is_first=parent is None):
        yield "record", message


def side(repository: Repository, tree: str) -> Side:
    """Return the bootstrap files of a tree, as far as they are files, and their layout."""
    contents = personas.readable_contents(repository, tree)
    return Side(contents, personas.tree_layout(repository, tree))


def _edit_faults(
    told: Record, before: Side | None, after: Side, *, is_first: bool
) -> Iterator[str]:
    """Do an action again and compare what comes of it, byte for byte."""
    had = {} if before is None else before.contents
    has = after.contents
    target: Target = "user" if told.target == "user" else "self"
    name = memory_name(target)
    texts = [told.text or ""] + ([told.replacement or ""] if told.action == "replace" else [])
    write = Write(told.action or "", told.text or "", told.replacement, target)
    try:
        wanted = memory.apply(write, had.get(name, b""), after.layout).data
    except SoulgitError:
        wanted = None
    if wanted is None or wanted != has.get(name, b""):
        yield f"it does not do what it says: {told.action} in {name}"
    others = [n for n in {**had, **has} if n != name and had.get(n) != has.get(n)]
    if others and not is_first:
        yield f"it changes {', '.join(others)} too"
    if told.subject != subject_for(f"memory({target})", told.action or "", *texts):
        yield "its subject does not say what its record says"


def _mark_faults(told: Record, before: Side, after: Side) -> Iterator[str]:
    had, has = (_marks(one) for one in (before, after))
    changed = [(old, new) for old, new in zip(had, has, strict=False) if old != new]
    is_one = len(had) == len(has) and len(changed) == 1 and changed[0][0][1] == changed[0][1][1]
    if not is_one or changed[0][1] != (told.action == "sear", told.text):
        yield f"it does not do what it says: {told.action}"


def _marks(known: Side) -> list[tuple[bool, str]]:
    """Return of every memory whether it is seared, and its text."""
    return [
        (entry.seared, entry.plain)
        for name in map(memory_name, TARGETS)
        for entry in entries.split(composition.decode(known.contents.get(name, b"")), known.layout)
    ]


def _of_persona(
    repository: Repository, parent: Commit, commit: Commit, action: str
) -> Iterator[tuple[str, str]]:
    before, after = (
        [repository.entry(one.tree, name) for name in PERSONA_NAMES] for one in (parent, commit)
    )
    if before != after:
        yield "persona", f"it changes the persona, which {action} may not"


def _of_digest(
    repository: Repository, parent: Commit | None, commit: Commit, told: Record
) -> Iterator[tuple[str, str]]:
    """Check the digest that a commit names: its own persona's, or the settled one before it."""
    if told.persona is None:
        yield "digest", "it names no persona"
        return
    own = personas.tree_digest(repository, commit.tree)
    settled = None if parent is None else personas.settled_digest(repository, parent.id)
    if told.persona == settled or (parent is None and commit.parents):
        return
    if told.persona != own:
        yield "digest", "the persona that it names is neither its own nor the settled one"
    elif parent is not None and told.action not in _SETTLES:
        yield "persona", f"it begins a persona, which {told.action} may not"


def _of_seared(
    repository: Repository, parent: Commit | None, commit: Commit, told: Record
) -> Iterator[tuple[str, str]]:
    if parent is None or told.action == "fork":
        return
    layouts = [personas.tree_layout(repository, one.tree) for one in (parent, commit)]
    before, after = (personas.readable_contents(repository, one.tree) for one in (parent, commit))
    for name in map(memory_name, TARGETS):
        for text in _lost(before.get(name, b""), layouts[0], after.get(name, b""), layouts[1]):
            if not (told.action == "unsear" and text == told.text):
                yield "seared", f"a seared memory was changed or dropped: {text}"


def _lost(before: bytes, was: Layout, after: bytes, now: Layout) -> list[str]:
    return [seared.plain(text) for text in seared.lost(before, was, after, now)]


def _damaged_packs(repository: Repository) -> Iterator[Fault]:
    for name in packs.names(repository):
        if not packs.is_whole(repository, name):
            yield Fault(None, "object", f"{name} is damaged: its checksum does not hold")


def _moved_archives(repository: Repository) -> Iterator[Fault]:
    for branch, forked_from in personas.archives(repository):
        tip = repository.ref(f"{BRANCHES}{branch}")
        if tip is not None and tip != forked_from:
            yield Fault(tip, "archive", f"the archived branch {branch} has moved since its fork")
