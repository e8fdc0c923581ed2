"""The exit codes of a launch that fails before the program has started; they are gangplan's own.

They are above 192, the highest that a signal causes (128 + 64), and below 200, where systemd's begin. They
are not sysexits, nor codes of a shell, of `timeout` or of the MPIs, and they are within the range that the
Linux Standard Base leaves to applications (150 to 199). Programs that exit with a negated errno
(`exit(-errno)`) do not use them either: 256 minus these codes are error numbers of devices and streams that
no system call returns today (Linux 6.12, errno.h).
"""

from __future__ import annotations

from typing import NamedTuple


class LaunchExit(NamedTuple):
    """One way to fail; `is_final` if neither another attempt nor another node can help."""

    code: int
    meaning: str
    is_final: bool


LAUNCH_EXITS = {
    "scripts": LaunchExit(193, "the launch scripts are not those of the run", True),
    "setup": LaunchExit(196, "the setup file of the MPI is not in the image", True),
    "hostfile": LaunchExit(197, "the hostfile names other workers than the plan", True),
    "unanswered": LaunchExit(198, "a worker has no address or does not answer by SSH", False),
    "unreached": LaunchExit(199, "MPI did not reach all workers", False),
}
# The exit codes of the preflight, if the spec has one: images/preflight/preflight.py has the same numbers. No
# program of a launch uses a number between the signals that a kernel sends by itself and 192 either.
PREFLIGHT_EXITS = {
    "ranks": LaunchExit(183, "the preflight found other ranks than the plan", True),
    "hosts": LaunchExit(184, "the preflight found a host twice", False),
    "versions": LaunchExit(186, "the preflight found several MPI versions", True),
    "allreduce": LaunchExit(187, "the preflight got wrong sums", False),
    "gpus": LaunchExit(188, "the preflight saw too few GPUs", False),
    "memlock": LaunchExit(189, "the preflight found a low ulimit -l", False),
    "storage": LaunchExit(190, "the preflight could not use shared storage", False),
    "clock": LaunchExit(191, "the preflight found a wrong clock", False),
    "unstarted": LaunchExit(194, "the preflight did not run", True),
    "unfinished": LaunchExit(195, "the preflight did not end", False),
}
FINAL_CODES = tuple(one.code for one in LAUNCH_EXITS.values() if one.is_final)
