"""Find earlier renderings of a job in the tree by the hash of its spec."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import field
from pathlib import Path

from gangplan.emit.header import read_header_source
from gangplan.findings import Clue, Finding, Location
from gangplan.model.cost import describe_max_use
from gangplan.model.job import Job
from gangplan.records import dataclass
from gangplan.rules.specs import RUN_KEPT, RUN_RENAMED
from gangplan.source import MAX_DOCUMENT_BYTES
from gangplan.spec.root import OVERLAYS

# On the TrainJob: the hash of what the user wrote, which distinguishes a change of platform or templates from
# a change of the spec.
SPEC_HASH = "gangplan.dev/spec-hash"
# Launch scripts, which all runs of a team mount (pipeline/launch_maps.py).
LAUNCH_MAP_FILE = re.compile(r"launch\.[0-9a-f]{8}\.yaml")
_RUN_FILE = re.compile(r"(.+)-[0-9a-f]{8}\.yaml")
_RECORD = re.compile(r"^    gangplan\.dev/state: stopped$", re.MULTILINE)
_HASH_LINE = re.compile(rf'^    {re.escape(SPEC_HASH)}: "?([0-9a-f]+)"?$', re.MULTILINE)


def is_run_file(path: str) -> bool:
    """Return whether a file of the tree, by its path in it, is one of a run."""
    _, part, *rest = path.split("/")
    return part == "runs" and bool(rest) and not is_launch_file(path)


def is_launch_file(path: str) -> bool:
    """Return whether a file of the tree, by its path in it, is one of launch scripts of a team."""
    _, part, *rest = path.split("/")
    return part == "runs" and len(rest) == 2 and LAUNCH_MAP_FILE.fullmatch(rest[1]) is not None


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A rendered run: its path in the tree and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """The run's name, which is that of its file."""
        return self.path.rpartition("/")[2].removesuffix(".yaml")

    @property
    def is_record(self) -> bool:
        """Whether this is the record of a run that is over, which starts nothing."""
        return bool(_RECORD.search(self.text))


@dataclass(slots=True)
class EarlierRuns:
    """The rendered runs of a tree, listed once per folder."""

    tree: Path
    reasons: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Why runs are others, by the lines that differ: a digest changes thousands of runs in the same way."""
    _folders: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def find(
        self, path: str, job: str, spec_hash: str, without: Collection[str] = (), is_kept: bool = False
    ) -> EarlierRun | None:
        """Return a run of the same job and the same spec under another name than `path`, if there is one.

        It is the run that `path` takes the place of, so there is none if `path` is in the tree already,
        unless one that was brought back `is_kept` instead. A record is the last choice: it may be of a run
        that ended before that one. `without` are the names of runs that are over.
        """
        folder, _, own = path.rpartition("/")
        found = list[EarlierRun]()
        for name in self._listed(folder).get(job, ()):
            if name == own or name.removesuffix(".yaml") in without:
                continue
            run = self.read(f"{folder}/{name}")
            match = _HASH_LINE.search(run.text) if run else None
            if run is not None and match and match.group(1) == spec_hash:
                found.append(run)
        if found and (same := self.read(path)) is not None:
            found.insert(len(found) if is_kept else 0, same)
        first = min(found, key=lambda run: run.is_record, default=None)
        return None if first is None or first.path == path else first

    def read(self, path: str) -> EarlierRun | None:
        """Read a file of the tree if gangplan wrote it; other files are reported elsewhere."""
        file = self.tree / path
        try:
            if read_header_source(file) is None or file.stat().st_size > MAX_DOCUMENT_BYTES:
                return None
            return EarlierRun(path, file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None

    def names(self, path: str, job: str) -> tuple[str, ...]:
        """Return the names of the runs of a job in the folder of `path`."""
        files = self._listed(path.rpartition("/")[0]).get(job, ())
        return tuple(name.removesuffix(".yaml") for name in files)

    def jobs(self, folder: str) -> list[str]:
        """Return the jobs that have runs in a folder."""
        return sorted(self._listed(folder))

    def _listed(self, folder: str) -> dict[str, list[str]]:
        """Return the file names of a folder by job."""
        if folder not in self._folders:
            jobs: dict[str, list[str]] = {}
            try:
                names = sorted(os.listdir(self.tree / folder))
            except OSError:
                names = []
            for name in names:
                match = _RUN_FILE.fullmatch(name)
                if match:
                    jobs.setdefault(match.group(1), []).append(name)
            self._folders[folder] = jobs
        return self._folders[folder]


def build_renamed_finding(
    job: Job, cluster: str, earlier: EarlierRun, name: str, is_kept: bool, why: str = ""
) -> Finding:
    """Return the finding that a run changed, because of cluster, image or gangplan, but its spec did not.

    `why` describes what changed.
    """
    where = Location(job.source, 1, 1)
    old = earlier.name
    if is_kept:
        return Finding(
            RUN_KEPT,
            where,
            f"run {old} on {cluster} is kept as it was rendered; rendered today it would be {name}"
            + (f"; {why}" if why else ""),
            "Raise run: in the spec to run with today's platform.",
        )
    when = "when the jobs before it are complete" if job.after else "when this is synced"
    keep = "template: {keep: true}" if job.trial else "keep: true"
    message = (
        f"the spec did not change, but its run on {cluster} did ({old} is now {name}): "
        f"it trains again {when}, {describe_max_use(job)}{' for each trial' if job.trial else ''}"
        f"{f'; {why}' if why else ''}"
    )
    help = (
        f"To keep this run as it was rendered, write {keep} in its spec; to keep all runs, keepRuns: true in"
        f" {OVERLAYS}/{cluster}/cluster.yaml. The catalog lists an image that they keep under earlier:."
    )
    return Finding(RUN_RENAMED, where, message, help, clue=Clue(kind="run", given=(cluster, name)))
