"""What a job and its values were made from: fields of files, a trial of a sweep, a template."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The source of a value, recorded where the value is decided; `because` says why if a path does not.

    `role` is a file (spec, team, cluster, catalog) and `path` leads to its field, or with `is_key` to the
    name of the field. `role` is `job` for an attribute of the job, `fabric` or `rails` for a field of the
    fabric or of the RDMA devices of its pool, `worker_pool` for a field of that pool, and empty for what
    gangplan decides. `is_direct`: the source's value is shown, rather than only deciding whether a value is
    there, or which.
    """

    role: str
    path: tuple[str | int, ...] = ()
    because: str = ""
    is_direct: bool = True
    is_key: bool = False

    def aside(self) -> ValueOrigin:
        """Return the same origin for a value that is not shown."""
        return ValueOrigin(self.role, self.path, self.because, False, self.is_key)


Origins = tuple[ValueOrigin, ...]
# The origins of the parts of a value, by the pod fields that show them; an empty name covers all others.
PartOrigins = Mapping[str, Origins]


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a sweep: its own part of its name, its values as written, and its queue.

    `at_once` is how many trials of the sweep may be admitted at the same time, `of` how many it has at most.
    """

    sweep: str
    name: str
    values: tuple[tuple[str, str], ...]
    queue: str
    at_once: int
    of: int


@dataclass(frozen=True, slots=True)
class ExpectedEfficiency:
    """A scaling efficiency that was measured elsewhere, for a number of workers (None: for all others)."""

    workers: int | None
    efficiency: str
    source: str


@dataclass(frozen=True, slots=True)
class FromTemplate:
    """A template with its version and file, the values of its parameters as written, and its expected
    efficiency."""

    label: str
    file: str
    values: tuple[tuple[str, str], ...]
    expected: tuple[ExpectedEfficiency, ...]

    def expected_of(self, workers: int) -> ExpectedEfficiency | None:
        """Return the expected efficiency of a run with this many workers."""
        exact = [one for one in self.expected if one.workers == workers]
        return next((one for one in (*exact, *self.expected) if one.workers in (None, workers)), None)


@dataclass(frozen=True, slots=True)
class TrialPods:
    """The pods of a trial: how many in each pool, and how many in total use their quota until it ends."""

    by_pool: tuple[tuple[str, int], ...]
    lasting: int

    @property
    def count(self) -> int:
        """The number of all pods."""
        return sum(count for _, count in self.by_pool)
