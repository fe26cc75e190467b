"""`blame`, `search`, `verify`: who taught the companion what, and whether history is whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from soulgit.cli import output, words
from soulgit.core.record import one_line

if TYPE_CHECKING:
    from soulgit.blame import Origin
    from soulgit.core.layout import Target
    from soulgit.search import Found

_AGES = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))

_target_option = click.option(
    "--target", type=click.Choice(["self", "user"]), help="Only this memory file."
)


@click.command("blame")
@words.optional_home_argument
@_target_option
@click.option("--history", "text", metavar="TEXT", help="Every wording of the memory with TEXT.")
@words.at_option
@words.json_option
def blame_command(
    home: str | None, target: Target | None, text: str | None, at: str | None, as_json: bool
) -> None:
    """Show where each memory came from: the commit that gave it its present text.

    A memory that was carried over, by hand, by a merge or a fork, keeps its origin.
    """
    from soulgit import blame

    opened = words.open_written(home)
    commit_id = words.resolve_at(opened, at)
    if text is None:
        found = blame.blame(opened, target=target, at=commit_id)
    else:
        found = blame.wordings(opened, text, at=commit_id)
    if as_json:
        output.json_document(list(map(_origin_json, found)))
    else:
        output.lines(map(_line, found), paged=True)


@click.command("search")
@words.home_argument
@click.argument("text")
@click.option("--ever", is_flag=True, help="Also what this branch no longer knows.")
@click.option("--exact", is_flag=True, help="Letter for letter: case and Unicode form matter.")
@_target_option
@click.option("--source", metavar="TEXT", help="Only what came from exactly this source.")
@words.at_option
@words.json_option
def search_command(
    home: str,
    text: str,
    ever: bool,
    exact: bool,
    target: Target | None,
    source: str | None,
    at: str | None,
    as_json: bool,
) -> int:
    """Find the memories that hold a text, newest first; exit 1 where there is none."""
    from soulgit import search

    opened = words.open_written(home)
    found = search.search(
        opened,
        words.read_text(text),
        ever=ever,
        exact=exact,
        target=target,
        source=source,
        at=words.resolve_at(opened, at),
    )
    if as_json:
        output.json_document(list(map(_found_json, found)))
    else:
        output.lines((line for one in found for line in _found_lines(one)), paged=True)
    return 0 if found else 1


@click.command("verify")
@words.optional_home_argument
@click.option("--contains", "commit_id", metavar="ID", help="Only whether this commit is in it.")
@words.json_option
def verify_command(home: str | None, commit_id: str | None, as_json: bool) -> int:
    """Check that the history holds together; exit 1 and the commits where it does not.

    Every commit of soulgit's is done again and compared with what it says of itself.
    """
    from soulgit import verification

    opened = words.open_written(home)
    if commit_id is not None:
        is_there = verification.contains(opened, commit_id)
        told = "is" if is_there else "is not"
        if as_json:
            output.json_document({"contains": is_there})
        else:
            output.line(f"{commit_id} {told} in the history of {opened.path}")
        return 0 if is_there else 1
    with output.progress("verifying") as progress:
        faults = verification.verify(opened, progress)
    if as_json:
        output.json_document([asdict(fault) for fault in faults])
    else:
        output.lines(
            f"{(fault.id or '-')[:12]:12} {fault.kind}: {fault.message}" for fault in faults
        )
        output.note(f"{len(faults)} faults" if faults else "the history holds together")
    return 1 if faults else 0


def _line(origin: Origin) -> str:
    when = origin.time.iso()[:16].replace("T", " ")
    told = [origin.source, origin.session and f"session {origin.session}", origin.model]
    whence = ", ".join(part for part in (origin.origin, *told, origin.persona) if part)
    mark = " (seared)" if origin.seared else ""
    start = f"{click.style(origin.id[:12], fg='yellow')} {when} {_age(origin.time.seconds):>5}"
    return f"{start} {click.style(whence or '-', fg='cyan')}: {one_line(origin.text, None)}{mark}"


def _age(seconds: int) -> str:
    """Return how long ago a time was, in its greatest unit."""
    past = max(0, int(time.time()) - seconds)
    return next((f"{past // size}{unit}" for size, unit in _AGES if past >= size), f"{past}s")


def _found_lines(found: Found) -> Iterator[str]:
    yield _line(found.came)
    gone = found.gone
    if gone is not None:
        how = f"{gone.action or 'a commit of plain git'} in {gone.id[:12]}, {gone.time.iso()}"
        why = f": {gone.reason}" if gone.reason else ""
        became = f"; it became: {one_line(gone.became, None)}" if gone.became else ""
        yield f"    gone by {how}{why}{became}"


def _origin_json(origin: Origin) -> dict[str, Any]:
    values = asdict(origin)
    return {**values, "time": origin.time.iso()}


def _found_json(found: Found) -> dict[str, Any]:
    gone = None if found.gone is None else {**asdict(found.gone), "time": found.gone.time.iso()}
    return {**_origin_json(found.came), "gone": gone}
