"""A capture in words: what came, went and was reworded; in the body, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from soulgit.core.layout import Target
from soulgit.core.record import one_line, subject_for
from soulgit.core.tracing import Change

_NAMED = 50
"""Not more entries than this are named in a body; the commit itself has them all."""


def subject(changes: Mapping[Target, Change], others: Mapping[str, str]) -> str:
    """Return a subject like `memory(self): 13 entries gone, 1 added`.

    `others` has what happened to files that are told as a whole, by path, like `changed AGENTS.md`.
    """
    parts = [_of_target(target, change) for target, change in changes.items()]
    if others:
        whole = ", ".join(others.values())
        parts.append(whole if parts else f"capture: {whole}")
    return "; ".join(parts)


def body(changes: Mapping[Target, Change], lines: Mapping[str, str]) -> str:
    """Return what happened to each path, a line each, and then the entries by name."""
    named = [line for change in changes.values() for line in _entries(change)]
    more = len(named) - _NAMED
    return "\n".join(
        [*lines.values(), *named[:_NAMED], *([f"and {more} more"] if more > 0 else [])]
    )


def _of_target(target: Target, change: Change) -> str:
    topic = f"memory({target})"
    added, removed, reworded = change.added, change.removed, change.reworded
    if len(added) + len(removed) + len(reworded) > 1:
        return f"{topic}: {_counted(len(added), len(removed), len(reworded))}"
    if reworded:
        return subject_for(topic, "replace", *(item.text for item in reworded[0]))
    return subject_for(topic, "add" if added else "remove", (added or removed)[0].text)


def _counted(added: int, removed: int, reworded: int) -> str:
    counts = [(removed, "gone"), (added, "added"), (reworded, "reworded")]
    first, *rest = [(count, what) for count, what in counts if count]
    noun = "entry" if first[0] == 1 else "entries"
    return ", ".join(
        [f"{first[0]} {noun} {first[1]}", *(f"{count} {what}" for count, what in rest)]
    )


def _entries(change: Change) -> Iterator[str]:
    yield from (f"gone: {_line(item.text)}" for item in change.removed)
    yield from (f"added: {_line(item.text)}" for item in change.added)
    for was, now in change.reworded:
        yield f"reworded: {_line(was.text)}"
        yield f"to: {_line(now.text)}"


def _line(text: str) -> str:
    return one_line(text, None)
