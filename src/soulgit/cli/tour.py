"""`tour`: the story of a home, played in a temporary directory."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import click

from soulgit.cli import output, words
from soulgit.errors import BugError

_PERSONAS = ("nova.md", "sterner.md")

STORY: tuple[tuple[str, str, int], ...] = (
    (
        "A persona is a Markdown file. This makes a home of it, which is a git repository.",
        "init nova --from nova.md",
        0,
    ),
    (
        "Every memory is a commit, and knows whom it came from.",
        'memory add nova "The user is in Pune, IST." --target user',
        0,
    ),
    ("", 'memory add nova "The third drawer sticks." --source telegram:ann', 0),
    ("So there is a history to ask.", "log nova", 0),
    ("This is the system prompt of the next session.", "compose nova", 0),
    ("And this is what it was one memory ago.", "compose nova --at HEAD~1", 0),
    ("What did that memory change in the soul?", "diff nova HEAD~1 HEAD", 0),
    ("Who taught Nova what, and when?", "blame nova", 0),
    ("Take the last memory back, and look for it.", "undo nova", 0),
    ("", "search nova drawer --ever", 0),
    ("An undo can be undone.", "undo nova", 0),
    ("A memory that must never change is seared.", 'sear nova "The third drawer"', 0),
    ("Traits are for the host, in the frontmatter.", "traits nova drift=0", 0),
    ("Is anything wrong with the files? Nothing said is nothing found.", "lint nova", 0),
    ("Somebody makes Nova another person.", "edit nova --from sterner.md", 0),
    (
        "Then no memory is written until a person has decided what that does to the old ones.",
        'memory add nova "Tea is at four."',
        3,
    ),
    ("They stay as they were felt.", 'settle nova --continue --reason "a busier workshop"', 0),
    ("Who has Nova been?", "persona nova --history", 0),
    ("And this is a sister of the first Nova, with a home and no memories.",
     "fork nova robin --at persona/1", 0),
    ("", "branch nova", 0),
    ("A secret slipped in. It has to go from history too, and from every home.",
     'memory add nova "The safe opens with 8812-north."', 0),
    ("", "redact nova 8812-north --yes", 0),
    ("", "log nova -n 1", 0),
)  # fmt: skip
"""What is told, the command that shows it, and the exit code it ends with."""


@click.command("tour")
def tour_command() -> None:
    """Play the story of a home, and leave nothing behind."""
    with _stage():
        for told, command, code in STORY:
            if told:
                output.line(f"\n# {told}")
            output.line(f"$ soulgit {command}")
            output.flush()
            _play(command, code)
    output.line("\n# That home is gone again. `soulgit init NAME` makes one that stays.")


def _play(command: str, expected: int) -> None:
    from soulgit.cli.app import run

    code = run(shlex.split(command))
    if code != expected:
        raise BugError(f"the tour stopped: soulgit {command} exited with {code}")


@contextmanager
def _stage() -> Iterator[None]:
    """Be in a temporary directory that is the root of homes and holds the persona."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="soulgit-tour-") as directory:
        for name in _PERSONAS:
            persona = resources.files("soulgit").joinpath("data", name)
            with resources.as_file(persona) as source:
                shutil.copyfile(source, Path(directory, name))
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
