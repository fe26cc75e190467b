"""`memory add`, `replace`, `remove`, `list`, `capture`, `sear`, `unsear`."""

from __future__ import annotations

from dataclasses import asdict

import click

from soulgit.cli import output, words

_target = click.option(
    "--target",
    type=click.Choice(["self", "user"]),
    default="self",
    show_default=True,
    help="The companion's own memory, or what it knows of the user.",
)
_either_target = click.option(
    "--target", type=click.Choice(["self", "user"]), help="Only this memory file."
)
_reason = click.option("--reason", help="Why; kept in the commit.")
_source = click.option("--source", help="Who or what it came from, like user:42 or a URL.")


@click.group("memory")
def memory_command() -> None:
    """Add, replace, remove and list memories."""


@memory_command.command("add")
@words.home_argument
@click.argument("text")
@_target
@_reason
@_source
def add(home: str, text: str, target: str, reason: str | None, source: str | None) -> None:
    """Add a memory; TEXT - reads standard input."""
    _write(home, "add", text, None, target, reason, source)


@memory_command.command("replace")
@words.home_argument
@click.argument("text")
@click.option("--with", "replacement", default="", help="What to put there (default: nothing).")
@_target
@_reason
@_source
def replace(
    home: str, text: str, replacement: str, target: str, reason: str | None, source: str | None
) -> None:
    """Replace the first occurrence of TEXT, taken literally."""
    _write(home, "replace", text, replacement, target, reason, source)


@memory_command.command("remove")
@words.home_argument
@click.argument("text")
@_target
@_reason
@_source
def remove(home: str, text: str, target: str, reason: str | None, source: str | None) -> None:
    """Remove the first occurrence of TEXT.

    Where TEXT is a whole memory, its bullet and line go too.
    """
    _write(home, "remove", text, None, target, reason, source)


@memory_command.command("list")
@words.optional_home_argument
@_either_target
@words.at_option
@words.json_option
def list_(home: str | None, target: str | None, at: str | None, as_json: bool) -> None:
    """List the memories, now or as they were."""
    from soulgit import memory

    opened = words.open_home(home)
    commit_id = words.resolve_at(opened, at)
    found = memory.list_entries(opened, target=target, at=commit_id)  # type: ignore[arg-type]
    if as_json:
        output.json_document([asdict(entry) for entry in found])
        return
    for entry in found:
        mark = " (seared)" if entry.seared else ""
        output.line(f"{entry.target}: {entry.text}{mark}".replace("\n", "\n      "))


@click.command("capture")
@words.home_argument
@click.option("--session", metavar="ID", help="The session in which it happened.")
@click.option("--model", metavar="NAME", help="The model that wrote it.")
@_source
@_reason
def capture_command(
    home: str, session: str | None, model: str | None, source: str | None, reason: str | None
) -> None:
    """Record now what was changed by hand.

    It happens by itself before every write. A persona edit that is not settled stays aside.
    """
    from soulgit import capturing
    from soulgit.adoption import Hand
    from soulgit.core.record import Record

    opened = words.open_written(home)
    told = Record(
        "capture", origin="hand", session=session, model=model, source=source, reason=reason
    )
    before = opened.head().tip
    if capturing.capture(opened, Hand(words.user(opened), told)) is None:
        output.note("nothing was changed by hand")
    else:
        tell_commits(opened, before)


@click.command("sear")
@words.home_argument
@click.argument("text")
@_either_target
def sear_command(home: str, text: str, target: str | None) -> None:
    """Sear the one memory that TEXT names, so that it never changes again."""
    from soulgit import memory

    opened = words.open_written(home)
    before = opened.head().tip
    memory.sear(opened, words.read_text(text), words.user(opened), target=target)  # type: ignore[arg-type]
    tell_commits(opened, before)


@click.command("unsear")
@words.home_argument
@click.argument("text")
@_either_target
def unsear_command(home: str, text: str, target: str | None) -> None:
    """Let a seared memory change again.

    Also one that was changed or dropped by hand, so that the change can be recorded.
    """
    from soulgit import memory

    opened = words.open_written(home)
    before = opened.head().tip
    memory.unsear(opened, words.read_text(text), words.user(opened), target=target)  # type: ignore[arg-type]
    tell_commits(opened, before)


def _write(
    word: str,
    action: str,
    text: str,
    replacement: str | None,
    target: str,
    reason: str | None,
    source: str | None,
) -> None:
    from soulgit import memory
    from soulgit.memory import Told, Write

    opened = words.open_written(word)
    before = opened.head().tip
    outcome = memory.perform(
        opened,
        Write(action, words.read_text(text), replacement, target),  # type: ignore[arg-type]
        Told(origin="cli", source=source, reason=reason),
        author=words.user(opened),
        begins=False,
    )
    if outcome.revision is not None:
        tell_commits(opened, before)
    for note in outcome.notes:
        output.note(note)


def tell_commits(home: object, before: str | None) -> None:
    """Print the commits that a write made, oldest first."""
    from soulgit import history

    made = []
    for entry in history.log(home):  # type: ignore[arg-type]
        if entry.id == before:
            break
        made.append(f"{entry.id[:12]} {entry.record.subject}")
    for text in reversed(made):
        output.line(text)
