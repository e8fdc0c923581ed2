"""Checks of a TrainJob, alone and with its runtime: what webhooks refuse now, or Jobs and pods later.

Sources: pkg/webhooks and pkg/runtime of Trainer 2.1 to 2.3, pkg/webhooks of JobSet 0.10 to 0.12.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.backend import RUNTIME_KIND, SHARED_RUNTIME_KIND
from gangplan.model.support import look_up_trainer_line
from gangplan.objects import Body
from gangplan.validate.apiserver import containers
from gangplan.validate.apiserver.forms import (
    LABEL_VALUE,
    FoundProblems,
    is_domain_path,
    is_qualified,
    is_subdomain,
    report_invalid,
)
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.jobset import find_trainjob_step, list_replicated_jobs, list_train_job_runtime_patches
from gangplan.validate.trainer.runtimes import STEP_JOBS, find_pod_spec

# Variables that Trainer sets itself; it refuses a run's own (2.1 does not check those of MPI).
RESERVED_VARIABLES = {
    "mpi": (
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
    ),
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}
QUEUE = "kueue.x-k8s.io/queue-name"
LONGEST = 63
MOST_PODS = 100_000
MOST = 2**31 - 1


def check_train_job(body: Body, beside: Body | None, versions: SchemaVersions) -> FoundProblems:
    """Check a TrainJob; `beside` is the TrainingRuntime of its run."""
    spec = body["spec"]
    trainer = spec.get("trainer") or {}
    reference = spec["runtimeRef"]
    queue = (body["metadata"].get("labels") or {}).get(QUEUE)
    if queue is not None and not is_subdomain(queue):
        yield report_invalid(("metadata", "labels", QUEUE), f"'{queue}' cannot be the name of a queue")
    if beside is not None:
        own = beside["metadata"]
        named = (reference.get("kind", SHARED_RUNTIME_KIND), reference["name"])
        if named != (RUNTIME_KIND, own["name"]):
            message = f"the runtime of this run is TrainingRuntime {own['name']}, not {' '.join(named)}"
            yield report_invalid(
                ("spec", "runtimeRef", "name" if named[0] == RUNTIME_KIND else "kind"), message
            )
        elif own.get("namespace") != body["metadata"].get("namespace"):
            message = f"its runtime is in namespace {own.get('namespace')}, and only used there"
            yield report_invalid(("metadata", "namespace"), message)
        else:
            yield from _check_trainjob_with_runtime(body, beside, versions)
    if trainer.get("image", "").strip() != trainer.get("image", ""):
        yield report_invalid(
            ("spec", "trainer", "image"), f"image '{trainer['image']}' starts or ends with a space"
        )
    for index, variable in enumerate(trainer.get("env") or ()):
        if variable.get("valueFrom"):
            yield from containers.check_variable_source(
                ("spec", "trainer", "env", index, "valueFrom"), variable["valueFrom"]
            )
    for index, patch in enumerate(spec.get("runtimePatches") or ()):
        at = ("spec", "runtimePatches", index)
        if not is_domain_path(patch["manager"]):
            yield report_invalid(
                (*at, "manager"), f"'{patch['manager']}' is not a prefixed path", "Write example.com/name."
            )
        if "time" in patch and not _is_time(patch["time"]):
            yield report_invalid(
                (*at, "time"), f"'{patch['time']}' is not a time such as 2026-11-21T00:00:00Z"
            )


def _is_time(text: Any) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _check_trainjob_with_runtime(body: Body, beside: Body, versions: SchemaVersions) -> FoundProblems:
    """Check what depends on both the TrainJob and its runtime."""
    spec, entries = body["spec"], list_replicated_jobs(beside)
    names = [entry["name"] for entry in entries]
    policy = beside["spec"].get("mlPolicy") or {}
    trainer = spec.get("trainer") or {}
    reserved = {
        name
        for key, some in RESERVED_VARIABLES.items()
        if key in policy and _is_reserved_env_refused(key, versions)
        for name in some
    }
    for index, variable in enumerate(trainer.get("env") or ()):
        if variable["name"] in reserved:
            yield report_invalid(
                ("spec", "trainer", "env", index, "name"), f"{variable['name']} is set by Trainer itself"
            )
    processes = trainer.get("numProcPerNode", 1)
    if "mpi" in policy and (isinstance(processes, str) or processes >= 2**31):
        message = f"a run with MPI needs a number of processes, not {processes}"
        yield report_invalid(("spec", "trainer", "numProcPerNode"), message)
    for part in ("dataset", "model"):
        wanted = f"{part}-initializer"
        if part in (spec.get("initializer") or {}) and wanted not in names:
            yield report_invalid(
                ("spec", "initializer", part), f"the runtime has no replicated job '{wanted}'"
            )
    yield from _check_trainjob_pod_names_and_count(body, beside)
    if "resourcesPerNode" in trainer and policy:
        yield from _check_trainer_resources(trainer["resourcesPerNode"], entries, versions)
    for at, pod, entry in _find_patched_pod_specs(spec, entries):
        yield from _check_trainjob_pod_spec_patch(at, pod, entry)


def _is_reserved_env_refused(policy: str, versions: SchemaVersions) -> bool:
    return policy != "mpi" or look_up_trainer_line(versions.trainer).refuses_mpi_variables


def _count_trainjob_pods_by_replicated_job(body: Body, beside: Body) -> Iterator[tuple[Body, int]]:
    """Yield each replicated job with its number of pods."""
    policy = beside["spec"].get("mlPolicy") or {}
    nodes = (body["spec"].get("trainer") or {}).get("numNodes", policy.get("numNodes", 1))
    mpi = policy.get("mpi")
    for entry in list_replicated_jobs(beside):
        count = (entry["template"].get("spec") or {}).get("parallelism", 1)
        if mpi is not None and entry["name"] in ("launcher", "node"):
            workers = max(nodes - 1, 1) if mpi.get("runLauncherAsNode") else nodes
            count = workers if entry["name"] == "node" else 1
        elif find_trainjob_step(entry) == "trainer":
            count = nodes
        yield entry, count


def _check_trainjob_pod_names_and_count(body: Body, beside: Body) -> FoundProblems:
    """Check the names of pods, RUN-ENTRY-REPLICA-INDEX-xxxxx with at most 63 characters, and their number."""
    name = body["metadata"]["name"]
    for entry, count in _count_trainjob_pods_by_replicated_job(body, beside):
        longest = f"{name}-{entry['name']}-{max(entry.get('replicas', 1) - 1, 0)}-{max(count - 1, 0)}-abcde"
        if len(longest) > LONGEST:
            message = f"pods would be called '{longest}', which has more than {LONGEST} characters"
            yield report_invalid(("metadata", "name"), message, "Shorten the job's name.")
        if entry.get("replicas", 1) * count > MOST:
            yield report_invalid(
                ("spec", "trainer", "numNodes"), f"'{entry['name']}' would have more than {MOST} pods"
            )
        rules = ((entry["template"].get("spec") or {}).get("successPolicy") or {}).get("rules") or ()
        if any(rule.get("succeededCount", 0) > count for rule in rules):
            message = f"the successPolicy of '{entry['name']}' wants more pods than the {count} that it has"
            yield report_invalid(("spec", "trainer", "numNodes"), message)
        if count > MOST_PODS:
            yield report_invalid(
                ("spec", "trainer", "numNodes"), f"a Job has at most {MOST_PODS} pods, not {count}"
            )
    coordinator = ((beside["spec"].get("template") or {}).get("spec") or {}).get("coordinator")
    if coordinator:
        spec = beside["spec"]["template"]["spec"]
        count = next(
            (
                n
                for entry, n in _count_trainjob_pods_by_replicated_job(body, beside)
                if entry["name"] == coordinator["replicatedJob"]
            ),
            0,
        )
        if coordinator.get("podIndex", 0) >= max(count, 1):
            yield report_invalid(
                ("metadata", "name"), f"the coordinator is pod {coordinator['podIndex']} of {count}"
            )
        job, pod = coordinator.get("jobIndex", 0), coordinator.get("podIndex", 0)
        host = f"{name}-{coordinator['replicatedJob']}-{job}-{pod}"
        value = f"{host}.{(spec.get('network') or {}).get('subdomain') or name}"
        if len(value) > LONGEST:
            yield report_invalid(
                ("metadata", "name"), f"the coordinator would be '{value}', more than {LONGEST} characters"
            )


def _check_trainer_resources(wanted: Body, entries: list[Body], versions: SchemaVersions) -> FoundProblems:
    """Check the TrainJob's resources: since 2.3 merged with the runtime's, before that alone."""
    for entry in entries:
        if find_trainjob_step(entry) != "trainer":
            continue
        for one in find_pod_spec(entry)["containers"]:
            if one["name"] != "node":
                continue
            merged = dict(wanted)
            if look_up_trainer_line(versions.trainer).merges_resources:
                own = one.get("resources") or {}
                for part in ("requests", "limits"):
                    merged[part] = {**(own.get(part) or {}), **(wanted.get(part) or {})}
            claims = {claim["name"] for claim in find_pod_spec(entry).get("resourceClaims") or ()}
            yield from containers.check_container_resources(
                ("spec", "trainer", "resourcesPerNode"), merged, claims
            )


def _find_patched_pod_specs(spec: Body, entries: list[Body]) -> Iterator[tuple[FieldPath, Body, Body | None]]:
    """Yield the pod specs in a run's patches, with their paths and the replicated jobs that they patch."""
    for at, one in list_train_job_runtime_patches(spec):
        pod = (((one.get("template") or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
        yield at, pod, next((entry for entry in entries if entry["name"] == one["name"]), None)


def _check_trainjob_pod_spec_patch(path: FieldPath, pod: Body, entry: Body | None) -> FoundProblems:
    if entry is None:
        yield report_invalid(
            (*path, "name"), "the runtime has no such replicated job: the patch would add an empty one"
        )
        return
    for key, value in (pod.get("nodeSelector") or {}).items():
        if not is_qualified(key) or not LABEL_VALUE.fullmatch(value):
            at = (*path, "template", "spec", "template", "spec", "nodeSelector", key)
            yield report_invalid(at, f"'{key}: {value}' cannot be a label of nodes")
    for name in ("containers", "initContainers"):
        known = [one["name"] for one in find_pod_spec(entry).get(name) or ()]
        for index, one in enumerate(pod.get(name) or ()):
            at = (*path, "template", "spec", "template", "spec", name, index)
            if one["name"] not in known:
                yield report_invalid(
                    at,
                    f"the runtime has no such container '{one['name']}': it would be added without an image",
                )
            elif one.get("env") and one["name"] in STEP_JOBS.values():
                yield report_invalid(
                    (*at, "env"), f"the environment of '{one['name']}' is set in the run, not in a patch"
                )
