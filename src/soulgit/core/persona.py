"""The persona: who the companion is, and the digest by which two revisions are compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

from soulgit.core import composition, soulfile
from soulgit.core.layout import PERSONA_NAMES

_LINE_END = re.compile(r"\r\n?")
_BLANK_LINES = re.compile(r"\n{3,}")


def digest(files: Mapping[str, bytes]) -> str:
    """Return the persona's digest, 64 hex digits, from bootstrap files given by name.

    Frontmatter, comments and white space never change it; an absent file is an empty one.
    """
    state = hashlib.sha256()
    for name in PERSONA_NAMES:
        state.update(_digested(name, files.get(name, b"")))
    return state.hexdigest()


@lru_cache(maxsize=32)
def _digested(name: str, data: bytes) -> bytes:
    text = composition.body(name, data, limit_bytes=None)
    return f"{name}\0{_normal(text)}\0".encode()


def companion_name(soul: bytes | None) -> str | None:
    """Return the name that a soul file's frontmatter gives, if it gives one."""
    if soul is None:
        return None
    name = soulfile.frontmatter_values(composition.decode(soul)).get("name")
    return name if isinstance(name, str) and name.strip() else None


def _normal(text: str) -> str:
    lines = _LINE_END.sub("\n", text).split("\n")
    return _BLANK_LINES.sub("\n\n", "\n".join(" ".join(line.split()) for line in lines))
