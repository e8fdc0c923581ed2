"""Random patches: a run without errors starts what was planned, by a separate reading without exceptions."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from tests.promise.patched import HEAD, OVERLAY, Verdict, verdict, workspace
from tests.promise.strategies import Patch, patches
from tests.workspaces import write

SPEC: dict[str, Any] = {
    "image": "openmpi",
    "workers": 4,
    "gpus": 2,
    "cpu": 8,
    "memory": "32Gi",
    "timeout": "4h",
    "env": {"LEVEL": "info"},
}
Body = dict[str, Any]


@cache
def place() -> tuple[Path, tuple[Any, ...]]:
    """Return the workspace, and what its run starts without a patch."""
    root = workspace(Path(tempfile.mkdtemp(prefix="gangplan-promise-")), SPEC)
    write(root, {OVERLAY: HEAD.replace("patches:\n", "")})
    plain = verdict(root, "TrainJob", [{"op": "add", "path": "/metadata/labels/a", "value": "b"}])
    assert plain.is_green
    return root, started(plain)


def started(found: Verdict) -> tuple[Any, ...]:
    """Return hosts, ranks and words of a run, as Trainer 2.3, JobSet 0.12 and the kubelet would start it."""
    (run,) = (body["spec"] for body in found.objects if body["kind"] == "TrainJob")
    (runtime,) = (body["spec"] for body in found.objects if body["kind"] == "TrainingRuntime")
    trainer, mpi = run.get("trainer", {}), runtime["mlPolicy"]["mpi"]
    jobset = runtime["template"]["spec"]
    hosts: list[str] = []
    launchers: list[Any] = []
    for job in jobset["replicatedJobs"]:
        pods = job["template"]["spec"]["template"]["spec"]
        node = next(one for one in pods["containers"] if one["name"] == "node")
        count = trainer.get("numNodes", job["template"]["spec"].get("parallelism", 1))
        image, ways = node["image"], (pods["securityContext"].get("runAsUser"), pods.get("dnsPolicy"))
        if job["name"] == "launcher":
            count = runtime["mlPolicy"].get("numNodes", 1)
            image = trainer.get("image") or image
            words = [*(trainer.get("command") or node["command"]), *(trainer.get("args") or node["args"])]
            names = {one["name"]: one.get("value") for one in [*node.get("env", ()), *trainer.get("env", ())]}
            decisive = sorted(item for item in names.items() if item[0].startswith("PRTE_MCA_p"))
            strange = sorted(name for name in names if "ras_base_hostfile" in name)
            waits = [(one["name"], one["status"]) for one in job.get("dependsOn", ())]
            quiet = [word for word in words if word != "--verbose"]
            launchers = [quiet, decisive, strange, waits, "LEVEL" in names]
        elif mpi["runLauncherAsNode"]:
            count = max(count - 1, 1)
        again = (job["template"]["spec"].get("backoffLimit", 6), pods["restartPolicy"])
        mode = job["template"]["spec"].get("completionMode", "Indexed")
        hosts.append(
            f"{job['name']} {count * job.get('replicas', 1)} {image.split('@')[-1]} {again} {mode}"
            f" {ways[0]} {ways[1] or 'ClusterFirst'}"
        )
        if job["name"] == "node":
            hosts.append(f"{node['command']} {pods['securityContext'].get('fsGroup')}")
    slots = trainer.get("numProcPerNode", mpi["numProcPerNode"])
    network = jobset.get("network", {})
    names_ = (network.get("enableDNSHostnames", True), network.get("subdomain", ""))
    # JobSet asks whether a job is in the list (v0.12, success_policy.go), so that one may be there twice.
    ends = sorted(set(jobset.get("successPolicy", {}).get("targetReplicatedJobs", ())))
    return (
        hosts,
        launchers,
        slots,
        mpi["runLauncherAsNode"],
        names_,
        ends,
        run.get("activeDeadlineSeconds"),
    )


@given(patch=patches())
@settings(max_examples=40, deadline=None)
def test_a_run_without_errors_starts_what_was_planned(patch: Patch) -> None:
    root, planned = place()
    kind, operations = patch
    found = verdict(root, kind, operations)
    if found.is_green:
        assert started(found) == planned, operations
