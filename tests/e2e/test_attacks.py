"""Attacking objects on a real API server with gangplan's namespaces, roles and policies: all are refused.

A member of a team sends them under its own name (impersonation). They are then sent with all rights, as a
GitOps engine does with what is in Git: only the policies and the pod security level are left to refuse them.
What the AppProjects refuse is tested with a real Argo CD in test_argocd.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.policy.export import export_objects
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e.policies.server import Server
from tests.e2e.world import before_runs
from tests.lab import fixtures
from tests.lab.client import ApiError
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
Change = Callable[[Object], Object]
HOME, VICTIM = "attack-red", "attack-blue"
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/"
RBAC = "/apis/rbac.authorization.k8s.io/v1/"
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
contact: {0}@example.com
costCentre: cc-1
clusters: [lab]
groups: {{dataScientists: [{0}-scientists], mlops: [{0}-mlops], admins: [{0}-leads], viewers: [{0}-viewers]}}
"""
PACKS = "policies: {packs: [baseline, restricted, images, network, priorities]}\n"
GIVEN = (
    f"  red: {{queue: training, namespace: {HOME}, priorities: [low, normal]}}\n"
    f"  blue: {{queue: training, namespace: {VICTIM}}}\n"
)


@dataclass(frozen=True)
class Scene:
    """Two teams on the lab, one of them hostile: its run as rendered, its pod as Kubernetes would create
    it."""

    lab: Lab
    run: dict[str, Object]
    pod: Object

    def send(self, path: str, body: Object, group: str | None, method: str = "POST") -> str:
        """Send an object as a member of a group, or with all rights; return the refusal, or ''."""
        headers = {"Impersonate-User": "mallory", "Impersonate-Group": group} if group else {}
        try:
            query = {"dryRun": "All", "fieldValidation": "Strict"}
            self.lab.client.request(method, path, body, query=query, headers=headers)
        except ApiError as refusal:
            return f"{refusal.status} {refusal.message}"
        return ""


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    profile = fixtures.chosen()
    versions = f'kubernetes: "{profile.kubernetes}", trainer: "{profile.trainer}", kueue: "{profile.kueue}"'
    cluster = workspaces.CLUSTER.replace(
        'kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2"', versions
    ).replace("teams:\n  nlp: {queue: training}\n", f"{PACKS}teams:\n{GIVEN}")
    root = workspaces.write(
        tmp_path_factory.mktemp("attacks"),
        {
            "specs/red/team.yaml": TEAM.format("red"),
            "specs/red/filings.yaml": workspaces.SPEC + "network: {posture: restricted}\n",
            "specs/blue/team.yaml": TEAM.format("blue"),
            "overlays/lab/cluster.yaml": cluster,
            "images/catalog.yaml": workspaces.CATALOG,
        },
    )
    result = preview_render(Request(root, ("lab",), engine="serial"))
    assert not result.has_errors, result.findings
    standing = [body for path in before_runs(result.texts) for body in load_objects(result.texts[path])]
    [text] = [text for path, text in result.texts.items() if is_run_file(path)]
    run = {body["kind"]: body for body in load_objects(text) if body["kind"] != "NetworkPolicy"}
    lab.client.apply_all(standing)
    server = Server(lab.client)
    server.install(export_objects(load_workspace(root), "lab"))
    yield Scene(lab, run, pod_of(run["TrainingRuntime"]))
    for body in server.installed:
        if body["kind"] in (POLICY_KIND, BINDING_KIND):
            lab.client.delete(body["kind"], body["metadata"]["name"])
    for namespace in (HOME, VICTIM):
        lab.client.delete("Namespace", namespace)


def pod_of(runtime: Object) -> Object:
    """Return the last role's pod template as a Pod."""
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][-1]["template"]["spec"]["template"]
    meta = {**copy.deepcopy(template.get("metadata") or {}), "name": "mallory", "namespace": HOME}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copy.deepcopy(template["spec"])}


def put(value: Any, *path: str | int) -> Change:
    """Return a change that puts a value at a path; `*` stands for every entry of a list."""

    def change(body: Object) -> Object:
        body = copy.deepcopy(body)
        places = [body]
        for step in path[:-1]:
            if step == "*":
                places = [entry for place in places for entry in place]
            else:
                places = [
                    place.setdefault(step, {}) if isinstance(place, dict) else place[step]  # type: ignore[index]
                    for place in places
                ]
        for place in places:
            place[path[-1]] = value  # type: ignore[index]
        return body

    return change


