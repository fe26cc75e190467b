"""Names of the branches that companions live on."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable

from soulgit.errors import InvalidArgument

_MAX_LENGTH = 100
_HEX = re.compile(r"[0-9a-fA-F]{4,40}")


def check(name: str, existing: Iterable[str]) -> None:
    """Raise InvalidArgument for a name that no companion can have, with one that it can.

    `existing` are the branches that there are: a name must not be one of them, in any
    case, nor stand above or below one.
    """
    taken = list(existing)
    fault = _fault(name, taken)
    if fault is not None:
        raise InvalidArgument(fault, hint=f"a name like {_usable(name, taken)} would do")


def _fault(name: str, taken: list[str]) -> str | None:
    """Return what is wrong with a name, None where nothing is."""
    if len(name) > _MAX_LENGTH or not all(map(_is_part, name.split("/"))):
        return f"{name[:_MAX_LENGTH]!r} is no name for a branch"
    if name.casefold() in ("head", "persona") or name.casefold().startswith("persona/"):
        return f"{name!r} is kept for soulgit and git"
    if _HEX.fullmatch(name):
        return f"{name!r} reads like a commit id"
    folded = _folded(name)
    for other in taken:
        known = _folded(other)
        if known == folded:
            return f"there is a branch {other} already"
        if known.startswith(folded + "/") or folded.startswith(known + "/"):
            return f"{name!r} cannot stand beside the branch {other}"
    return None


def _is_part(part: str) -> bool:
    """Whether a part of a name is letters, digits and . _ - between them, as git takes them."""
    letters = all(
        character.isalnum() or character in "._-" or unicodedata.category(character)[0] == "M"
        for character in part
    )
    ends = part[:1].isalnum() and not part.endswith((".", ".lock"))
    return bool(part) and letters and ends and ".." not in part


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _usable(name: str, taken: list[str]) -> str:
    """Return a name like the one that was meant, which can be had."""
    words = re.findall(r"[^\W_]+", name)
    base = "-".join(words)[: _MAX_LENGTH // 2].removesuffix("-lock") or "ava"
    candidates = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2)))
    return next(candidate for candidate in candidates if _fault(candidate, taken) is None)
