"""The schedulers whose scripts can be imported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from gangplan.findings import Finding
from gangplan.imports.account import Account
from gangplan.imports.scripted import pbs_options, slurm_options
from gangplan.imports.scripted.reader import Scheduler, read_script, steps_of
from gangplan.imports.scripted.sources import scripts_of
from gangplan.imports.sources import OtherObject, SourceObject
from gangplan.imports.workload import Workload

SUFFIXES = (".sh", ".sbatch", ".slurm", ".sl", ".slm", ".batch", ".bash", ".job", ".pbs", ".qsub", ".script", ".sub", ".run", ".cmd", ".txt", "")  # fmt: skip
_SLURM = Scheduler("Slurm", "SBATCH", slurm_options.options_of, slurm_options.apply)

_PBS = Scheduler("PBS", "PBS", pbs_options.options_of, pbs_options.apply)


def _slurm_array(line: str) -> str:
    found = re.search(r"(?:--array[= ]|-a\s*)(\S+)", line)
    return found[1] if found else ""


def find_slurm(files: Sequence[Path], filled: Mapping[str, str]) -> tuple[list[SourceObject], list[Finding]]:
    """Find scripts for sbatch."""
    return scripts_of("SBATCH", _slurm_array, partial(steps_of, _SLURM), files, filled)


def read_slurm(account: Account, others: Sequence[OtherObject] = ()) -> Workload:
    """Return the workload of a script for sbatch.

    Raises RefusedError if only running it would show what it does.
    """
    return read_script(_SLURM, account)


def _pbs_array(line: str) -> str:
    found = re.search(r"(?:^|\s)-(?:J|t)\s*([0-9][0-9,:%-]*)", line)
    return found[1] if found else ""


def find_pbs(files: Sequence[Path], filled: Mapping[str, str]) -> tuple[list[SourceObject], list[Finding]]:
    """Find scripts for qsub."""
    return scripts_of("PBS", _pbs_array, partial(steps_of, _PBS), files, filled)


def read_pbs(account: Account, others: Sequence[OtherObject] = ()) -> Workload:
    """Return the workload of a script for qsub.

    Raises RefusedError if only running it would show what it does.
    """
    return read_script(_PBS, account)