CONTAINERS = ("spec", "containers", "*")
SECURITY = (*CONTAINERS, "securityContext")
# Pods that the namespace's admission refuses from every sender.
PODS: dict[str, Change] = {
    "privileged": put(True, *SECURITY, "privileged"),
    "root": put(0, *SECURITY, "runAsUser"),
    "root in the pod": put(False, "spec", "securityContext", "runAsNonRoot"),
    "more privileges": put(True, *SECURITY, "allowPrivilegeEscalation"),
    "a capability": put({"add": ["SYS_ADMIN"], "drop": ["ALL"]}, *SECURITY, "capabilities"),
    "kept capabilities": put({}, *SECURITY, "capabilities"),
    "no seccomp": put({"type": "Unconfined"}, *SECURITY, "seccompProfile"),
    "unmasked proc": put("Unmasked", *SECURITY, "procMount"),
    "the host's network": put(True, "spec", "hostNetwork"),
    "the host's processes": put(True, "spec", "hostPID"),
    "the host's memory": put(True, "spec", "hostIPC"),
    "the host's files": put([{"name": "h", "hostPath": {"path": "/"}}], "spec", "volumes"),
    "the host's socket": put([{"name": "h", "hostPath": {"path": "/run/containerd"}}], "spec", "volumes"),
    "a port of the host": put([{"containerPort": 80, "hostPort": 80}], *CONTAINERS, "ports"),
    "a sysctl": put([{"name": "kernel.core_pattern", "value": "|/x"}], "spec", "securityContext", "sysctls"),
    "another registry": put("evil.example.com/miner:latest", *CONTAINERS, "image"),
    "another build": put(f"registry.example.com/training/openmpi@sha256:{'0' * 64}", *CONTAINERS, "image"),
    "a helper from elsewhere": put(
        [{"name": "x", "image": "evil.example.com/x:1", "command": ["x"]}], "spec", "initContainers"
    ),
    "a class of the system": put("system-cluster-critical", "spec", "priorityClassName"),
    "a class that others have": put("training-high", "spec", "priorityClassName"),
}
# Runs and what belongs to them, sent with the rights of the engine.
RUNS: dict[str, tuple[str, Change]] = {
    "a privileged runtime": (
        "TrainingRuntime",
        put(
            True,
            *("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"),
            *(*CONTAINERS, "securityContext", "privileged"),
        ),
    ),
    "a runtime on the host's network": (
        "TrainingRuntime",
        put(
            True,
            *("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"),
            *("spec", "hostNetwork"),
        ),
    ),
    "a runtime from another registry": (
        "TrainingRuntime",
        put(
            "evil.example.com/miner:latest",
            *("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"),
            *(*CONTAINERS, "image"),
        ),
    ),
    "a priority that others have": (
        "TrainJob",
        put("training-high", "metadata", "labels", "kueue.x-k8s.io/priority-class"),
    ),
    "a waiver of one's own": (
        "TrainingRuntime",
        put("true", "metadata", "labels", "gangplan.dev/waived-privileged"),
    ),
}


