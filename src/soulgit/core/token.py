"""The doctor token: a word that, as a whole message, stops all writing of memory.

A home is pushed to remotes, so what is stored is a token's SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

KEY = "doctor_token"
_PREFIX = "sha256:"


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
    return hmac.compare_digest(kept.encode(), stored(said).encode())


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
