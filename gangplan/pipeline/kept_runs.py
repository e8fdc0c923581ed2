"""`--keep-runs`: a run as it was rendered, reused only as far as its name vouches for it.

The name of a run holds a hash of what must not change while it runs: the specs of its TrainingRuntime and its
TrainJob (plan/names.py). These are taken from the file if they have that hash. Everything else (metadata,
network policies, any further object) may change without a new run, so it is rendered as it is today, and
anything else in the file is ignored; the digest in the annotations is that of the specs (lineage.py). The
result is checked like any new run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gangplan.emit import EarlierRun, EarlierRuns, build_renamed_finding
from gangplan.findings import FieldPath, Finding, Location
from gangplan.generators.files import FILES_MAP_KIND as FILES
from gangplan.generators.files import generate_files_config_map
from gangplan.gitops.record import STATE_ANNOTATION, STOPPED_STATE, build_run_record
from gangplan.model.backend import BACKEND_BY_HOLDER, BACKEND_BY_KIND, RUNTIME_FRAMEWORK_LABEL
from gangplan.model.job import Job
from gangplan.model.kinds import CLAIM_API_VERSION, CLAIM_TEMPLATE_KIND
from gangplan.objects import Body
from gangplan.pipeline.lineage import annotate_image_digest
from gangplan.pipeline.reasons import explain_change_since_earlier_run
from gangplan.plan import RunPlan
from gangplan.plan.names import (
    DATED_SUFFIX,
    FIXED_FIELDS,
    format_run_name,
    hash_content_for_run_name,
    is_hashed_kind,
)
from gangplan.rules.grants import RUN_FORGED
from gangplan.rules.runs import RETIRED_LOST, RETIRED_UNKNOWN
from gangplan.source import ManifestError, load_objects
from gangplan.trace import Trace, Tracer
from gangplan.workspace import RENDERED

# How many run numbers are tried to find an earlier run of a job, from today's down.
_MOST_NUMBERS = 1000
# In names, only the template of a schedule's runs has this.
STAND_IN = f"-{DATED_SUFFIX}"
# Kinds that create runs from a template; no record has them.
CREATORS = ("CronJob", "Job")
# Kinds of which a run has those of its time, as many as there were, and none of today.
_OF_THEN = (FILES, CLAIM_TEMPLATE_KIND)
_BRING_BACK = (
    "Take it off the list and run gangplan retire --write, which brings the file back from Git;"
    " where Git has it no more, remove the run from the cluster by hand."
)


def build_run_path(cluster: str, unit: RunPlan, name: str) -> str:
    """Return the path of a run in the tree."""
    return f"{cluster}/runs/{unit.job.team}/{name}.yaml"


def name_run_or_keep_earlier_one(
    runs: EarlierRuns,
    cluster: str,
    unit: RunPlan,
    bodies: Sequence[Body],
    texts: Sequence[str],
    is_kept: bool,
    tracer: Callable[[], Tracer] | None = None,
) -> tuple[str, list[Body] | None, list[Finding]]:
    """Return the name of a run as built today, or the name and objects of an earlier one that is to be kept.

    `texts` are the objects as they are written; with a `tracer` for them, the finding about a run that
    changed says why.
    """
    name = format_run_name(unit.job.name, hash_content_for_run_name(bodies, unit.job.run, texts))
    job = unit.job
    path = build_run_path(cluster, unit, name)
    earlier = runs.find(path, job.name, job.spec_hash, job.retired, is_kept or job.is_kept)
    if earlier is not None and job.is_dated and not (is_kept or job.is_kept or job.is_stopped):
        return name, None, []  # nothing starts before it is due
    if earlier is None or job.is_archived:  # an archived run is never applied, so its name may change
        return name, None, []
    is_kept |= job.is_kept
    why = (
        _explain_difference_from_earlier_run(runs, cluster, unit, earlier, bodies, texts, tracer)
        if tracer
        else ""
    )
    change = build_renamed_finding(job, cluster, earlier, name, is_kept, why)
    if not is_kept and not job.is_stopped:
        return name, None, [change]
    kept, wrong = restore_objects_of_kept_run(earlier, unit, bodies)
    if kept is None:
        return name, None, wrong
    return earlier.name, kept, [] if job.is_stopped else [change]


def explain_why_run_cannot_be_kept(job: Job, name: str, finding: Finding) -> Finding:
    """Return what the API server of today would refuse in a kept run."""
    if not finding.is_error:
        return finding
    waived = " A waiver can excuse it." if finding.rule.may_be_waived else ""
    return replace(
        finding,
        where=Location(job.source, 1, 1),
        message=f"run {name} cannot be kept as it was rendered: {finding.message}",
        help="Write state: archived until that run is over: it goes on, and no other starts. To train again"
        f" instead, take out keep: true, keepRuns: true or --keep-runs.{waived}",
        fix=None,
    )


def _explain_difference_from_earlier_run(
    runs: EarlierRuns,
    cluster: str,
    unit: RunPlan,
    earlier: EarlierRun,
    bodies: Sequence[Body],
    texts: Sequence[str],
    tracer: Callable[[], Tracer],
) -> str:
    """Return what differs, computed once for all runs in which the same lines do."""
    old = set(earlier.text.replace(earlier.name, unit.run_name).splitlines())
    lines = (cluster, *(line for text in texts for line in text.splitlines() if line not in old))
    if lines not in runs.reasons:
        runs.reasons[lines] = explain_change_since_earlier_run(unit, earlier, bodies, tracer()).words
    return runs.reasons[lines]


def check_retired_runs(runs: EarlierRuns, clusters: Iterable[str], unit: RunPlan, name: str) -> list[Finding]:
    """Check the list of runs that are over; `name` is the run that the spec describes.

    Where a job runs on several `clusters`, the run of one may be superseded on another.
    """
    job = unit.job
    origin = job.origins.get("retired")
    where = origin.where if origin and origin.where else Location(job.source, 1, 1)
    found = []
    for one in job.retired:
        if one.rpartition("-")[0] != job.name:
            message = f"{one} is not a run of this job: its runs are called {job.name}-<hash>"
            found.append(Finding(RETIRED_UNKNOWN, where, message, "Remove it from the list."))
        elif one == name and not any(_is_superseded(runs, cluster, unit, one) for cluster in clusters):
            message = f"{one} is the run that this spec describes, so it is not over for Git"
            help = "Remove it from the list, and write state: stopped to end the run."
            found.append(Finding(RETIRED_UNKNOWN, where, message, help))
    return found


def _is_superseded(runs: EarlierRuns, cluster: str, unit: RunPlan, name: str) -> bool:
    """Return whether `rendered/` has a run of a cluster and another one of its job."""
    names = runs.names(build_run_path(cluster, unit, name), unit.job.name)
    return name in names and len(names) > 1


def restore_retired_run(
    runs: EarlierRuns, cluster: str, others: Iterable[str], unit: RunPlan, name: str, today: Sequence[Body]
) -> tuple[list[Body] | None, list[Finding]]:
    """Return the objects of an earlier run of a job on a cluster, from which its record is made; None without
    one.

    Fields that no update may change must be those of the run itself: an engine that compares by asking the
    server, such as Argo CD, cannot compare the whole application if one object differs there, and ends
    nothing. The run is in `rendered/`; the objects of `today` will do where only the number of the run
    differs.
    """
    job, path = unit.job, build_run_path(cluster, unit, name)
    numbers = range(job.run, max(0, job.run - _MOST_NUMBERS), -1)
    earlier = runs.read(path)
    kept, wrong = (
        restore_objects_of_kept_run(earlier, unit, today, numbers) if earlier is not None else (None, [])
    )
    if kept is not None:
        return kept, []
    if any(format_run_name(job.name, hash_content_for_run_name(today, number)) == name for number in numbers):
        return list(today), []
    if earlier is None and any(
        runs.read(build_run_path(one, unit, name)) for one in others if one != cluster
    ):
        return None, []
    origin = job.origins.get("retired")
    where = origin.where if origin and origin.where else Location(job.source, 1, 1)
    message = (
        f"{RENDERED}/{path} is not there, so nobody knows what {name} was, and its record would end nothing"
    )
    return None, wrong or [Finding(RETIRED_LOST, where, message, _BRING_BACK)]


def add_schedule_creator_pods(bodies: Sequence[Body], tracer: Tracer) -> tuple[list[Body], Tracer]:
    """Return the objects of a schedule and the pods that create its runs, as policies will see them."""
    pods, places = list[Body](), list[int]()
    for index, body in enumerate(bodies):
        if body["kind"] == "CronJob":
            template = body["spec"]["jobTemplate"]["spec"]["template"]
            own = {"name": f"{body['metadata']['name']}-29000000-abcde"}
            own["namespace"] = body["metadata"]["namespace"]
            metadata = {**(template.get("metadata") or {}), **own}
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
            places.append(index)

    def traced(index: int, path: FieldPath) -> Trace:
        if index < len(bodies):
            return tracer(index, path)
        return tracer(places[index - len(bodies)], ("spec", "jobTemplate", "spec", "template", *path))

    return [*bodies, *pods], traced


def build_run_objects_for_tree(bodies: list[Body], is_dated: bool) -> list[Body]:
    """Return the objects as they are in the tree: those of a schedule, or the record of a stopped run."""
    if not is_dated:
        return build_run_record(bodies)
    from gangplan.generators.schedules import wrap_scheduled_run  # few files are of a schedule

    return wrap_scheduled_run(bodies)


def build_earlier_run_record(bodies: list[Body]) -> list[Body]:
    """Return the record of an earlier run; for a schedule, whose runs are in no tree, that of its
    template."""
    if any(STAND_IN in body["metadata"]["name"] or body["kind"] in CREATORS for body in bodies):
        from gangplan.generators.schedules import select_record_objects

        bodies = select_record_objects(bodies)
    return build_run_record(bodies)


def restore_objects_of_kept_run(
    earlier: EarlierRun, unit: RunPlan, today: Sequence[Body], numbers: Iterable[int] = ()
) -> tuple[list[Body] | None, list[Finding]]:
    """Return the objects of an earlier run with the placeholder in their names, or why they cannot be taken.

    `today` are those that would be rendered now, in their order; `numbers` are those that the run may have
    had, where it need not be today's.
    """
    try:
        bodies = load_objects(earlier.text.replace(earlier.name, unit.run_name))
        if not any(body.get("kind") in BACKEND_BY_KIND for body in bodies):
            from gangplan.generators.schedules import (
                unwrap_scheduled_run,
            )  # few files hold a template of a run

            bodies = unwrap_scheduled_run(bodies)
    except ManifestError:  # its message would show what the file contains
        return None, [_build_forged_earlier_run_finding(earlier, "it is not YAML as gangplan writes it")]
    kept = [_unsuspend_recorded_run(body) for body in bodies if is_hashed_kind(body.get("kind"))]
    wanted = [body["kind"] for body in today if is_hashed_kind(body["kind"]) and body["kind"] not in _OF_THEN]
    held = [body for body in kept if body["kind"] in _OF_THEN]
    others = [body for body in kept if body["kind"] not in _OF_THEN]
    if [body["kind"] for body in others] != wanted or not all(map(_is_whole, kept)):
        return None, [
            _build_forged_earlier_run_finding(earlier, f"it does not hold one {' and one '.join(wanted)}")
        ]
    try:
        found = [
            format_run_name(unit.job.name, hash_content_for_run_name(kept, one))
            for one in numbers or (unit.job.run,)
        ]
    except (TypeError, ValueError):  # a value that no rendered manifest has, such as a date
        return None, [_build_forged_earlier_run_finding(earlier, "it is not YAML as gangplan writes it")]
    if earlier.name not in found:
        return None, [_build_forged_earlier_run_finding(earlier, f"what it holds would be called {found[0]}")]
    specs = iter(others)
    bodies = []
    for body in today:
        if body["kind"] in BACKEND_BY_HOLDER:
            bodies += [
                _restore_files_map(one, body) if one["kind"] == FILES else _restore_claim_template(one, body)
                for one in held
            ]
        if body["kind"] not in _OF_THEN:
            bodies.append(
                _restore_object_spec_of_kept_run(body, next(specs)) if is_hashed_kind(body["kind"]) else body
            )
    return annotate_image_digest(bodies), []


def _restore_object_spec_of_kept_run(today: Body, earlier: Body) -> Body:
    """Return an object of today with the spec that it had then.

    A run had its own name, whether a schedule made it or not.
    """
    name = (earlier.get("metadata") or {}).get("name", today["metadata"]["name"])
    return {**today, "spec": earlier["spec"], "metadata": {**today["metadata"], "name": name}}


def _is_whole(body: Body) -> bool:
    names = [name for name in FIXED_FIELDS if name in body]
    return bool(names) and all(isinstance(body[name], dict) for name in names)


def _restore_files_map(earlier: Body, runtime: Body) -> Body:
    """Return the files of an earlier run, with the metadata that they would have today."""
    fixed = {name: earlier[name] for name in FIXED_FIELDS if name in earlier}
    return generate_files_config_map({**runtime["metadata"]}, fixed)


def _restore_claim_template(earlier: Body, runtime: Body) -> Body:
    """Return claims of an earlier run with today's metadata; the run's hash covers their names."""
    labels = {
        name: value
        for name, value in runtime["metadata"]["labels"].items()
        if name != RUNTIME_FRAMEWORK_LABEL
    }
    metadata = {**runtime["metadata"], "name": earlier["metadata"]["name"], "labels": labels}
    return {
        "apiVersion": CLAIM_API_VERSION,
        "kind": CLAIM_TEMPLATE_KIND,
        "metadata": metadata,
        "spec": earlier["spec"],
    }


def _unsuspend_recorded_run(body: Body) -> Body:
    """Return an object of a record as it was in the run: a record differs from it only by being suspended."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    spec = body.get("spec")
    made = BACKEND_BY_KIND.get(str(body.get("kind")))
    if made is None or annotations.get(STATE_ANNOTATION) != STOPPED_STATE or not isinstance(spec, dict):
        return body
    return {**body, "spec": _remove_field_from_kept_run_spec(spec, made.suspended)}


def _remove_field_from_kept_run_spec(spec: Body, path: Sequence[str]) -> Body:
    """Return the spec without the field at a path."""
    name, rest = path[0], path[1:]
    if rest:
        return (
            {**spec, name: _remove_field_from_kept_run_spec(spec[name], rest)}
            if isinstance(spec.get(name), dict)
            else spec
        )
    return {key: value for key, value in spec.items() if key != name}


def _build_forged_earlier_run_finding(earlier: EarlierRun, why: str) -> Finding:
    return Finding(
        RUN_FORGED,
        Location(f"{RENDERED}/{earlier.path}", 1, 1),
        f"the run was changed after it was rendered: {why}",
        "Restore the file from an earlier commit. To start the run again instead, render without --keep-runs,"
        " and remove keep: true from its spec or keepRuns: true from the file of its cluster.",
    )
