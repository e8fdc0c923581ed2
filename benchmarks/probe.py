"""gangplan as a user starts it; at the end the peak memory of the process and of its workers goes to a pipe.

Called as `python -m benchmarks.probe FD ARGUMENT...` by `benchmarks.measure`.
"""

from __future__ import annotations

import os
import resource
import sys


def _peak_mib(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def main() -> int:
    """Run the command line that follows the descriptor."""
    pipe = int(sys.argv[1])
    sys.argv[:] = ["gangplan", *sys.argv[2:]]
    from gangplan.__main__ import main as run

    code = run()
    peaks = (_peak_mib(resource.RUSAGE_SELF), _peak_mib(resource.RUSAGE_CHILDREN))
    os.write(pipe, " ".join(f"{peak:.1f}" for peak in peaks).encode())
    return code


if __name__ == "__main__":
    sys.exit(main())
