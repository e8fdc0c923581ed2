"""The runs in Git: files of `rendered/<cluster>/runs/<team>/`, identified by their names and marks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gangplan.emit import is_launch_file, read_header_source
from gangplan.gitops.record import STATE_ANNOTATION, STOPPED_STATE
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.records import dataclass
from gangplan.source import ManifestError, load_objects
from gangplan.spec.root import RENDERED

_RECORD = re.compile(rf"^ +{re.escape(STATE_ANNOTATION)}: {STOPPED_STATE}$", re.MULTILINE)
# The template of a run that something in the cluster creates: a schedule, or a Job that waits for other runs.
_TEMPLATE = "\n  run.yaml: |"
# The number of the script's words before the names of the runs that it waits for (generators/after.py).
_FIRST = 4


@dataclass(frozen=True, slots=True)
class Held:
    """Why Git has only a run's template: a `schedule` creates the run, or it comes `after` others.

    `starts` are cron and time zone; `waits` the names of the runs that it waits for, and `job` the Job that
    waits. For a pipeline engine both are empty, since its own files contain them.
    """

    by: str
    starts: str = ""
    is_suspended: bool = False
    waits: tuple[str, ...] = ()
    job: str = ""


@dataclass(frozen=True, slots=True)
class RunInGit:
    """A run in Git: its cluster, team and name, and its spec's file (empty without a mark)."""

    cluster: str
    team: str
    name: str
    source: str
    is_record: bool
    held: Held | None = None

    @property
    def job(self) -> str:
        """The job's name: the run's without the hash."""
        return self.name.rpartition("-")[0]


def is_run_record(text: str) -> bool:
    """Return whether a rendered file is the record of a finished run."""
    return _RECORD.search(text) is not None


def held_of(text: str) -> Held | None:
    """Return what creates the run whose template a file contains; None if it contains the run itself."""
    if _TEMPLATE not in text:
        return None
    try:
        bodies = load_objects(text)
    except ManifestError:
        return None
    for body in bodies:
        if body.get("kind") == "CronJob":
            spec = body["spec"]
            starts = f"{spec['schedule']} in {spec['timeZone']}"
            return Held("schedule", starts, is_suspended=bool(spec.get("suspend")))
        if body.get("kind") == "Job":
            (container,) = body["spec"]["template"]["spec"]["containers"]
            return Held("after", waits=tuple(container["args"][_FIRST:]), job=body["metadata"]["name"])
    return None if any(body.get("kind") in BACKEND_BY_KIND for body in bodies) else Held("after")


def find_runs_in_git(root: Path, clusters: Iterable[str], teams: Iterable[str] = ()) -> Iterator[RunInGit]:
    """Yield the runs of some clusters, of all teams or only some."""
    wanted = set(teams)
    for cluster in clusters:
        folder = root / RENDERED / cluster / "runs"
        for team in sorted(os.listdir(folder)) if folder.is_dir() else ():
            if (wanted and team not in wanted) or not (folder / team).is_dir():
                continue
            for path in sorted((folder / team).glob("*.yaml")):
                if is_launch_file(f"{cluster}/runs/{team}/{path.name}"):
                    continue
                text = path.read_text(encoding="utf-8", errors="replace")
                source = read_header_source(path) or ""
                yield RunInGit(cluster, team, path.stem, source, is_run_record(text), held_of(text))
