"""Answers about a line of a file: what is on it and where that comes from, or what it became."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath

from gangplan.emit import is_launch_file, is_run_file, read_header_source
from gangplan.errors import UserError
from gangplan.findings import FieldPath, Finding, Location
from gangplan.objects import Body
from gangplan.pipeline.request import Request
from gangplan.provenance.lines import (
    RenderedFile,
    render_cluster_files_with_line_origins,
    render_run_files_with_line_origins,
    render_template_runs,
)
from gangplan.provenance.scripts import describe_launch_scripts
from gangplan.records import dataclass
from gangplan.source.lines import find_yaml_paths_at_line, lines_of
from gangplan.spec.waiver import WaiverScope
from gangplan.spec.waiver_files import WAIVERS
from gangplan.trace import Cause, Trace
from gangplan.trace.files import find_value_at
from gangplan.workspace import CATALOG, OVERLAYS, RENDERED, SPECS, Workspace, load_workspace, suggest_nearest

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]+)(?::[0-9]+)?")


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """A field of a rendered object: the object, the path, the value, and where it comes from."""

    body: Body
    path: FieldPath
    value: object
    trace: Trace


@dataclass(frozen=True, slots=True)
class LineOutcome:
    """A rendered field that a line decides: its file and line below rendered/, its origin, and whether it
    is direct."""

    file: str
    line: int
    origin: LineOrigin
    is_direct: bool


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The answer about a line.

    `fields` are those on it, in its own file; a rendered line has `origins`, a written one `outcomes`.
    `remark` is a sentence about the line itself.
    """

    file: str
    line: int
    fields: tuple[FieldPath, ...] = ()
    origins: tuple[LineOrigin, ...] = ()
    outcomes: tuple[LineOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    remark: str = ""


def parse_file_line(text: str) -> tuple[str, int] | None:
    """Return file and line of `FILE:LINE` or `FILE:LINE:COLUMN`; None for any other text."""
    match = _PLACE.fullmatch(text)
    return (match["file"], int(match["line"])) if match else None


def explain_provenance_of_line(request: Request, file: str, line: int) -> LineAnswer:
    """Return the answer for a line of a file of the workspace. Raises UserError if there is no such file
    or line."""
    name, text = _read_file_of_explained_line(request.root, file)
    count = len(text.splitlines())
    if not 1 <= line <= count:
        raise UserError(f"there is no line {line} in {name}", f"It has the lines 1 to {count}.")
    workspace = load_workspace(request.root)
    if name.startswith(f"{RENDERED}/"):
        return _explain_origin_of_rendered_line(workspace, request, name, text, line)
    return _explain_outcome_of_written_line(workspace, request, name, text, line)


def _read_file_of_explained_line(root: FilePath, file: str) -> tuple[str, str]:
    """Return the path from the root, and the text."""
    for start in (FilePath.cwd(), root):
        path = start / file
        if path.is_file() and path.resolve().is_relative_to(root):
            name = path.resolve().relative_to(root).as_posix()
            return name, path.read_text(encoding="utf-8", errors="replace")
    folder = root / FilePath(file).parent
    listed = folder.iterdir() if folder.is_dir() else ()
    there = [f"{FilePath(file).parent.as_posix()}/{one.name}" for one in listed if one.is_file()]
    raise UserError(
        f"there is no file {file} in this workspace", suggest_nearest(file, there) if there else ""
    )


# Rendered lines


def _explain_origin_of_rendered_line(
    workspace: Workspace, request: Request, name: str, text: str, line: int
) -> LineAnswer:
    number, start = _find_rendered_document_at_line(text, line)
    documents = _split_yaml_documents(text)
    own = text.splitlines()[line - 1]
    if own.startswith("#"):
        return LineAnswer(name, line, remark="gangplan's mark: the file that this one comes from")
    if own.rstrip() == "---":
        return LineAnswer(name, line, remark="the line between two objects")
    fields = find_yaml_paths_at_line(documents[number], line - start)
    files, findings = _render_current_files(workspace, request, name)
    if not files and findings:
        return LineAnswer(name, line, findings=tuple(findings))
    found = next((one for one in files if one.path == name.removeprefix(f"{RENDERED}/")), None) or next(
        (
            one
            for one in files
            if _strip_run_hash(one.path) == _strip_run_hash(name.removeprefix(f"{RENDERED}/"))
        ),
        None,
    )
    index = _find_object_of_rendered_line(found, documents, number) if found else None
    if found is None or index is None:
        raise UserError(f"{name} is stale: nothing like it is rendered now", "Run gangplan render.")
    body = found.bodies[index]
    origins = tuple(
        LineOrigin(body, path, found.shown(find_value_at(body, path)), found.tracer(index, path))
        for path in fields
    )
    remark = "" if found.text == text else "rendered/ is stale: this shows what would be rendered now"
    if is_launch_file(found.path):
        remark = remark or describe_launch_scripts(request.root, name, text, line)
    return LineAnswer(name, line, tuple(fields), origins, findings=tuple(findings), remark=remark)


def _render_current_files(
    workspace: Workspace, request: Request, name: str
) -> tuple[list[RenderedFile], list[Finding]]:
    """Return what is rendered today for the file's cluster: its run, or the cluster's platform and
    tenants."""
    parts = name.split("/")
    clusters = workspace.clusters
    if len(parts) < 4 or parts[1] not in clusters:
        raise UserError(f"{name} belongs to no cluster", suggest_nearest(parts[1], clusters))
    if parts[2] != "runs":
        return render_cluster_files_with_line_origins(workspace, request, parts[1])
    source = read_header_source(request.root / name)
    if source is not None and is_launch_file("/".join(parts[1:])):
        return render_run_files_with_line_origins(
            workspace, replace(request, clusters=(parts[1],), teams=(parts[3],))
        )
    if source is None or not (request.root / source).is_file():
        raise UserError(
            f"{name} is not what gangplan renders from a spec that is there", "Run gangplan render."
        )
    return render_run_files_with_line_origins(
        workspace, replace(request, clusters=(parts[1],), specs=(str(request.root / source),))
    )


def _strip_run_hash(path: str) -> str:
    """Return a run's path without the hash, and any other path as it is."""
    return path.rpartition("-")[0] if is_run_file(path) else path


def _split_yaml_documents(text: str) -> list[str]:
    """Return the documents of a rendered stream."""
    return re.split(r"(?m)^---[ \t]*$\n?", text)


def _find_rendered_document_at_line(text: str, line: int) -> tuple[int, int]:
    """Return which document a line is in, and how many lines come before that document."""
    number = start = 0
    for place, one in enumerate(text.splitlines()[:line], 1):
        if one.rstrip() == "---" and place < line:
            number, start = number + 1, place
    return number, start


def _find_object_of_rendered_line(found: RenderedFile, documents: list[str], number: int) -> int | None:
    """Return the index of today's object that a document of the file shows: of the same kind, counted
    within its kind."""
    kinds = [_read_document_kind(one) for one in documents]
    wanted = kinds[: number + 1].count(kinds[number])
    for index, body in enumerate(found.bodies):
        wanted -= body["kind"] == kinds[number]
        if not wanted:
            return index
    return None


def _read_document_kind(document: str) -> str:
    match = re.search(r"(?m)^kind: *\"?([A-Za-z]+)", document)
    return match[1] if match else ""


# Written lines


def _explain_outcome_of_written_line(
    workspace: Workspace, request: Request, name: str, text: str, line: int
) -> LineAnswer:
    files, findings = _render_files_made_from_line(workspace, request, name)
    is_overlay = name.startswith(f"{OVERLAYS}/") and not name.endswith("/cluster.yaml")
    fields = [] if is_overlay else find_yaml_paths_at_line(text, line)
    if is_overlay:
        places = _find_lines_of_patch_operation(workspace, name, line)
        outcomes = _collect_outcomes_of_written_line(
            files, lambda cause: _is_location_in_lines(cause.where, name, places)
        )
    else:
        outcomes = _collect_outcomes_of_written_line(files, lambda cause: cause.is_at(name, fields))
    remark = ""
    if not fields and not is_overlay:
        remark = "no field begins on this line"
    elif not outcomes and not any(finding.is_error for finding in findings):
        remark = "nothing that is rendered shows it"
        if _is_first(text, line):
            remark += "; what the file does not say is reported at this line"
    elif name.startswith(f"{WAIVERS}/"):
        remark = "what it excuses bears a label, and runs have another name than without it"
    return LineAnswer(
        name, line, tuple(fields), outcomes=tuple(outcomes), findings=tuple(findings), remark=remark
    )


def _render_files_made_from_line(
    workspace: Workspace, request: Request, name: str
) -> tuple[list[RenderedFile], list[Finding]]:
    """Return what is rendered from a file."""
    parts = name.split("/")
    if workspace.has_template(name):
        return render_template_runs(workspace, request)
    if parts[0] == SPECS and len(parts) > 2:
        if parts[2:] != ["team.yaml"]:
            files, findings = render_run_files_with_line_origins(
                workspace, replace(request, specs=(str(request.root / name),))
            )
            clusters = {one.path.split("/")[0] for one in files if name in workspace.sweeps}
            for cluster in sorted(clusters):  # with the queue of the sweep
                files += render_cluster_files_with_line_origins(workspace, request, cluster)[0]
            return files, findings
        on = [one for one, cluster in workspace.clusters.items() if parts[1] in cluster.spec.teams]
        return _render_runs_and_clusters(workspace, request, on, (parts[1],))
    if parts[0] == OVERLAYS and len(parts) > 2 and parts[1] in workspace.clusters:
        return _render_runs_and_clusters(workspace, request, [parts[1]], ())
    if name.startswith(f"{WAIVERS}/"):
        scopes = [one.spec.scope for one in workspace.waivers if one.document.file == name]
        scope = scopes[0] if scopes else WaiverScope()
        on = [one for one in workspace.clusters if fnmatch.fnmatchcase(one, scope.cluster or "*")]
        return _render_runs_and_clusters(
            workspace, request, on, (scope.team,) if scope.team in workspace.teams else ()
        )
    if name == CATALOG:
        return render_run_files_with_line_origins(workspace, request)
    raise UserError(
        f"{name} is not a file that something is rendered from",
        "Name a line of a spec, team, cluster, catalog or waiver file, of a kustomization, or of rendered/.",
    )


def _render_runs_and_clusters(
    workspace: Workspace, request: Request, clusters: Sequence[str], teams: tuple[str, ...]
) -> tuple[list[RenderedFile], list[Finding]]:
    """Return the runs, and the platform and tenants of the clusters (for teams, only their tenants)."""
    chosen = tuple(one for one in clusters if not request.clusters or one in request.clusters)
    files, findings = render_run_files_with_line_origins(
        workspace, replace(request, clusters=chosen, teams=teams)
    )
    for cluster in chosen:
        standing, _ = render_cluster_files_with_line_origins(workspace, request, cluster)
        files += [one for one in standing if not teams or _is_of(one.path, teams[0])]
    return files, findings


def _is_first(text: str, line: int) -> bool:
    """Return whether a line is the first one of a file that is not a comment."""
    return not any(one.strip() and not one.startswith("#") for one in text.splitlines()[: line - 1])


def _is_of(path: str, team: str) -> bool:
    """Return whether a team's file can show in a rendered one: the platform, or the team's own."""
    parts = path.split("/")
    return parts[1] == "platform" or parts[2] == team


def _collect_outcomes_of_written_line(
    files: Sequence[RenderedFile], is_meant: Callable[[Cause], bool]
) -> list[LineOutcome]:
    """Return every rendered field with a cause that `is_meant`."""
    found = []
    for file in files:
        places: list[dict[FieldPath, int]] = []
        for index, path, value, trace in file.fields():
            meant = [cause for cause in trace.causes if is_meant(cause)]
            if not meant:
                continue
            places = places or _map_rendered_fields_to_lines(file.text)
            line = places[index].get(path, 0)
            origin = LineOrigin(file.bodies[index], path, file.shown(value), trace)
            found.append(
                LineOutcome(f"{RENDERED}/{file.path}", line, origin, _is_deciding_cause(meant, trace))
            )
    return found


def _is_deciding_cause(meant: Sequence[Cause], trace: Trace) -> bool:
    """Return whether the value shows in the field: a cause that is meant is direct and written, or is the
    first."""
    return any(cause.is_direct and cause.is_written for cause in meant) or trace.causes[0] in meant


def _map_rendered_fields_to_lines(text: str) -> list[dict[FieldPath, int]]:
    """Return, for each document, the line of the file where each field begins."""
    start, found = 0, []
    for one in _split_yaml_documents(text):
        found.append({path: line + start for path, line in lines_of(one).items()})
        start += one.count("\n") + 1
    return found


def _find_lines_of_patch_operation(workspace: Workspace, name: str, line: int) -> range:
    """Return the lines of the operation that a line is part of."""
    component = workspace.components[name.split("/")[1]]
    starts = sorted(
        where.line
        for patch in component.patches
        for operation in patch.operations
        if (where := operation.text.where((operation.index,))).file == name
    )
    before = [start for start in starts if start <= line]
    after = [start for start in starts if start > line]
    return range(before[-1] if before else line, after[0] if after else 1 << 30)


def _is_location_in_lines(where: Location | None, name: str, lines: range) -> bool:
    return where is not None and where.file == name and where.line in lines
