"""The machine that is measured on, and its isolation from whoever sits at it."""

from __future__ import annotations

import os
import platform
import subprocess
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pygit2

_MOUNTS = Path("/proc/mounts")


def isolate(empty: Path) -> dict[str, str]:
    """Give this process an empty HOME and no git configuration; return the environment before."""
    before = dict(os.environ)
    for name in [
        name for name in os.environ if name.startswith(("GIT_", "SOULGIT_", "XDG_", "PYTHON"))
    ]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(empty),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    forget_configuration()
    return before


def forget_configuration() -> None:
    """Let libgit2 find no configuration but a repository's own, in this process."""
    for level in ("SYSTEM", "GLOBAL", "XDG", "PROGRAMDATA"):
        pygit2.settings.search_path[getattr(pygit2.enums.ConfigLevel, level)] = ""


def process() -> ProcessPoolExecutor:
    """Return a process apart, isolated like this one.

    What is not to be synced needs it: libgit2 has one setting for a whole process, and
    soulgit syncs the objects of all homes once a durable one was opened.
    """
    return ProcessPoolExecutor(1, get_context("spawn"), forget_configuration)


def describe(directory: Path) -> dict[str, Any]:
    """Return what the figures depend on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "pygit2": _version("pygit2"),
        "libgit2": pygit2.LIBGIT2_VERSION,
        "git": git.split()[2],
        "dulwich": _version("dulwich"),
        "GitPython": _version("GitPython"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "file_system": _file_system(directory),
        "load_before": round(os.getloadavg()[0], 2),
    }


def heading(machine: dict[str, Any], mode: str) -> str:
    """Return the one line above the table."""
    return (
        "soulgit benchmark ({mode}), {date}: Python {python}, pygit2 {pygit2} (libgit2 {libgit2}), "
        "git {git}, dulwich {dulwich}, GitPython {GitPython}; {cores} cores, {memory_gb} GB, "
        "{file_system}, load before {load_before}"
    ).format(mode=mode, **machine)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _file_system(directory: Path) -> str:
    """Return the type of the file system that holds a directory."""
    if not _MOUNTS.exists():
        return "unknown file system"
    mounts = [line.split()[1:3] for line in _MOUNTS.read_text().splitlines()]
    holding = [(len(at), kind) for at, kind in mounts if directory.is_relative_to(at)]
    return max(holding)[1]
