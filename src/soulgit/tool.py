"""The memory tool: what a model calls, and what it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from soulgit import memory
from soulgit.core.edits import preview
from soulgit.core.layout import TARGETS, Target, memory_name
from soulgit.errors import InvalidText, SoulgitError, TextNotFound
from soulgit.home import AnyHome, Home, as_home
from soulgit.memory import Told, Write

NAME = "memory"
DESCRIPTION = (
    "Keep a memory across sessions. add: append one memory. replace: put `with` in place of "
    "the first occurrence of `text`. remove: delete the first occurrence of `text`. Target "
    "`self` is what you know (the default), `user` what you know about the user. What you "
    "write is saved at once and loads at the start of the next session; it does not change "
    "your current context, so do not write it again."
)
_ACTIONS = ("add", "replace", "remove")
_ECHO_LENGTH = 1_000
"""How much of a text that was not found is repeated in the reply."""

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(_ACTIONS), "description": "What to do."},
        "target": {
            "type": "string",
            "enum": list(TARGETS),
            "description": "self: your own memory (the default). user: what you know of the user.",
        },
        "text": {
            "type": "string",
            "description": "add: the memory. replace, remove: the exact text to find.",
        },
        "with": {"type": "string", "description": "replace: the text to put in its place."},
    },
    "required": ["action", "text"],
    "additionalProperties": False,
}


_REASON = {"type": "string", "description": "Why, in one short sentence."}


@dataclass(frozen=True)
class Result:
    """A reply: its first line is the contract's, further ones help; `revision` the new tip."""

    output: str
    is_error: bool
    revision: str | None = None


class Tool:
    """The memory tool of one home, bound to the branch it was made on."""

    name = NAME
    description = DESCRIPTION

    def __init__(self, home: Home, told: Told, *, ask_reason: bool = False) -> None:
        self._home = home
        self._told = told
        self._ask_reason = ask_reason
        self._branch = home.head().branch if home.is_home else None

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, a copy of its own."""
        asked = {"reason": _REASON} if self._ask_reason else {}
        return {**INPUT_SCHEMA, "properties": {**INPUT_SCHEMA["properties"], **asked}}

    def execute(self, arguments: Mapping[str, Any], *, source: str | None = None) -> Result:
        """Carry out one call; whatever goes wrong is a result with `is_error`.

        `source` is who or what it came from, told by the host, never by the model.
        """
        told = self._told if source is None else replace(self._told, source=source)
        try:
            if self._ask_reason and isinstance(arguments, Mapping):
                arguments = dict(arguments)
                told = replace(told, reason=_text(arguments, "reason") or told.reason)
                arguments.pop("reason", None)
            write = parse(arguments)
            outcome = memory.perform(self._home, write, told, branch=self._branch)
            self._branch = self._branch or self._home.head().branch
        except TextNotFound as error:
            return _not_found(write.text, error)
        except SoulgitError as error:
            return Result(f"{error.message}\n{error.hint}", True)
        first = f"ok ({write.action} → {memory_name(write.target)}); loads next session"
        return Result("\n".join([first, *outcome.notes]), False, outcome.revision)

    async def aexecute(self, arguments: Mapping[str, Any], *, source: str | None = None) -> Result:
        """Do as execute() does, in a thread, so that an event loop goes on."""
        return await asyncio.to_thread(self.execute, arguments, source=source)


def memory_tool(
    home: AnyHome,
    *,
    session: str | None = None,
    model: str | None = None,
    origin: str = "tool",
    source: str | None = None,
    ask_reason: bool = False,
) -> Tool:
    """Return the memory tool of a home, or of a directory that becomes one at its first write.

    With `ask_reason` the model may say why; it goes into the commit's trailers.
    """
    told = Told(origin=origin, source=source, session=session, model=model)
    return Tool(as_home(home), told, ask_reason=ask_reason)


def parse(arguments: Mapping[str, Any]) -> Write:
    """Return the action that a model's arguments name; raises InvalidText for others."""
    if not isinstance(arguments, Mapping):
        raise InvalidText("the arguments are no object", hint=_usage())
    unknown = [str(name) for name in arguments if name not in INPUT_SCHEMA["properties"]]
    if unknown:
        raise InvalidText(f"unknown argument: {preview(', '.join(unknown))}", hint=_usage())
    given = {name: value for name, value in arguments.items() if value is not None}
    action = given.get("action")
    if action not in _ACTIONS:
        raise InvalidText(f"unknown action: {preview(str(action), _ECHO_LENGTH)}", hint=_usage())
    text = _text(given, "text")
    if text is None:
        raise InvalidText("text is missing", hint=_usage())
    replacement = _text(given, "with")
    if replacement and action != "replace":
        raise InvalidText(f"{action} takes no `with`", hint="use replace, or leave `with` out")
    return Write(action, text, replacement if action == "replace" else None, _target(given))


def _target(given: Mapping[str, Any]) -> Target:
    return next((target for target in TARGETS if target == given.get("target")), "self")


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidText(f"{name} is no string", hint=_usage())
    return value


def _usage() -> str:
    return "arguments: action (add, replace, remove), text, target (self, user), with"


def _not_found(text: str, error: TextNotFound) -> Result:
    shown = text if len(text) <= _ECHO_LENGTH else text[:_ECHO_LENGTH] + "…"
    notes = error.facts.get("notes", ())
    assert isinstance(notes, tuple)
    return Result("\n".join([f"not found: {shown}", *notes]), True)
