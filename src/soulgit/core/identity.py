"""What `IDENTITY.md` says of a companion in labelled lines, like `- **Name:** Ava`."""

from __future__ import annotations

import re

_LABEL = re.compile(r"^[ \t]*[-*+]?[ \t]*(?:\*\*|__)?([^\W\d_][\w ]*?)(?:\*\*|__)?[ \t]*[:：][ \t]*"
                    r"(?:\*\*|__)?(.*)$")  # fmt: skip
_PLACEHOLDER = re.compile(r"[_*]*[(\[].*[)\]][_*]*|\{\{.*\}\}|<.*>|_.*_|\.{3}|…|")
_QUOTES = "`\"'"


def value(text: str, label: str) -> str | None:
    """Return what a label is given, None where it is absent or a placeholder.

    A value stands on the label's line, else on the next; quotes and back-ticks go.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _LABEL.match(line)
        if found and found.group(1).strip().casefold() == label:
            return _value(found.group(2)) or _value_below(lines, number)
    return None


def _value_below(lines: list[str], number: int) -> str | None:
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return _value(below) if below[:1] in (" ", "\t") and not _LABEL.match(below) else None


def _value(text: str) -> str | None:
    plain = text.strip().strip(_QUOTES).strip()
    return None if _PLACEHOLDER.fullmatch(plain) else plain
