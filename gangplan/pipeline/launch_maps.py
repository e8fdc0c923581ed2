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

# The pattern begins with the word to find: it is searched in the text of each run, and is fast only so.
_NAMED = re.compile(rf"{SCRIPTS_VOLUME}-([0-9a-f]{{8}})\b")
_HELP = "Bring the file back from Git, or let the job run again: raise run: in its spec."


def launch_map_path_of(cluster: str, team: str, digest: str) -> str:
    """Return the path of a ConfigMap of launch scripts in the tree."""
    return f"{cluster}/runs/{team}/launch.{digest}.yaml"


def put_launch_maps(
    worker: WorkerState, cluster: str, job: Job, text: str, result: TaskResult
) -> list[Finding]:
    """Put the ConfigMaps that a run's text names, and return what is wrong with them."""
    found: list[Finding] = []
    for digest in sorted(_find_named_digests(text)):
        path = launch_map_path_of(cluster, job.team, digest)
        if path in result.scripts:
            continue
        result.scripts.add(path)
        made = worker.launch_maps.get(path)
        if made is None:  # once per worker: nearly all runs of a team name the same file
            is_of_today = name_launch_script_config_map() == f"{SCRIPTS_VOLUME}-{digest}"
            make = _build_launch_map if is_of_today else _keep_launch_map
            made = worker.launch_maps[path] = make(worker, cluster, job, path)
        found += made.findings
        result.is_lasting &= made.is_lasting
        result.changes += made.changes
        result.texts |= made.texts
        result.telling |= made.telling
        result.policies |= made.policies
        for one, numbers in made.matched.items():
            result.matched.setdefault(one, set()).update(numbers)
    return found


def _find_named_digests(text: str) -> set[str]:
    """Return the digests of the ConfigMaps that a text names, in either style of YAML: in a mapping below its
    key, or in braces after it."""
    found = set()
    for match in _NAMED.finditer(text):
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].lstrip(" ")
        if before == "name: " or before.endswith("configMap: {name: "):
            found.add(match[1])
    return found


def _build_launch_map(worker: WorkerState, cluster: str, job: Job, path: str) -> TaskResult:
    """Build, check and stage the ConfigMap of today's scripts in a team's namespace."""
    made, tracer = TaskResult(), _build_launch_map_tracer(job)
    waived = list_waived_policies(worker.workspace.waivers, Subject(cluster, job.team))
    before = [generate_launch_script_config_map(job, waived)]
    [bodies] = run_overlay_on_object_groups(worker, cluster, [before], [made])
    wrong, is_telling = check_built_file_at_gate(worker, cluster, bodies, before, job.platform, tracer)
    if not any(one.is_error for one in wrong):
        wrong += check_patched_launch_scripts(bodies, before, tracer, worker.builders[cluster].component)
    if not any(one.is_error for one in wrong):
        wrong += judge_objects_by_cluster_policies(worker, cluster, bodies, tracer, made, [], before)
    made.findings += wrong
    text = dump_all(bodies, build_header_lines(team_source_of(job.team)))
    store_staged_text(worker, made, path, text, is_telling)
    return made


def _keep_launch_map(worker: WorkerState, cluster: str, job: Job, path: str) -> TaskResult:
    """Check and stage a ConfigMap of earlier scripts, as `rendered/` holds it."""
    made = TaskResult(is_lasting=False)
    earlier = worker.earlier.read(path)
    text = None if earlier is None else earlier.text
    made.findings += _check_kept_launch_scripts(path, job.namespace, text)
    if text is not None:
        store_staged_text(worker, made, path, text, is_telling=False)
    return made


def _build_launch_map_tracer(job: Job) -> Tracer:
    """Return the tracer of the ConfigMap: gangplan alone decides what is in it."""
    home = Location(team_source_of(job.team), 1, 1)
    cause = build_own_cause("gangplan's launch scripts, the same for all runs of the team")
    return lambda _index, _path: build_trace_from_causes([cause], home)


def _check_kept_launch_scripts(path: str, namespace: str, text: str | None) -> Iterator[Finding]:
    """Yield a finding if `rendered/` does not hold the scripts of a run, or if they were changed."""
    digest = path.split(".")[-2]
    name = f"{SCRIPTS_VOLUME}-{digest}"
    where = Location(f"{RENDERED}/{path}", 1, 1)
    if text is None:
        message = f"a kept run mounts {name}, but {RENDERED}/ does not have it"
        yield Finding(LAUNCH_SCRIPTS_LOST, where, message, _HELP)
    elif not is_launch_script_config_map(_load_launch_map_objects(text), namespace, digest):
        message = f"it is not {name} as gangplan wrote it: a file was changed, added or removed"
        yield Finding(LAUNCH_SCRIPTS_LOST, where, message, _HELP)


def _load_launch_map_objects(text: str) -> list[Body]:
    try:
        return load_objects(text)
    except ManifestError:
        return []
