"""Watch: what a host without hooks writes is recorded soon after, and nobody has to ask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Event

from soulgit import capturing
from soulgit.adoption import Hand
from soulgit.errors import HomeNotFound, InvalidArgument, NotAHome, SoulgitError
from soulgit.home import Home

_QUIET_MILLISECONDS = 200
_LONGEST_MILLISECONDS = 2_000
_LOOK_MILLISECONDS = 1_000


def watch(home: Home, hand: Hand, stop: Event) -> Iterator[str | SoulgitError]:
    """Record what changes in a home until `stop` is set, and yield the new tip each time.

    First comes what had changed before. Changes are recorded together when none came for 0.2
    seconds, or after two. An error is yielded where a change could not be recorded just now;
    the next change tries again. Raises HomeNotFound or NotAHome where the home goes away,
    InvalidArgument where the package that watches is not there.
    """
    try:
        import watchfiles
    except ImportError as fault:
        raise InvalidArgument(
            "watching needs the watchfiles package", hint="pip install 'soulgit[watch]'"
        ) from fault
    while not stop.is_set():
        yield from _recorded(home, hand)
        watched, is_first = _directories(home), True
        for changes in watchfiles.watch(
            *watched,
            watch_filter=lambda change, path: _is_of_the_home(home, path),
            debounce=_LONGEST_MILLISECONDS,
            step=_QUIET_MILLISECONDS,
            stop_event=stop,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            recursive=False,
        ):
            if changes or is_first:  # something may have changed before the watch had begun
                yield from _recorded(home, hand)
            is_first = False
            _refuse_gone(home)
            if changes and _directories(home) != watched:
                break


def _recorded(home: Home, hand: Hand) -> Iterator[str | SoulgitError]:
    try:
        tip = capturing.capture(home, hand)
    except (HomeNotFound, NotAHome):
        raise
    except SoulgitError as error:
        yield error
    else:
        if tip is not None:
            yield tip


def _directories(home: Home) -> list[str]:
    """Return the directories in which bootstrap files lie, or are likely to."""
    _refuse_gone(home)
    try:
        files = [file.path for file in home.look().files.values()]
    except SoulgitError:  # told when it is recorded
        files = []
    within = {os.path.dirname(path) for path in [*files, "memories/MEMORY.md"]}
    places = (os.path.join(home.path, directory) for directory in within)
    return sorted({home.path, *(os.path.normpath(at) for at in places if os.path.isdir(at))})


def _refuse_gone(home: Home) -> None:
    if not os.path.isdir(home.path):
        raise HomeNotFound(f"{home.path} is gone", path=home.path)


def _is_of_the_home(home: Home, path: str) -> bool:
    """Whether a path is not git's, which changes with every commit."""
    return os.path.relpath(path, home.path).split(os.sep, 1)[0] != ".git"
