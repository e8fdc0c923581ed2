"""A workspace: its jobs, findings and rendering, and jobs that are not in it yet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan import clock
from gangplan.api.checks import (
    examine_workspace,
    require_something_checked,
    resolve_day,
    write_or_compare_rendered_tree,
)
from gangplan.api.job import TrainingJob, format_job_file, load_jobs_as_python_values
from gangplan.engines import check_engine
from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.team_room import compute_quota_rooms
from gangplan.records import dataclass
from gangplan.report.json import build_findings_json
from gangplan.report.plan import build_plan_json
from gangplan.spec.root import locate_workspace_root
from gangplan.starter.draft import create_draft_copy_of_workspace
from gangplan.starter.new import NewFile, check_new_file
from gangplan.starter.write import write_new_files
from gangplan.workspace import Workspace as Read
from gangplan.workspace import load_workspace


class InvalidError(UserError):
    """A job to be rendered or written has errors; `findings` are all of its findings."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        errors = [one for one in findings if one.is_error]
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{first.where}: {first.rule}: {first.message}{more}", first.help or None)
        self.findings = list(findings)


@dataclass(frozen=True, slots=True)
class Rendering:
    """The result of rendering: the findings, and each file by its path with new, changed, same or removed.

    If there are errors, nothing is written and `files` is empty.
    """

    findings: list[Finding]
    files: dict[str, str]

    @property
    def is_fresh(self) -> bool:
        """Whether there are no errors and every file is unchanged."""
        return not any(one.is_error for one in self.findings) and set(self.files.values()) <= {"same"}


class Workspace:
    """A folder with specs/ and overlays/. Each call reads it again; `render` and `Draft.write` change it."""

    __slots__ = ("engine", "root")

    def __init__(self, folder: str | os.PathLike[str] = ".", engine: str = "serial") -> None:
        """Open the workspace that contains a folder. `engine` is serial, process, mpi or auto
        (docs/scale.md).

        Raises UserError if there is no workspace, and for any other engine.
        """
        check_engine(engine)
        self.root, self.engine = locate_workspace_root(Path(folder)), engine

    @property
    def teams(self) -> tuple[str, ...]:
        """The names of the teams whose files can be read."""
        return tuple(self._read().teams)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of the clusters whose files can be read."""
        return tuple(self._read().clusters)

    @property
    def images(self) -> tuple[str, ...]:
        """The names in images/catalog.yaml."""
        catalog = self._read().catalog
        return tuple(catalog.images) if catalog is not None else ()

    def jobs(self) -> dict[str, TrainingJob]:
        """Return every job by its file, without sweeps and templates. Raises UserError for a file that cannot
        be read."""
        return load_jobs_as_python_values(self._read())

    def validate(
        self,
        *files: str | os.PathLike[str],
        clusters: str | Sequence[str] = (),
        teams: str | Sequence[str] = (),
        today: str | None = None,
    ) -> list[Finding]:
        """Return all findings of `gangplan validate`, in its order; without `files`, those of the whole
        workspace.

        `today` (2026-12-31) decides which waivers have expired. Raises UserError if nothing was checked.
        """
        request = self._request(files, clusters, teams)
        if not isinstance(today, str | None):
            raise TypeError(f"today is {today!r}; write a text, such as '{clock.read_today()}'")
        result, _ = examine_workspace(request, resolve_day(today), [])
        require_something_checked(request, result)
        return list(result.findings)

    def plan(
        self,
        *files: str | os.PathLike[str],
        clusters: str | Sequence[str] = (),
        teams: str | Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return the plan of the specs on each cluster, as `gangplan plan --format json` prints it."""
        return _build_plan_with_findings(preview_render(self._request(files, clusters, teams)))

    def render(
        self, *, clusters: str | Sequence[str] = (), teams: str | Sequence[str] = (), check: bool = False
    ) -> Rendering:
        """Write `rendered/`; with `check` only compare it, as `gangplan render --check` does."""
        result, is_done = write_or_compare_rendered_tree(self._request((), clusters, teams), None, check)
        files = {one.path: one.outcome.value for one in result.changes} if is_done else {}
        return Rendering(list(result.findings), dict(sorted(files.items())))

    def draft(self, team: str, name: str, job: TrainingJob) -> Draft:
        """Return a job of a team that is checked as if its file existed. Raises UserError for an invalid
        name.

        Raises TypeError for anything but a job.
        """
        if not isinstance(job, TrainingJob):
            raise TypeError(f"a draft is made of a TrainingJob, not of {type(job).__name__}")
        _convert_to_name_tuple("team and name", (team, name))
        return Draft(self, NewFile("job", self.root, name, team, {}), job)

    def import_job(
        self, kind: str, source: Mapping[str, Any], team: str, *, image: str = "", command: str = ""
    ) -> Imported:
        """Draft a job of a team from one of another system: `import_job("sagemaker", request, "nlp")`.

        Kinds are those of `gangplan import` whose source is one object, so not azureml, slurm and pbs.
        `image` names one of the catalog, and `command` is what ranks run where the source does not say it.
        Raises UserError if the source cannot be imported, TypeError if it is not a dict.
        """
        from gangplan.api.importing import import_job_from_python_value  # few programs import

        batch = import_job_from_python_value(self.root, kind, source, team, image, command)
        (one,) = batch.imported
        percent = {cluster: same.percent for cluster, same in one.runs.items()}
        draft = self.draft(team, one.draft.name, TrainingJob.from_yaml(one.text))
        return Imported(draft, percent, batch.everything)

    def __repr__(self) -> str:
        return f"Workspace({os.fspath(self.root)!r})"

    def _read(self) -> Read:
        return load_workspace(self.root)

    def _request(
        self,
        files: Sequence[str | os.PathLike[str]],
        clusters: str | Sequence[str],
        teams: str | Sequence[str],
    ) -> Request:
        return Request(
            self.root,
            _convert_to_name_tuple("clusters", clusters),
            _convert_to_name_tuple("teams", teams),
            tuple(self._file(one) for one in files),
            engine=self.engine,
        )

    def _file(self, file: str | os.PathLike[str]) -> str:
        """Return a file by its path in the workspace; other paths are relative to the current folder."""
        if not isinstance(file, (str, os.PathLike)):
            raise TypeError(f"{file!r} is not a path; name each file on its own, as in validate(*files)")
        inside = os.path.abspath(self.root / file)
        path = Path(inside if os.path.lexists(inside) else os.path.abspath(file))
        if not path.is_relative_to(self.root):
            raise UserError(f"{file} is not in the workspace {self.root}")
        return path.relative_to(self.root).as_posix()


