"""`freeze`, `thaw`, `token`, `hear`, `doctor`, `gc`: the emergency stop, and keeping well."""

from __future__ import annotations

from dataclasses import asdict

import click

from soulgit.cli import output, words
from soulgit.errors import SoulgitError, UsageError

_reason = click.option("--reason", help="Why; kept with the freeze.")


@click.command("freeze")
@words.home_argument
@_reason
def freeze_command(home: str, reason: str | None) -> None:
    """Stop all writing of memory at once, on every branch."""
    opened = words.open_written(home)
    if opened.freeze(words.user(opened), reason):
        output.note("frozen; `soulgit thaw` lets memory be written again")
    else:
        output.note("it is frozen already; nothing was changed")


@click.command("thaw")
@words.home_argument
@_reason
def thaw_command(home: str, reason: str | None) -> None:
    """Let memory be written again."""
    opened = words.open_written(home)
    is_thawed = opened.thaw(words.user(opened), reason)
    output.note("memory is written again" if is_thawed else "it was not frozen")


@click.command("token")
@words.home_argument
def token_command(home: str) -> None:
    """Make a new doctor token and print it, once.

    What is stored is its hash. As a whole message to the companion it freezes memory,
    where the host asks `soulgit hear`. The token before it is no longer heard.
    """
    import secrets

    from soulgit import souls

    opened = words.open_written(home)
    word = secrets.token_hex(16)
    souls.set_token(opened, word, words.user(opened))
    output.line(word)


@click.command("hear")
@words.home_argument
def hear_command(home: str) -> int:
    """Freeze memory if the message on standard input is the doctor token.

    Exit code 0: it was, and memory is frozen now. 1: an ordinary message. 2: trouble.
    """
    opened = words.open_written(home)
    message = words.read_input().decode("utf-8", "replace")
    try:
        is_token = opened.hear(message)
    except SoulgitError as error:  # not 1, for that is an ordinary message
        output.error(error)
        return UsageError.exit_code
    if is_token:
        output.note("the doctor token was heard: memory is frozen now")
        return 0
    return 1


@click.command("doctor")
@words.optional_home_argument
@click.option("--fix", is_flag=True, help="Mend what is safe to mend, and say what was mended.")
@words.json_option
def doctor_command(home: str | None, fix: bool, as_json: bool) -> int:
    """Tell whether a home is well, and what mends what is not."""
    from soulgit import doctor
    from soulgit.home import Home

    opened = Home.open(words.home_path(home))  # as it is, with nothing healed on the way
    opened.repository  # noqa: B018  # raises where there is none
    found = doctor.examine(opened, fix=fix)
    if as_json:
        output.json_document([asdict(trouble) for trouble in found])
    else:
        for trouble in found:
            told = "mended" if trouble.mended else trouble.severity
            output.line(f"{told}: {trouble.message} [{trouble.kind}]")
            if not trouble.mended:
                output.line(f"    {trouble.mend}")
        if not found:
            output.line("all is well")
    return int(any(t.severity == "wrong" and not t.mended for t in found))


@click.command("gc")
@words.home_argument
@words.json_option
def gc_command(home: str, as_json: bool) -> None:
    """Pack what has piled up, make one pack of many, and cut reflogs to 1,000 entries.

    Writes do all of this by themselves, a little at a time; here it is done to the end.
    No object is dropped, whatever leads to it or not.
    """
    from soulgit import upkeep

    opened = words.open_home(home)
    with output.progress("packing") as progress:
        done = upkeep.gc(opened, progress)
    if as_json:
        output.json_document(asdict(done))
        return
    saved = done.bytes_before - done.bytes_after
    change = f"{_size(abs(saved))} {'less' if saved >= 0 else 'more'} than before"
    output.line(
        f"packed {done.packed} objects, made one pack of {done.folded}; "
        f"the git directory takes {_size(done.bytes_after)}, {change}"
    )


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:.1f} kB"
