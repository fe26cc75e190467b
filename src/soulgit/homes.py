"""Homes: begun or adopted, listed, and how one stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from soulgit import directories, disk, freeze, memory, personas, redactions, revision, revisions
from soulgit.adoption import Hand
from soulgit.capturing import changed_by_hand
from soulgit.core import composition, frontmatter, hermes, persona, soulfile, starter
from soulgit.core import token as tokens
from soulgit.core.actor import Identity
from soulgit.core.layout import TARGETS, Layout, memory_name
from soulgit.core.record import Record
from soulgit.errors import InvalidArgument, InvalidText, SoulgitError
from soulgit.freeze import Freeze
from soulgit.gate import gate
from soulgit.home import AnyHome, Clock, Home, as_home, system_clock
from soulgit.redactions import Redaction
from soulgit.revision import Draft, revise

Identify = Callable[[Home], Identity]


@dataclass(frozen=True)
class Beginning:
    """What `init` did: the home, and how it came to be one."""

    home: Home
    what: str
    """`new`, `adopted`, or `already` where there was nothing to do."""

    files: tuple[str, ...]
    is_hashed: bool = False
    """Whether a plain doctor token was put in SOUL.md as its hash."""


@dataclass(frozen=True)
class Status:
    """How a home stands. `persona` is `persona/N`, None where no branch shows it."""

    path: str
    layout: str
    branch: str | None
    revision: str | None
    persona: str | None
    entries: dict[str, int]
    name: str | None = None
    emoji: str | None = None
    frozen: Freeze | None = None
    redacted: Redaction | None = None
    pending: bool = False
    seared_changed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def init(
    path: str,
    *,
    identifier: str,
    identify: Identify,
    name: str | None = None,
    source: bytes | None = None,
    token: Literal["refuse", "hash", "keep"] = "refuse",
    clock: Clock = system_clock,
) -> Beginning:
    """Make a directory a home: a new one with a soul file, or one that adopts what is there.

    `source` is the soul file, or plain prose, that a new home begins with, `identifier`
    its id where it has none. What is there is not changed by one byte, but for a doctor
    token that shall be hashed. Raises InvalidArgument where a name or a source is given
    and a soul is there already, TokenExposed for a plain token of which nobody has said
    what becomes of it.
    """
    _refuse_name(os.path.basename(path) if name is None else name)
    with directories.made_directory(path):
        home = Home.open(path, clock=clock)
        is_hashed = token == "hash" and _hash_token(home)
        if token == "hash":
            source = None if source is None else _hashed(source)
        done = _init(home, identifier, identify, name, source, keeps_token=token == "keep")
    return replace(done, is_hashed=is_hashed)


def _init(
    home: Home,
    identifier: str,
    identify: Identify,
    name: str | None,
    source: bytes | None,
    *,
    keeps_token: bool,
) -> Beginning:
    files = tuple(home.look().files)
    is_already = home.is_home and personas.is_written(home.repository, home.head().tip)
    if is_already and (name is not None or source is not None):
        raise InvalidArgument(f"{home.path} is a home already", hint="leave --name and --from out")
    if is_already:
        return Beginning(home, "already", files)
    _refuse_lost_words(home, files, name, source)
    is_new = not files or source is not None
    made = {"SOUL.md": _soul(identifier, name or _name(home), source)} if is_new else {}
    with revision.begun(home):
        author = identify(home)
        told = Record("init", _subject(files, is_new), origin="cli")
        if is_new or home.head().tip is not None:
            draft = Draft(told, author, made, keeps_token=keeps_token)
            revise(home, lambda _: draft, hand=Hand(author, keeps_token=keeps_token, adopts=True))
        else:
            revise(home, hand=Hand(author, told, keeps_token=keeps_token, adopts=True))
    return Beginning(home, "new" if is_new else "adopted", files)


def _refuse_lost_words(
    home: Home, files: tuple[str, ...], name: str | None, source: bytes | None
) -> None:
    """Refuse a name or a soul that there is no place for: nothing that is there is changed."""
    if "SOUL.md" in files and source is not None:
        raise InvalidArgument(
            f"{home.path} has a SOUL.md already",
            hint="begin in another directory, or leave --from out",
        )
    if files and source is None and name is not None:
        raise InvalidArgument(
            f"{home.path} is adopted as it is, so it cannot be given a name",
            hint="leave --name out, and write the name into SOUL.md",
        )


def _hash_token(home: Home) -> bool:
    """Put a token's hash in its place on disk, as a person asked, before anything is committed."""
    if home.is_home:
        freeze.refuse_frozen(home.repository)
    soul = home.look().files.get("SOUL.md")
    hashed = None if soul is None else _hashed(soul.data)
    if soul is not None and hashed is not None and hashed != soul.data:
        beside = os.path.join(
            os.path.dirname(os.path.join(home.path, soul.path)), directories.draft_name()
        )
        disk.replace(home.path, soul.path, hashed, beside, durable=home.durable)
        return True
    return False


