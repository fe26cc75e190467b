"""soulgit keeps an AI agent's identity and memory in git.

`compose_soul` builds the system prompt from a home's files or from any revision of them;
`memory_tool` gives a model a memory of which every change is a commit.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soulgit.core.composition import FileReport, Soul
    from soulgit.core.layout import BOOTSTRAP_ORDER, MAX_FILE_BYTES
    from soulgit.core.traits import Traits
    from soulgit.errors import SoulgitError
    from soulgit.home import Home, is_doctor_token
    from soulgit.prompt import compose_soul
    from soulgit.tool import Result, Tool, memory_tool

__version__ = "0.1.0"

_HOMES_OF_NAMES = {
    "BOOTSTRAP_ORDER": "soulgit.core.layout",
    "MAX_FILE_BYTES": "soulgit.core.layout",
    "FileReport": "soulgit.core.composition",
    "Soul": "soulgit.core.composition",
    "SoulgitError": "soulgit.errors",
    "Home": "soulgit.home",
    "is_doctor_token": "soulgit.home",
    "Traits": "soulgit.core.traits",
    "compose_soul": "soulgit.prompt",
    "Result": "soulgit.tool",
    "Tool": "soulgit.tool",
    "memory_tool": "soulgit.tool",
}

__all__ = [
    "BOOTSTRAP_ORDER",
    "MAX_FILE_BYTES",
    "FileReport",
    "Home",
    "Result",
    "Soul",
    "SoulgitError",
    "Tool",
    "Traits",
    "compose_soul",
    "is_doctor_token",
    "memory_tool",
]


def __getattr__(name: str) -> Any:
    # Importing git costs a command more than all else it does; who asks for it pays.
    if name not in _HOMES_OF_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES_OF_NAMES[name]), name)
    globals()[name] = value
    return value
