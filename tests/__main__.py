"""All checks: ruff's format and lint, mypy in strict mode, and pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    ("pytest", "-q", "-n", "2"),
)


def main() -> int:
    root = Path(__file__).parent.parent
    for check in CHECKS:
        print("==", *check, flush=True)
        code = subprocess.run([sys.executable, "-m", *check, *_extra(check)], cwd=root).returncode
        if code:
            return code
    return 0


def _extra(check: tuple[str, ...]) -> list[str]:
    """Hand this program's own arguments on to pytest."""
    return sys.argv[1:] if check[0] == "pytest" else []


if __name__ == "__main__":
    sys.exit(main())
