"""What an option of a launcher is: its spelling, the number of words it takes, and what it decides.

A table is data: one line per role, with names grouped by the number of words they take. Each table names the
program and version that it was read from; tests/launchers compare the tables with the real programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from gangplan.records import dataclass

# What an option decides about a run; gangplan ignores options with "".
OptionRole = Literal[
    "",
    "count",  # ranks in all
    "hosts",  # hosts by name, or parts of them
    "hostfile",  # a file of hosts
    "per-host",  # ranks on each host
    "workers",  # hosts in all
    "bind",  # what a rank is bound to
    "map",  # how ranks are laid out, host by host
    "map-hint",  # what Open MPI 5 adds to the existing layout
    "env",  # a variable for the ranks
    "parameter",  # a parameter of the MPI library by name
    "root",  # permission to run as root
    "agent",  # how the launcher reaches other hosts
    "away",  # no ranks on the launcher's own host
    "file",  # a file that holds the rest of the command
    "nothing",  # prints something and starts nothing
    "rendezvous",  # where the hosts meet, and the number of each
    "standalone",  # a single host
    "elastic",  # a number of ranks that may change
    "port",  # the port of the SSH servers
    "module",  # the program is a Python module
    "no-python",  # the program is not a Python script
    "extra",  # options for mpirun, in one word
    "mode",  # another way to start ranks, or other devices for them
    "logs",  # the folder for what ranks print
]
# The parser of options: Open MPI 4's own reader, getopt_long with a single dash allowed (PRRTE), Hydra's
# reader, or Python's argparse.
Style = Literal["openmpi", "prrte", "hydra", "argparse"]
# What a launcher is: an MPI launcher, horovodrun or deepspeed over it, torchrun or Paddle's on every worker, or a program
# of another scheduler.
Kind = Literal["mpi", "horovod", "deepspeed", "torch", "accelerate", "paddle", "foreign"]


@dataclass(frozen=True, slots=True)
class LauncherOption:
    """One option: its name without dashes, the number of words after it, and what it decides."""

    name: str
    words: int
    role: OptionRole = ""


@dataclass(frozen=True, slots=True)
class LauncherProgram:
    """A program that starts ranks, with its options by name without dashes.

    `source` names the program and version that the table was read from, `label` its common name. Of each set
    in `once` the program accepts one option, once. `short` are names that take only one dash; `double_only`
    are long names that do not work with one. `joined` are short names whose value may follow directly
    (`-n4`).
    """

    name: str
    kind: Kind
    style: Style
    source: str
    options: Mapping[str, LauncherOption] = field(repr=False)
    short: frozenset[str] = frozenset()
    joined: frozenset[str] = frozenset()
    double_only: frozenset[str] = frozenset()
    label: str = ""
    once: tuple[frozenset[str], ...] = ()

    def option(self, name: str) -> LauncherOption | None:
        """Return the option of this name; argparse also accepts any unambiguous prefix."""
        found = self.options.get(name)
        if found is not None or self.style != "argparse" or len(name) < 2:
            return found
        near = {one.role + str(one.words): one for key, one in self.options.items() if key.startswith(name)}
        return next(iter(near.values())) if len(near) == 1 else None


OptionRow = tuple[OptionRole, int, str]


def build_option_table(*rows: OptionRow) -> dict[str, LauncherOption]:
    """Build a table from rows of role, number of words, and names separated by spaces."""
    return {name: LauncherOption(name, words, role) for role, words, names in rows for name in names.split()}
