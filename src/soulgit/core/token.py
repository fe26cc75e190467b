"""The doctor token: a word that, as a whole message, stops all writing of memory.

A home is pushed to remotes, so what is stored is a token's SHA-256.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

KEY = "doctor_token"
_PREFIX = "sha256:"
_GENERATED = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_WORD = re.compile(r"[^\s\"'`“”‘’()\[\]{}<>*.,:;!?]{4,}")
"""What a token of a person's own may look like in running text, signs around it left out."""


def stored(token: str) -> str:
    """Return what is written down of a token."""
    return _PREFIX + _digest(token)


def plain(values: Mapping[str, Any]) -> str | None:
    """Return a frontmatter's token where it is stored as it is, and so can be read by anybody."""
    value = values.get(KEY)
    is_plain = isinstance(value, str) and value.strip() and not value.startswith(_PREFIX)
    return value if is_plain else None


def matches(values: Mapping[str, Any], message: str) -> bool:
    """Whether a whole message, outer white space aside, is the token; in constant time."""
    value = values.get(KEY)
    said = message.strip()
    if not isinstance(value, str) or not value.strip() or not said:
        return False
    kept = value if value.startswith(_PREFIX) else stored(value.strip())
    import hmac

    return hmac.compare_digest(kept.encode(), stored(said).encode())


def find(values: Mapping[str, Any], text: str) -> int | None:
    """Return where a home's token stands in a text, None where it does not."""
    value = values.get(KEY)
    if not isinstance(value, str) or not value.strip():
        return None
    if not value.startswith(_PREFIX):
        offset = text.find(value.strip())
        return offset if offset >= 0 else None
    for pattern in (_GENERATED, _WORD):
        for word in pattern.finditer(text):
            if matches(values, word.group()):
                return word.start()
    return None


def masked(values: Mapping[str, Any], text: str) -> str:
    """Return a text with the token's place taken by an ellipsis."""
    while (offset := find(values, text)) is not None:
        plain_token = plain(values)
        length = len(plain_token.strip()) if plain_token else _length(values, text, offset)
        text = text[:offset] + "…" + text[offset + length :]
    return text


def _length(values: Mapping[str, Any], text: str, offset: int) -> int:
    found = [p.match(text, offset) for p in (_GENERATED, _WORD)]
    return next(len(m.group()) for m in found if m and matches(values, m.group()))


def _digest(token: str) -> str:
    import hashlib

    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
