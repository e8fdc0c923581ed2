"""What controllers create for a run: Trainer's JobSet, its Jobs, and a pod of each.

Only what decides whether it is accepted: counts, the run's own image, command, environment and resources, and
the volumes that Trainer adds for MPI (pkg/runtime/framework/plugins/mpi of Trainer 2.3).
"""

from __future__ import annotations

import re
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions

Object = dict[str, Any]
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
JOBSET = "jobset.sigs.k8s.io/jobset-name"


def jobset_of(train_job: Object, runtime: Object, versions: SchemaVersions) -> Object:
    """Return the JobSet that Trainer creates for a run."""
    template = runtime["spec"].get("template", {})
    spec = template.get("spec", {})
    policy = runtime["spec"].get("mlPolicy") or {}
    trainer = train_job["spec"].get("trainer") or {}
    for job in spec.get("replicatedJobs", ()):
        _fill(job, trainer, policy, versions)
    kept = template.get("metadata") or {}
    metadata = {"name": train_job["metadata"]["name"], "namespace": train_job["metadata"]["namespace"]}
    metadata |= {name: kept[name] for name in ("labels", "annotations") if name in kept}
    for patch in train_job["spec"].get("runtimePatches") or ():
        _patch(spec, patch)
    spec["suspend"] = True
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def _fill(job: Object, trainer: Object, policy: Object, versions: SchemaVersions) -> None:
    job_spec = job["template"].setdefault("spec", {})
    labels = (job["template"].get("metadata") or {}).get("labels") or {}
    is_ancestor = labels.get(ANCESTOR) == "trainer"
    mpi = policy.get("mpi")
    nodes = trainer.get("numNodes", policy.get("numNodes", 1))
    if mpi is not None and job["name"] in ("launcher", "node"):
        workers = max(nodes - 1, 1) if mpi.get("runLauncherAsNode") else nodes
        job_spec["parallelism"] = job_spec["completions"] = 1 if job["name"] == "launcher" else workers
    elif is_ancestor:
        job_spec["parallelism"] = job_spec["completions"] = nodes
    pod = job_spec.get("template", {}).get("spec")
    container = next((one for one in (pod or {}).get("containers", ()) if one["name"] == "node"), None)
    if pod is None or container is None:
        return
    if is_ancestor:
        container |= {name: trainer[name] for name in ("image", "command", "args") if trainer.get(name)}
    shares = mpi is not None and mpi.get("runLauncherAsNode") and job["name"] == "node"
    if is_ancestor or shares:
        _merge(container.setdefault("env", []), trainer.get("env") or [], "name")
        wanted = trainer.get("resourcesPerNode")
        if wanted is not None and policy:
            own = container.get("resources") or {}
            container["resources"] = {**own, **wanted} if versions.trainer == "2.3" else wanted
            if versions.trainer == "2.3":
                for part in ("requests", "limits"):
                    merged = {**(own.get(part) or {}), **(wanted.get(part) or {})}
                    if merged:
                        container["resources"][part] = merged
    if mpi is not None and job["name"] in ("launcher", "node"):
        _mpi(pod, container, mpi, job["name"])


def _mpi(pod: Object, container: Object, mpi: Object, role: str) -> None:
    keys = {"name": "mpi-ssh-auth", "mountPath": mpi.get("sshAuthMountPath", "/root/.ssh")}
    _merge(container.setdefault("volumeMounts", []), [keys], "mountPath")
    _merge(pod.setdefault("volumes", []), [{"name": "mpi-ssh-auth", "secret": {"secretName": "x"}}], "name")
    if role == "launcher":
        _merge(container["volumeMounts"], [{"name": "mpi-hostfile", "mountPath": "/etc/mpi"}], "mountPath")
        _merge(pod["volumes"], [{"name": "mpi-hostfile", "configMap": {"name": "x"}}], "name")


def _merge(into: list[Object], more: list[Object], key: str) -> None:
    """Replace entries with the same key, and append others."""
    for entry in more:
        for index, old in enumerate(into):
            if old.get(key) == entry.get(key):
                into[index] = entry
                break
        else:
            into.append(entry)


