"""Run gangplan as a user would, then write the peak memory of the process and of its workers to a pipe.

Called as `python -m benchmarks.probe FD ARGUMENT...` by `benchmarks.measure`.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def _own_mib() -> float:
    """Return the peak since this program started; getrusage would count its parent, too."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> int:
    """Run the command line that follows the descriptor."""
    pipe = int(sys.argv[1])
    sys.argv[:] = ["gangplan", *sys.argv[2:]]
    from gangplan.entry import main as run

    code = run()
    peaks = (_own_mib(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
    os.write(pipe, " ".join(f"{peak:.1f}" for peak in peaks).encode())
    return code


if __name__ == "__main__":
    sys.exit(main())
