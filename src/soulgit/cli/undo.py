"""`undo`, `restore`: what was learned taken back, and what was lost brought back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import click

from soulgit.cli import output, words
from soulgit.cli.history import diff_lines
from soulgit.errors import InvalidArgument

if TYPE_CHECKING:
    from soulgit.core.layout import Target
    from soulgit.home import Home

_dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and stop.")
_reason_option = click.option("--reason", help="Why; kept with the commit.")


@click.command("undo")
@words.home_argument
@click.argument("rev", type=words.REVISION, required=False)
@click.option("--session", metavar="ID", help="All that this session wrote.")
@click.option("--source", metavar="TEXT", help="All that came from exactly this source.")
@click.option("--since", metavar="TIME", help="All from this ISO 8601 time on.")
@click.option("--keep", "choice", flag_value="keep", help="Leave what was changed since as it is.")
@click.option("--drop", "choice", flag_value="drop", help="Take back what was changed since, too.")
@_reason_option
@_dry_run_option
def undo_command(
    home: str,
    rev: str | None,
    session: str | None,
    source: str | None,
    since: str | None,
    choice: Literal["keep", "drop"] | None,
    reason: str | None,
    dry_run: bool,
) -> None:
    """Take one action back, the last by default, or all of a session, source or time on.

    One new commit takes back what the others did, entry by entry, and keeps every later change.
    Where an entry was changed since, it is named, and --keep or --drop decides. Undoing an
    undo is a redo.
    """
    from soulgit import revisions, undoing

    opened = words.open_written(home)
    which = undoing.Which(
        revision=words.resolve_at(opened, rev),
        session=session,
        source=source,
        since=None if since is None else revisions.parse_time(since, starts=True),
    )
    done = undoing.undo(
        opened, which, words.user(opened), choice=choice, reason=reason, dry_run=dry_run
    )
    verb = "would take back" if dry_run else "takes back"
    for entry in done.entries:
        output.note(f"{verb} {entry.id[:12]} {entry.record.subject}")
    _tell(opened, done.files, done.revision, dry_run=dry_run)


@click.command("restore")
@words.home_argument
@click.argument("rev", type=words.REVISION)
@click.option("--target", type=click.Choice(["self", "user"]), help="Only this memory file.")
@click.option("--entry", metavar="TEXT", help="Only the one memory that holds TEXT.")
@click.option("--file", "name", metavar="NAME", help="Only this bootstrap file.")
@_reason_option
@_dry_run_option
def restore_command(
    home: str,
    rev: str,
    target: Target | None,
    entry: str | None,
    name: str | None,
    reason: str | None,
    dry_run: bool,
) -> None:
    """Bring back the home, a file or one memory as it was at a revision, as a new commit.

    A persona that differs is written to disk and waits for `soulgit settle`.
    """
    from soulgit import restoring

    if name is not None and (target is not None or entry is not None):
        raise InvalidArgument(
            "--file names a file, --target and --entry a memory", hint="give the one or the others"
        )
    opened = words.open_written(home)
    commit_id = words.resolve_at(opened, rev) or rev
    what = restoring.What(target, entry, name)
    done = restoring.restore(
        opened, commit_id, words.user(opened), what, reason=reason, dry_run=dry_run
    )
    _tell(opened, done.files, done.revision, dry_run=dry_run)
    if done.waiting and not dry_run:
        names = ", ".join(done.waiting)
        output.note(f"{names} waits for a decision: `soulgit settle {opened.path}`")


def _tell(
    home: Home, files: Mapping[str, bytes | None], revision: str | None, *, dry_run: bool
) -> None:
    """Print the commit that was made, or what would change."""
    if not files:
        output.note("nothing has to change")
    elif dry_run:
        output.lines(_preview(home, files), paged=True)
    elif revision is not None:
        subject = home.repository.commit(revision).message.split("\n", 1)[0]
        output.line(f"{revision[:12]} {subject}")


def _preview(home: Home, files: Mapping[str, bytes | None]) -> Iterable[str]:
    from soulgit import history

    working = home.look()
    had = working.contents
    after = {name: data for name, data in {**had, **files}.items() if data is not None}
    sides = (history.Side(contents, working.layout) for contents in (had, after))
    return diff_lines(history.changes(*sides))