def _hashed(soul: bytes) -> bytes:
    word = tokens.plain(soulfile.frontmatter_values(composition.decode(soul)))
    if word is None:
        return soul
    return frontmatter.assign(soul, {tokens.KEY: tokens.stored(word.strip())})


def _refuse_name(name: str) -> None:
    if not name.isprintable():
        raise InvalidText(
            "the name holds a character that cannot be printed", hint="choose another name"
        )


def _soul(identifier: str, name: str, source: bytes | None) -> bytes:
    """Return the soul file of a new home: a starter, prose below a head, or the source as it is."""
    if source is None:
        return starter.soul(identifier, name)
    if composition.undecodable_offset(source) is not None or b"\0" in source:
        raise InvalidText("the soul to begin with is no UTF-8 text", hint="save it as UTF-8")
    text = composition.decode(source)
    head = soulfile.find_frontmatter(text)
    if head is None:
        return starter.soul(identifier, name, text)
    if head.fault is not None:
        raise InvalidText(f"the soul to begin with is broken: {head.fault}", hint="mend it first")
    return source


def _name(home: Home) -> str:
    return os.path.basename(home.path)


def _subject(files: tuple[str, ...], is_new: bool) -> str:
    return "init: begin a home" if is_new else f"init: adopt {', '.join(files)}"


def list_homes(root: str) -> list[tuple[str, Status | SoulgitError]]:
    """Return the homes under a root by name, each with how it stands or why that is unknown."""
    found: list[tuple[str, Status | SoulgitError]] = []
    for name in sorted(disk.names(root)):
        path = os.path.join(root, name)
        if not os.path.lexists(os.path.join(path, ".git")):
            continue
        try:
            found.append((name, status(Home.open(path))))
        except SoulgitError as error:
            found.append((name, error))
    return found


def status(home: AnyHome, *, at: str | None = None) -> Status:
    """Return how a home stands now, or stood at a revision."""
    home = as_home(home)
    if at is not None:
        commit_id = revisions.resolve(home, at)
        with home.reading() as repository:
            tree = repository.commit(commit_id).tree
            layout = personas.tree_layout(repository, tree)
            return _status(home, layout, personas.contents(repository, tree), commit_id)
    working = home.look()
    files, tip = working.contents, home.head().tip
    return replace(
        _status(home, working.layout, files, tip),
        frozen=freeze.state(home.repository),
        redacted=redactions.last(home.repository),
        pending=gate(home.repository, home.head(), working) == "closed",
        seared_changed=tuple(memory.lost_seared(home)),
        changed=changed_by_hand(home, working),
    )


def _status(
    home: Home,
    layout: Layout,
    files: dict[str, bytes],
    commit_id: str | None,
) -> Status:
    soul = composition.compose(files, persona.digest(files), revision=commit_id)
    entries = memory.entries_of(files, layout)
    return Status(
        path=home.path,
        layout=layout.name,
        branch=home.head().branch,
        revision=commit_id,
        persona=personas.name_of(home.repository, soul.persona),
        entries={target: sum(entry.target == target for entry in entries) for target in TARGETS},
        name=personas.told_name(files),
        emoji=personas.told_emoji(files),
        cut=tuple(report.name for report in soul.files if report.truncated),
        warnings=(*soul.warnings, *_over_limits(files, layout)),
    )


def _over_limits(files: dict[str, bytes], layout: Layout) -> list[str]:
    sources = {
        target: composition.decode(files.get(memory_name(target), b"")) for target in TARGETS
    }
    told = (hermes.over_limit(source, target, layout) for target, source in sources.items())
    return list(filter(None, told))
