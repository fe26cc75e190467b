"""Frontmatter edited in place: comments, order and spacing of what a person wrote are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from soulgit.core import soulfile
from soulgit.errors import InvalidText

_MARK = "\ufeff"


def assign(data: bytes, values: Mapping[str, Any]) -> bytes:
    """Return a soul file in whose frontmatter some keys have new values.

    Frontmatter is made where there is none. No byte outside it changes. Raises
    InvalidText where it is broken, for then nobody knows what it holds.
    """
    text = data.decode("utf-8", "surrogateescape")
    mark = _MARK if text.startswith(_MARK) else ""
    body = text.removeprefix(_MARK)
    found = soulfile.find_frontmatter(body)
    end = "\r\n" if 0 < body.count("\r\n") == body.count("\n") else "\n"
    if found is None:
        head = f"+++\n{_assigned('', values)}+++\n\n".replace("\n", end)
        changed = head + body
    elif found.fault is not None:
        raise InvalidText(
            f"the frontmatter of SOUL.md is broken: {found.fault}",
            hint="mend it by hand; `soulgit lint` names the line",
        )
    else:
        inside = body[found.start : found.end]
        plain = _assigned(inside.replace(end, "\n"), values)
        changed = body[: found.start] + plain.replace("\n", end) + body[found.end :]
    return (mark + changed).encode("utf-8", "surrogateescape")


def _assigned(source: str, values: Mapping[str, Any]) -> str:
    import tomlkit  # its import is dear, and only an edit needs it

    document = tomlkit.parse(source)
    for name, value in values.items():
        document[name] = value
    written = tomlkit.dumps(document)
    return written if written.endswith("\n") else written + "\n"
