"""The launchers of the field: what each starts, which options it has, and how a command is read for them.

`find` gives every launcher that a command starts, with its options read as that launcher reads them. What
follows from it (wrap, keep, refuse) is decided in gangplan.plan.command.
"""

from gangplan.plan.launchers.find import (
    SHELLS,
    FoundLauncher,
    Script,
    UnreadableError,
    find,
    script_at,
    script_in,
)
from gangplan.plan.launchers.foreign import OPAQUE
from gangplan.plan.launchers.prefixes import peel
from gangplan.plan.launchers.programs import FAMILIES, Mpi, base, is_python, start_at
from gangplan.plan.launchers.reading import LauncherReading, Use, read
from gangplan.plan.launchers.table import LauncherProgram, Option

__all__ = [
    "FAMILIES",
    "OPAQUE",
    "SHELLS",
    "FoundLauncher",
    "LauncherProgram",
    "LauncherReading",
    "Mpi",
    "Option",
    "Script",
    "UnreadableError",
    "Use",
    "base",
    "find",
    "is_python",
    "peel",
    "read",
    "script_at",
    "script_in",
    "start_at",
]
