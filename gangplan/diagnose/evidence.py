"""The evidence about runs: objects, logs, and sightings of causes in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from gangplan.objects import Body
from gangplan.records import dataclass

# Pods of a run are named `<run>-<role>-0-<index>-<five letters>` (JobSet, Job); a host name lacks the
# letters.
_POD = re.compile(r"^(?P<run>.+?)-(?P<role>launcher|node|[a-z0-9]+)-0-(?P<index>\d+)(?:-[a-z0-9]{5})?$")


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run; all fields are optional.

    `role` is its pod's, `worker` counts from 0, `rank` is MPI's or torch's.
    """

    run: str = ""
    role: str = ""
    worker: int | None = None
    rank: int | None = None

    @property
    def words(self) -> str:
        """As people say it, such as "worker 3, rank 12"; empty if nothing is known."""
        parts = []
        if self.role == "launcher":
            parts.append("launcher")
        elif self.worker is not None:
            role = "worker" if self.role in ("", "node") else self.role
            parts.append(f"{role} {self.worker}")
        if self.rank is not None:
            parts.append(f"rank {self.rank}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A cause and where it was seen: file and line (0: an object), part of the run, text, and since when.

    A warning does not prove that anything failed.
    """

    cause: str
    file: str
    line: int
    what: str
    text: str
    who: RunPart = RunPart()
    at: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    is_warning: bool = False

    @property
    def place(self) -> str:
        """The file, and the line of a log or the object of a manifest."""
        return f"{self.file}:{self.line}" if self.line else f"{self.file}: {self.what}"


@dataclass(frozen=True, slots=True)
class SavedObject:
    """A saved object and its file."""

    body: Body
    file: str

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.body.get("kind") or "")

    @property
    def name(self) -> str:
        """Its name."""
        return str((self.body.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str((self.body.get("metadata") or {}).get("namespace") or "")

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        found: Mapping[str, str] = (self.body.get("metadata") or {}).get("labels") or {}
        return found

    @property
    def words(self) -> str:
        """The object as messages name it, such as `Pod training/x-node-0-3`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Log:
    """A log: its number of lines, what was seen, its last lines, and the part of the run that wrote it.

    `is_described`: it is what `kubectl describe` prints of objects, in which no program says anything.
    """

    file: str
    lines: int
    sightings: tuple[Sighting, ...]
    last: tuple[str, ...]
    who: RunPart = RunPart()
    is_described: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that was read; `skipped` are files that are neither objects nor logs.

    `broken` says why files of folders could not be read.
    """

    things: tuple[SavedObject, ...]
    logs: tuple[Log, ...]
    skipped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def parse_run_part_from_evidence_pod_name(name: str) -> RunPart:
    """Parse the name of a pod, or a worker's host name, into the part of a run."""
    match = _POD.match(name.partition(".")[0])
    if match is None:
        return RunPart()
    role = match["role"]
    return RunPart(match["run"], role, None if role == "launcher" else int(match["index"]))
