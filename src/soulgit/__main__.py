"""The program: `soulgit`, or `python -m soulgit`."""

from __future__ import annotations

import gc
import sys

_INTERRUPTED = 130

_GARBAGE_OBJECTS = 100_000
"""So many new objects are worth a look for garbage; a short command never makes them."""


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, also while it is still loading."""
    gc.set_threshold(_GARBAGE_OBJECTS)
    try:
        from soulgit.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    gc.freeze()  # what is left goes with the process, so nothing of it is looked at once more
    sys.exit(code)


if __name__ == "__main__":
    main()
