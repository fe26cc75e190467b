"""Memory: add, replace and remove entries, each change one commit, and list them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soulgit import personas, revisions
from soulgit.core import composition, edits, entries, hermes, seared
from soulgit.core.actor import Identity
from soulgit.core.edits import Edit
from soulgit.core.entries import Entry
from soulgit.core.layout import TARGETS, Layout, Target, memory_name
from soulgit.core.record import Record, subject_for
from soulgit.errors import TextAmbiguous, TextNotFound
from soulgit.home import AnyHome, Home, as_home
from soulgit.revision import Draft, Snapshot, revise, revise_or_begin


@dataclass(frozen=True)
class Told:
    """What is known of a write beside its text; all of it goes into the commit's trailers."""

    origin: str = "tool"
    source: str | None = None
    session: str | None = None
    composed: str | None = None
    model: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What a write did: the new tip (None: nothing changed) and notes that help."""

    revision: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """One entry of a memory file."""

    target: Target
    text: str
    seared: bool


@dataclass(frozen=True)
class Write:
    """One memory action, to be carried out on a home by `perform`."""

    action: str
    text: str
    replacement: str | None = None
    target: Target = "self"


def add(home: AnyHome, text: str, *, target: Target = "self", told: Told = Told()) -> Outcome:
    """Add an entry to a memory file."""
    return perform(as_home(home), Write("add", text, None, target), told)


def replace(
    home: AnyHome, text: str, replacement: str, *, target: Target = "self", told: Told = Told()
) -> Outcome:
    """Put `replacement` for the first occurrence of `text` in a memory file."""
    return perform(as_home(home), Write("replace", text, replacement, target), told)


def remove(home: AnyHome, text: str, *, target: Target = "self", told: Told = Told()) -> Outcome:
    """Delete the first occurrence of `text` in a memory file."""
    return perform(as_home(home), Write("remove", text, None, target), told)


def perform(
    home: Home,
    write: Write,
    told: Told,
    *,
    author: Identity | None = None,
    branch: str | None = None,
    begins: bool = True,
) -> Outcome:
    """Carry out a memory action as one commit; the companion authors it unless one is given.

    With `begins`, a directory that is no home becomes one. Raises InvalidText,
    TextNotFound, and all that a home can refuse.
    """
    notes: tuple[str, ...] = ()

    def edit(snapshot: Snapshot) -> Draft | None:
        nonlocal notes
        name = memory_name(write.target)
        before = snapshot.data(name)
        try:
            result = apply(write, before, snapshot.layout)
        except TextNotFound as missed:
            raise _with_other_target(missed, write, snapshot) from None
        notes = result.notes
        if result.data == before:
            notes += ("nothing changed",)
            return None
        source = entries.decode(result.data)
        if told_limit := hermes.over_limit(source, write.target, snapshot.layout):
            notes += (told_limit,)
        return Draft(_record(write, told), author or snapshot.companion, {name: result.data})

    revision = (revise_or_begin if begins else revise)(home, edit, branch=branch)
    return Outcome(revision, notes)


def apply(write: Write, data: bytes, layout: Layout) -> Edit:
    """Return what a memory action makes of a memory file; no seared entry ever changes."""
    for text in (write.text, write.replacement or ""):
        seared.refuse_marker(text)
    result = _applied(write, data, layout)
    seared.refuse_change(data, result.data, layout)
    return result


def _with_other_target(missed: TextNotFound, write: Write, snapshot: Snapshot) -> TextNotFound:
    """Add to a miss that the other memory file has the text."""
    notes = missed.facts.get("notes", ())
    assert isinstance(notes, tuple)
    for target in TARGETS:
        data = snapshot.data(memory_name(target))
        if target != write.target and write.text.encode("utf-8", "surrogatepass") in data:
            notes = (*notes, f"{memory_name(target)} has it: say target {target}")
    return TextNotFound(missed.message, notes=notes)


def _applied(write: Write, data: bytes, layout: Layout) -> Edit:
    if write.action == "add":
        return edits.add(data, write.text, layout)
    if write.action == "replace":
        return edits.replace(data, write.text, write.replacement or "", layout)
    return edits.remove(data, write.text, layout)


def list_entries(
    home: AnyHome, *, target: Target | None = None, at: str | None = None
) -> list[Memory]:
    """Return the entries of the memory files, now or at a revision."""
    home = as_home(home)
    if at is None:
        working = home.look()
        return entries_of(working.contents, working.layout, target)
    commit_id = revisions.resolve(home, at)
    with home.reading() as repository:
        tree = repository.commit(commit_id).tree
        layout = personas.tree_layout(repository, tree)
        return entries_of(personas.contents(repository, tree), layout, target)


def sear(home: AnyHome, text: str, by: Identity, *, target: Target | None = None) -> str | None:
    """Sear the one entry that a text names, so that it never changes again."""
    home = as_home(home)

    def edit(snapshot: Snapshot) -> Draft:
        files, layout = snapshot.working.contents, snapshot.layout
        found, entry = _one_entry(files, layout, text, target, is_seared=False)
        source = _source(files, found)
        record = _seared_record("sear", found, entry.plain)
        return Draft(record, by, {memory_name(found): entries.encode(seared.mark(source, entry))})

    return revise(home, edit)


def unsear(home: AnyHome, text: str, by: Identity, *, target: Target | None = None) -> str | None:
    """Let a seared entry change again: one on disk, else one that was changed or dropped there."""
    home = as_home(home)

    def edit(snapshot: Snapshot) -> Draft:
        files, layout = snapshot.working.contents, snapshot.layout
        beneath = False
        try:
            found, entry = _one_entry(files, layout, text, target, is_seared=True)
        except TextNotFound:
            tree = home.repository.commit(snapshot.head.tip).tree if snapshot.head.tip else None
            files = personas.contents(home.repository, tree) if tree else {}
            layout = personas.tree_layout(home.repository, tree) if tree else layout
            found, entry = _one_entry(files, layout, text, target, is_seared=True)
            beneath = True
        plain = entry.plain
        data = entries.encode(seared.unmark(_source(files, found), entry))
        record = _seared_record("unsear", found, plain)
        return Draft(record, by, {memory_name(found): data}, frees=plain, beneath=beneath)

    return revise(home, edit)


def lost_seared(home: AnyHome) -> list[str]:
    """Return the seared entries that were changed or dropped by hand since the last commit."""
    home = as_home(home)
    with home.reading() as repository:
        tip = repository.head().tip
        if tip is None:
            return []
        tree = repository.commit(tip).tree
        before = personas.contents(repository, tree)
        layout = personas.tree_layout(repository, tree)
    working = home.look()
    after = working.contents
    return [
        seared.plain(text)
        for name in map(memory_name, TARGETS)
        for text in seared.lost(before.get(name, b""), layout, after.get(name, b""), working.layout)
    ]


def _one_entry(
    files: Mapping[str, bytes], layout: Layout, text: str, only: Target | None, *, is_seared: bool
) -> tuple[Target, Entry]:
    """Return the one entry of the memory files that a text names, and whose it is."""
    found: list[tuple[Target, Entry]] = []
    missed: TextNotFound | None = None
    for target in TARGETS if only is None else (only,):
        try:
            entry = seared.find(_source(files, target), text, layout, is_seared=is_seared)
            found.append((target, entry))
        except TextNotFound as error:
            missed = error
    if len(found) > 1:
        shown = tuple(f"{target}: {entry.text}" for target, entry in found)
        raise TextAmbiguous(
            "both memory files have an entry that reads like this",
            notes=shown,
            hint="say which with --target",
        )
    if not found:
        raise missed or TextNotFound("no entry reads like this", notes=())
    return found[0]


def _source(files: Mapping[str, bytes], target: Target) -> str:
    return entries.decode(files.get(memory_name(target)))


def _seared_record(action: str, target: Target, text: str) -> Record:
    subject = subject_for(f"memory({target})", action, text)
    return Record(action, subject, text, target=target, origin="cli")


def entries_of(files: dict[str, bytes], layout: Layout, only: Target | None = None) -> list[Memory]:
    """Return the entries of bootstrap files given by name."""
    return [
        Memory(target, entry.plain, entry.seared)
        for target in TARGETS
        if only in (None, target)
        for entry in entries.split(composition.decode(files.get(memory_name(target), b"")), layout)
    ]


def _record(write: Write, told: Told) -> Record:
    texts = (write.text,) if write.replacement is None else (write.text, write.replacement)
    if write.action == "replace":
        texts = (write.text, write.replacement or "")
    return Record(
        action=write.action,
        subject=subject_for(f"memory({write.target})", write.action, *texts),
        text=write.text,
        replacement=texts[1] if len(texts) > 1 else None,
        target=write.target,
        origin=told.origin,
        source=told.source,
        session=told.session,
        composed=told.composed,
        model=told.model,
        reason=told.reason,
    )
