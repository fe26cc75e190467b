"""`log`, `show`, `diff`: what happened, by whom, and what it did to the soul."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from soulgit.cli import output, words
from soulgit.core.record import ACTIONS

if TYPE_CHECKING:
    from soulgit.history import Entry, EntryChanges, FileChange

_COUNTED = ("added", "removed", "reworded")


@click.command("log")
@words.optional_home_argument
@click.option("-n", "count", type=click.IntRange(min=0), metavar="N", help="At most N commits.")
@click.option("--action", type=click.Choice(ACTIONS), metavar="ACTION", help="Only this action.")
@click.option("--target", type=click.Choice(["self", "user"]), help="Only this memory file.")
@click.option("--session", metavar="ID", help="Only what this session wrote.")
@click.option("--source", metavar="TEXT", help="Only what came from exactly this source.")
@click.option("--since", metavar="TIME", help="From this ISO 8601 time on; a date is its start.")
@click.option("--until", metavar="TIME", help="Up to this time; a date is its end.")
@click.option("--grep", metavar="TEXT", help="Only where this text was written, in any case.")
@words.at_option
@words.json_option
def log_command(
    home: str | None,
    count: int | None,
    action: str | None,
    target: str | None,
    session: str | None,
    source: str | None,
    since: str | None,
    until: str | None,
    grep: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """List what happened, newest first.

    With --json one object a line; with --at from that revision on.
    """
    from soulgit import history, revisions

    wanted = history.Wanted(
        action=action,
        target=target,
        session=session,
        source=source,
        since=None if since is None else revisions.parse_time(since, starts=True),
        until=None if until is None else revisions.parse_time(until),
        grep=grep,
    )
    opened = words.open_written(home)
    entries = history.log(opened, at=words.resolve_at(opened, at), wanted=wanted)
    page = itertools.islice(entries, count)
    if as_json:
        for entry in page:
            output.json_line(_json(entry))
    else:
        output.lines(map(_one_line, page), paged=True)
    if history.is_cut(opened) and count is None:
        output.note("the history is cut here: this clone is shallow")


@click.command("show")
@words.home_argument
@click.argument("rev", type=words.REVISION)
@click.option("--soul", is_flag=True, help="Print the soul at that revision instead.")
@words.json_option
def show_command(home: str, rev: str, soul: bool, as_json: bool) -> None:
    """Show what one commit did to the files, and its record."""
    from soulgit import history, prompt

    opened = words.open_written(home)
    commit_id = words.resolve_at(opened, rev)
    if soul:
        composed = prompt.compose_soul(opened, at=commit_id)
        output.warnings(composed.warnings)
        output.line(output.soul_json(composed) if as_json else composed.text)
        return
    entry, changes = history.show(opened, commit_id or rev)
    if as_json:
        output.json_document({**_json(entry), "files": [asdict(change) for change in changes]})
    else:
        output.lines(itertools.chain(_header(entry), diff_lines(changes)), paged=True)


@click.command("diff")
@words.optional_home_argument
@click.argument("old", type=words.REVISION, required=False)
@click.argument("new", type=words.REVISION, required=False)
@click.option("--stat", is_flag=True, help="Only how many entries and lines differ.")
@words.json_option
def diff_command(
    home: str | None, old: str | None, new: str | None, stat: bool, as_json: bool
) -> None:
    """Show how the soul differs between revisions, or by hand.

    Without revisions: what was changed by hand. With OLD: since then. With OLD and NEW:
    between the two. Both may be times. Memory is shown by entry, other files by line.
    """
    from soulgit import history

    opened = words.open_written(home)
    changes = history.diff(opened, words.resolve_at(opened, old), words.resolve_at(opened, new))
    if as_json:
        output.json_document([asdict(change) for change in changes])
    else:
        output.lines(map(_stat, changes) if stat else diff_lines(changes), paged=True)


def _json(entry: Entry) -> dict[str, Any]:
    told = entry.record
    return {
        "id": entry.id,
        "parents": list(entry.parents),
        "time": entry.time.iso(),
        "author": f"{entry.author.name} <{entry.author.email}>",
        "subject": told.subject,
        "text": told.text,
        "with": told.replacement,
        "action": told.action,
        "target": told.target,
        "persona": told.persona,
        "origin": told.origin,
        "source": told.source,
        "session": told.session,
        "model": told.model,
        "reason": told.reason,
    }


def _one_line(entry: Entry) -> str:
    when = entry.time.iso()[:16].replace("T", " ")
    who = click.style(entry.author.name, fg="cyan")
    return f"{click.style(entry.id[:12], fg='yellow')} {when} {who}: {entry.record.subject}"


def _header(entry: Entry) -> Iterator[str]:
    told = entry.record
    yield click.style(f"commit {entry.id}", fg="yellow")
    yield f"author   {entry.author.name} <{entry.author.email}>"
    yield f"time     {entry.time.iso()}"
    for name in ("action", "target", "origin", "source", "session", "model", "reason"):
        value = getattr(told, name)
        if value is not None:
            yield f"{name:8} {value}"
    yield ""
    yield f"    {told.subject}"
    yield ""


def diff_lines(changes: Iterable[FileChange]) -> Iterator[str]:
    """Yield the lines that show how files differ, as a model sees them."""
    for change in changes:
        if change.hidden:
            yield f"{change.name}: changed only in what no model sees"
        elif change.entries is not None:
            yield from map(_coloured, _by_entry(change, change.entries))
        else:
            yield from map(_coloured, _unified(change))


def _by_entry(change: FileChange, entries: EntryChanges) -> Iterator[str]:
    yield from (f"--- {_names(change)[0]}", f"+++ {_names(change)[1]}")
    for sign, texts in (("-", entries.removed), ("+", entries.added)):
        for text in texts:
            yield from _signed(sign, text)
    for old, new in entries.reworded:
        yield from (*_signed("~", old), *_signed("→", new))


def _signed(sign: str, text: str) -> Iterator[str]:
    """Yield an entry's lines, the first with a sign."""
    first, *others = text.split("\n")
    yield f"{sign} {first}"
    yield from (f"{sign}   {line}" for line in others)


def _unified(change: FileChange) -> Iterator[str]:
    before, after = change.before, change.after
    return difflib.unified_diff(
        [] if before is None else before.splitlines(),
        [] if after is None else after.splitlines(),
        *_names(change),
        lineterm="",
    )


def _names(change: FileChange) -> tuple[str, str]:
    """Return how the two sides are called, as git calls them."""
    return (
        "/dev/null" if change.before is None else f"a/{change.name}",
        "/dev/null" if change.after is None else f"b/{change.name}",
    )


def _stat(change: FileChange) -> str:
    if change.hidden:
        return f"{change.name}: only what no model sees"
    if change.entries is not None:
        counts = {name: len(getattr(change.entries, name)) for name in _COUNTED}
        return f"{change.name}: " + ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    signs = [line[0] for line in itertools.islice(_unified(change), 2, None)]
    return f"{change.name}: {signs.count('+')} lines added, {signs.count('-')} removed"


def _coloured(line: str) -> str:
    colours = {"+": "green", "→": "green", "-": "red", "~": "red", "@": "cyan"}
    colour = colours.get(line[:1])
    return click.style(line, fg=colour) if colour else line
