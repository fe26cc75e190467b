"""`edit`: a bootstrap file in an editor or from a file, linted, saved, and settled if asked."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from soulgit.cli import decide, output, words
from soulgit.errors import EditRefused, InvalidArgument, NothingPending

if TYPE_CHECKING:
    from soulgit.home import Home


@click.command("edit")
@words.home_argument
@click.option("--file", "name", default="SOUL.md", show_default=True, help="Which bootstrap file.")
@click.option("--from", "source", metavar="FILE", help="Take FILE's content; - standard input.")
@decide.decision_options
def edit_command(home: str, name: str, source: str | None, **asked: Any) -> None:
    """Edit SOUL.md, or another bootstrap file, linted before it is saved.

    An edit of the persona waits on disk to be settled, or is settled at once with
    --continue, --update or --fork.
    """
    from soulgit.core.layout import BOOTSTRAP_ORDER

    if name not in BOOTSTRAP_ORDER:
        raise InvalidArgument(
            f"{name} is no bootstrap file", hint=f"one of {', '.join(BOOTSTRAP_ORDER)}"
        )
    opened = words.open_written(home)
    chosen = decide.chosen_for_edit(asked)
    before = opened.look().contents.get(name)
    if source is None:
        _edit_in_editor(
            opened, name, before, lambda base, data: _save(opened, name, base, data, chosen, asked)
        )
        return
    with output.storage_fault(f"cannot read {source}"):
        data = words.read_input() if source == "-" else Path(source).read_bytes()
    _save(opened, name, before, data, chosen, asked)


def _save(
    home: Home,
    name: str,
    before: bytes | None,
    data: bytes,
    chosen: str | None,
    asked: dict[str, Any],
) -> None:
    """Save an edited file, and settle it where a decision was given with it."""
    from soulgit import revision, settling, souls
    from soulgit.core.layout import PERSONA_NAMES

    if chosen is not None:
        if name not in PERSONA_NAMES:
            raise InvalidArgument(
                f"{name} is no part of the persona, so there is nothing to decide with it",
                hint=f"leave --{chosen} out",
            )
        souls.refuse_faulty(home, name, data)
        if not settling.is_persona_edit(home, name, data):
            raise NothingPending("that edit leaves the persona as it is; nothing is to be decided")
        if asked["review"]:
            revision.put_aside(home, name, before, data)
        decide.tell(home, decide.decide(home, chosen, asked, edited={name: data}))
        return
    changed = souls.edit(home, name, before, data, words.user(home))
    if changed is not None:
        output.note(f"recorded as {changed[:12]}")
    elif settling.is_pending(home):
        output.note("saved; the persona is edited now, and `soulgit settle` decides what it means")
    else:
        output.note("nothing changed")


def _edit_in_editor(
    home: Home, name: str, before: bytes | None, save: Callable[[bytes | None, bytes], None]
) -> None:
    """Let a person edit a draft until it is saved, or they give up; it is kept where it is not.

    Beside a kept draft stands what it began from, so that it never takes back a later edit.
    """
    draft = os.path.join(home.repository.git_dir, f"soulgit-draft-{name}")
    begun = os.path.join(home.repository.git_dir, f"soulgit-begun-{name}")
    if os.path.exists(draft):
        output.note(f"going on with the draft that was kept at {draft}")
        base = Path(begun).read_bytes() if os.path.exists(begun) else None
    else:
        base = before
        _store(begun, base or b"")
        _store(draft, base or b"")
    try:
        _edit_until_saved(draft, base, save)
    except BaseException:
        if Path(draft).read_bytes() != (base or b""):
            output.note(f"what you wrote is kept at {draft}")
            raise
        _forget(draft, begun)
        raise
    _forget(draft, begun)


def _edit_until_saved(
    draft: str, base: bytes | None, save: Callable[[bytes | None, bytes], None]
) -> None:
    from soulgit.errors import LintRefused

    while True:
        _run_editor(draft)
        try:
            save(base, Path(draft).read_bytes())
        except LintRefused as error:
            if not sys.stdin.isatty():
                raise
            output.error(error)
            if not click.confirm("edit again?", default=True, err=True):
                raise click.Abort from None
        else:
            return


def _forget(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _run_editor(path: str) -> None:
    """Run the user's editor, named as git's users do, without a shell."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(named), path], check=False).returncode
    except (OSError, ValueError) as fault:
        raise EditRefused(
            f"the editor {named!r} cannot be run: {fault}", hint="set EDITOR, or use --from FILE"
        ) from fault
    if code:
        raise EditRefused(
            f"the editor ended with {code}, so nothing was saved", hint="run it again to go on"
        )


def _store(path: str, data: bytes) -> None:
    with output.storage_fault(f"cannot write {path}"), open(path, "wb") as file:
        file.write(data)
