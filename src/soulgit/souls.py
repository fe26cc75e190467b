"""Souls: who the companion is, its traits, its soul file and its doctor token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from soulgit import personas, revisions
from soulgit.core import composition, frontmatter, lint, persona, soulfile, token, traits
from soulgit.core.actor import Identity
from soulgit.core.layout import BOOTSTRAP_ORDER, PERSONA_NAMES, PLAIN, Layout
from soulgit.core.lint import Finding
from soulgit.core.record import Record
from soulgit.core.traits import Traits
from soulgit.disk import DiskFile
from soulgit.errors import EditRefused, InvalidArgument, LintRefused
from soulgit.gate import gate
from soulgit.git import Head
from soulgit.home import AnyHome, Home, as_home
from soulgit.revision import Draft, Snapshot, put_aside, revise
from soulgit.working import Working


@dataclass(frozen=True)
class Persona:
    """Who a companion is: `name` is `persona/N` (None: shown by no branch), `text` what is said."""

    name: str | None
    digest: str
    text: str
    revision: str | None


def read_persona(home: AnyHome, *, at: str | None = None) -> Persona:
    """Return the persona as a model sees it, now or at a revision."""
    home = as_home(home)
    files, commit_id = _files(home, at)
    digest = persona.digest(files)
    name = personas.name_of(home.repository, digest) if home.is_home else None
    return Persona(name, digest, persona_text(files), commit_id)


def persona_text(files: Mapping[str, bytes]) -> str:
    """Return what a model is told of who the companion is, from bootstrap files by name."""
    told = {name: files[name] for name in PERSONA_NAMES if name in files}
    return composition.compose(told, persona.digest(files)).text


def is_gated(home: Home, head: Head, working: Working) -> bool:
    """Whether a persona edit waits for a decision, so that no memory may be written."""
    return gate(home.repository, head, working) == "closed"


def read_traits(home: AnyHome, *, at: str | None = None) -> Traits:
    """Return a companion's traits, now or at a revision; one at fault counts as its default."""
    return traits.of(_values(_files(as_home(home), at)[0]))


def set_traits(home: AnyHome, values: Mapping[str, Any], by: Identity) -> str | None:
    """Give traits new values, all or none; return the new tip, None where nothing changed.

    Raises InvalidArgument for a name that is no trait or a value outside its range, and
    PersonaPending while the persona in the same file is not settled.
    """
    home = as_home(home)
    for name in values:
        if name not in traits.TRAITS:
            raise InvalidArgument(
                f"{name} is no trait", hint=f"the traits are {', '.join(traits.TRAITS)}"
            )
    changed = ", ".join(f"{name} = {_toml(value)}" for name, value in values.items())
    record = Record("edit", f"traits: {changed}", changed, origin="cli")

    def change(soul: bytes) -> bytes:
        merged = {**_values({"SOUL.md": soul}), **values}
        for fault in traits.faults(merged):
            raise InvalidArgument(fault.message, hint="`soulgit traits HOME` shows the ranges")
        return frontmatter.assign(soul, values)

    return _change_soul(home, change, record, by)


def set_token(home: AnyHome, word: str, by: Identity) -> str | None:
    """Make a word the home's doctor token; what is stored is its SHA-256."""
    home = as_home(home)
    record = Record("edit", "token: a new doctor token", origin="cli")
    hashed = {token.KEY: token.stored(word)}
    return _change_soul(home, lambda soul: frontmatter.assign(soul, hashed), record, by)


def edit(home: AnyHome, name: str, before: bytes | None, data: bytes, by: Identity) -> str | None:
    """Save a bootstrap file that a person has edited; return the new tip, None for no commit.

    `before` is what they began with. An edit of the persona is saved on disk alone, where
    it waits to be settled. Raises LintRefused for a file with errors, and InvalidArgument
    where somebody else has changed the file since.
    """
    home = as_home(home)
    refuse_faulty(home, name, data)
    if name in PERSONA_NAMES and _would_wait(home, name, data):
        put_aside(home, name, before, data)
        return None

    def change(snapshot: Snapshot) -> Draft | None:
        if snapshot.working.contents.get(name) != before:
            raise EditRefused(f"{name} was changed meanwhile, so it was not saved")
        if before == data:
            return None
        return Draft(Record("edit", f"edit: {name}", origin="cli"), by, {name: data})

    return revise(home, change)


def refuse_faulty(home: Home, name: str, data: bytes) -> None:
    """Raise LintRefused for a bootstrap file with errors, which is not saved."""
    findings = [found for found in lint_file(home, name, data) if found.severity == "error"]
    if findings:
        notes = tuple(f"line {found.line}: {found.message}" for found in findings)
        raise LintRefused(f"{name} has errors and was not saved", notes=notes)


def _would_wait(home: Home, name: str, data: bytes) -> bool:
    """Whether a persona file, were it saved like this, would wait for a decision."""
    working = home.look()
    file = working.files.get(name) or DiskFile(name, b"", False)
    files = {**working.files, name: replace(file, data=data)}
    return is_gated(home, home.head(), replace(working, files=files))


def lint_file(home: Home, name: str, data: bytes) -> list[Finding]:
    """Return what is wrong with one bootstrap file of a home, were it to hold these bytes."""
    working = home.look()
    files = {**working.contents, name: data}
    found = lint.check(lint.sources(files, working.layout, *_committed(home)))
    return [finding for finding in found if finding.file == name]


def lint_home(home: AnyHome, *, at: str | None = None) -> list[Finding]:
    """Return what is wrong with the files of a home or directory, now or at a revision."""
    home = as_home(home)
    if at is not None:
        commit_id = revisions.resolve(home, at)
        with home.reading() as repository:
            tree = repository.commit(commit_id).tree
            files = personas.readable_contents(repository, tree)
            return lint.check(lint.sources(files, personas.tree_layout(repository, tree), {}))
    working = home.look()
    return lint.check(lint.sources(working.contents, working.layout, *_committed(home)))


def lint_text(name: str, data: bytes) -> list[Finding]:
    """Return what is wrong with a file of no home; by its name, else as a soul file."""
    role = name if name in BOOTSTRAP_ORDER else "SOUL.md"
    found = lint.check(lint.sources({role: data}, PLAIN, {}))
    return [Finding(name, f.line, f.column, f.rule, f.severity, f.message) for f in found]


def _change_soul(
    home: Home, change: Callable[[bytes], bytes], record: Record, by: Identity
) -> str | None:
    def draft(snapshot: Snapshot) -> Draft | None:
        before = snapshot.data("SOUL.md")
        after = change(before)
        return None if after == before else Draft(record, by, {"SOUL.md": after})

    return revise(home, draft)


def _files(home: Home, at: str | None) -> tuple[dict[str, bytes], str | None]:
    if at is None:
        return home.look().contents, None
    commit_id = revisions.resolve(home, at)
    with home.reading() as repository:
        return personas.contents(repository, repository.commit(commit_id).tree), commit_id


def _committed(home: Home) -> tuple[dict[str, bytes], Layout]:
    """Return the bootstrap files of the last commit, and their layout."""
    tip = home.head().tip
    if tip is None:
        return {}, PLAIN
    with home.reading() as repository:
        tree = repository.commit(tip).tree
        return personas.contents(repository, tree), personas.tree_layout(repository, tree)


def _values(files: Mapping[str, bytes]) -> dict[str, Any]:
    return soulfile.frontmatter_values(composition.decode(files.get("SOUL.md", b"")))


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"
