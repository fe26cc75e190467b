"""Is the home well? Each check finds one kind of trouble; some can be mended without a person."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from soulgit import capturing, directories, disk, freeze, memory, redactions, souls
from soulgit.core import layout
from soulgit.errors import SoulgitError
from soulgit.gate import waits
from soulgit.home import AnyHome, Home, as_home

_OLD_LOCK_SECONDS = 60
_NESTED_DEPTH = 3


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong with a home, or worth a note, and what mends it."""

    kind: str
    severity: Literal["wrong", "note"]
    message: str
    mend: str
    mended: bool = False


Check = Callable[[Home], Iterator[Trouble]]


def examine(home: AnyHome, *, fix: bool = False) -> list[Trouble]:
    """Return all that is wrong with a home; with `fix`, what is safe to mend is mended first."""
    home = as_home(home)
    found = list(_found(home, MENDABLE))
    if fix and found:
        home.heal_now()
        left = {(trouble.kind, trouble.message) for trouble in _found(home, MENDABLE)}
        found = [replace(t, mended=(t.kind, t.message) not in left) for t in found]
    return found + list(_found(home, CHECKS))


def _found(home: Home, checks: tuple[Check, ...]) -> Iterator[Trouble]:
    for check in checks:
        try:
            yield from check(home)
        except SoulgitError as error:
            yield Trouble(error.kind, "wrong", error.message, error.hint)


def _dead_writer(home: Home) -> Iterator[Trouble]:
    if home.has_dead_intent():
        yield Trouble(
            "dead-writer",
            "wrong",
            "a writer died at its work and left it, its locks or refs half done",
            "--fix, or any write, ends it",
        )


def _redaction(home: Home) -> Iterator[Trouble]:
    if not home.is_being_written() and redactions.under_way(home.state_dir) is not None:
        yield Trouble(
            "redaction",
            "wrong",
            "a redaction was cut off, and the text is still here",
            "run `soulgit redact HOME TEXT` again, with the same text",
        )


def _temporary_files(home: Home) -> Iterator[Trouble]:
    if home.is_being_written():
        return
    scratch = os.path.join(home.repository.common_dir, "soulgit", "scratch")
    drafts = [name for name in disk.names(home.path) if directories.is_dead_draft(name)]
    for name in [*disk.names(scratch), *drafts]:
        yield Trouble(
            "temporary-file", "wrong", f"{name} was left by a dead writer", "--fix takes it away"
        )


def _old_locks(home: Home) -> Iterator[Trouble]:
    for directory, _, files in os.walk(home.repository.common_dir):
        for name in files:
            path = os.path.join(directory, name)
            made = disk.modified_at(path) if name.endswith(".lock") else None
            if made is not None and time.time() - made > _OLD_LOCK_SECONDS:
                yield Trouble(
                    "old-lock",
                    "wrong",
                    f"{path} has stood for {time.time() - made:.0f} seconds",
                    "if no git program is running here, delete it",
                )


def _lint(home: Home) -> Iterator[Trouble]:
    for found in souls.lint_home(home):
        yield Trouble(
            f"lint:{found.rule}",
            "wrong" if found.severity == "error" else "note",
            f"{found.file} line {found.line}: {found.message}",
            f"`soulgit edit {home.path} --file {found.file}`",
        )


def _frozen(home: Home) -> Iterator[Trouble]:
    frozen = freeze.state(home.repository)
    if frozen is not None:
        yield Trouble(
            "frozen",
            "wrong",
            f"frozen {frozen.told()}",
            "`soulgit thaw HOME` lets memory be written again",
        )


def _pending(home: Home) -> Iterator[Trouble]:
    if waits(home):
        yield Trouble(
            "pending", "wrong", "a persona edit is not settled", "`soulgit settle HOME` decides"
        )


