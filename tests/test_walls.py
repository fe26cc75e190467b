"""The walls of DESIGN 9, read off the syntax trees of all modules."""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src"
PATHS = sorted((ROOT / "soulgit").rglob("*.py"))

RANKS = {
    "errors": 0,
    "core": 1,
    "disk": 2,
    "directories": 2,
    "lockfile": 2,
    "git": 3,
    "intent": 4,
    "landing": 4,
    "growth": 4,
    "reflogs": 4,
    "personas": 4,
    "freeze": 4,
    "guards": 4,
    "adoption": 4,
    "working": 4,
    "home": 5,
    "gate": 6,
    "revision": 6,
    "revisions": 6,
    "cli": 8,
    "server": 8,
    "__main__": 9,
}
OPERATIONS = 7
"""The rank of every module that RANKS does not name."""

PURE_LIBRARIES = {"tomlkit"}  # text in, text out: it edits people's TOML in place
IMPURE = {"os", "sys", "time", "pathlib", "subprocess", "shutil", "tempfile", "socket", "random"}
MEANINGLESS = {"utils", "util", "helpers", "helper", "manager", "handler", "service", "services"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PATHS}
every_module = pytest.mark.parametrize("module", MODULES)
core_modules = pytest.mark.parametrize(
    "module", [name for name in MODULES if name.startswith("soulgit.core")]
)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def imports(module: str) -> Iterator[str]:
    """Yield the full name of each module that is imported, wherever in the file."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            for name in node.names:
                below = f"{node.module}.{name.name}"
                yield below if below in MODULES else node.module


def own_imports(module: str) -> set[str]:
    return {name for name in imports(module) if name.split(".")[0] == "soulgit"}


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def rank(module: str) -> int:
    _, _, rest = module.partition(".")
    return RANKS.get(rest.split(".")[0], OPERATIONS)


def test_there_are_modules_to_read() -> None:
    assert {"soulgit", "soulgit.errors", "soulgit.core.edits", "soulgit.git"} <= MODULES.keys()


@core_modules
def test_the_core_imports_only_itself_errors_and_the_pure_standard_library(module: str) -> None:
    for name in imports(module):
        top = name.split(".")[0]
        if top == "soulgit":
            assert is_within(name, "soulgit.core") or name == "soulgit.errors"
        else:
            assert top in (sys.stdlib_module_names - IMPURE) | PURE_LIBRARIES


@core_modules
def test_the_core_asks_neither_clock_nor_disk_nor_terminal(module: str) -> None:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ("now", "utcnow", "today")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "print", "input")


def test_errors_import_nothing_of_soulgit() -> None:
    assert own_imports("soulgit.errors") == set()


@every_module
@pytest.mark.parametrize(
    ("library", "package"),
    [("pygit2", "soulgit.git"), ("click", "soulgit.cli"), ("mcp", "soulgit.server")],
)
def test_a_library_is_imported_in_one_place(module: str, library: str, package: str) -> None:
    if not is_within(module, package):
        assert library not in {name.split(".")[0] for name in imports(module)}


@every_module
def test_imports_point_down(module: str) -> None:
    higher = {name for name in own_imports(module) if rank(name) > rank(module)}
    assert higher == set()


def test_no_module_imports_itself_on_a_way_round() -> None:
    graph = {module: own_imports(module) - {module} for module in MODULES}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


@every_module
def test_a_module_is_named_for_what_it_holds(module: str) -> None:
    assert MEANINGLESS.isdisjoint(module.split("."))


@every_module
def test_only_the_commands_read_the_environment(module: str) -> None:
    if is_within(module, "soulgit.cli"):
        return
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("environ", "environb", "getenv", "getenvb")
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            assert {"environ", "environb", "getenv", "getenvb"}.isdisjoint(
                name.name for name in node.names
            )


Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.Module | ast.ClassDef) -> Iterator[Named]:
    """Yield what can be reached from outside by names without an underscore."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("_"):
                continue
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)


@every_module
def test_all_that_is_public_has_a_docstring(module: str) -> None:
    bare = [node.name for node in public(tree(module)) if not ast.get_docstring(node)]
    assert ast.get_docstring(tree(module))
    assert bare == []


@every_module
def test_a_file_stays_below_five_hundred_lines(module: str) -> None:
    assert len(MODULES[module].read_text().splitlines()) < 500
