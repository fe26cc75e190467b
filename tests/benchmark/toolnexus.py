"""toolnexus' memory tool, the peer without history, in a virtual environment of its own.

It needs an older `mcp` than others do, so it is installed apart and driven through pipes;
the child measures itself, and the pipes are in no figure.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmark.data import Action, put_files

VERSION = "0.21.0"
_CHILD = Path(__file__).with_name("toolnexus_child.py")
_INSTALL_SECONDS = 300


class NotInstalled(Exception):
    """It could not be installed here."""


def environment(before: Mapping[str, str]) -> Path:
    """Return the Python of its virtual environment, which is made where there is none yet.

    `before` is the environment that the user has, for pip's settings are in it. Raises
    NotInstalled, with what pip said last.
    """
    root = _cache(before) / f"toolnexus-{VERSION}-py{platform.python_version()}"
    python = root / "bin" / "python"
    if not _imports(python):
        root.parent.mkdir(parents=True, exist_ok=True)
        _run(before, sys.executable, "-m", "venv", "--clear", str(root))
        _run(before, str(python), "-m", "pip", "install", "-q", f"toolnexus=={VERSION}")
    return python


def _cache(before: Mapping[str, str]) -> Path:
    named = before.get("XDG_CACHE_HOME") or os.path.join(before.get("HOME", "/tmp"), ".cache")
    return Path(named, "soulgit-benchmark")


def _imports(python: Path) -> bool:
    if not python.exists():
        return False
    command = [str(python), "-c", "import toolnexus.agents"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(before: Mapping[str, str], *command: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=dict(before),
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NotInstalled(str(fault)) from fault
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise NotInstalled(f"`{' '.join(command[1:4])}` failed: {said[-1]}")


class Toolnexus:
    """Its memory tool, made by `memory_tool(directory)` in a child process."""

    def __init__(self, path: Path, memory: bytes, python: Path) -> None:
        self.path = path
        put_files(path, memory)
        self._child = subprocess.Popen(
            [str(python), "-P", str(_CHILD), str(path)],  # -P: this directory has its name too
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._hear()

    def act(self, action: Action) -> float:
        """Ask the child, which answers with the seconds that it measured itself."""
        # Its remove leaves the bullet behind, unless it is in the text.
        text = action.text if action.kind == "add" else f"- {action.text}\n"
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"action": action.kind, "text": text}) + "\n")
        self._child.stdin.flush()
        return float(self._hear()["seconds"])

    def close(self) -> None:
        """Let the child end."""
        self._child.communicate()

    def _hear(self) -> dict[str, Any]:
        """Return the child's next answer."""
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"its child ended with {self._child.wait()}; see standard error")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer
