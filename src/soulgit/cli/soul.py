"""`compose`, `persona`, `traits`, `lint`: the soul and the files it is written in."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soulgit.cli import output, words
from soulgit.errors import InvalidArgument

if TYPE_CHECKING:
    from soulgit.home import Home


@click.command("compose")
@words.optional_home_argument
@words.at_option
@words.json_option
@click.option("--output", "target", metavar="FILE", help="Write to FILE, not standard output.")
def compose_command(home: str | None, at: str | None, as_json: bool, target: str | None) -> None:
    """Print the system prompt, now or as it was.

    What was cut, replaced or hidden is told on standard error.
    """
    from soulgit import gate, prompt

    opened = words.open_home(home)
    commit_id = words.resolve_at(opened, at)
    soul = prompt.compose_soul(opened, at=commit_id)
    output.warnings(soul.warnings)
    if commit_id is None and opened.is_home and gate.waits(opened):
        output.warnings(["a preview: the persona was edited and `soulgit settle` has not decided"])
    if not soul.found:
        output.warnings([f"{opened.path} has no bootstrap files, so the soul is empty"])
    text = output.soul_json(soul) if as_json else soul.text
    if target is None:
        output.line(text)
    else:
        _write(opened, target, text + "\n")


@click.command("persona")
@words.optional_home_argument
@click.option("--history", is_flag=True, help="List every persona that the home has had.")
@words.at_option
@words.json_option
def persona_command(home: str | None, history: bool, at: str | None, as_json: bool) -> None:
    """Print who the companion is, as a model sees it."""
    from soulgit import settling, souls

    opened = words.open_home(home)
    if history:
        had = settling.history(opened)
        if as_json:
            output.json_document([asdict(persona) for persona in had])
        for past in [] if as_json else had:
            why = f": {past.reason}" if past.reason else ""
            output.line(
                f"persona/{past.number:<4} {past.time[:16]} {past.decision:9} "
                f"{past.memories:5} memories{why}"
            )
        return
    persona = souls.read_persona(opened, at=words.resolve_at(opened, at))
    if as_json:
        output.json_document(asdict(persona))
        return
    output.note(persona.name or "a persona that no branch shows yet")
    output.line(persona.text)


@click.command("traits")
@words.home_argument
@click.argument("assignments", nargs=-1, metavar="[NAME=VALUE ...]")
@words.at_option
@words.json_option
def traits_command(home: str, assignments: tuple[str, ...], at: str | None, as_json: bool) -> None:
    """Show the traits, or give them new values.

    They apply from the next session on.
    """
    from soulgit import souls
    from soulgit.core.traits import DEFAULTS, TRAITS

    opened = words.open_written(home) if assignments else words.open_home(home)
    if assignments:
        if at is not None:
            raise InvalidArgument("a trait of the past cannot be changed", hint="leave --at out")
        changed = souls.set_traits(opened, dict(map(_assignment, assignments)), words.user(opened))
        output.note("nothing changed" if changed is None else f"recorded as {changed[:12]}")
    values = asdict(souls.read_traits(opened, at=words.resolve_at(opened, at)))
    rows = [
        {
            "name": name,
            "value": values[name],
            "default": DEFAULTS[name],
            "range": trait.range,
            "meaning": trait.meaning,
            "acted_on_by": trait.acted_on_by,
        }
        for name, trait in TRAITS.items()
    ]
    if as_json:
        output.json_document(rows)
        return
    for row in rows:
        bounds = f"{row['range']}, default {_shown(row['default'])}"
        output.line(f"{row['name']:15} {_shown(row['value']):5} {bounds:27} {row['meaning']}")
    output.note("all of them are acted on by the host, none by soulgit itself")


@click.command("lint")
@click.argument("place", type=words.HOME, metavar="[HOME|DIRECTORY|FILE]", required=False)
@words.at_option
@words.json_option
def lint_command(place: str | None, at: str | None, as_json: bool) -> int:
    """Tell what is wrong with the files, and what mends it."""
    from soulgit import souls

    if place is not None and os.path.isfile(place) and at is None:
        with output.storage_fault(f"cannot read {place}"):
            found = souls.lint_text(os.path.basename(place), Path(place).read_bytes())
    else:
        opened = words.open_home(place)
        found = souls.lint_home(opened, at=words.resolve_at(opened, at))
    if as_json:
        output.json_document([asdict(finding) for finding in found])
    else:
        for f in found:
            output.line(f"{f.file}:{f.line}:{f.column}: {f.severity}: {f.message} [{f.rule}]")
    return int(any(finding.severity == "error" for finding in found))


def _assignment(word: str) -> tuple[str, float | bool]:
    name, sign, value = word.partition("=")
    name, value = name.strip(), value.strip()
    if not sign:
        raise InvalidArgument(f"{name} has no value", hint="write NAME=VALUE, like drift=0.2")
    if value in ("true", "false"):
        return name, value == "true"
    for read in (int, float):
        try:
            return name, read(value)
        except ValueError:
            continue
    raise InvalidArgument(f"the value of {name} is no number and not true or false")


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
