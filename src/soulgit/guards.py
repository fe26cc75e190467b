"""What no commit may do, whoever makes it; asked of each commit before any ref moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from soulgit import personas
from soulgit.adoption import Step
from soulgit.core import composition, seared, soulfile, token
from soulgit.core.layout import TARGETS, memory_name
from soulgit.errors import SearedChanged, TokenExposed
from soulgit.git import Repository


def has_token(files: Mapping[str, bytes]) -> bool:
    """Whether a soul file may have a doctor token, so that the others must be searched for it."""
    return token.KEY.encode() in files.get("SOUL.md", b"")


def refuse_token(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Raise TokenExposed where files, by name, would make the doctor token part of history.

    That is one stored as it is, which was not, or one in any text that a model sees. Asked
    before anything is stored, for even an object that nothing refers to would keep it.
    """
    had, has = (_values(files.get("SOUL.md")) for files in (before, after))
    plain = token.plain(has)
    if plain is not None and plain != token.plain(had):
        raise TokenExposed(
            "SOUL.md holds its doctor token as it is, and a home is pushed to remotes"
        )
    for name, data in after.items():
        if data != before.get(name) and token.find(has, _seen(name, data)) is not None:
            raise TokenExposed(
                f"{name} holds the doctor token in its text",
                hint="take it out, and make a new one with `soulgit token HOME`",
            )


def check(repository: Repository, before: str | None, after: str, step: Step) -> None:
    """Refuse a commit from one tree (None: the first) to another that changes what may not change.

    Raises SearedChanged for a seared entry that the step does not set free, TokenExposed
    for a doctor token that would be committed as it is.
    """
    if "SOUL.md" in step.entries and not step.keeps_token:
        _refuse_exposed_token(repository, before, after)
    if before is None:
        return
    layouts = [personas.tree_layout(repository, tree) for tree in (before, after)]
    for target in TARGETS:
        old, new = (layout.memory_path(target) for layout in layouts)
        if old == new and old not in step.entries:
            continue
        had, has = repository.read(before, old) or b"", repository.read(after, new) or b""
        for text in seared.lost(had, layouts[0], has, layouts[1]):
            if seared.plain(text) != step.frees:
                raise SearedChanged(
                    f"a seared entry of {memory_name(target)} was changed or dropped by hand: "
                    f"{seared.plain(text)}"
                )


def _refuse_exposed_token(repository: Repository, before: str | None, after: str) -> None:
    had, has = (_plain_token(repository, tree) for tree in (before, after))
    if has is not None and has != had:
        raise TokenExposed(
            "SOUL.md holds its doctor token as it is, and a home is pushed to remotes"
        )


def _values(soul: bytes | None) -> dict[str, Any]:
    return soulfile.frontmatter_values(composition.decode(soul or b""))


def _seen(name: str, data: bytes) -> str:
    text = composition.decode(data)
    return soulfile.strip_frontmatter(text) if name == "SOUL.md" else text


def _plain_token(repository: Repository, tree: str | None) -> str | None:
    soul = (repository.read(tree, "SOUL.md") if tree else None) or b""
    return token.plain(soulfile.frontmatter_values(composition.decode(soul)))
