"""Every role and binding of all examples and the sample: none grants more than promised."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.golden import EXAMPLES, render_example
from tests.rbac import Question, granted, rights_of
from tests.workspaces import REPOSITORY

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
ESCALATING = {"bind", "escalate", "impersonate", "approve", "sign", "deletecollection"}
# People write runs and runtimes, and the debugger opens shells; they only read everything else.
WRITABLE = {
    ("trainer.kubeflow.org", "trainjobs"),
    ("trainer.kubeflow.org", "trainingruntimes"),
    ("kubeflow.org", "mpijobs"),
    ("", "pods/exec"),
}
# The account that creates the runs of schedules may create TrainJobs and see them (tests/schedules).
SCHEDULER_ROLE = "gangplan-scheduler"
OPENSHIFT_ROLE = "system:openshift:scc:nonroot-v2"


@cache
def _objects(path: Path) -> list[Object]:
    return [body for body in plain.load_all(path.read_text()) if body]


@dataclass(frozen=True)
class Tree:
    """A rendered cluster and the workspace that it comes from."""

    source: Path
    name: str

    @property
    def rendered(self) -> Path:
        """Its folder; for an example, rendered now."""
        if self.source == REPOSITORY:
            return REPOSITORY / "rendered" / self.name
        return render_example(self.source.parent.name) / self.name

    def objects(self, part: str = "") -> list[Object]:
        """Return its objects, or those of a part of it."""
        return [body for path in sorted((self.rendered / part).rglob("*.yaml")) for body in _objects(path)]

    def team(self, name: str) -> Object:
        """Return the file of a team as written."""
        body: Object = plain.load((self.source / f"specs/{name}/team.yaml").read_text())
        return body

    def namespace(self, name: str) -> str:
        """Return the namespace of a team: from the cluster file, else from the team's own file."""
        path = self.source / f"overlays/{self.name}/cluster.yaml"
        given = (plain.load(path.read_text())["teams"][name] or {}).get("namespace")
        return str(given or self.team(name).get("namespace", name))


TREES = [
    Tree(source, file.parent.name)
    for source in (REPOSITORY, *(path / "input" for path in EXAMPLES))
    for file in sorted(source.glob("overlays/*/cluster.yaml"))
]


@pytest.fixture(params=TREES, ids=lambda tree: f"{tree.source.parent.name}/{tree.name}")
def tree(request: pytest.FixtureRequest) -> Tree:
    """Return one of all rendered clusters."""
    found: Tree = request.param
    return found


def test_the_trees_have_roles_and_bindings() -> None:
    roles = [[body["kind"] for body in tree.objects()].count("ClusterRole") for tree in TREES]
    # With gitopsOnly, only viewers and debuggers have roles. Where CronJobs start runs, their creator has
    # one, too.
    assert sorted({*roles}) == [2, 6, 7]
    assert sum(body["kind"] == "RoleBinding" for tree in TREES for body in tree.objects()) >= 10


def test_no_role_grants_more_than_reading_and_runs(tree: Tree) -> None:
    for body in tree.objects():
        if body["kind"] not in ("Role", "ClusterRole"):
            continue
        name = body["metadata"]["name"]
        assert not {"nonResourceURLs", "resourceNames"} & {key for rule in body["rules"] for key in rule}
        assert "aggregationRule" not in body, name
        for group, resource, verb in granted(body):
            right = f"{name}: {verb} {group}/{resource}"
            assert "*" not in group + resource + verb, f"a wildcard: {right}"
            assert resource.partition("/")[0] != "secrets", f"secrets: {right}"
            assert resource != "serviceaccounts/token", f"a token: {right}"
            assert verb not in ESCALATING, right
            is_reading = verb in ("get", "list", "watch") and resource != "pods/exec"
            assert is_reading or (group, resource) in WRITABLE, f"writes: {right}"
            assert resource != "pods/exec" or name == "mpijob-debugger", right


def test_nothing_is_bound_for_the_whole_cluster(tree: Tree) -> None:
    assert "ClusterRoleBinding" not in {body["kind"] for body in tree.objects()}
    assert not {body["kind"] for body in tree.objects("runs")} & {"Role", "RoleBinding", "ClusterRole"}
    assert not {body["kind"] for body in tree.objects("platform")} & {"Role", "RoleBinding"}


