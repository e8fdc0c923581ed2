"""Install what these tests run: `python -m tests.linters`. Tests of what is unavailable are skipped."""

from __future__ import annotations

import sys

from tests.lab import build
from tests.linters import programs


def main() -> int:
    """Install each kit and build each program; return 1 if one is unavailable."""
    failed = 0
    for kit in programs.KITS:
        try:
            kit.install()
        except (OSError, RuntimeError) as bad:
            failed = 1
            print(f"linters: {kit.name} cannot be installed: {bad}", file=sys.stderr)
    for program in programs.GO:
        try:
            build.ensure([program])
        except RuntimeError as bad:
            failed = 1
            print(f"linters: {program.name} {program.version} cannot be built: {bad}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
