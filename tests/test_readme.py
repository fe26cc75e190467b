"""Every example of the README is run, and what is shown is what comes out.

Commit ids and times differ from run to run, and the places of homes from machine to
machine; these alone are masked. Examples run in order, in one directory.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from soulgit.cli.app import VERBS, cli

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Stage:
    """Where the examples run: a directory, and the HOME of their shell."""

    directory: Path
    home: Path

    def mask(self, text: str) -> str:
        text = text.replace(str(self.directory), "/tmp").replace(str(self.home), "~")
        text = re.sub(r"\b(?:[0-9a-f]{40}|[0-9a-f]{12})\b", "ID", text)
        text = re.sub(r"\d{8}T\d{6}Z", "TIME", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\+\d\d:\d\d)?", "TIME", text)
        return re.sub(r"(?<=TIME) +\d+s ", " AGE ", text)


def run_shell(stage: Stage, command: str) -> str:
    """Run a command as a person's shell would, both streams as they come."""
    environment = {
        "HOME": str(stage.home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1; {command}"],
        cwd=stage.directory,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    return done.stdout.decode()


def run_python(stage: Stage, source: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(stage.directory)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "README.md", "exec"), {"__name__": "readme"})
    return printed.getvalue()


def run_configured(stage: Stage, kind: str, body: str) -> None:
    """Run the commands that a host's configuration names, as the host would with no event."""
    if kind == "json":
        json.loads(body)
    commands = re.findall(r'"?command"?: "([^"]+)"', body)
    assert commands
    for command in commands:
        assert "hint: hooks read the host's JSON" in run_shell(stage, f"{command} </dev/null 2>&1")


def test_every_example_shows_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "work", tmp_path / "home")
    stage.directory.mkdir()
    stage.home.mkdir()
    printed = ""
    kinds = []
    for kind, body in BLOCK.findall(README):
        kinds.append(kind)
        if kind == "console":
            for example in body.split("$ ")[1:]:
                command, _, shown = example.partition("\n")
                assert stage.mask(run_shell(stage, command)) == stage.mask(shown), command
        elif kind == "python":
            printed = run_python(stage, body, monkeypatch)
        elif kind == "text":
            assert stage.mask(printed) == stage.mask(body)
        elif kind in ("json", "yaml"):
            run_configured(stage, kind, body)
        else:
            assert kind == "sh", "a kind of example that nothing runs"
    assert {"console", "python", "text"} <= set(kinds)


def test_the_two_commands_are_one_line_each() -> None:
    commands = [body for kind, body in BLOCK.findall(README) if kind == "sh"]
    assert len(commands) == 2
    assert [body.count("\n") for body in commands] == [1, 1]
    assert commands[0].endswith("soulgit tour\n")
    assert commands[1].endswith("python -m tests\n")


def leaf_commands() -> list[tuple[str, click.Command]]:
    context = click.Context(cli)
    found = []
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        assert command is not None
        if isinstance(command, click.Group):
            found += [(f"{verb} {name}", below) for name, below in command.commands.items()]
        else:
            found.append((verb, command))
    return found


@pytest.mark.parametrize(("name", "command"), leaf_commands(), ids=lambda value: str(value))
def test_every_command_is_documented(name: str, command: click.Command) -> None:
    row = re.search(rf"^\| `soulgit {name}\b(.*)$", README, re.MULTILINE)
    assert row, f"soulgit {name} is in no row of the README's table"
    assert command.help, f"soulgit {name} has no help"
    options = [o for p in command.params if isinstance(p, click.Option) for o in p.opts]
    row_stands_for = row.group(1) + (SHARED if "…" in row.group(1) else "")
    if name == "edit":
        row_stands_for += README.split("| `soulgit settle HOME", 1)[1].split("\n", 1)[0]
    missing = [option for option in options if option not in row_stands_for]
    assert not missing, f"soulgit {name}: {missing} are not in its row"


SHARED = "--target --reason --source"


def test_every_verb_is_in_one_group() -> None:
    verbs = [verb for group in VERBS.values() for verb in group]
    assert len(verbs) == len(set(verbs))


def test_every_exit_code_is_documented() -> None:
    listed = re.search(r"Exit codes: (.*?)\.\n", README, re.DOTALL)
    assert listed
    codes = {int(code) for code in re.findall(r"\b(\d+) ", listed.group(1))}
    assert codes == {0, 1, 2, 3, 4, 5, 70, 130}


def test_every_rule_of_lint_is_in_the_table() -> None:
    from soulgit.core.lint import RULES

    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (error|warning) \| .+ \|$", README, re.MULTILINE)
    assert rows == [(rule.name, rule.severity) for rule in RULES]
    assert all(rule.mend for rule in RULES)
