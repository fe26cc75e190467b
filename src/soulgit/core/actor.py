"""Who acts and when: the values that a commit's author line is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_UNSAFE = re.compile("[\0-\x1f\x7f<>\ud800-\udfff]")
_MAX_NAME_LENGTH = 100
DOMAIN = "soulgit.invalid"


@dataclass(frozen=True)
class Moment:
    """An instant, in seconds since 1970, and the zone it is told in, in minutes from UTC."""

    seconds: int
    offset_minutes: int = 0

    @classmethod
    def of(cls, when: datetime) -> Moment:
        """Return the moment of an aware datetime, to the second."""
        offset = when.utcoffset() or timedelta()
        return cls(int(when.timestamp()), int(offset.total_seconds() // 60))

    def iso(self) -> str:
        """Return it as ISO 8601 with its zone."""
        zone = timezone(timedelta(minutes=self.offset_minutes))
        try:
            return datetime.fromtimestamp(self.seconds, zone).isoformat()
        except (ValueError, OverflowError, OSError):
            return f"@{self.seconds}"  # a clock beyond the calendar still has a number


@dataclass(frozen=True)
class Identity:
    """The name and address that author a commit; use `clean` for names from outside."""

    name: str
    email: str

    @classmethod
    def clean(cls, name: str, email: str) -> Identity:
        """Return an identity that git accepts, whatever the name holds."""
        return cls(
            _clean(name) or UNKNOWN.name,
            _clean(email).replace(" ", "") or UNKNOWN.email,
        )

    @classmethod
    def companion(cls, name: str) -> Identity:
        """Return the identity of a companion, with an address that is no real one."""
        name = _clean(name) or "companion"
        local = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "companion"
        return cls(name, f"{local}@{DOMAIN}")


UNKNOWN = Identity("unknown", f"unknown@{DOMAIN}")
"""Somebody who edited by hand, and of whom nothing is known."""


def _clean(text: str) -> str:
    words = " ".join(_UNSAFE.sub(" ", text).split())
    return words[:_MAX_NAME_LENGTH].strip(" .,:;\"'\\")
