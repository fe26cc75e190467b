"""The program: `soulgit`, or `python -m soulgit`."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, also while it is still loading."""
    try:
        from soulgit.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
