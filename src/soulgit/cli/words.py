"""The words of a command line: homes, revisions, times and texts, and how they complete."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from soulgit import disk
from soulgit.core.actor import UNKNOWN, Identity
from soulgit.errors import (
    AmbiguousHome,
    HomeNotFound,
    InvalidArgument,
    InvalidText,
    NotAHome,
    SoulgitError,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ROOT_VARIABLE = "SOULGIT_ROOT"


def root() -> str:
    """Return the directory of the homes that have a name."""
    named = os.environ.get(ROOT_VARIABLE) or os.path.expanduser("~/.soulgit")
    if named.startswith("~"):
        raise HomeNotFound(
            "nobody knows where your home directory is", hint=f"set HOME or {ROOT_VARIABLE}"
        )
    return named


class HomeWord(click.ParamType[str]):
    """A path, or a name under the root."""

    name = "home"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the homes under the root, and directories."""
        from click.shell_completion import CompletionItem

        known = [name for name in disk.names(root()) if name.startswith(incomplete)]
        return [*map(CompletionItem, sorted(known)), CompletionItem(incomplete, type="dir")]


class RevisionWord(click.ParamType[str]):
    """A revision, or a time where it is no revision."""

    name = "rev"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer HEAD and the branches and tags of the home."""
        from click.shell_completion import CompletionItem

        try:
            # While an option still lacks its value, click leaves the words unparsed.
            word = ctx.params.get("home") or next(iter(ctx.args), None)
            repository = open_home(word).repository
            names = [name.split("/", 2)[2] for name in repository.refs("refs/heads/")]
            names += [name.split("/", 2)[2] for name in repository.refs("refs/tags/")]
        except SoulgitError:
            return []
        return [CompletionItem(name) for name in ["HEAD", *names] if name.startswith(incomplete)]


HOME = HomeWord()
REVISION = RevisionWord()

at_option = click.option(
    "--at",
    type=REVISION,
    metavar="REV|TIME",
    help="As it was at a revision, or at an ISO 8601 time.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
home_argument = click.argument("home", type=HOME, metavar="HOME")
optional_home_argument = click.argument("home", type=HOME, metavar="[HOME]", required=False)


def home_path(word: str | None) -> str:
    """Return the directory that a word names, or the home around the current directory.

    Raises AmbiguousHome where a directory here and a home under the root have the name.
    """
    if word is None:
        return _around()
    named = os.path.join(root(), word)
    if _is_path(word) or not os.path.isdir(named):
        return word
    if os.path.lexists(word) and not os.path.samefile(word, named):
        raise AmbiguousHome(
            f"{word} names a directory here and a home under {root()}",
            hint=f"write ./{word} for the one here, or {named} for the other",
        )
    return named


def is_mere_name(word: str) -> bool:
    """Whether a word can name a home under the root."""
    return not _is_path(word)


def named_path(word: str) -> str:
    """Return where a home by this name lies under the root."""
    return os.path.realpath(os.path.join(root(), word))


def new_home_path(word: str) -> str:
    """Return where a home begins: a path as it is, a mere name under the root."""
    if _is_path(word) or os.path.lexists(word):
        return home_path(word)
    if word.startswith((".", "-")) or not word.isprintable():
        raise InvalidArgument(
            f"{word!r} is no name for a home", hint="begin it with a letter or a digit"
        )
    return os.path.join(root(), word)


def open_home(word: str | None) -> Any:
    """Open the home that a word names; raises HomeNotFound, naming where it was looked for."""
    from soulgit.home import Home

    path = home_path(word)
    if word is not None and not _is_path(word) and not os.path.lexists(path):
        raise HomeNotFound(
            f"there is no home {word}: neither ./{word} nor one under {root()}",
            hint="`soulgit list` shows them, `soulgit init` makes one; . is this directory",
        )
    home = Home.open(path)
    with contextlib.suppress(SoulgitError):
        home.heal()  # a reader ends what a dead writer left, where it can
    return home


def open_written(word: str | None) -> Any:
    """Open a home for a command that writes; raises NotAHome for a directory that is none."""
    home = open_home(word)
    home.repository  # noqa: B018  # raises where there is none
    return home


def resolve_at(home: Any, words: str | None) -> str | None:
    """Return the commit that --at means; which one a time means is told on standard error."""
    if words is None:
        return None
    from soulgit import revisions
    from soulgit.cli import output

    commit_id, is_time = revisions.resolve_at(home, words)
    if not is_time:
        return commit_id
    commit = home.repository.commit(commit_id)
    subject = commit.message.split("\n", 1)[0]
    output.note(f"at {commit_id[:12]} {commit.time.iso()} {subject}")
    return commit_id


def read_text(word: str) -> str:
    """Return a text as given, or standard input for `-`, its last line end dropped."""
    if word != "-":
        return word
    data = read_input()
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as fault:
        raise InvalidText(
            f"standard input is no UTF-8 (byte {fault.start + 1})", hint="send it as UTF-8"
        ) from None


def read_input() -> bytes:
    """Return all of standard input; raises InvalidText where it is closed."""
    if sys.stdin is None:
        raise InvalidText("standard input is closed", hint="give the text itself")
    return sys.stdin.buffer.read()


def user(home: Any) -> Identity:
    """Return the user's git identity, for commits that commands make."""
    name, email = (home.repository.setting(f"user.{part}") for part in ("name", "email"))
    return Identity.clean(name or "", email or "") if name or email else UNKNOWN


def _is_path(word: str) -> bool:
    return os.sep in word or word in ("", ".", "..") or "\0" in word


def _around() -> str:
    """Return the nearest directory upward whose history soulgit has written."""
    from soulgit import personas
    from soulgit.git import Repository

    try:
        here = Path.cwd()
    except OSError:
        raise HomeNotFound("the current directory is gone", hint="go to another one") from None
    for directory in (here, *here.parents):
        if os.path.lexists(directory / ".git"):
            repository = Repository.open(str(directory))
            if personas.is_written(repository, repository.head().tip):
                return str(directory)
    raise NotAHome(
        f"{here} is in no home that soulgit has written",
        hint="name the home; . means this directory",
    )
