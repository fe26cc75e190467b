"""Which files make a home, and where each role lies."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

BOOTSTRAP_ORDER = (
    "AGENTS.md",
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "TOOLS.md",
    "HEARTBEAT.md",
    "MEMORY.md",
)
"""The bootstrap files, in the order in which they are composed."""

MAX_FILE_BYTES = 2_097_152
"""How many bytes of one bootstrap file are composed at most."""

HERMES_DELIMITER = "\n§\n"
"""What stands between two entries of a Hermes memory file."""

Target = Literal["self", "user"]
TARGETS: tuple[Target, ...] = get_args(Target)

_MEMORY_NAMES: dict[Target, str] = {"self": "MEMORY.md", "user": "USER.md"}
PERSONA_NAMES = ("SOUL.md", "IDENTITY.md")


@dataclass(frozen=True)
class Layout:
    """Where the bootstrap files of a home lie and how its memory files hold entries."""

    name: Literal["plain", "hermes"]
    memory_directory: str = ""
    delimiter: str | None = None

    def path(self, name: str) -> str:
        """Return the path of a bootstrap file, relative to the home, with `/` between parts."""
        return self.memory_directory + name if name in _MEMORY_NAMES.values() else name

    def memory_path(self, target: Target) -> str:
        """Return the path of a target's memory file, relative to the home."""
        return self.memory_directory + _MEMORY_NAMES[target]

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield each bootstrap file's name and path, in the order of composition."""
        return ((name, self.path(name)) for name in BOOTSTRAP_ORDER)


PLAIN = Layout("plain")
HERMES = Layout("hermes", "memories/", HERMES_DELIMITER)


def detect(paths: Container[str], otherwise: Layout = PLAIN) -> Layout:
    """Return the layout of a directory or tree in which `paths` exist.

    Where no memory file is there it is `otherwise`.
    """
    memory = _MEMORY_NAMES.values()
    if any(name in paths for name in memory):
        return PLAIN
    return HERMES if any(HERMES.path(name) in paths for name in memory) else otherwise


def memory_name(target: Target) -> str:
    """Return the name of a target's memory file, without directory."""
    return _MEMORY_NAMES[target]


def target_of(name: str) -> Target | None:
    """Return the target whose memory file has this name, if any."""
    return next((target for target, known in _MEMORY_NAMES.items() if known == name), None)