class Draft:
    """A job of a team that is not written yet, but checked as if it were."""

    __slots__ = ("_new", "job", "workspace")

    def __init__(self, workspace: Workspace, new: NewFile, job: TrainingJob) -> None:
        self.workspace, self._new, self.job = workspace, new, job
        check_new_file(new, may_exist=True)

    @property
    def file(self) -> str:
        """The path that its file would have: specs/TEAM/NAME.yaml."""
        return self._new.file

    def to_yaml(self) -> str:
        """Return the file as it would be written."""
        return format_job_file(self.job, self.workspace.root, self.file)

    def validate(self) -> list[Finding]:
        """Return everything that `gangplan validate` would find in it."""
        return self._judged()

    def plan(self) -> dict[str, Any]:
        """Return its plan on each cluster, as `gangplan plan --format json` would print it."""
        with create_draft_copy_of_workspace(self.workspace.root, {self.file: self.to_yaml()}) as folder:
            return _build_plan_with_findings(
                preview_render(Request(folder, specs=(self.file,), engine="serial"))
            )

    def render(self) -> dict[str, str]:
        """Return the files of its runs, by their paths in rendered/. Raises InvalidError."""
        with create_draft_copy_of_workspace(self.workspace.root, {self.file: self.to_yaml()}) as folder:
            result = preview_render(Request(folder, specs=(self.file,), engine="serial"))
        if result.has_errors:
            raise InvalidError(result.findings)
        return dict(sorted(result.texts.items()))

    def write(self) -> Path:
        """Write the spec, unless it has errors or the file exists. Raises InvalidError and UserError."""
        check_new_file(self._new)
        findings = self._judged()
        if any(one.is_error for one in findings):
            raise InvalidError(findings)
        write_new_files(self.workspace.root, {self.file: self.to_yaml()})
        return self.workspace.root / self.file

    def _judged(self) -> list[Finding]:
        with create_draft_copy_of_workspace(self.workspace.root, {self.file: self.to_yaml()}) as folder:
            request = Request(folder, specs=(self.file,), engine="serial")
            return list(examine_workspace(request, resolve_day(clock.read_today()), [])[0].findings)


@dataclass(frozen=True, slots=True)
class Imported:
    """A job from another system as a draft.

    `percent` says by cluster how much of the source is so in the run. `findings` ask what a person must know,
    at lines of the source as JSON, and say what is wrong with the job.
    """

    draft: Draft
    percent: dict[str, int]
    findings: list[Finding]


def _convert_to_name_tuple(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several names as a tuple. Raises TypeError."""
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what}: {name!r} is not a name; write a text")
    return names


def _build_plan_with_findings(result: Result) -> dict[str, Any]:
    runs = sorted(result.runs, key=lambda run: (run.unit.job.source, run.cluster))
    return {
        **build_plan_json(runs, rooms=compute_quota_rooms(result)),
        **build_findings_json(result.findings),
    }
