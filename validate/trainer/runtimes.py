"""Checks of a run's runtime: what the webhooks of Trainer and JobSet, and the Jobs created from it, refuse.

Sources: pkg/webhooks and pkg/runtime of Trainer 2.1 to 2.3, pkg/webhooks of JobSet 0.10 to 0.12,
pkg/apis/batch/validation of Kubernetes.
"""

from __future__ import annotations

from gangplan.model.backend import TRAINJOB
from gangplan.validate.apiserver import jobs, pods
from gangplan.validate.apiserver.forms import (
    Body,
    Found,
    Path,
    is_domain_path,
    is_label_1035,
    problem,
    twice,
)
from gangplan.validate.jobset import ENTRIES, JOBSET, entries_of, step_of

# Volumes that Trainer adds to the pods of a run with MPI.
VOLUMES = {"launcher": ("mpi-ssh-auth", "mpi-hostfile"), "node": ("mpi-ssh-auth",)}
STEPS = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}


def pod_of(entry: Body) -> Body:
    """Return the spec of the pods of a replicated job; of one without pods, a spec without containers."""
    job = entry["template"].get("spec") or {"template": {}}
    spec: Body = job["template"].get("spec") or {"containers": []}
    return spec


# --- runtime -------------------------------------------------------------------------------------------


def runtime(body: Body, run: Body | None) -> Found:
    """Check a TrainingRuntime; `run` is the TrainJob of the same run."""
    spec: Body = (body["spec"].get("template") or {}).get("spec") or {}
    entries = entries_of(body)
    names = [entry["name"] for entry in entries]
    yield from _policies(spec, entries, names)
    policy = body["spec"].get("mlPolicy") or {}
    if "mpi" in policy:
        yield from _mpi(policy["mpi"], names, run)
    for index, entry in enumerate(entries):
        at = (*ENTRIES, index)
        yield from _entry(at, entry, names[:index], _skips_webhook(body))
        if "spec" not in entry["template"]:
            yield problem((*at, "template", "spec"), "the Job of this entry has no pods to make")
            continue
        yield from jobs.job((*at, "template", "spec"), entry["template"]["spec"])
        if "spec" in entry["template"]["spec"]["template"]:
            added = VOLUMES.get(entry["name"], ()) if "mpi" in policy else ()
            yield from pods.pod((*at, "template", "spec", "template", "spec"), pod_of(entry), added)


def _skips_webhook(body: Body) -> bool:
    labels = body["metadata"].get("labels") or {}
    return labels.get(f"{TRAINJOB.group}/webhook-validation") == "disabled"


def _mpi(mpi: Body, names: list[str], run: Body | None) -> Found:
    if mpi.get("sshAuthMountPath", "/x") == "":
        yield problem(("spec", "mlPolicy", "mpi", "sshAuthMountPath"), "a path is expected")
    if run is not None and mpi.get("runLauncherAsNode"):
        nodes = (run["spec"].get("trainer") or {}).get("numNodes", 1)
        for name in ("launcher", "node"):
            if nodes > 1 and name not in names:
                yield problem(
                    ENTRIES,
                    f"a launcher that is a node needs the replicated job '{name}'",
                )


def _policies(spec: Body, entries: list[Body], names: list[str]) -> Found:
    """Check the policies of a JobSet that name its replicated jobs, and its other settings."""
    targets = [((*JOBSET, "successPolicy"), spec.get("successPolicy") or {})]
    failure = spec.get("failurePolicy") or {}
    rules = failure.get("rules") or []
    targets += [((*JOBSET, "failurePolicy", "rules", index), rule) for index, rule in enumerate(rules)]
    for at, policy in targets:
        for index, name in enumerate(policy.get("targetReplicatedJobs") or ()):
            if name not in names:
                yield problem((*at, "targetReplicatedJobs", index), f"there is no replicated job '{name}'")
    yield from twice((*JOBSET, "failurePolicy", "rules"), rules, lambda rule: rule.get("name"), "the rule")
    if failure.get("restartStrategy") == "InPlaceRestart":
        yield problem(
            (*JOBSET, "failurePolicy", "restartStrategy"),
            "InPlaceRestart is an alpha feature of JobSet, off by default",
        )
    for index, rule in enumerate(rules):
        if rule.get("action") in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
            message = f"{rule['action']} is an alpha feature of JobSet, off by default"
            yield problem((*JOBSET, "failurePolicy", "rules", index, "action"), message)
    subdomain = (spec.get("network") or {}).get("subdomain")
    if subdomain and not is_label_1035(subdomain):
        yield problem((*JOBSET, "network", "subdomain"), f"'{subdomain}' cannot be the name of a Service")
    manager = spec.get("managedBy")
    if manager is not None and not is_domain_path(manager):
        yield problem((*JOBSET, "managedBy"), f"'{manager}' has no prefix", "Write example.com/name.")
    if "coordinator" in spec:
        yield from _coordinator(spec["coordinator"], entries)
    for index, policy in enumerate(spec.get("volumeClaimPolicies") or ()):
        yield from _claims((*JOBSET, "volumeClaimPolicies", index, "templates"), policy, entries)


def _coordinator(body: Body, entries: list[Body]) -> Found:
    entry = next((one for one in entries if one["name"] == body.get("replicatedJob")), None)
    if entry is None:
        yield problem((*JOBSET, "coordinator"), f"there is no replicated job '{body.get('replicatedJob')}'")
    elif body.get("jobIndex", 0) >= entry.get("replicas", 1) or body.get("jobIndex", 0) < 0:
        yield problem((*JOBSET, "coordinator", "jobIndex"), "there is no such job")


def _claims(path: Path, policy: Body, entries: list[Body]) -> Found:
    mounted = {
        mount["name"]
        for entry in entries
        for one in pod_of(entry)["containers"]
        for mount in one.get("volumeMounts") or ()
    }
    volumes = {volume["name"] for entry in entries for volume in pod_of(entry).get("volumes") or ()}
    for index, template in enumerate(policy.get("templates") or ()):
        if template["metadata"].get("name") in volumes:
            yield problem((*path, index), f"'{template['metadata']['name']}' is a volume of a pod already")
        if template["metadata"].get("name") not in mounted:
            yield problem(
                (*path, index), f"no container mounts the claim '{template['metadata'].get('name')}'"
            )


def _entry(path: Path, entry: Body, earlier: list[str], is_free: bool) -> Found:
    if "dependsOn" in entry and not earlier:
        yield problem((*path, "dependsOn"), "the first replicated job cannot depend on another")
    for index, one in enumerate(entry.get("dependsOn") or ()):
        if one["name"] not in earlier:
            message = f"'{one['name']}' is no replicated job before '{entry['name']}'"
            yield problem((*path, "dependsOn", index), message, "Put it before this one.")
    group = entry.get("groupName", "default")
    if not is_label_1035(group):
        yield problem((*path, "groupName"), f"'{group}' cannot be the name of a group")
    step = step_of(entry)
    if step in STEPS and not is_free:
        if entry.get("replicas", 1) != 1:
            yield problem((*path, "replicas"), f"the replicated job of step {step} has 1 replica")
        every = [*pod_of(entry)["containers"]]
        if STEPS[step] not in [one["name"] for one in every]:
            yield problem(
                (*path, "template", "spec", "template", "spec", "containers"),
                f"the replicated job of step {step} needs a container '{STEPS[step]}'",
            )
