"""`redact`: what must not exist at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from soulgit.cli import output, words
from soulgit.errors import NotConfirmed

if TYPE_CHECKING:
    from soulgit.redacting import Progress, Redacted

_SHOWN = 20
_NOWHERE = "no object, ref or reflog here holds the text"


@click.command("redact")
@words.home_argument
@click.argument("text")
@click.option("--reason", help="Why; kept in the record, so it must not hold TEXT.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@words.json_option
def redact_command(
    home: str, text: str, reason: str | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Take TEXT out of all of history, for ever: a secret, a person's data.

    Every commit, tag and note that holds it is made anew, on every branch, and so are all after
    it: they get new ids. The stash, reflogs and all objects that nothing leads to are gone
    then. TEXT - reads standard input, which no shell remembers.
    """
    from soulgit import redacting

    opened = words.open_written(home)
    secret = words.read_text(text)

    def run(*, as_dry_run: bool) -> Redacted:
        with _progress() as progress:
            return redacting.redact(
                opened,
                secret,
                words.user(opened),
                reason=reason,
                dry_run=as_dry_run,
                progress=progress,
            )

    if dry_run:
        planned = run(as_dry_run=True)
        if as_json:
            output.json_document(asdict(planned))
        else:
            output.lines(_plan(planned))
            _tell_left(planned)
        return
    if not yes and not _ask(run(as_dry_run=True)):
        output.note("nothing was changed")
        return
    done = run(as_dry_run=False)
    if as_json:
        output.json_document(asdict(done))
    else:
        _tell(done)


def _plan(planned: Redacted) -> list[str]:
    lines = [
        f"commits   {planned.commits} would be made anew",
        f"messages  {planned.messages} hold it",
        *(f"file      {name}" for name in planned.files[:_SHOWN]),
        *(f"ref       {name} would move" for name in planned.refs),
        *(f"ref       {name} would be gone" for name in planned.dropped),
    ]
    if len(planned.files) > _SHOWN:
        lines.insert(2 + _SHOWN, f"file      and {len(planned.files) - _SHOWN} more")
    if planned.elsewhere:
        lines.append(f"objects   {planned.elsewhere} more hold it, and would be gone")
    if planned.signatures:
        lines.append(f"signed    {planned.signatures} commits would lose their signature")
    return lines


def _ask(planned: Redacted) -> bool:
    """Ask a person on a terminal; elsewhere say that nobody has said yes."""
    for line in _plan(planned):
        output.note(line)
    _tell_left(planned)
    if sys.stdin is None or not sys.stdin.isatty():
        raise NotConfirmed("redacting cannot be undone, and nobody has said yes")
    return click.confirm("Redact it? This cannot be undone", err=True)


def _tell(done: Redacted) -> None:
    output.line(f"redacted: {_counted(done.commits, 'commit')} made anew; {_NOWHERE}")
    for name in done.dropped:
        output.note(f"{name} is gone")
    if done.signatures:
        output.note(f"{_counted(done.signatures, 'commit')} lost their signature")
    if done.map is not None:
        output.note(f"old ids and new ones: {done.map}")
        output.note("keep it or delete it; from an old id a short text can be guessed by trying")
    _tell_left(done)
    output.note(
        "not reached: remotes, clones and backups (redact or delete them too), running sessions, "
        "and what a shell remembers"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tell_left(told: Redacted) -> None:
    for path in told.left[:_SHOWN]:
        output.note(f"not reached, but holds it: {path}")
    if len(told.left) > _SHOWN:
        output.note(f"and {len(told.left) - _SHOWN} more")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show a bar for each part of the work, where a person sees it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda what, done, of: None
        return

    def told(what: str, done: int, of: int) -> None:
        if done == of or done % 100 == 0:
            click.echo(f"\r{what} {done} of {of}", err=True, nl=done == of)

    yield told
