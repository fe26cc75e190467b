"""The soul file that a new home begins with."""

from __future__ import annotations

import json

SECTIONS = (
    (
        "Who you are",
        "Say it to the companion itself: where it comes from, what it is for, how it sees "
        "itself. A few true sentences are worth more than a list.",
    ),
    (
        "How you talk",
        "Tone, length, language, humour. A line that it would say, and one that it never would.",
    ),
    (
        "What you care about",
        "What it pays attention to on its own, what delights or troubles it, what it asks after.",
    ),
    (
        "Your values",
        "What it holds to when it is pressed: what it will not do, and what comes first when two "
        "good things collide.",
    ),
)
"""The four sections that a persona has, each with what belongs there."""


def soul(identifier: str, name: str, body: str | None = None) -> bytes:
    """Return a soul file with an id and a name, and prose or an empty outline below them."""
    head = f"+++\nid = {_quote(identifier)}\nname = {_quote(name)}\n+++\n\n"
    return (head + (body if body is not None else _outline(name))).encode()


def _outline(name: str) -> str:
    sections = (f"## {title}\n\n<!-- {advice} -->\n" for title, advice in SECTIONS)
    return f"# {name}\n\n" + "\n".join(sections)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
