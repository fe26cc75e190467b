"""The exception tree: what a caller, a script and a person can rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from soulgit import errors
from soulgit.errors import SoulgitError

EXIT_CODES = {1, 2, 3, 4, 5, 70, 130}


def below(error: type[SoulgitError]) -> Iterator[type[SoulgitError]]:
    for child in error.__subclasses__():
        yield child
        yield from below(child)


TREE = list(below(SoulgitError))
every_error = pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)

Drawn = list[tuple[str, str, str | None]]


def drawn() -> Drawn:
    """Return name, parent and exit code of each class in the docstring's drawing."""
    found: Drawn = []
    above = ["SoulgitError"]
    for line in (errors.__doc__ or "").splitlines():
        branch = re.match(r"    ((?:[│ ]   )*)[├└]── (\w+)(?: +(\d+) )?", line)
        if branch:
            del above[1 + len(branch[1]) // 4 :]
            found.append((branch[2], above[-1], branch[3]))
            above.append(branch[2])
    return found


@every_error
def test_an_error_has_a_kind_of_its_own(error: type[SoulgitError]) -> None:
    assert error.__dict__["kind"]
    everyone: list[type[SoulgitError]] = [SoulgitError, *TREE]
    assert [other for other in everyone if other.kind == error.kind] == [error]


@every_error
def test_an_error_ends_a_command_by_a_documented_code(error: type[SoulgitError]) -> None:
    assert error.exit_code in EXIT_CODES


@every_error
def test_an_error_raised_with_a_message_alone_has_a_hint(error: type[SoulgitError]) -> None:
    raised = error("it is so")
    assert str(raised) == raised.message == "it is so"
    assert raised.hint.strip()


def test_facts_are_attributes() -> None:
    raised = errors.BusyError("busy", hint="wait", lock="/a/lock")
    assert raised.hint == "wait"
    assert raised.facts == {"lock": "/a/lock"}
    assert vars(raised)["lock"] == "/a/lock"


def test_every_error_is_told_in_one_place() -> None:
    assert {error.__module__ for error in TREE} == {"soulgit.errors"}


def test_the_drawing_is_the_tree() -> None:
    parents = {(error.__name__, error.__bases__[0].__name__) for error in TREE}
    assert {(name, parent) for name, parent, _ in drawn()} == parents
    assert len(drawn()) == len(TREE)


def test_the_drawing_names_the_exit_codes() -> None:
    for name, parent, code in drawn():
        error = getattr(errors, name)
        assert error.exit_code == (int(code) if code else getattr(errors, parent).exit_code)
