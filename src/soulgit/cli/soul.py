"""`compose`: the soul, as it is or as it was."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from soulgit.cli import output, words
from soulgit.errors import InvalidArgument

if TYPE_CHECKING:
    from soulgit.core.composition import Soul
    from soulgit.home import Home


@click.command("compose")
@words.optional_home_argument
@words.at_option
@words.json_option
@click.option("--output", "target", metavar="FILE", help="Write to FILE, not standard output.")
def compose_command(home: str | None, at: str | None, as_json: bool, target: str | None) -> None:
    """Print the system prompt, from the working files or from a revision.

    What was cut, replaced or hidden is told on standard error.
    """
    from soulgit import prompt

    opened = words.open_home(home)
    commit_id = words.resolve_at(opened, at)
    soul = prompt.compose_soul(opened, at=commit_id)
    output.warnings(soul.warnings)
    if not soul.found:
        output.warnings([f"{opened.path} has no bootstrap files, so the soul is empty"])
    text = _json(soul) if as_json else soul.text
    if target is None:
        output.line(text)
    else:
        _write(opened, target, text + "\n")


def _json(soul: Soul) -> str:
    import json

    value = {
        "soul": soul.text,
        "found": soul.found,
        "revision": soul.revision,
        "persona": soul.persona,
        "sha256": hashlib.sha256(soul.text.encode()).hexdigest(),
        "files": [asdict(report) for report in soul.files],
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def _write(home: Home, target: str, text: str) -> None:
    """Write the soul to a file of the user's, which may not be part of the home itself."""
    inside = os.path.relpath(os.path.realpath(target), home.path)
    working = home.look()
    taken = {file.path for file in working.files.values()}
    taken.update(path for _, path in working.layout.paths())
    if inside.split(os.sep)[0] == ".git" or inside in taken:
        raise InvalidArgument(
            f"{target} is part of the home and would be overwritten", hint="name another file"
        )
    with output.storage_fault(f"cannot write {target}"), open(target, "wb") as file:
        file.write(text.encode())
