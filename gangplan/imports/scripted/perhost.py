"""An mpirun that starts torchrun or Accelerate once on each host: the workers of a run do that by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.plan.launchers import UnreadableError, find_launchers
from gangplan.records import dataclass

# Options for the number of ranks on each host, by MPI: Open MPI, Hydra, Intel MPI.
_PER_HOST = frozenset({"npernode", "N", "ppn", "perhost"})


@dataclass(frozen=True, slots=True)
class PerHostStart:
    """Where the program begins that mpirun starts on each host, and the variables that it sets there."""

    begin: int
    env: tuple[tuple[str, str], ...]


def find_per_host_start(texts: Sequence[str], nodes: int) -> PerHostStart | None:
    """Return what an mpirun with one rank on each host starts, if that starts the ranks of torch."""
    try:
        outer = find_launchers(texts, None)[:1]
        if not outer or outer[0].script is not None or outer[0].start.launcher.kind != "mpi":
            return None
        reading = outer[0].reading
        begin = reading.programs[0][0] if len(reading.programs) == 1 else 0
        inner = find_launchers(texts[begin:], None) if begin else []
    except UnreadableError:
        return None
    if not {one.start.launcher.kind for one in inner} & {"torch", "accelerate"}:
        return None
    counts = [one.value for one in reading.uses if one.option.role == "count"]
    per_host = [one.value for one in reading.uses if one.spelled.lstrip("-") in _PER_HOST]
    if counts != [str(nodes)] and not (per_host == ["1"] and not counts):
        return None
    pairs = [one.value.partition("=") for one in reading.uses if one.option.role == "env" and one.value]
    return PerHostStart(begin, tuple((name, value) for name, equals, value in pairs if equals))
