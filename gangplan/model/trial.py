"""What a job and its values were made from: fields of files, a trial of a sweep, a template."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """What a value comes from, kept beside it where it is decided; `because` says why, where a path does not.

    `role` is a file (spec, team, cluster, catalog) and `path` leads to its field, or with `is_key` to the
    name of the field. It is `job` for an attribute of the job, `fabric` or `rails` for a field of the fabric
    or of the RDMA devices of its pool, `worker_pool` for a field of that pool, and empty for what gangplan
    decides.
    `is_direct` tells a value that shows from one that only decides whether, or which.
    """

    role: str
    path: tuple[str | int, ...] = ()
    because: str = ""
    is_direct: bool = True
    is_key: bool = False

    def aside(self) -> ValueOrigin:
        """The same for a value that does not show."""
        return ValueOrigin(self.role, self.path, self.because, False, self.is_key)


Origins = tuple[ValueOrigin, ...]
# Those of the parts of a value, by the fields of a pod that show them; an empty name is for all others.
PartOrigins = Mapping[str, Origins]


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a sweep: its own part of its name, its values as they are written, where it waits.

    `at_once` is how many trials of the sweep may be admitted at the same time, `of` how many it has at most.
    """

    sweep: str
    name: str
    values: tuple[tuple[str, str], ...]
    queue: str
    at_once: int
    of: int


@dataclass(frozen=True, slots=True)
class Expected:
    """A scaling efficiency that was measured elsewhere, for a number of workers (None: for all others)."""

    workers: int | None
    efficiency: str
    source: str


@dataclass(frozen=True, slots=True)
class FromTemplate:
    """A template with its version and file, the values of its parameters as written, what to expect of it."""

    label: str
    file: str
    values: tuple[tuple[str, str], ...]
    expected: tuple[Expected, ...]

    def expected_of(self, workers: int) -> Expected | None:
        """What to expect of a run with so many workers."""
        exact = [one for one in self.expected if one.workers == workers]
        return next((one for one in (*exact, *self.expected) if one.workers in (None, workers)), None)


@dataclass(frozen=True, slots=True)
class TrialPods:
    """The pods of a trial: how many in each pool, and how many of all hold their quota until it ends."""

    by_pool: tuple[tuple[str, int], ...]
    lasting: int

    @property
    def count(self) -> int:
        """All of them."""
        return sum(count for _, count in self.by_pool)
