"""Commands for hosts that write their own files: hook."""

from __future__ import annotations

import json
import sys

import click

from soulgit.cli import output, words
from soulgit.core.hosts import HOSTS, Host
from soulgit.errors import SoulgitError


@click.command("hook")
@click.argument("host", type=click.Choice(HOSTS))
@words.home_argument
@click.option("--strict", is_flag=True, help="Fail when something is wrong, for trying it out.")
def hook_command(host: Host, home: str, strict: bool) -> None:
    """Record what HOST has changed; its event comes as JSON on standard input.

    It never fails the host: what is wrong is told on standard error.
    """
    if strict:
        _hear(host, home)
        return
    try:
        _hear(host, home)
    except SoulgitError as error:
        output.error(error)
    except Exception as fault:
        output.note(f"soulgit failed in a way it should not: {type(fault).__name__}: {fault}")


def _hear(host: Host, home: str) -> None:
    from soulgit import hooking
    from soulgit.core import hosts

    event = hosts.read(host, sys.stdin.buffer.read().decode("utf-8", "replace"))
    heard = hooking.hear(words.open_written(home), host, event)
    if heard.revision is not None:
        output.note(f"soulgit: {heard.revision[:12]}")
    if heard.notice is not None:
        output.note(f"soulgit: {heard.notice}")
        if host == "claude":  # it shows this to the user; of other hosts standard error is seen
            output.line(json.dumps({"systemMessage": heard.notice}))
        if host == "openclaw":  # its handler passes this on
            output.line(heard.notice)
