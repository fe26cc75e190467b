"""What hosts tell their hooks, in the shapes that their own programs write.

Sources of the shapes: Hermes Agent 0.19, `agent/shell_hooks.py`; Claude Code's hooks reference
(`PostToolUse`, `SessionStart`); for OpenClaw, whose hooks are JavaScript, what the handler that
soulgit installs passes on of an internal hook's event. A value is data from outside: it is kept
where it is a short text, and else passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from soulgit.errors import EventUnreadable

Host = Literal["hermes", "claude", "openclaw"]
HOSTS: tuple[Host, ...] = get_args(Host)

_BEGINNINGS = (
    "on_session_start",
    "SessionStart",
    "agent:bootstrap",
    "command:new",
    "command:reset",
)
_LONGEST = 500


@dataclass(frozen=True)
class Event:
    """One moment in a host: a session that begins, or a tool that was called; None: not told."""

    name: str
    session: str | None = None
    model: str | None = None
    source: str | None = None
    tool: str | None = None
    action: str | None = None

    @property
    def begins(self) -> bool:
        """Whether a session begins."""
        return self.name in _BEGINNINGS

    @property
    def told(self) -> str | None:
        """The tool and what it did, in words."""
        return " ".join(word for word in (self.tool, self.action) if word) or None


def read(host: Host, text: str) -> Event:
    """Return the event that a host's JSON tells; raises EventUnreadable."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise EventUnreadable(f"the event of {host} is no JSON: {fault}") from fault
    if not isinstance(values, dict):
        raise EventUnreadable(f"the event of {host} is no JSON object")
    event = _READERS[host](values)
    if not event.name:
        raise EventUnreadable(f"the event of {host} does not say what happened")
    return event


def _hermes(values: Mapping[str, Any]) -> Event:
    more, given = _below(values, "extra"), _below(values, "tool_input")
    several = isinstance(given.get("operations"), list) and given["operations"]
    return Event(
        name=_text(values, "hook_event_name") or "",
        session=_text(values, "session_id"),
        model=_text(more, "model"),
        source=_joined(_text(more, "platform"), _text(more, "user_id")),
        tool=_text(values, "tool_name"),
        action=f"{len(several)} operations" if several else _text(given, "action"),
    )


def _claude(values: Mapping[str, Any]) -> Event:
    return Event(
        name=_text(values, "hook_event_name") or "",
        session=_text(values, "session_id"),
        model=_text(values, "model"),
        tool=_text(values, "tool_name"),
    )


def _openclaw(values: Mapping[str, Any]) -> Event:
    context = _below(values, "context")
    name = f"{_text(values, 'type') or ''}:{_text(values, 'action') or ''}"
    return Event(
        name="" if name == ":" else name,
        session=_text(context, "sessionId") or _text(values, "sessionKey"),
        model=_text(context, "model"),
        source=_joined(_text(context, "commandSource"), _text(context, "senderId")),
    )


_READERS = {"hermes": _hermes, "claude": _claude, "openclaw": _openclaw}


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value[:_LONGEST] if isinstance(value, str) and value.strip() else None


def _below(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    return value if isinstance(value, dict) else {}


def _joined(place: str | None, who: str | None) -> str | None:
    return ":".join(part for part in (place, who) if part) or None
