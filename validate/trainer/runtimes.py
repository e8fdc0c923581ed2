"""Checks of a run's runtime: what the webhooks of Trainer and JobSet, and the Jobs created from it, refuse.

Sources: pkg/webhooks and pkg/runtime of Trainer 2.1 to 2.3, pkg/webhooks of JobSet 0.10 to 0.12,
pkg/apis/batch/validation of Kubernetes.
"""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.backend import TRAINJOB
from gangplan.objects import Body
from gangplan.validate.apiserver import jobs, pods
from gangplan.validate.apiserver.forms import (
    FoundProblems,
    check_duplicate_list_entries,
    is_dns_1035_label,
    is_domain_path,
    report_invalid,
)
from gangplan.validate.jobset import (
    JOBSET_PATH,
    REPLICATED_JOBS_PATH,
    find_trainjob_step,
    list_replicated_jobs,
)

# Volumes that Trainer adds to the pods of a run with MPI.
VOLUMES = {"launcher": ("mpi-ssh-auth", "mpi-hostfile"), "node": ("mpi-ssh-auth",)}
STEP_JOBS = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}


def find_pod_spec(entry: Body) -> Body:
    """Return the spec of the pods of a replicated job; of one without pods, a spec without containers."""
    job = entry["template"].get("spec") or {"template": {}}
    spec: Body = job["template"].get("spec") or {"containers": []}
    return spec


# --- runtime -------------------------------------------------------------------------------------------


def check_training_runtime(body: Body, run: Body | None) -> FoundProblems:
    """Check a TrainingRuntime; `run` is the TrainJob of the same run."""
    spec: Body = (body["spec"].get("template") or {}).get("spec") or {}
    entries = list_replicated_jobs(body)
    names = [entry["name"] for entry in entries]
    yield from _check_jobset_policies(spec, entries, names)
    policy = body["spec"].get("mlPolicy") or {}
    if "mpi" in policy:
        yield from _check_training_runtime_mpi_policy(policy["mpi"], names, run)
    for index, entry in enumerate(entries):
        at = (*REPLICATED_JOBS_PATH, index)
        yield from _check_jobset_replicated_job(at, entry, names[:index], _is_webhook_disabled(body))
        if "spec" not in entry["template"]:
            yield report_invalid((*at, "template", "spec"), "the Job of this entry has no pods to make")
            continue
        yield from jobs.check_job_spec((*at, "template", "spec"), entry["template"]["spec"])
        if "spec" in entry["template"]["spec"]["template"]:
            added = VOLUMES.get(entry["name"], ()) if "mpi" in policy else ()
            yield from pods.check_pod_spec(
                (*at, "template", "spec", "template", "spec"), find_pod_spec(entry), added
            )


def _is_webhook_disabled(body: Body) -> bool:
    labels = body["metadata"].get("labels") or {}
    return labels.get(f"{TRAINJOB.group}/webhook-validation") == "disabled"


def _check_training_runtime_mpi_policy(mpi: Body, names: list[str], run: Body | None) -> FoundProblems:
    if mpi.get("sshAuthMountPath", "/x") == "":
        yield report_invalid(("spec", "mlPolicy", "mpi", "sshAuthMountPath"), "a path is expected")
    if run is not None and mpi.get("runLauncherAsNode"):
        nodes = (run["spec"].get("trainer") or {}).get("numNodes", 1)
        for name in ("launcher", "node"):
            if nodes > 1 and name not in names:
                yield report_invalid(
                    REPLICATED_JOBS_PATH,
                    f"a launcher that is a node needs the replicated job '{name}'",
                )


