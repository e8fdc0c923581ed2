"""Patches of a site, checked against the plan of an MPIJob and against what the operator refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mpijob.base import OPERATOR, spec, workspace
from tests.workspaces import KUSTOMIZATION, gangplan

POLICY, ROLE = "/spec/runPolicy", "/spec/mpiReplicaSpecs"
BOX = "template/spec/containers/0"
# A patch, the rule that reports it, and words of its message.
TOLD = {
    "workers stay": (f"replace {POLICY}/cleanPodPolicy None", "plan-broken", "their nodes and GPUs"),
    "more tries": (f"replace {POLICY}/backoffLimit 3", "plan-broken", "retried 3 times; the plan says never"),
    "a longer end": (
        f"replace {POLICY}/activeDeadlineSeconds 900000",
        "plan-broken",
        "the plan ends it after 24h",
    ),
    "no end": (f"remove {POLICY}/activeDeadlineSeconds", "plan-broken", "never end"),
    "another manager": (f"add {POLICY}/managedBy kueue.x-k8s.io/multikueue", "plan-broken", "never start"),
    "suspended": (f"add {POLICY}/suspend true", "git-owned-field", "Kueue sets runPolicy.suspend"),
    "a log that goes": (f"add {POLICY}/ttlSecondsAfterFinished 60", "plan-weakened", "the run's log with it"),
    "more slots": ("replace /spec/slotsPerWorker 4", "plan-broken", "4 ranks; the plan has 2 slots"),
    "another MPI": ("replace /spec/mpiImplementation Intel", "plan-broken", "hostfile for Intel"),
    "other keys": ("replace /spec/sshAuthMountPath /root/.ssh", "plan-broken", "keys would be at /root/.ssh"),
    "ranks in the launcher": ("replace /spec/runLauncherAsWorker true", "plan-broken", "would run ranks too"),
    "more workers": (
        f"replace {ROLE}/Worker/replicas 5",
        "plan-broken",
        "5 pods of the workers; the plan has 3",
    ),
    "no workers": (f"remove {ROLE}/Worker", "plan-broken", "no workers"),
    "in place": (f"replace {ROLE}/Launcher/restartPolicy OnFailure", "plan-broken", "restarted in place"),
    "another script": (f"replace {ROLE}/Launcher/{BOX}/command/2 exit", "plan-broken", "launch script"),
    "fewer cores": (f"replace {ROLE}/Worker/{BOX}/resources/requests/cpu 1", "", ""),
    "another user": (
        f"replace {ROLE}/Worker/template/spec/securityContext/runAsUser 7",
        "plan-broken",
        "user 7",
    ),
    "two launchers": (f"replace {ROLE}/Launcher/replicas 2", "mpijob-refused", "one launcher, not 2"),
    "no such restart": (f"replace {ROLE}/Worker/restartPolicy Always", "mpijob-refused", "'Always' is no"),
    "keys twice": (
        f"add {ROLE}/Worker/template/spec/volumes/- {{name: ssh-auth, emptyDir: {{}}}}",
        "object-invalid",
        "of its own",
    ),
    "a container that restarts to be resized": (
        f"add {ROLE}/Launcher/{BOX}/resizePolicy [{{resourceName: cpu, restartPolicy: RestartContainer}}]",
        "object-invalid",
        "never restarts",
    ),
    "a mount twice": (
        f"add {ROLE}/Launcher/{BOX}/volumeMounts [{{name: a, mountPath: /a}}, {{name: b, mountPath: /a}}]",
        "schema",
        "holds mountPath '/a' twice",
    ),
    "a variable twice": (
        f"add {ROLE}/Worker/{BOX}/env [{{name: A, value: b}}, {{name: A, value: c}}]",
        "schema",
        "holds name 'A' twice",
    ),
    "a gate twice": (
        f"add {ROLE}/Worker/template/spec/schedulingGates [{{name: x}}, {{name: x}}]",
        "schema",
        "holds name 'x' twice",
    ),
    "an unknown field": ("add /spec/minAvailable 3", "schema", "minAvailable"),
}


def patched(change: str) -> str:
    """Return a component with one operation on MPIJobs."""
    op, path, *value = change.split(" ", 2)
    lines = [f"    - op: {op}", f"      path: {path}", *(f"      value: {one}" for one in value)]
    head = KUSTOMIZATION.partition("patches:")[0]
    return f"{head}patches:\n- target: {{kind: MPIJob}}\n  patch: |-\n" + "".join(
        f"{line}\n" for line in lines
    )


@pytest.mark.parametrize("case", TOLD)
def test_each_patch_that_breaks_the_plan_is_reported(case: str, tmp_path: Path, builder: str) -> None:
    change, rule, words = TOLD[case]
    workspace(tmp_path, spec(), OPERATOR, **{"overlays/lab/kustomization.yaml": patched(change)})
    outcome = gangplan("validate", "-C", tmp_path, "--engine", "serial")
    told = [shown for shown in outcome.findings if shown.rule == rule and words in shown.message]
    assert told or not rule, outcome.err
    assert not told or told[0].place.startswith("overlays/lab/kustomization.yaml"), told


SITES = {
    "a toleration": f"add {ROLE}/Worker/template/spec/tolerations [{{key: a, operator: Exists}}]",
    "a volume": f"add {ROLE}/Worker/template/spec/volumes/- {{name: more, emptyDir: {{}}}}",
    "a label": f"add {ROLE}/Worker/template/metadata/labels/site.example.com~1zone east",
    "a host": f"add {ROLE}/Launcher/template/spec/hostAliases [{{ip: 10.1.2.3, hostnames: [a]}}]",
}


@pytest.mark.parametrize("case", SITES)
def test_patches_that_do_not_change_the_plan_are_allowed(case: str, tmp_path: Path, builder: str) -> None:
    workspace(tmp_path, spec(), OPERATOR, **{"overlays/lab/kustomization.yaml": patched(SITES[case])})
    outcome = gangplan("validate", "-C", tmp_path, "--engine", "serial")
    assert outcome.code == 0, outcome.err
