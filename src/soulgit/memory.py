"""Memory: add, replace and remove entries, each change one commit, and list them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from soulgit import personas, revisions
from soulgit.core import composition, edits, entries
from soulgit.core.actor import Identity
from soulgit.core.edits import Edit
from soulgit.core.layout import TARGETS, Layout, Target, memory_name
from soulgit.core.record import Record, subject_for
from soulgit.home import Home, as_home
from soulgit.revision import Draft, Snapshot, revise, revise_or_begin

AnyHome = Home | str | os.PathLike[str]


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
        result = apply(write, before, snapshot.layout)
        notes = result.notes
        if result.data == before:
            notes += ("nothing changed",)
            return None
        return Draft(_record(write, told), author or snapshot.companion, {name: result.data})

    revision = (revise_or_begin if begins else revise)(home, edit, branch=branch)
    return Outcome(revision, notes)


def apply(write: Write, data: bytes, layout: Layout) -> Edit:
    """Return what a memory action makes of a memory file."""
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


def entries_of(files: dict[str, bytes], layout: Layout, only: Target | None = None) -> list[Memory]:
    """Return the entries of bootstrap files given by name."""
    return [
        Memory(target, _without_marker(entry.text), entry.seared)
        for target in TARGETS
        if only in (None, target)
        for entry in entries.split(composition.decode(files.get(memory_name(target), b"")), layout)
    ]


def _without_marker(text: str) -> str:
    return text.removesuffix(composition.SEARED_MARKER).rstrip()


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
