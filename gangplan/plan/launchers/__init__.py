"""Tables of the field's launchers and their options, and the reader of commands that use them.

`find` returns every launcher that a command starts, with its options read as that launcher reads them.
gangplan.plan.command decides what follows (wrap, keep, refuse).
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
