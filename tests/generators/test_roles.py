"""Personas: the exact verbs of each role, as the requirements SCY-06 to SCY-10 and SCY-27 state them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.objects import Body
from tests import plain, workspaces
from tests.rbac import granted

READ = {"get", "list", "watch"}
WRITE = {"create", "get", "list", "watch", "update", "patch", "delete"}
TRAINER = "trainer.kubeflow.org"
LOOKING = {
    (TRAINER, "trainjobs/status"): READ,
    ("jobset.x-k8s.io", "jobsets"): READ,
    ("kueue.x-k8s.io", "localqueues"): READ,
    ("kueue.x-k8s.io", "workloads"): READ,
    ("visibility.kueue.x-k8s.io", "localqueues/pendingworkloads"): {"get"},
    ("", "pods"): READ,
    ("", "events"): READ,
    ("", "pods/log"): {"get"},
}
USAGE = {("metrics.k8s.io", "pods"): {"get", "list"}}
GUARDRAILS = {
    ("", "resourcequotas"): READ,
    ("", "limitranges"): READ,
    ("", "persistentvolumeclaims"): READ,
    ("", "serviceaccounts"): READ,
    ("networking.k8s.io", "networkpolicies"): READ,
    ("rbac.authorization.k8s.io", "rolebindings"): READ,
}


def jobs(verbs: set[str]) -> dict[tuple[str, str], set[str]]:
    """Return the same verbs on runs and runtimes."""
    return {(TRAINER, "trainjobs"): verbs, (TRAINER, "trainingruntimes"): verbs}


ROLES = {
    "mpijob-viewer": jobs(READ) | LOOKING,
    "mpijob-creator": jobs({"create", *READ}) | LOOKING,
    "mpijob-editor": jobs(WRITE) | LOOKING,
    "mpijob-mlops": jobs(WRITE) | LOOKING | USAGE,
    "mpijob-admin": jobs(WRITE) | LOOKING | USAGE | GUARDRAILS,
    "mpijob-debugger": {
        ("", "pods"): {"get", "list"},
        ("", "pods/exec"): {"create", "get"},
        ("", "pods/log"): {"get"},
    },
}
JOINS = {"mpijob-viewer": "view", "mpijob-editor": "edit", "mpijob-admin": "admin"}


def platform(root: Path, versions: str = "") -> dict[str, Body]:
    """Return the ClusterRoles of the small workspace by name, with other versions if given."""
    cluster = workspaces.CLUSTER
    if versions:
        cluster = cluster.replace('trainer: "2.3.0", kueue: "0.19.2"', versions)
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.render(root)
    text = workspaces.rendered(root)["lab/platform/roles.yaml"]
    bodies = [body for body in plain.load_all(text) if body["kind"] == "ClusterRole"]
    return {body["metadata"]["name"]: body for body in bodies}


def verbs(body: Body) -> dict[tuple[str, str], set[str]]:
    """Return the verbs of a role, by API group and resource."""
    out: dict[tuple[str, str], set[str]] = {}
    for group, resource, verb in granted(body):
        out.setdefault((group, resource), set()).add(verb)
    return out


def test_each_role_has_exactly_its_verbs(root: Path) -> None:
    found = platform(root)
    assert {name: verbs(body) for name, body in found.items()} == ROLES


def test_viewer_editor_and_admin_join_the_built_in_roles(root: Path) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    for name, body in platform(root).items():
        joins = [label for label in body["metadata"]["labels"] if label.startswith(prefix)]
        assert joins == ([prefix + JOINS[name]] if name in JOINS else [])


def test_where_only_git_writes_no_role_writes_runs(root: Path) -> None:
    # mpijob-editor would join the built-in edit: people with that role could write runs without Git.
    cluster = workspaces.CLUSTER + "gitopsOnly: true\n"
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.render(root)
    bodies = plain.load_all(workspaces.rendered(root)["lab/platform/roles.yaml"])
    found = {body["metadata"]["name"]: verbs(body) for body in bodies if body["kind"] == "ClusterRole"}
    assert set(found) == {"mpijob-viewer", "mpijob-debugger"}
    for role in found.values():
        for (group, _), given in role.items():
            assert group != TRAINER or given == READ


@pytest.mark.parametrize("name", ["mpijob-viewer", "mpijob-creator", "mpijob-editor", "mpijob-admin"])
def test_with_the_mpi_operator_roles_include_mpijobs(name: str, root: Path) -> None:
    found = verbs(platform(root, 'trainer: "2.3.0", kueue: "0.19.2", mpiOperator: "0.8.2"')[name])
    assert found["kubeflow.org", "mpijobs"] == found[TRAINER, "trainjobs"]
    assert found["kubeflow.org", "mpijobs/status"] == READ


def test_without_kueue_no_role_or_object_mentions_it(root: Path) -> None:
    workspaces.write(
        root,
        {
            "overlays/lab/cluster.yaml": workspaces.CLUSTER.replace(', kueue: "0.19.2"', "")
            + "gang: none\nenvironment: dev\n"
        },
    )
    workspaces.render(root)
    texts = [text for path, text in workspaces.rendered(root).items() if "/platform/" in path]
    bodies = [body for text in texts for body in plain.load_all(text)]
    assert {body["kind"] for body in bodies} == {"ClusterRole", "PriorityClass"}
    assert not [one for body in bodies if "rules" in body for one in verbs(body) if "kueue" in one[0]]