def _check_jobset_policies(spec: Body, entries: list[Body], names: list[str]) -> FoundProblems:
    """Check the policies of a JobSet that name its replicated jobs, and its other settings."""
    targets = [((*JOBSET_PATH, "successPolicy"), spec.get("successPolicy") or {})]
    failure = spec.get("failurePolicy") or {}
    rules = failure.get("rules") or []
    targets += [((*JOBSET_PATH, "failurePolicy", "rules", index), rule) for index, rule in enumerate(rules)]
    for at, policy in targets:
        for index, name in enumerate(policy.get("targetReplicatedJobs") or ()):
            if name not in names:
                yield report_invalid(
                    (*at, "targetReplicatedJobs", index), f"there is no replicated job '{name}'"
                )
    yield from check_duplicate_list_entries(
        (*JOBSET_PATH, "failurePolicy", "rules"), rules, lambda rule: rule.get("name"), "the rule"
    )
    if failure.get("restartStrategy") == "InPlaceRestart":
        yield report_invalid(
            (*JOBSET_PATH, "failurePolicy", "restartStrategy"),
            "InPlaceRestart is an alpha feature of JobSet, off by default",
        )
    for index, rule in enumerate(rules):
        if rule.get("action") in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
            message = f"{rule['action']} is an alpha feature of JobSet, off by default"
            yield report_invalid((*JOBSET_PATH, "failurePolicy", "rules", index, "action"), message)
    subdomain = (spec.get("network") or {}).get("subdomain")
    if subdomain and not is_dns_1035_label(subdomain):
        yield report_invalid(
            (*JOBSET_PATH, "network", "subdomain"), f"'{subdomain}' cannot be the name of a Service"
        )
    manager = spec.get("managedBy")
    if manager is not None and not is_domain_path(manager):
        yield report_invalid(
            (*JOBSET_PATH, "managedBy"), f"'{manager}' has no prefix", "Write example.com/name."
        )
    if "coordinator" in spec:
        yield from _check_jobset_coordinator(spec["coordinator"], entries)
    for index, policy in enumerate(spec.get("volumeClaimPolicies") or ()):
        yield from _check_jobset_volume_claim_templates(
            (*JOBSET_PATH, "volumeClaimPolicies", index, "templates"), policy, entries
        )


def _check_jobset_coordinator(body: Body, entries: list[Body]) -> FoundProblems:
    entry = next((one for one in entries if one["name"] == body.get("replicatedJob")), None)
    if entry is None:
        yield report_invalid(
            (*JOBSET_PATH, "coordinator"), f"there is no replicated job '{body.get('replicatedJob')}'"
        )
    elif body.get("jobIndex", 0) >= entry.get("replicas", 1) or body.get("jobIndex", 0) < 0:
        yield report_invalid((*JOBSET_PATH, "coordinator", "jobIndex"), "there is no such job")


def _check_jobset_volume_claim_templates(path: FieldPath, policy: Body, entries: list[Body]) -> FoundProblems:
    mounted = {
        mount["name"]
        for entry in entries
        for one in find_pod_spec(entry)["containers"]
        for mount in one.get("volumeMounts") or ()
    }
    volumes = {volume["name"] for entry in entries for volume in find_pod_spec(entry).get("volumes") or ()}
    for index, template in enumerate(policy.get("templates") or ()):
        if template["metadata"].get("name") in volumes:
            yield report_invalid(
                (*path, index), f"'{template['metadata']['name']}' is a volume of a pod already"
            )
        if template["metadata"].get("name") not in mounted:
            yield report_invalid(
                (*path, index), f"no container mounts the claim '{template['metadata'].get('name')}'"
            )


def _check_jobset_replicated_job(
    path: FieldPath, entry: Body, earlier: list[str], is_free: bool
) -> FoundProblems:
    if "dependsOn" in entry and not earlier:
        yield report_invalid((*path, "dependsOn"), "the first replicated job cannot depend on another")
    for index, one in enumerate(entry.get("dependsOn") or ()):
        if one["name"] not in earlier:
            message = f"'{one['name']}' is not a replicated job before '{entry['name']}'"
            yield report_invalid((*path, "dependsOn", index), message, "Put it before this one.")
    group = entry.get("groupName", "default")
    if not is_dns_1035_label(group):
        yield report_invalid((*path, "groupName"), f"'{group}' cannot be the name of a group")
    step = find_trainjob_step(entry)
    if step in STEP_JOBS and not is_free:
        if entry.get("replicas", 1) != 1:
            yield report_invalid((*path, "replicas"), f"the replicated job of step {step} has 1 replica")
        every = [*find_pod_spec(entry)["containers"]]
        if STEP_JOBS[step] not in [one["name"] for one in every]:
            yield report_invalid(
                (*path, "template", "spec", "template", "spec", "containers"),
                f"the replicated job of step {step} needs a container '{STEP_JOBS[step]}'",
            )
