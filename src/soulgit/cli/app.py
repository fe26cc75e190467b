"""`soulgit VERB`: the table of verbs, and the one seam where an error becomes an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from soulgit import __version__
from soulgit.cli import output
from soulgit.errors import BugError, SoulgitError, StorageFailed

VERBS: dict[str, dict[str, str]] = {
    "begin": {
        "init": "begin",
        "list": "begin",
        "status": "begin",
        "branch": "begin",
        "tour": "tour",
    },
    "soul": {
        "compose": "soul",
        "persona": "soul",
        "traits": "soul",
        "edit": "edit",
        "lint": "soul",
    },
    "memory": {"memory": "memory", "capture": "memory", "sear": "memory", "unsear": "memory"},
    "decide": {"settle": "decide", "fork": "decide"},
    "history": {
        "log": "history",
        "show": "history",
        "diff": "history",
        "blame": "audit",
        "search": "audit",
    },
    "repair": {
        "undo": "undo",
        "restore": "undo",
        "redact": "redact",
        "verify": "audit",
        "freeze": "repair",
        "thaw": "repair",
        "token": "repair",
        "hear": "repair",
        "doctor": "repair",
        "gc": "repair",
    },
    "serve": {"hook": "host", "watch": "watch"},
}
"""The verbs by group, each with the module of this package that holds it."""

INTERRUPTED = 130


class Verbs(click.Group):
    """A group whose commands are imported when they are asked for, and listed by group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs."""
        return [verb for verbs in VERBS.values() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb's module and return its command, named like `log_command`."""
        for verbs in VERBS.values():
            if cmd_name in verbs:
                module = importlib.import_module(f"soulgit.cli.{verbs[cmd_name]}")
                command: click.Command = getattr(module, f"{cmd_name}_command")
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs group by group."""
        for group, verbs in VERBS.items():
            commands = [(verb, self.get_command(ctx, verb)) for verb in verbs]
            with formatter.section(group.capitalize()):
                formatter.write_dl([(v, c.get_short_help_str(limit=70)) for v, c in commands if c])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="soulgit")
@click.option(
    "-C", "directories", multiple=True, metavar="DIR", help="Run as if started in DIR, like git's."
)
def cli(directories: tuple[str, ...]) -> None:
    """Keep an AI agent's identity and memory in git.

    HOME is a path, or a name under $SOULGIT_ROOT (~/.soulgit); where it is the only
    word it may be left out and is the home around the current directory. A text that
    begins with - follows --.
    """
    for directory in directories:
        with output.storage_fault(f"cannot enter {directory}"):
            os.chdir(directory)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors are told on standard error."""
    try:
        code = cli.main(args=list(arguments), prog_name="soulgit", standalone_mode=False)
        output.flush()
    except SoulgitError as error:
        return _told(error)
    except output.ReaderGone:
        _silence_output()
        return 0
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.NoSuchOption):
            output.note("hint: a text that begins with - follows --")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        output.note("interrupted")
        return INTERRUPTED
    except OSError as fault:
        return _told(StorageFailed(f"{fault.filename or 'a file'}: {fault.strerror or fault}"))
    except Exception as fault:
        return _told(_bug(fault))
    return code if isinstance(code, int) else 0


def _told(error: SoulgitError) -> int:
    output.error(error)
    try:
        output.flush()
    except (SoulgitError, output.ReaderGone):
        _silence_output()
    return error.exit_code


def _bug(fault: Exception) -> BugError:
    if os.environ.get("SOULGIT_DEBUG"):
        raise fault
    return BugError(
        f"soulgit failed in a way it should not: {type(fault).__name__}: {fault}",
        hint="please report it; SOULGIT_DEBUG=1 shows where it happened",
    )


def _silence_output() -> None:
    """Let the interpreter's last flush go nowhere, for nobody reads any more."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
