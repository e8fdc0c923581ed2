"""Rendered files as they are made today, each with a tracer that finds the origin of every field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gangplan.emit import is_launch_file, is_run_file
from gangplan.findings import FieldPath, Finding
from gangplan.objects import Body, walk_leaves
from gangplan.pipeline.base import ObjectFinding, merge_equal_findings
from gangplan.pipeline.clusters import expand_cluster_platform_and_tenants
from gangplan.pipeline.platform import check_platform_files, find_clusters_closed_by_errors
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun, WorkerOptions, create_pipeline_worker
from gangplan.plan import RunPlan
from gangplan.policy.objects import POLICY_FILE
from gangplan.policy.trace import build_policy_tracer
from gangplan.records import dataclass
from gangplan.resolve.upgrade import replace_versions_of_clusters
from gangplan.source import load_objects
from gangplan.trace import Trace, Tracer, tracer_of
from gangplan.trace.scripts import build_scripts_tracer
from gangplan.trace.standing import build_cluster_tracer, find_traced_cluster_objects
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One file below rendered/: its path there, its text, its objects, and the tracer of their fields.

    In the objects of a run the hash of its name is a placeholder; `names` are the name with it and the real
    name. `unit` is the run that a spec describes.
    """

    path: str
    text: str
    bodies: tuple[Body, ...]
    tracer: Tracer
    names: tuple[str, str] = ("", "")
    unit: RunPlan | None = None

    def shown(self, value: object) -> object:
        """Return a value as it is in the file."""
        return value.replace(*self.names) if isinstance(value, str) and self.names[0] else value

    def fields(self) -> Iterator[tuple[int, FieldPath, object, Trace]]:
        """Yield every field other than mappings and lists: the object's index, its path, its value, its
        trace."""
        for index, body in enumerate(self.bodies):
            for path, value in walk_leaves(body):
                yield index, path, value, self.tracer(index, path)


def render_template_runs(workspace: Workspace, request: Request) -> tuple[list[RenderedFile], list[Finding]]:
    """Return the runs of all specs that may be made from a template, and all findings."""
    specs = tuple(str(request.root / one) for one in sorted(workspace.template_marks))
    return render_run_files_with_line_origins(workspace, replace(request, specs=specs)) if specs else ([], [])


def render_run_files_with_line_origins(
    workspace: Workspace, request: Request
) -> tuple[list[RenderedFile], list[Finding]]:
    """Return the files of the runs that a request is about, those of their launch scripts, and all
    findings; specs with errors have no file."""
    found = []
    result = preview_render(replace(request, engine="serial", jobs=1), workspace)
    scripts: dict[str, PlannedRun] = {}
    for run in result.runs:
        text = result.texts[run.path]
        bodies = tuple(load_objects(text.replace(run.name, run.unit.run_name)))
        tracer = tracer_of(run.unit, bodies, workspace.components[run.cluster])
        names = run.unit.run_name, run.name
        found.append(RenderedFile(run.path, text, bodies, tracer, names, run.unit))
        folder = run.path.rpartition("/")[0]
        scripts.setdefault(folder, run)
        for name in run.unit.job.retired:  # an earlier run of the job, as the record that it is
            path = f"{folder}/{name}.yaml"
            if name != run.name and path in result.texts:
                text = result.texts[path]
                bodies = tuple(load_objects(text.replace(name, run.unit.run_name)))
                tracer = tracer_of(run.unit, bodies, workspace.components[run.cluster])
                found.append(RenderedFile(path, text, bodies, tracer, (run.unit.run_name, name)))
    for path, text in result.texts.items():
        mounting = scripts.get(path.rpartition("/")[0])
        if mounting is not None and is_launch_file(path):
            bodies = tuple(load_objects(text))
            tracer = build_scripts_tracer(mounting.unit, bodies, workspace.components[mounting.cluster])
            found.append(RenderedFile(path, text, bodies, tracer))
    return found, result.findings


def locate_findings_at_deciding_lines(
    workspace: Workspace, request: Request, problems: Sequence[ObjectFinding]
) -> list[Finding]:
    """Return the findings of a comparison, each at what decides the field that differs."""
    files: dict[str, RenderedFile] = {}
    for cluster in sorted({spot.path.split("/")[0] for _, spot in problems if spot}):
        spots = [spot for _, spot in problems if spot and spot.path.startswith(f"{cluster}/")]
        specs = {str(request.root / one.source) for one in spots if _is_run(one.path) and one.source}
        on_it = replace(request, clusters=(cluster,), specs=tuple(sorted(specs)))
        made = render_run_files_with_line_origins(workspace, on_it)[0] if specs else []
        if not all(_is_run(one.path) for one in spots):
            made = [
                *made,
                *render_cluster_files_with_line_origins(
                    workspace, replace(request, clusters=(cluster,)), cluster
                )[0],
            ]
        files |= {one.path: one for one in made}
    return merge_equal_findings(
        [
            _locate_finding_at_deciding_line(one, files.get(one[1].path) if one[1] else None)
            for one in problems
        ]
    )


def _is_run(path: str) -> bool:
    return is_run_file(path)


def _locate_finding_at_deciding_line(problem: ObjectFinding, file: RenderedFile | None) -> Finding:
    """Return the finding at the first field that differs and is decided by something that is written."""
    finding, spot = problem
    if spot is None or file is None or spot.index >= len(file.bodies):
        return finding
    traces = [file.tracer(spot.index, path) for path in spot.changed]
    shown = [one for one in traces if one.causes[0].where and one.causes[0].is_written]
    best = next(iter([*shown, *(one for one in traces if not one.is_own)]), None)
    return replace(finding, where=best.where) if best else finding


def render_cluster_files_with_line_origins(
    workspace: Workspace, request: Request, cluster: str
) -> tuple[list[RenderedFile], list[Finding]]:
    """Return the files of a cluster's platform and tenants, and all findings."""
    workspace = replace_versions_of_clusters(workspace, request.versions, request.clusters)
    findings = [*workspace.findings, *check_platform_files(workspace)]
    if cluster in find_clusters_closed_by_errors(workspace, findings) or workspace.catalog is None:
        return [], findings
    expanded = expand_cluster_platform_and_tenants(
        create_pipeline_worker(workspace, WorkerOptions(keeps_texts=True)), cluster
    )
    component = workspace.components[cluster]
    found = []
    for path, text in sorted(expanded.texts.items()):
        if path == f"{cluster}/{POLICY_FILE}":
            bodies = tuple(load_objects(text))
            found.append(RenderedFile(path, text, bodies, build_policy_tracer(workspace, cluster, bodies)))
            continue
        _, part, name, *_ = path.removesuffix(".yaml").split("/")
        standing = find_traced_cluster_objects(workspace, cluster, name, name if part == "tenants" else "")
        if standing is not None:
            bodies = tuple(load_objects(text))
            found.append(RenderedFile(path, text, bodies, build_cluster_tracer(standing, bodies, component)))
    return found, [*findings, *expanded.findings]