def _patch(spec: Object, patch: Object) -> None:
    """Merge the pod specs of a run's patch into those of its runtime, as a strategic merge does."""
    wanted = patch.get("trainingRuntimeSpec", {}).get("template", {}).get("spec", {})
    for one in wanted.get("replicatedJobs") or ():
        pod = one.get("template", {}).get("spec", {}).get("template", {}).get("spec", {})
        jobs = [job for job in spec.get("replicatedJobs", ()) if job["name"] == one["name"]]
        if not jobs:
            spec["replicatedJobs"].append(one)
        for job in jobs:
            target = job["template"]["spec"]["template"]["spec"]
            for name, value in pod.items():
                if name in ("containers", "initContainers", "volumes"):
                    _merge_deep(target.setdefault(name, []), value)
                elif isinstance(value, dict):
                    target[name] = {**(target.get(name) or {}), **value}
                else:
                    target[name] = value


def _merge_deep(into: list[Object], more: list[Object]) -> None:
    """Merge entries with the same name, and append others."""
    for entry in more:
        old = next((one for one in into if one["name"] == entry["name"]), None)
        if old is None:
            into.append(entry)
        else:
            old |= entry


def jobs_of(jobset: Object) -> list[Object]:
    """Return the first Job of each entry of a JobSet (with the server's defaults)."""
    name, namespace = jobset["metadata"]["name"], jobset["metadata"]["namespace"]
    found = []
    for entry in jobset["spec"].get("replicatedJobs", ()):
        template = entry["template"]
        kept = template.get("metadata") or {}
        if entry.get("replicas", 1) == 0:
            continue
        metadata: Object = {"name": f"{name}-{entry['name']}-0", "namespace": namespace}
        metadata["labels"] = {**kept.get("labels", {}), JOBSET: name}
        metadata["annotations"] = kept.get("annotations", {})
        spec = {**template["spec"], "suspend": False}
        found.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    return found


def pod_of(job: Object) -> Object | None:
    """Return a pod of a Job, or None if the Job creates none."""
    if job["spec"].get("parallelism") == 0:
        return None
    template = job["spec"]["template"]
    kept = template.get("metadata") or {}
    metadata = {"generateName": f"{job['metadata']['name'][:50]}-", "namespace": job["metadata"]["namespace"]}
    metadata |= {name: kept[name] for name in ("labels", "annotations") if name in kept}
    # The account is an object of its own, which an edit may misname: the Job has checked the name's form.
    spec = {name: value for name, value in template["spec"].items() if name != "serviceAccount"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "serviceAccountName": "default"},
    }


_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# What the MPI operator adds to pods (v0.8.2: newWorker, newLauncherPodTemplate, setupSSHOnPod).
_KEYS = {"name": "ssh-auth", "secret": {"secretName": "ssh"}}
_CONFIG = {"name": "mpi-job-config", "configMap": {"name": "config"}}


def mpi_pods(body: Object) -> list[Object]:
    """Return a pod of each role of an MPIJob, as far as its templates can be read."""
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "default")
    replicas = body["spec"].get("mpiReplicaSpecs") or {}
    found = []
    for role, host, more in (
        ("Worker", f"{name}-worker-0", [_KEYS]),
        ("Launcher", f"{name}-launcher", [_KEYS, _CONFIG]),
    ):
        one = replicas.get(role)
        template = one.get("template") if isinstance(one, dict) else None
        spec = template.get("spec") if isinstance(template, dict) else None
        if not isinstance(spec, dict) or not spec.get("containers"):
            continue  # the operator refuses it
        volumes = spec.get("volumes")
        pod = {key: value for key, value in spec.items() if key not in ("serviceAccount", "volumes")}
        if not pod.get("overhead"):
            pod.pop("overhead", None)  # the operator writes Go's structure, whose empty mappings are left out
        # The account is an object of its own, which an edit may misname; no Job has checked the name's form.
        account = str(pod.get("serviceAccountName") or "default")
        has_form = _ACCOUNT.fullmatch(account) and len(account) < 254
        pod |= {
            "serviceAccountName": "default" if has_form else account,
            "volumes": [*(volumes if isinstance(volumes, list) else ()), *more],
        }
        pod |= {"restartPolicy": one.get("restartPolicy") or "Never", "hostname": host, "subdomain": name}
        metadata = {"name": host, "namespace": namespace}
        kept = template.get("metadata") or {}
        metadata |= {key: kept[key] for key in ("labels", "annotations") if kept.get(key) is not None}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    return found
