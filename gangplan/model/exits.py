"""How a launch that fails before the program has started ends: exit codes of gangplan's own.

Above 192, the last that a signal makes (128 + 64), and below 200, where systemd's begin; no sysexits, no code
of a shell, of `timeout` or of the MPIs; within what the Linux Standard Base leaves to applications (150 to
199). Programs that hand an errno on (`exit(-errno)`) do not meet them either: 256 less these are numbers of
devices and streams that no system call returns today (Linux 6.12, errno.h).
"""

from __future__ import annotations

from typing import NamedTuple


class LaunchExit(NamedTuple):
    """One way to fail; `is_final` where no other try and no other node can cure it."""

    code: int
    meaning: str
    is_final: bool


LAUNCH_EXITS = {
    "setup": LaunchExit(196, "the setup file of the MPI is not in the image", True),
    "hostfile": LaunchExit(197, "the hostfile names other workers than the plan", True),
    "unanswered": LaunchExit(198, "a worker has no address or does not answer by SSH", False),
    "unreached": LaunchExit(199, "MPI did not reach all workers", False),
}
FINAL_CODES = tuple(one.code for one in LAUNCH_EXITS.values() if one.is_final)
