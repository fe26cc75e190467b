"""All checks: ruff's format and lint, mypy in strict mode, and pytest.

`--slow` runs the slow ring alone: hundreds of kills, thousands of writes, every system call.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    ("pytest", "-q", "-n", "2", "-m", "not slow"),
)


SLOW = ("pytest", "-q", "-n", "2", "-m", "slow")


def main() -> int:
    root = Path(__file__).parent.parent
    extra = [word for word in sys.argv[1:] if word != "--slow"]
    for check in (SLOW,) if "--slow" in sys.argv else CHECKS:
        print("==", *check, flush=True)
        words = [*check, *extra] if check[0] == "pytest" else check
        code = subprocess.run([sys.executable, "-m", *words], cwd=root).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
