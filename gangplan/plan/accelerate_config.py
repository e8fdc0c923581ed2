"""Compare the configuration file of accelerate with the run, where it is among the files of the spec."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from gangplan.plan.launch import LauncherCall
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.rules.specs import RANKS_MISMATCH
from gangplan.source import ManifestError, load_objects


def check_accelerate_config_file(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of a file that names other numbers than the run has; options override it.

    A run of several workers needs the options anyway. Accelerate 1.15.0, commands/launch.py,
    _validate_launch_command.
    """
    job, reading = kept.job, kept.found.reading
    use = next((one for one in reading.uses if one.option.name in ("config-file", "config_file")), None)
    if use is None or job.workers > 1:
        return
    given = _read_config_numbers(kept, use.value)
    wrong = [
        (name, expected)
        for role, name, expected in (
            ("workers", "num_machines", job.workers),
            ("count", "num_processes", job.ranks),
        )
        if not any(one.option.role == role for one in reading.uses)
        and given.get(name, str(expected)) != str(expected)
    ]
    if wrong:
        says = " and ".join(f"{name}: {given[name]}" for name, _ in wrong)
        has = " and ".join(f"{expected}" for _, expected in wrong)
        message = f"{use.value} has {says}, but the run has {has}: accelerate waits for the others, or leaves GPUs idle"
        words = tuple(word for name, expected in wrong for word in (f"--{name}", str(expected)))
        hint = f"Add {' '.join(words)}, which the file does not override."
        yield WordProblem(RANKS_MISMATCH, use.at, message, hint, WordEdit(use.at, use.at, words))


def _read_config_numbers(kept: LauncherCall, name: str) -> dict[str, str]:
    """Return the numbers in a file that the spec mounts at this path; none if it is unreadable or no such file."""
    path = posixpath.normpath(posixpath.join(kept.job.workdir, name))
    keys = {one.key for one in kept.job.mounts if one.file and one.path == path}
    data = next((one.data for one in kept.job.files if one.key in keys), b"")
    try:
        body = next(iter(load_objects(data)), {})
    except ManifestError:
        return {}
    return {key: str(body[key]) for key in ("num_machines", "num_processes") if key in body}
