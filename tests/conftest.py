"""Every test runs without the developer's git configuration, HOME and locale."""

from __future__ import annotations

import os
from pathlib import Path

import pygit2
import pytest

from tests.support import Git


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HOME, for git, libgit2 and soulgit alike."""
    empty = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith(("GIT_", "SOULGIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for level in ("SYSTEM", "GLOBAL", "XDG", "PROGRAMDATA"):
        pygit2.settings.search_path[getattr(pygit2.enums.ConfigLevel, level)] = ""
    return empty


@pytest.fixture
def home_dir(tmp_path: Path) -> Path:
    """An empty directory that a home can be made of."""
    path = tmp_path / "ava"
    path.mkdir()
    return path


@pytest.fixture
def git(home_dir: Path) -> Git:
    """The git program, run in the home."""
    return Git(home_dir)
