"""`tour`: the story of a home, played in a temporary directory."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import click

from soulgit.cli import output, words
from soulgit.errors import BugError

_PERSONA = "nova.md"

STORY: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "A persona is a Markdown file. This makes a home of it, which is a git repository.",
        ("init", "nova", "--from", _PERSONA),
    ),
    (
        "Every memory is a commit, and knows whom it came from.",
        ("memory", "add", "nova", "The user is in Pune, IST.", "--target", "user"),
    ),
    ("", ("memory", "add", "nova", "The third drawer sticks.", "--source", "telegram:ann")),
    ("So there is a history to ask.", ("log", "nova")),
    ("This is the system prompt of the next session.", ("compose", "nova")),
    ("And this is what it was one memory ago.", ("compose", "nova", "--at", "HEAD~1")),
    ("What did that memory change in the soul?", ("diff", "nova", "HEAD~1", "HEAD")),
    ("A memory that must never change is seared.", ("sear", "nova", "The third drawer")),
    ("Traits are for the host, in the frontmatter.", ("traits", "nova", "drift=0")),
    ("Is anything wrong with the files? Nothing said is nothing found.", ("lint", "nova")),
)
"""What is told, and the command that shows it."""


@click.command("tour")
def tour_command() -> None:
    """Play the story of a home, each command with its real output, and leave nothing behind."""
    with _stage():
        for told, arguments in STORY:
            if told:
                output.line(f"\n# {told}")
            output.line(f"$ soulgit {' '.join(map(_typed, arguments))}")
            _play(arguments)
    output.line("\n# That home is gone again. `soulgit init NAME` makes one that stays.")


def _typed(word: str) -> str:
    """Quote a word where a person would."""
    return word if re.fullmatch(r"[\w./:~^-]+", word) else f'"{word}"'


def _play(arguments: tuple[str, ...]) -> None:
    from soulgit.cli.app import run

    code = run(arguments)
    if code:
        raise BugError(f"the tour stopped: soulgit {' '.join(arguments)} exited with {code}")


@contextmanager
def _stage() -> Iterator[None]:
    """Be in a temporary directory that is the root of homes and holds the persona."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="soulgit-tour-") as directory:
        persona = resources.files("soulgit").joinpath("data", _PERSONA)
        with resources.as_file(persona) as source:
            shutil.copyfile(source, Path(directory, _PERSONA))
        root = os.environ.get(words.ROOT_VARIABLE)
        os.environ[words.ROOT_VARIABLE] = os.path.join(directory, "homes")
        os.chdir(directory)
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop(words.ROOT_VARIABLE)
            if root is not None:
                os.environ[words.ROOT_VARIABLE] = root
