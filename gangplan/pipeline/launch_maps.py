"""The ConfigMaps of launch scripts next to the runs that mount them: `runs/<team>/launch.<hash>.yaml`.

A run names the ConfigMap that it mounts. All runs that are rendered today name the same one; a run that is
kept, stopped or retired names the one that it began with, which stays in `rendered/` as long as any run there
names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.emit import build_header_lines
from gangplan.findings import Finding, Location
from gangplan.generators.scripts import (
    SCRIPTS_VOLUME,
    generate_launch_script_config_map,
    is_launch_script_config_map,
    name_launch_script_config_map,
    team_source_of,
)
from gangplan.model.job import Job
from gangplan.objects import Body, dump_all
from gangplan.pipeline.checks import check_patched_launch_scripts
from gangplan.pipeline.worker import (
    TaskResult,
    WorkerState,
    check_built_file_at_gate,
    judge_objects_by_cluster_policies,
    run_overlay_on_object_groups,
    store_staged_text,
)
from gangplan.rules.runs import LAUNCH_SCRIPTS_LOST
from gangplan.source import ManifestError, load_objects
from gangplan.trace import Tracer
from gangplan.trace.cause import build_trace_from_causes
from gangplan.trace.files import build_own_cause
from gangplan.waivers import Subject, list_waived_policies
from gangplan.workspace import RENDERED

# In either style of YAML: a mapping below its key, or in braces after it.
_NAMED = re.compile(
    rf"(?:^ *|configMap: \{{)name: ({re.escape(SCRIPTS_VOLUME)}-([0-9a-f]{{8}}))\b", re.MULTILINE
)
_HELP = "Bring the file back from Git, or let the job run again: raise run: in its spec."


def launch_map_path_of(cluster: str, team: str, digest: str) -> str:
    """Return the path of a ConfigMap of launch scripts in the tree."""
    return f"{cluster}/runs/{team}/launch.{digest}.yaml"


def put_launch_maps(
    worker: WorkerState, cluster: str, job: Job, text: str, result: TaskResult
) -> list[Finding]:
    """Put the ConfigMaps that a run's text names, and return what is wrong with them."""
    found: list[Finding] = []
    for name, digest in sorted(set(_NAMED.findall(text))):
        path = launch_map_path_of(cluster, job.team, digest)
        if path in result.scripts:
            continue
        result.scripts.add(path)
        if name == name_launch_script_config_map():
            made = _build_launch_map_once(worker, cluster, job)
            found += made.findings
            result.is_lasting &= made.is_lasting
            result.policies |= made.policies
            for one, numbers in made.matched.items():
                result.matched.setdefault(one, set()).update(numbers)
            store_staged_text(worker, result, path, made.texts[path], path in made.telling)
            continue
        result.is_lasting = False  # it is what rendered/ holds
        earlier = worker.earlier.read(path)
        found += _check_kept_launch_scripts(
            path, name, job.namespace, None if earlier is None else earlier.text
        )
        if earlier is not None:
            store_staged_text(worker, result, path, earlier.text, is_telling=False)
    return found


def _build_launch_map_once(worker: WorkerState, cluster: str, job: Job) -> TaskResult:
    """Return the ConfigMap of today's scripts in a team's namespace, built and checked once per worker."""
    key = cluster, job.namespace
    if key not in worker.launch_maps:
        made = TaskResult()
        before = [
            generate_launch_script_config_map(
                job, list_waived_policies(worker.workspace.waivers, Subject(cluster, job.team))
            )
        ]
        [bodies] = run_overlay_on_object_groups(worker, cluster, [before], [made])
        wrong, is_telling = check_built_file_at_gate(
            worker, cluster, bodies, before, job.platform, _build_launch_map_tracer(job)
        )
        if not wrong:
            wrong = check_patched_launch_scripts(
                bodies, before, _build_launch_map_tracer(job), worker.builders[cluster].component
            )
        if not wrong:
            wrong = judge_objects_by_cluster_policies(
                worker, cluster, bodies, _build_launch_map_tracer(job), made, [], before
            )
        made.findings += wrong
        path = launch_map_path_of(cluster, job.team, name_launch_script_config_map()[-8:])
        made.texts[path] = dump_all(bodies, build_header_lines(team_source_of(job.team)))
        if is_telling:
            made.telling.add(path)
        worker.launch_maps[key] = made
    return worker.launch_maps[key]


def _build_launch_map_tracer(job: Job) -> Tracer:
    """Return the tracer of the ConfigMap: gangplan alone decides what is in it."""
    home = Location(team_source_of(job.team), 1, 1)
    cause = build_own_cause("gangplan's launch scripts, the same for all runs of the team")
    return lambda _index, _path: build_trace_from_causes([cause], home)


def _check_kept_launch_scripts(path: str, name: str, namespace: str, text: str | None) -> Iterator[Finding]:
    """Yield a finding if `rendered/` does not hold the scripts of a run, or if they were changed."""
    where = Location(f"{RENDERED}/{path}", 1, 1)
    if text is None:
        message = f"a run that is kept mounts {name}, which {RENDERED}/ does not hold"
        yield Finding(LAUNCH_SCRIPTS_LOST, where, message, _HELP)
    elif not is_launch_script_config_map(_load_launch_map_objects(text), namespace, name[-8:]):
        message = f"what this file holds is not {name}: its scripts were changed"
        yield Finding(LAUNCH_SCRIPTS_LOST, where, message, _HELP)


def _load_launch_map_objects(text: str) -> list[Body]:
    try:
        return load_objects(text)
    except ManifestError:
        return []
