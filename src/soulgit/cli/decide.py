"""`settle`, `fork`: what a persona edit does to the memories, and companions of their own."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from soulgit.cli import output, words
from soulgit.errors import InvalidArgument, PersonaPending

if TYPE_CHECKING:
    from soulgit.core.settlement import Plan
    from soulgit.settling import Edited, Settled
    from soulgit.updating import Progress, Reader

MODEL_VARIABLE = "SOULGIT_MODEL"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
API_KEY_VARIABLE = "OPENAI_API_KEY"


def decision_options(command: Any) -> Any:
    """Add the options that decide, and those of `update`'s reader."""
    for option in reversed(
        (
            click.option("--continue", "keep", is_flag=True, help="Memories stay as they are."),
            click.option("--update", "reread", is_flag=True, help="Memories are read anew."),
            click.option("--fork", metavar="NAME", help="A new companion without memories."),
            click.option("--reason", help="Why; kept with the decision."),
            click.option("--model", metavar="NAME", help=f"update: the model (${MODEL_VARIABLE})."),
            click.option("--base-url", metavar="URL", help="update: its endpoint, like OpenAI's."),
            click.option("--reader", metavar="COMMAND", help="update: a program that reads."),
            click.option("--batch-size", type=click.IntRange(min=1), default=20, show_default=True,
                         help="update: entries a batch."),
            click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=120.0,
                         show_default=True, help="update: seconds a batch may take."),
            click.option("--review", is_flag=True, help="update: show it and stop before landing."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("settle")
@words.home_argument
@decision_options
@click.option("--discard", is_flag=True, help="The persona is as it was before the edit.")
@click.option("--land", is_flag=True, help="Land an update that was reviewed.")
@click.option("--abort", is_flag=True, help="End an update without landing it.")
@click.option("--dry-run", is_flag=True, help="Print what a decision would do, and do nothing.")
def settle_command(
    home: str, discard: bool, land: bool, abort: bool, dry_run: bool, **asked: Any
) -> None:
    """Decide what an edit of the persona does to the memories.

    Without a decision it shows the edit and asks. continue: the memories stay as they
    were felt. update: they are re-read under the new persona. fork: the edit becomes a
    new companion without memories, and the old one is archived. discard: the persona is
    as it was.
    """
    from soulgit import settling, updating

    opened = words.open_written(home)
    by = words.user(opened)
    chosen = _chosen(asked, discard=discard, land=land, abort=abort)
    if chosen is None and not dry_run:
        _show(opened)
        chosen, asked["fork"] = _ask()
    if dry_run:
        _dry_run(opened, chosen, asked["fork"])
    elif chosen == "abort":
        output.note(f"the update to persona/{updating.abort(opened)} is ended; the edit is pending")
    elif chosen == "land":
        tell(opened, updating.land(opened, by, reason=asked["reason"]))
    elif chosen == "discard":
        tell(opened, settling.decide(opened, "discard", by, reason=asked["reason"]))
    elif chosen is not None:
        tell(opened, decide(opened, chosen, asked))


def decide(home: Any, chosen: str, asked: dict[str, Any], edited: Edited | None = None) -> Settled:
    """Carry out continue, update or fork with the options of the command line."""
    from soulgit import settling, updating

    by = words.user(home)
    if chosen == "update":
        reader = _reader(asked)
        with _progress() as progress:
            return updating.update(
                home,
                reader,
                by,
                batch_size=asked["batch_size"],
                model=asked["model"]
                or (None if asked["reader"] else os.environ.get(MODEL_VARIABLE)),
                edited=edited,
                reason=asked["reason"],
                review=asked["review"],
                progress=progress,
            )
    return settling.decide(
        home,
        chosen,  # type: ignore[arg-type]  # one of the decisions
        by,
        name=asked["fork"],
        edited=edited,
        reason=asked["reason"],
        new_id=secrets.token_hex(8),
        new_token=secrets.token_hex(16),
    )


def chosen_for_edit(asked: dict[str, Any]) -> str | None:
    """Return the one decision that the options of `edit` name, None for none."""
    return _chosen(asked)


@click.command("fork")
@words.home_argument
@click.argument("name")
@click.option("--at", type=words.REVISION, metavar="REV", help="From this revision (default: tip).")
@click.option("--keep-memories", is_flag=True, help="It has the memories, and descends from them.")
@click.option("--home", "directory", metavar="DIR", help="Where its home shall be.")
@click.option("--no-home", is_flag=True, help="A branch alone, without a home.")
def fork_command(
    home: str,
    name: str,
    at: str | None,
    keep_memories: bool,
    directory: str | None,
    no_home: bool,
) -> None:
    """Make a sibling companion from any revision.

    Nothing is decided and nothing archived.
    """
    from soulgit import forking

    if no_home and directory is not None:
        raise InvalidArgument("--home and --no-home say two things", hint="give one of them")
    opened = words.open_written(home)
    place = None if no_home else directory or _place_beside(opened, home, name)
    done = forking.fork(
        opened,
        name,
        words.user(opened),
        at=at,
        keep_memories=keep_memories,
        directory=place,
        new_id=secrets.token_hex(8),
        new_token=secrets.token_hex(16),
    )
    output.line(done.home or done.branch)
    output.note(f"the companion {done.branch} begins at {done.revision[:12]}")
    _tell_token(done.token)


def _place_beside(home: Any, word: str, name: str) -> str:
    """Return the directory of a new home: under the root where HOME is a name, else beside it."""
    is_named = os.path.dirname(os.path.realpath(home.path)) == os.path.realpath(words.root())
    base = words.root() if is_named else os.path.dirname(home.path)
    return os.path.join(base, name.replace("/", "-"))


def _chosen(asked: dict[str, Any], **more: bool) -> str | None:
    named = {"continue": asked["keep"], "update": asked["reread"], "fork": asked["fork"], **more}
    chosen = [decision for decision, is_given in named.items() if is_given]
    if len(chosen) > 1:
        raise InvalidArgument(
            f"{' and '.join(chosen)} cannot both be decided", hint="give one of them"
        )
    return chosen[0] if chosen else None


def _show(home: Any) -> None:
    """Show the pending edit and how many memories wait for the decision."""
    from soulgit import homes, settling
    from soulgit.cli.history import diff_lines
    from soulgit.errors import NothingPending

    if not settling.is_pending(home):
        raise NothingPending(f"the persona of {home.path} is settled; there is nothing to decide")
    output.lines(diff_lines(settling.persona_changes(home)))
    count = sum(homes.status(home).entries.values())
    output.note(f"{count} memories were written before this edit")


def _ask() -> tuple[str | None, str | None]:
    """Ask a person on a terminal; elsewhere say what there is to decide."""
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise PersonaPending("a persona edit waits for a decision")
    choices = click.Choice(["continue", "update", "fork", "discard", "nothing"])
    chosen = click.prompt("What shall the memories do?", type=choices, err=True, default="nothing")
    if chosen == "nothing":
        return None, None
    name = click.prompt("The new companion's name", err=True) if chosen == "fork" else None
    return chosen, name


def _reader(asked: dict[str, Any]) -> Reader:
    from soulgit import readers

    if asked["reader"] is not None:
        try:
            parts = shlex.split(asked["reader"])
        except ValueError as fault:
            raise InvalidArgument(f"the reader {asked['reader']!r}: {fault}") from fault
        return readers.CommandReader(parts, timeout_seconds=asked["timeout"])
    model = asked["model"] or os.environ.get(MODEL_VARIABLE)
    if not model:
        raise InvalidArgument(
            "nobody is named to read the memories",
            hint=f"give --model NAME (or ${MODEL_VARIABLE}), or --reader COMMAND",
        )
    return readers.ModelReader(
        model,
        asked["base_url"] or os.environ.get(BASE_URL_VARIABLE),
        os.environ.get(API_KEY_VARIABLE),
        timeout_seconds=asked["timeout"],
    )


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show on a terminal how many entries are read."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with click.progressbar(length=1, label="reading", file=sys.stderr) as bar:

        def told(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        yield told


def _dry_run(home: Any, chosen: str | None, name: str | None) -> None:
    from soulgit import memory, settling

    if chosen is None or chosen in ("land", "abort"):
        raise InvalidArgument(
            "--dry-run needs a decision to show",
            hint="add --continue, --update, --fork or --discard",
        )
    plan = settling.preview(home, chosen, name=name)  # type: ignore[arg-type]
    output.lines(_plan_lines(plan))
    known = memory.list_entries(home)
    output.line(f"memories  {len(known)} entries, {sum(e.seared for e in known)} of them seared")


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield f"decision  {plan.decision}"
    for commit in plan.commits:
        yield f"commit    {commit.name}: {commit.record.subject}"
    for ref, (old, new) in plan.refs.items():
        yield f"ref       {ref}: {(old or 'new')[:12]} → {new}"
    if plan.head:
        yield f"HEAD      {plan.head}"
    for path, data in plan.files.items():
        yield f"file      {path}: {'removed' if data is None else f'{len(data)} bytes'}"


def tell(home: Any, done: Settled) -> None:
    """Tell what a decision did, and what to restart."""
    from soulgit import updating

    if not done.is_landed:
        for entry in updating.review(home):
            output.lines(f"- {line}" for line in entry.before.splitlines())
            output.lines(f"+ {line}" for line in entry.after.splitlines())
        output.note(f"read as persona/{done.number}; settle with --land, or end it with --abort")
        return
    output.line(done.revision)
    shown = f", as persona/{done.number}" if done.number else ""
    output.note(f"settled by {done.decision}{shown}, on branch {done.branch}")
    if done.decision != "discard":
        output.note("sessions that run the old soul keep it; restart them to take on the new one")
    if done.unread:
        output.note(f"{done.unread} entries came or changed meanwhile and were not read")
    for text in done.kept_twice:
        output.note(f"kept twice, for it was changed on both sides: {text}")
    _tell_token(done.token)


def _tell_token(token: str | None) -> None:
    if token is not None:
        output.note(f"its doctor token, shown this once: {token}")
