"""The schedulers whose scripts can be imported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from gangplan.findings import Finding
from gangplan.imports.account import Account
from gangplan.imports.scripted import pbs_options, slurm_options
from gangplan.imports.scripted.reader import BatchScheduler, count_parallel_job_steps, read_batch_script
from gangplan.imports.scripted.sources import find_batch_scripts
from gangplan.imports.sources import OtherObject, SourceObject
from gangplan.imports.workload import SourceJob

SCRIPT_SUFFIXES = (".sh", ".sbatch", ".slurm", ".sl", ".slm", ".batch", ".bash", ".job", ".pbs", ".qsub", ".script", ".sub", ".run", ".cmd", ".txt", "")  # fmt: skip
_SLURM = BatchScheduler(
    "Slurm", "SBATCH", slurm_options.parse_slurm_options, slurm_options.apply_slurm_options
)

_PBS = BatchScheduler("PBS", "PBS", pbs_options.parse_pbs_options, pbs_options.apply_pbs_options)


def _find_slurm_array_option(line: str) -> str:
    found = re.search(r"(?:--array[= ]|-a\s*)(\S+)", line)
    return found[1] if found else ""


def find_slurm_scripts(
    files: Sequence[Path], filled: Mapping[str, str]
) -> tuple[list[SourceObject], list[Finding]]:
    """Find scripts for sbatch."""
    return find_batch_scripts(
        "SBATCH", _find_slurm_array_option, partial(count_parallel_job_steps, _SLURM), files, filled
    )


def read_slurm_script(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a script for sbatch.

    Raises RefusedError if only running it would show what it does.
    """
    return read_batch_script(_SLURM, account)


def _find_pbs_array_option(line: str) -> str:
    found = re.search(r"(?:^|\s)-(?:J|t)\s*([0-9][0-9,:%-]*)", line)
    return found[1] if found else ""


def find_pbs_scripts(
    files: Sequence[Path], filled: Mapping[str, str]
) -> tuple[list[SourceObject], list[Finding]]:
    """Find scripts for qsub."""
    return find_batch_scripts(
        "PBS", _find_pbs_array_option, partial(count_parallel_job_steps, _PBS), files, filled
    )


def read_pbs_script(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a script for qsub.

    Raises RefusedError if only running it would show what it does.
    """
    return read_batch_script(_PBS, account)