def test_bindings_are_in_the_teams_own_namespace(tree: Tree) -> None:
    roles = {body["metadata"]["name"] for body in tree.objects("platform") if body["kind"] == "ClusterRole"}
    for folder in sorted((tree.rendered / "tenants").iterdir()):
        bodies, team = tree.objects(f"tenants/{folder.name}"), tree.team(folder.name)
        (namespace,) = [body["metadata"]["name"] for body in bodies if body["kind"] == "Namespace"]
        assert namespace == tree.namespace(folder.name)
        accounts = {body["metadata"]["name"] for body in bodies if body["kind"] == "ServiceAccount"}
        people = {name for names in team.get("groups", {}).values() for name in names}
        people |= {grant["group"] for grant in team.get("debuggers", ())}
        for body in bodies:
            if body["kind"] != "RoleBinding":
                continue
            assert body["metadata"]["namespace"] == namespace
            assert body["roleRef"]["apiGroup"] == RBAC
            assert body["roleRef"]["kind"] == "ClusterRole"
            assert body["roleRef"]["name"] in {*roles, OPENSHIFT_ROLE}
            for subject in body["subjects"]:
                _is_declared(subject, namespace, people, accounts)
                is_account = body["roleRef"]["name"] in (OPENSHIFT_ROLE, SCHEDULER_ROLE)
                assert is_account == (subject["kind"] == "ServiceAccount")


def _is_declared(subject: Object, namespace: str, people: set[str], accounts: set[str]) -> None:
    if subject["kind"] == "ServiceAccount":
        assert subject["namespace"] == namespace
        assert subject["name"] in accounts
    else:
        assert subject == {"apiGroup": RBAC, "kind": "Group", "name": subject["name"]}
        assert subject["name"] in people


def test_shells_are_for_debug_grants_only(tree: Tree) -> None:
    for body in tree.objects("tenants"):
        if body["kind"] == "RoleBinding" and body["roleRef"]["name"] == "mpijob-debugger":
            annotations = body["metadata"]["annotations"]
            team = tree.team(body["metadata"]["labels"]["gangplan.dev/team"])
            (subject,) = body["subjects"]
            assert {
                "group": subject["name"],
                "until": annotations["gangplan.dev/until"],
                "reason": annotations["gangplan.dev/reason"],
            } in team["debuggers"]


def test_accounts_of_pods_have_no_token_and_no_rights(tree: Tree) -> None:
    for body in tree.objects("tenants"):
        if body["kind"] == "ServiceAccount":
            assert body["automountServiceAccountToken"] is False


def test_with_gitops_only_people_may_only_read() -> None:
    (tree,) = [one for one in TREES if (one.source.parent.name, one.name) == ("tenant-in-full", "city")]
    rights = rights_of(tree.objects())
    for group in ("nlp-scientists", "nlp-mlops", "nlp-leads", "auditors"):
        for verb in ("create", "update", "patch", "delete"):
            asked = Question(group, verb, "trainer.kubeflow.org", "trainjobs", "team-nlp")
            assert not rights.allow(asked), asked
        assert rights.allow(Question(group, "get", "trainer.kubeflow.org", "trainjobs", "team-nlp"))


def test_a_team_cannot_see_another() -> None:
    (tree,) = [one for one in TREES if (one.source.parent.name, one.name) == ("tenant-in-full", "lab")]
    rights = rights_of(tree.objects())
    for verb in ("get", "list", "create", "delete"):
        for group, own, other in (
            ("nlp-scientists", "team-nlp", "vision"),
            ("vision-scientists", "vision", "team-nlp"),
        ):
            assert rights.allow(Question(group, verb, "trainer.kubeflow.org", "trainjobs", own))
            assert not rights.allow(Question(group, verb, "trainer.kubeflow.org", "trainjobs", other))
            assert not rights.allow(Question(group, verb, "trainer.kubeflow.org", "trainjobs"))
            assert not rights.allow(Question(group, verb, "", "secrets", own))
