"""Fetch the real MPIs, a linter, sshd and Argo CD's Lua before tests need them (make ready).

Nothing fails without them: their tests are skipped with the same reason.
"""

from __future__ import annotations

import sys
from functools import partial

from tests.lab import build
from tests.lab.programs import LUA
from tests.reality import debian
from tests.reality.families import WHEELS, UnavailableError, forget, installed


def main() -> int:
    """Fetch what is missing, and name what is unavailable."""
    forget()
    names = sorted(path.stem for path in WHEELS.glob("*.txt"))
    for get in (*(partial(installed, name) for name in names), debian.layers, partial(build.ensure, [LUA])):
        try:
            get()
        except (UnavailableError, RuntimeError) as error:
            print(f"not to be had, so its tests are skipped: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
