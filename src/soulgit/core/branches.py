"""Names of the branches that companions live on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from soulgit.errors import InvalidArgument

_MAX_LENGTH = 100
_PART = re.compile(r"[^\W_](?:[\w.-]*[\w-])?")
_HEX = re.compile(r"[0-9a-fA-F]{4,40}")


def check(name: str, existing: Iterable[str]) -> None:
    """Raise InvalidArgument for a name that no companion can have, with one that it can.

    `existing` are the branches that there are: a name must not be one of them, in any
    case, nor stand above or below one.
    """
    if not all(map(_PART.fullmatch, name.split("/"))) or len(name) > _MAX_LENGTH:
        raise _refused(f"{name!r} is no name for a branch", _usable(name))
    if name.casefold() in ("head", "persona") or name.casefold().startswith("persona/"):
        raise _refused(f"{name!r} is kept for soulgit and git", f"{name.split('/')[0]}-1")
    if _HEX.fullmatch(name):
        raise _refused(f"{name!r} reads like a commit id", f"{name}-x")
    if name.endswith(".lock") or ".." in name or ".lock/" in name:
        raise _refused(f"{name!r} is a name that git keeps for itself", _usable(name))
    _refuse_clash(name, existing)


def _refuse_clash(name: str, existing: Iterable[str]) -> None:
    folded = unicodedata.normalize("NFC", name).casefold()
    for other in existing:
        taken = unicodedata.normalize("NFC", other).casefold()
        if taken == folded:
            raise _refused(f"there is a branch {other} already", f"{name}-2")
        if taken.startswith(folded + "/") or folded.startswith(taken + "/"):
            raise _refused(
                f"{name!r} cannot stand beside the branch {other}", name.replace("/", "-")
            )


def _refused(message: str, usable: str) -> InvalidArgument:
    return InvalidArgument(message, hint=f"a name like {usable} would do")


def _usable(name: str) -> str:
    words = re.findall(r"[^\W_]+", name)
    usable = "-".join(words)[:_MAX_LENGTH].removesuffix("-lock") or "ava"
    return (
        f"{usable}-1"
        if _HEX.fullmatch(usable) or usable.casefold() in ("head", "persona")
        else usable
    )
