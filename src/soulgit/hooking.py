"""Hooks of hosts that write their own files: what they changed is recorded, with who and why."""

from __future__ import annotations

from dataclasses import dataclass

from soulgit import capturing, freeze
from soulgit.adoption import Hand
from soulgit.core.actor import UNKNOWN
from soulgit.core.hosts import Event, Host
from soulgit.core.record import Record
from soulgit.gate import waits
from soulgit.home import AnyHome, Home, as_home


@dataclass(frozen=True)
class Heard:
    """What came of an event: the commit, None where nothing had changed, and what to say."""

    revision: str | None
    notice: str | None


def hear(home: AnyHome, host: Host, event: Event) -> Heard:
    """Record what a host changed; at a session's beginning also say what a person must decide.

    What a tool call changed is the companion's own; what is found when a session begins was
    changed in between, by a hand that nobody knows. Raises all that a home can refuse.
    """
    home = as_home(home)
    if event.begins and (notice := _notice(home)) is not None:
        return Heard(None if freeze.state(home.repository) else _capture(home, host, event), notice)
    return Heard(_capture(home, host, event), None)


def _capture(home: Home, host: Host, event: Event) -> str | None:
    told = Record(
        "capture",
        origin="hand" if event.begins else host,
        source=event.source,
        session=event.session,
        model=event.model,
        reason=None if event.begins else event.told,
    )
    author = UNKNOWN if event.begins else home.companion(home.look())
    return capturing.capture(home, Hand(author, told))


def _notice(home: Home) -> str | None:
    """Return what the person must know before the agent goes on, if anything."""
    frozen = freeze.state(home.repository)
    if frozen is not None:
        return (
            f"{home.path} is frozen {frozen.told()}. What this agent writes to its memory is not "
            f"recorded. `soulgit thaw {home.path}` lets it go on."
        )
    if waits(home):
        return (
            f"The persona of {home.path} was edited, and nobody has settled what that does to the "
            f"memories. `soulgit settle {home.path}` shows the edit and the choices."
        )
    return None
