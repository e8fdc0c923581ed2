"""The program's door: `gangplan` and `python -m gangplan`.

The version is answered before anything else is imported. The guard at the end must stay: MPI workers
import this module again.
"""

from __future__ import annotations

import gc
import sys

from gangplan import __version__


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"gangplan {__version__}\n")
        return 0
    # Hardly anything here is a cycle, and looking for some takes a fifth of a short command's time, most of
    # it when the interpreter looks through all there is once more before it ends.
    gc.set_threshold(500_000, 20, 20)
    from gangplan.cli import run

    code = run()
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(main())
