"""The order of a team's jobs: what each comes after, and whether jobs wait for each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from gangplan.records import dataclass
from gangplan.resolve.targets import resolve_target_clusters
from gangplan.spec.job import TrainingJob
from gangplan.workspace import Spec, SpecFile, Workspace, load_spec


@dataclass(frozen=True, slots=True)
class OrderedJob:
    """A job or sweep of the team: its file, its name, its spec and where it runs.

    `spec` is that of the template for a sweep, and None if the file cannot be read.
    """

    file: SpecFile
    job: str
    spec: TrainingJob | None = None
    clusters: tuple[str, ...] = ()
    is_sweep: bool = False

    @property
    def after(self) -> tuple[str, ...]:
        """The jobs that it comes after; a job that is not active waits for none."""
        if self.spec is None or self.spec.state != "active":
            return ()
        return tuple(dict.fromkeys(self.spec.after))


@dataclass(slots=True)
class Order:
    """The jobs of a team by the names of their files; a file is read only once, on demand."""

    workspace: Workspace
    files: Mapping[str, SpecFile]
    known: dict[str, OrderedJob] = field(default_factory=dict)

    def step(self, name: str) -> OrderedJob | None:
        """Return a job or sweep, or None if the team has none of that name."""
        if name not in self.known and name in self.files:
            self.known[name] = read_ordered_job(self.workspace, self.files[name])
        return self.known.get(name)

    def cycle(self, name: str) -> list[str]:
        """Return the names along a cycle through a job, the job first and last; empty without a cycle."""
        paths = [[name]]
        seen = set()
        while paths:  # breadth first, to find a shortest cycle
            path = paths.pop(0)
            step = self.step(path[-1])
            for one in step.after if step else ():
                if one == name:
                    return [*path, name]
                if one not in seen:
                    seen.add(one)
                    paths.append([*path, one])
        return []


def order_of(workspace: Workspace, team: str) -> Order:
    """Return the order of a team's jobs."""
    return Order(workspace, {file.stem: file for file in workspace.spec_files if file.team == team})


def read_ordered_job(workspace: Workspace, file: SpecFile) -> OrderedJob:
    """Read the step of one spec file."""
    sweep = workspace.sweeps.get(file.file)
    if sweep is not None:
        return _read_ordered_sweep(workspace, file)
    spec, _ = load_spec(workspace.root, file, workspace.templates)
    if spec is None:
        return OrderedJob(file, file.stem)
    clusters, _ = resolve_target_clusters(workspace, spec)
    return OrderedJob(file, spec.spec.name or file.stem, spec.spec, tuple(clusters))


def _read_ordered_sweep(workspace: Workspace, file: SpecFile) -> OrderedJob:
    from gangplan.spec.sweep_files import build_sweep_trial_jobs  # few workspaces have sweeps

    sweep = workspace.sweeps[file.file]
    first = (
        next(
            (one for one in build_sweep_trial_jobs(sweep, workspace.templates) if one.spec is not None), None
        )
        if sweep.sweep
        else None
    )
    if first is None or first.spec is None or sweep.sweep is None:
        return OrderedJob(file, sweep.name, is_sweep=True)
    clusters, _ = resolve_target_clusters(workspace, Spec(file, first.spec, first.document, ""))
    stated = first.spec.model_copy(update={"state": sweep.sweep.state})
    return OrderedJob(file, sweep.name, stated, tuple(clusters), is_sweep=True)


def find_specs_of_later_jobs(workspace: Workspace, files: Collection[str]) -> Iterator[str]:
    """Yield the spec files of jobs that come directly after those of some files, and so name their runs."""
    named = {(one.team, one.stem) for one in workspace.spec_files if one.file in files}
    teams = {team for team, _ in named}
    for file in workspace.spec_files:
        if (
            file.team not in teams
            or file.file in files
            or not _may_spec_wait_for_other_jobs(workspace.root, file)
        ):
            continue
        if any((file.team, name) in named for name in read_ordered_job(workspace, file).after):
            yield file.file


def _may_spec_wait_for_other_jobs(root: Path, file: SpecFile) -> bool:
    """Return whether a file contains the word `after`: most files do not and need not be parsed."""
    try:
        return b"after" in (root / file.file).read_bytes()
    except OSError:
        return False
