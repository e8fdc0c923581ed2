"""Tables of the field's launchers and their options, and the reader of commands that use them.

`find_launchers` returns every launcher that a command starts, with its options read as that launcher reads them.
gangplan.plan.command decides what follows (wrap, keep, refuse).
"""

from gangplan.plan.launchers.find import (
    SHELL_NAMES,
    FoundLauncher,
    ShellScript,
    UnreadableError,
    find_launchers,
    find_script_index,
    read_script_commands,
)
from gangplan.plan.launchers.foreign import OPAQUE_LAUNCHERS
from gangplan.plan.launchers.prefixes import strip_prefixes
from gangplan.plan.launchers.programs import (
    MPI_LAUNCHERS,
    MpiGeneration,
    find_launcher_at,
    is_python,
    program_name_of,
)
from gangplan.plan.launchers.reading import LauncherReading, ParsedOption, read_launcher_words
from gangplan.plan.launchers.table import LauncherOption, LauncherProgram

__all__ = [
    "MPI_LAUNCHERS",
    "OPAQUE_LAUNCHERS",
    "SHELL_NAMES",
    "FoundLauncher",
    "LauncherOption",
    "LauncherProgram",
    "LauncherReading",
    "MpiGeneration",
    "ParsedOption",
    "ShellScript",
    "UnreadableError",
    "find_launcher_at",
    "find_launchers",
    "find_script_index",
    "is_python",
    "program_name_of",
    "read_launcher_words",
    "read_script_commands",
    "strip_prefixes",
]
