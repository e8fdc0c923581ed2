"""Rendered files as they are made today, each with what knows where every field of it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gangplan import expand
from gangplan.expand import Options
from gangplan.findings import Finding
from gangplan.objects import Body, walk
from gangplan.overlay import Component, load_component
from gangplan.pipeline import Request, closed_clusters, platform_findings, preview
from gangplan.resolve.upgrade import with_versions
from gangplan.source import load_objects
from gangplan.trace import Trace, Tracer, standing_of, standing_tracer, tracer_of
from gangplan.trace.cause import Path
from gangplan.workspace import load


@dataclass(frozen=True, slots=True)
class Rendered:
    """One file below rendered/: its path there, its text, its objects, and the trace of their fields.

    In the objects of a run the hash of its name is a placeholder.
    """

    path: str
    text: str
    bodies: tuple[Body, ...]
    tracer: Tracer

    def fields(self) -> Iterator[tuple[int, Path, object, Trace]]:
        """Every field that is no mapping or list: the object's index, its path, its value, its trace."""
        for index, body in enumerate(self.bodies):
            for path, value in walk(body):
                yield index, path, value, self.tracer(index, path)


def runs_of(request: Request) -> tuple[list[Rendered], list[Finding]]:
    """The files of the runs that a request is about, and all findings; specs with errors have no file."""
    components: dict[str, Component] = {}
    found = []
    result = preview(replace(request, engine="serial", jobs=1))
    for run in result.runs:
        if run.cluster not in components:
            components[run.cluster] = load_component(request.root, run.cluster)[0]
        text = result.texts[run.path]
        bodies = tuple(load_objects(text.replace(run.name, run.unit.run_name)))
        tracer = tracer_of(run.unit, bodies, components[run.cluster])
        found.append(Rendered(run.path, text, bodies, tracer))
    return found, result.findings


def standing_on(request: Request, cluster: str) -> tuple[list[Rendered], list[Finding]]:
    """The files of a cluster's platform and tenants, and what was found on the way."""
    workspace, findings = load(request.root)
    workspace = with_versions(workspace, request.versions, request.clusters)
    findings = [*findings, *platform_findings(request.root, workspace)]
    if cluster in closed_clusters(workspace, findings) or workspace.catalog is None:
        return [], findings
    expand.set_up(Options(request.root, keeps_texts=True, versions=request.versions))
    expanded = expand.expand_cluster(cluster)
    component = load_component(request.root, cluster)[0]
    found = []
    for path, text in sorted(expanded.texts.items()):
        team = path.split("/")[2] if path.split("/")[1] == "tenants" else ""
        standing = standing_of(workspace, cluster, team)
        if standing is not None:
            bodies = tuple(load_objects(text))
            found.append(Rendered(path, text, bodies, standing_tracer(standing, bodies, component)))
    return found, [*findings, *expanded.findings]
