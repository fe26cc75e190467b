"""`watch`: what a host without hooks writes is recorded as it comes."""

from __future__ import annotations

import signal
import threading

import click

from soulgit.cli import output, words
from soulgit.cli.memory import tell_commits
from soulgit.errors import SoulgitError


@click.command("watch")
@words.home_argument
@click.option("--session", metavar="ID", help="The session in which it happens.")
@click.option("--model", metavar="NAME", help="The model that writes it.")
@click.option("--source", help="Who or what it comes from, like user:42 or a URL.")
def watch_command(home: str, session: str | None, model: str | None, source: str | None) -> None:
    """Record what changes in HOME until Ctrl-C, a line for each commit.

    For hosts that write the files themselves and have no hooks.
    """
    from soulgit import watching
    from soulgit.adoption import Hand
    from soulgit.core.record import Record

    opened = words.open_written(home)
    told = Record("capture", origin="hand", session=session, model=model, source=source)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # what is being recorded is ended first
        signal.signal(number, lambda *_: stop.set())
    output.note(f"watching {opened.path}; Ctrl-C ends it")
    before = opened.head().tip
    for came in watching.watch(opened, Hand(record=told), stop):
        if isinstance(came, SoulgitError):
            output.error(came)
            continue
        tell_commits(opened, before)
        output.flush()
        before = came