def _by_hand(home: Home) -> Iterator[Trouble]:
    is_frozen = freeze.state(home.repository) is not None
    when = ", while the home is frozen" if is_frozen else ""
    for line in capturing.changed_by_hand(home, home.look()):
        yield Trouble(
            "by-hand", "note", f"{line} by hand{when}", "`soulgit capture HOME` records it"
        )


def _seared(home: Home) -> Iterator[Trouble]:
    for text in memory.lost_seared(home):
        yield Trouble(
            "seared-changed",
            "wrong",
            f"a seared entry was changed or dropped by hand: {text}",
            "put it back, or `soulgit unsear HOME TEXT`",
        )


def _hidden_files(home: Home) -> Iterator[Trouble]:
    repository = home.repository
    for file in home.look().files.values():
        if repository.is_ignored(file.path):
            yield Trouble(
                "ignored",
                "wrong",
                f"an ignore rule hides {file.path} from plain git",
                f"git check-ignore -v {file.path} names the rule",
            )
        for name in ("filter", "working-tree-encoding", "text", "eol", "ident"):
            value = repository.attribute(file.path, name)
            if value is not None:
                yield Trouble(
                    "attribute",
                    "wrong",
                    f"the git attribute {name}={value} changes the bytes of {file.path}",
                    "drop it from .gitattributes for this file",
                )


def _nested(home: Home) -> Iterator[Trouble]:
    for directory, below, _ in os.walk(home.path):
        inside = os.path.relpath(directory, home.path)
        if inside == ".":
            below[:] = [name for name in below if name != ".git"]
        elif os.path.lexists(os.path.join(directory, ".git")):
            below.clear()
            yield Trouble(
                "nested-repository",
                "note",
                f"{inside} is a repository of its own and is not versioned here",
                "nothing, if that is meant",
            )
        elif inside.count(os.sep) + 1 >= _NESTED_DEPTH:
            below.clear()


def _twins(home: Home) -> Iterator[Trouble]:
    for name in home.look().twins:
        right = next(n for n in layout.BOOTSTRAP_ORDER if n.casefold() in name.casefold())
        yield Trouble(
            "other-case", "wrong", f"{name} is not read", f"rename it to {right} if it is meant"
        )


def _moved_links(home: Home) -> Iterator[Trouble]:
    linked = os.path.join(home.repository.common_dir, "worktrees")
    for name in disk.names(linked):
        try:
            with open(os.path.join(linked, name, "gitdir")) as file:
                place = file.read().strip()
        except OSError:
            continue
        if not os.path.lexists(place):
            yield Trouble(
                "moved-home",
                "wrong",
                f"the linked home {os.path.dirname(place)} is not there any more",
                "`git worktree repair PATH` if it was moved, `git worktree prune` if it is gone",
            )


def _settings(home: Home) -> Iterator[Trouble]:
    for name in ("core.autocrlf", "core.eol"):
        value = home.repository.setting(name)
        if value in ("true", "input", "crlf"):
            yield Trouble(
                "git-setting",
                "note",
                f"{name}={value}: plain git would change line ends of files in the home",
                f"git -C HOME config {name} {'false' if name == 'core.autocrlf' else 'native'}",
            )


def _shared(home: Home) -> Iterator[Trouble]:
    """What git would make writable for a group, soulgit makes as the umask says."""
    value = home.repository.setting("core.sharedrepository")
    if value not in (None, "umask", "false", "0"):
        yield Trouble(
            "shared-repository",
            "note",
            f"core.sharedRepository={value}: soulgit makes objects and refs as the umask says",
            "run soulgit with a umask that lets the group write, like 002",
        )


MENDABLE: tuple[Check, ...] = (_dead_writer, _temporary_files)
"""What `--fix` mends."""

CHECKS: tuple[Check, ...] = (
    _old_locks,
    _redaction,
    _frozen,
    _pending,
    _seared,
    _lint,
    _by_hand,
    _hidden_files,
    _twins,
    _nested,
    _moved_links,
    _settings,
    _shared,
)
"""What a person must look at."""
