"""What commands print: results to standard output, all else to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from soulgit.core.record import one_line
from soulgit.errors import SoulgitError, StorageFailed

if TYPE_CHECKING:
    from soulgit.core.composition import Soul

_MESSAGE_COLUMNS = 400


def write(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the locale, and nothing more."""
    with _told_if_lost():
        click.echo(_bytes(text), nl=False)


def soul_json(soul: Soul) -> str:
    """Return a soul as the JSON document that `compose` prints."""
    import hashlib

    value = {
        "soul": soul.text,
        "found": soul.found,
        "revision": soul.revision,
        "persona": soul.persona,
        "sha256": hashlib.sha256(soul.text.encode()).hexdigest(),
        "files": [asdict(report) for report in soul.files],
    }
    return _json(value, indent=2)


def line(text: str) -> None:
    """Write a line to standard output."""
    write(text + "\n")


def json_line(value: Any) -> None:
    """Write a value as one line of JSON."""
    line(_json(value))


def json_document(value: Any) -> None:
    """Write a value as JSON for people and programs."""
    line(_json(value, indent=2))


def _json(value: Any, indent: int | None = None) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=indent)


def lines(texts: Iterable[str], *, paged: bool = False) -> None:
    """Write lines as they come, through a pager where a person reads them on a terminal."""
    if paged and is_terminal():
        click.echo_via_pager(text + "\n" for text in texts)
        return
    as_it_is = is_coloured()
    for text in texts:
        line(text if as_it_is else click.unstyle(text))


def styled(text: str) -> str:
    """Return text with its colours, or without where nobody sees them."""
    return text if is_coloured() else click.unstyle(text)


def is_coloured() -> bool:
    """Whether standard output is a terminal that wants colour."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def is_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str) -> None:
    """Tell something on standard error."""
    click.echo(_printable(text), err=True)


def warnings(texts: Iterable[str]) -> None:
    """Tell warnings on standard error."""
    for text in texts:
        note(f"warning: {one_line(text, None)}")


def error(fault: SoulgitError) -> None:
    """Tell an error: what is wrong in one line, what helps, and what to do."""
    note(f"soulgit: {one_line(fault.message, _MESSAGE_COLUMNS)}")
    for text in fault.facts.get("notes", ()):  # type: ignore[attr-defined]  # lines for people
        note(f"  {one_line(str(text), None)}")
    note(f"hint: {one_line(fault.hint, None)}")


@contextmanager
def storage_fault(what: str) -> Iterator[None]:
    """Raise what the operating system refuses within as an error of soulgit."""
    try:
        yield
    except OSError as fault:
        raise StorageFailed(
            f"{what}: {fault.strerror or fault}", hint="check the path and its permissions"
        ) from fault


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error, where a person sees it, that is told how much of how much."""
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=not _is_watched()) as bar:

        def told(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        yield told


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class ReaderGone(Exception):
    """Nobody reads standard output any more, which is no fault."""


@contextmanager
def _told_if_lost() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as fault:
        raise StorageFailed(
            f"standard output cannot be written: {fault.strerror or fault}",
            hint="what the command was to do is done; only its output is lost",
        ) from fault


def flush() -> None:
    """Bring what was printed to its reader."""
    if sys.stdout is not None:
        with _told_if_lost():
            sys.stdout.flush()


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _printable(text: str) -> str:
    encoding = sys.stderr.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
