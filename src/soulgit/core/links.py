"""Where symbolic links lead within a home: one rule for a directory and for a git tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soulgit.errors import UnsafeFile

_MAX_LINKS = 40


@dataclass(frozen=True)
class Resolved:
    """The path that a path leads to, and each link on the way with its target."""

    path: str
    links: tuple[tuple[str, str], ...] = ()


def resolve(path: str, read_link: Callable[[str], str | None]) -> Resolved:
    """Follow the links of a relative path, each asked of `read_link` (None: no link).

    A link that holds an absolute path, climbs out, enters `.git` or never ends is
    refused: the same file would not be there in a clone.
    """
    ahead, done = path.split("/")[::-1], list[str]()
    links: list[tuple[str, str]] = []
    while ahead:
        part = ahead.pop()
        if part == "..":
            if not done:
                raise _refused(path, links, "which is no file inside the home")
            done.pop()
        elif part not in ("", "."):
            target = read_link("/".join([*done, part]))
            if target is None:
                done.append(part)
                continue
            links.append(("/".join([*done, part]), target))
            if target.startswith("/"):
                raise _refused(path, links, "which is an absolute path")
            if len(links) > _MAX_LINKS:
                raise _refused(path, links, "and so on without end")
            ahead += target.split("/")[::-1]
    if done and done[0].lower() == ".git":
        raise _refused(path, links, "which is no file inside the home")
    return Resolved("/".join(done), tuple(links))


def _refused(path: str, links: list[tuple[str, str]], why: str) -> UnsafeFile:
    target = links[-1][1] if links else path
    return UnsafeFile(
        f"{path} is a link to {target!r}, {why}",
        hint="put the file itself there, or link to one inside the home by a relative path",
        path=path,
    )
