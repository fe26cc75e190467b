"""`init`, `list`, `status`, `branch`: homes begun, adopted, listed, and how one stands."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

import click

from soulgit.cli import output, words


@click.command("init")
@words.home_argument
@click.option("--name", help="What the companion is called (default: the directory's name).")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help="Begin with this soul file, or with plain prose; - reads standard input.",
)
@click.option("--hash-token", "token", flag_value="hash", help="Store a plain doctor token's hash.")
@click.option("--keep-token", "token", flag_value="keep", help="Commit a plain doctor token as is.")
def init_command(home: str, name: str | None, source: str | None, token: str | None) -> None:
    """Make a new home, or adopt a directory as it is.

    A new home begins with a SOUL.md to fill in. What is there already is not changed by
    one byte, missing files are not made, and a second init does nothing. HOME is a path;
    a mere name is ./NAME where that is here, else a new home under the root.
    """
    import secrets

    from soulgit import homes

    with output.storage_fault(f"cannot read {source}"):
        soul = None if source is None else _read(source)
    done = homes.init(
        words.new_home_path(home),
        identifier=secrets.token_hex(8),
        identify=words.user,
        name=name,
        source=soul,
        token=token or "refuse",  # type: ignore[arg-type]  # one of the two flags' values
    )
    output.line(done.home.path)
    if words.is_mere_name(home) and done.home.path != words.named_path(home):
        output.note(
            f"./{home} is here, so it was taken; a home by name would be new under the root"
        )
    if done.is_hashed:
        output.note("its doctor token is kept as a hash now; `soulgit capture` records the change")
    if not (done.is_hashed and done.what == "already"):
        output.note(_told(done.what, done.files, home, is_blank=source is None))


@click.command("list")
@words.json_option
def list_command(as_json: bool) -> None:
    """List the homes under the root ($SOULGIT_ROOT, else ~/.soulgit)."""
    from soulgit import homes
    from soulgit.homes import Status

    found = homes.list_homes(words.root())
    if as_json:
        output.json_document([_listed(name, state) for name, state in found])
        return
    for name, state in found:
        if isinstance(state, Status):
            count = sum(state.entries.values())
            branch = state.branch or "(detached)"
            output.line(f"{name:16} {branch:12} {count:5} entries  {state.path}")
        else:
            output.line(f"{name:16} ({state.message})")
    if not found:
        output.note(f"no homes under {words.root()}; `soulgit init NAME` makes one")


@click.command("status")
@words.optional_home_argument
@words.at_option
@words.json_option
def status_command(home: str | None, at: str | None, as_json: bool) -> None:
    """Show how a home stands: persona, memories, what was changed."""
    from soulgit import homes, settling
    from soulgit.cli.history import diff_lines

    opened = words.open_written(home)
    state = homes.status(opened, at=words.resolve_at(opened, at))
    if as_json:
        output.json_document(asdict(state))
        return
    output.line(f"home      {state.path} ({state.layout} layout)")
    output.line(f"branch    {state.branch or '(detached)'}")
    output.line(f"revision  {(state.revision or '(no commits yet)')[:12]}")
    told = f" ({' '.join(filter(None, (state.name, state.emoji)))})" if state.name else ""
    output.line(f"persona   {state.persona or '(not numbered)'}{told}")
    output.line(f"entries   {state.entries['self']} self, {state.entries['user']} user")
    output.line(f"by hand   {', '.join(state.changed) or 'nothing'}")
    if state.pending:
        output.line("pending   the persona was edited and is not settled:")
        output.lines(diff_lines(settling.persona_changes(opened)))
    if state.frozen:
        output.line(f"frozen    {state.frozen.told()} (in this clone)")
    if state.redacted:
        output.line(f"redacted  {state.redacted.told()} (in this clone)")
    for text in state.seared_changed:
        output.line(f"seared    changed or dropped by hand: {text}")
    if state.cut:
        output.line(f"cut       {', '.join(state.cut)}")
    output.warnings(state.warnings)


@click.command("branch")
@words.optional_home_argument
@words.json_option
def branch_command(home: str | None, as_json: bool) -> None:
    """List the companions in a home's repository, a branch each."""
    from soulgit import forking

    found = forking.companions(words.open_written(home))
    if as_json:
        output.json_document([asdict(companion) for companion in found])
        return
    for c in found:
        state = f"archived by {c.archived_by}" if c.archived_by else "alive"
        count = sum(c.entries.values())
        persona = c.persona or "(not numbered)"
        output.line(
            f"{c.branch:16} {persona:12} {c.revision[:12]} {count:5} entries  {state}  "
            f"{c.home or '(no home)'}"
        )


def _read(source: str) -> bytes:
    if source == "-":
        return words.read_input()
    return Path(source).read_bytes()


def _listed(name: str, state: object) -> dict[str, object]:
    from soulgit.homes import Status

    if isinstance(state, Status):
        return {"home": name, "error": None, **asdict(state)}
    return {"home": name, "error": str(state)}


def _told(what: str, files: tuple[str, ...], word: str, *, is_blank: bool) -> str:
    word = shlex.quote(word)
    if what == "already":
        return "it is a home already; nothing was changed"
    if what == "adopted":
        return f"adopted as it is: {', '.join(files)}; `soulgit status {word}` says more"
    shows = f"`soulgit compose {word}` shows the prompt"
    if is_blank:
        return f"a new home; say who it is in its SOUL.md, then `soulgit capture {word}`; {shows}"
    return f"a new home; {shows}"