def binding(kind: str, role: str, subject: Object, namespace: str = "") -> Object:
    """Return a binding of a role to a subject."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "mallory", **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


GROUP = {"kind": "Group", "name": "red-leads", "apiGroup": "rbac.authorization.k8s.io"}
MASTERS = {**GROUP, "name": "system:masters"}


def _named(kind: str, api: str, namespace: str = "", **more: Any) -> Object:
    meta = {"name": "mallory", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


# What no group of a team may send: method, path, object.
RIGHTS: dict[str, tuple[str, str, Object]] = {
    "the cluster's administrator": (
        "POST",
        RBAC + "clusterrolebindings",
        binding("ClusterRoleBinding", "cluster-admin", GROUP),
    ),
    "the masters": ("POST", RBAC + "clusterrolebindings", binding("ClusterRoleBinding", "view", MASTERS)),
    "an administrator at home": (
        "POST",
        f"{RBAC}namespaces/{HOME}/rolebindings",
        binding("RoleBinding", "admin", GROUP, HOME),
    ),
    "an administrator at the neighbour's": (
        "POST",
        f"{RBAC}namespaces/{VICTIM}/rolebindings",
        binding("RoleBinding", "admin", GROUP, VICTIM),
    ),
    "a role": (
        "POST",
        f"{RBAC}namespaces/{HOME}/roles",
        _named("Role", "rbac.authorization.k8s.io/v1", HOME, rules=[]),
    ),
    "a namespace": ("POST", "/api/v1/namespaces", _named("Namespace", "v1")),
    "its own namespace": (
        "PATCH",
        f"/api/v1/namespaces/{HOME}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
    ),
    "a pod": ("POST", f"/api/v1/namespaces/{HOME}/pods", {}),
    "a secret": ("POST", f"/api/v1/namespaces/{HOME}/secrets", _named("Secret", "v1", HOME)),
    "a look at secrets": ("GET", f"/api/v1/namespaces/{HOME}/secrets", {}),
    "a look at the neighbour's secrets": ("GET", f"/api/v1/namespaces/{VICTIM}/secrets", {}),
    "a look at secrets of the system": ("GET", "/api/v1/namespaces/kube-system/secrets", {}),
    "the neighbour's runs": ("GET", TRAINER.format(VICTIM) + "trainjobs", {}),
    "an end to the neighbour's runs": ("DELETE", TRAINER.format(VICTIM) + "trainjobs", {}),
    "a token": ("POST", f"/api/v1/namespaces/{HOME}/serviceaccounts/training/token", {}),
    "an account": (
        "POST",
        f"/api/v1/namespaces/{HOME}/serviceaccounts",
        _named("ServiceAccount", "v1", HOME),
    ),
    "no quota": ("DELETE", f"/api/v1/namespaces/{HOME}/resourcequotas/training", {}),
    "no network policy": (
        "DELETE",
        f"/apis/networking.k8s.io/v1/namespaces/{HOME}/networkpolicies/default-deny",
        {},
    ),
    "an open network": (
        "POST",
        f"/apis/networking.k8s.io/v1/namespaces/{HOME}/networkpolicies",
        _named("NetworkPolicy", "networking.k8s.io/v1", HOME, spec={"podSelector": {}, "egress": [{}]}),
    ),
    "another queue": (
        "POST",
        f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{HOME}/localqueues",
        _named("LocalQueue", "kueue.x-k8s.io/v1beta1", HOME, spec={"clusterQueue": "blue"}),
    ),
    "more quota": (
        "PATCH",
        "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/red",
        {"spec": {"queueingStrategy": "StrictFIFO"}},
    ),
    "a policy": ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gangplan", {}),
    "a webhook": (
        "POST",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        _named("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"),
    ),
    "a node": ("PATCH", "/api/v1/nodes/any", {"metadata": {"labels": {"a": "b"}}}),
    "a volume": ("POST", "/api/v1/persistentvolumes", _named("PersistentVolume", "v1")),
    "a class": (
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        _named("PriorityClass", "scheduling.k8s.io/v1", value=1_000_000),
    ),
}
GROUPS = ("red-scientists", "red-mlops", "red-leads", "red-viewers")


def test_valid_objects_are_admitted(scene: Scene) -> None:
    """Otherwise, the refusals below would prove nothing."""
    assert scene.send(f"/api/v1/namespaces/{HOME}/pods", scene.pod, None) == ""
    for kind, body in scene.run.items():
        path = TRAINER.format(HOME) + f"{kind.lower()}s"
        if kind == "TrainingRuntime":
            assert scene.send(path, body, None) == ""
            assert scene.send(path, body, "red-scientists") == ""


@pytest.mark.parametrize("name", PODS)
def test_hostile_pods_are_refused(scene: Scene, name: str) -> None:
    refusal = scene.send(f"/api/v1/namespaces/{HOME}/pods", PODS[name](scene.pod), None)
    assert refusal[:3] in ("403", "422"), refusal or "it was let in"
    assert "denied" in refusal or "forbidden" in refusal or "Invalid" in refusal or "invalid" in refusal


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("group", [None, "red-scientists"])
def test_hostile_runs_are_refused(scene: Scene, name: str, group: str | None) -> None:
    kind, change = RUNS[name]
    path = TRAINER.format(HOME) + f"{kind.lower()}s"
    refusal = scene.send(path, change(scene.run[kind]), group)
    assert refusal, "it was let in"
    assert "denied request" in refusal, refusal


@pytest.mark.parametrize("name", RIGHTS)
def test_members_of_a_team_lack_dangerous_rights(scene: Scene, name: str) -> None:
    method, path, body = RIGHTS[name]
    if path.endswith("/pods"):
        body = scene.pod
    for group in GROUPS:
        refusal = scene.send(path, body, group, method)
        assert refusal.startswith("403 "), (group, refusal or "it was allowed")


def test_a_team_cannot_send_runs_to_another_teams_namespace(scene: Scene) -> None:
    """No group of this team may send a run that was moved into another team's namespace."""
    for kind, body in scene.run.items():
        moved = put(VICTIM, "metadata", "namespace")(body)
        for group in GROUPS:
            refusal = scene.send(TRAINER.format(VICTIM) + f"{kind.lower()}s", moved, group)
            assert refusal.startswith("403 "), refusal
