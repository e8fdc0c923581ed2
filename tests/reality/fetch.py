"""Fetch the real MPIs, linters and servers before tests ask for them (make ready).

Nothing fails without them: their tests are skipped, and name the same reason.
"""

from __future__ import annotations

import sys

from tests.reality import debian
from tests.reality.families import WHEELS, UnavailableError, forget, installed


def main() -> int:
    """Fetch what is missing, and name what cannot be had."""
    forget()
    names = sorted(path.stem for path in WHEELS.glob("*.txt"))
    for get in (*((lambda name=name: installed(name)) for name in names), debian.layers):
        try:
            get()
        except UnavailableError as error:
            print(f"its tests are skipped: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
