"""Each persona may do on a real API server what the rendered roles say, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests import workspaces
from tests.e2e import personas, story
from tests.lab import fixtures
from tests.lab.client import ApiError
from tests.lab.lab import Lab
from tests.rbac import Question, rights_of

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
KINDS = ("Namespace", "ClusterRole", "RoleBinding")
BLUE = """\
apiVersion: gangplan.dev/v1
kind: Team
costCentre: cc-1  # asked for by policies that the story of the sample leaves in the lab
groups:
  dataScientists: [blue-scientists]
  mlops: [blue-mlops]
  admins: [blue-leads]
  viewers: [auditors]
debuggers: [{group: blue-on-call, until: "2099-12-31", reason: a hang}]
"""
RED = """\
apiVersion: gangplan.dev/v1
kind: Team
costCentre: cc-2
groups:
  dataScientists: ["red scientists"]
  viewers: [auditors, blue-leads]
"""


def objects_of(root: Path, cluster: str) -> list[Object]:
    """Return the namespaces, roles and bindings that a workspace renders for a cluster."""
    result = preview_render(Request(root, (cluster,), engine="serial"))
    assert not result.has_errors, result.findings
    return [
        body
        for path, text in sorted(result.texts.items())
        if "/runs/" not in path
        for body in load_objects(text)
        if body["kind"] in KINDS
    ]


def namespaces_of(bodies: list[Object]) -> list[str]:
    """Return the names of the namespaces among objects."""
    return [body["metadata"]["name"] for body in bodies if body["kind"] == "Namespace"]


@pytest.fixture(scope="module")
def two_teams(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Object]]:
    """Apply every persona and a debug grant to the lab while these tests run."""
    profile = fixtures.chosen()
    cluster = workspaces.CLUSTER.replace(
        'trainer: "2.3.0", kueue: "0.19.2"', f'trainer: "{profile.trainer}", kueue: "{profile.kueue}"'
    ).replace(
        "  nlp: {queue: training}",
        "  blue: {queue: training, namespace: persona-blue}\n"
        "  red: {queue: training, namespace: persona-red}",
    )
    root = workspaces.write(
        tmp_path_factory.mktemp("personas"),
        {
            "specs/blue/team.yaml": BLUE,
            "specs/blue/filings.yaml": workspaces.SPEC,
            "specs/red/team.yaml": RED,
            "overlays/lab/cluster.yaml": cluster,
            "images/catalog.yaml": workspaces.CATALOG,
        },
    )
    bodies = objects_of(root, "lab")
    for body in bodies:
        lab.client.apply(body)
    yield bodies
    for namespace in namespaces_of(bodies):
        lab.client.delete("Namespace", namespace)


def test_the_sample_cluster_allows_what_its_roles_say(lab: Lab) -> None:
    profile = fixtures.chosen()
    name = story.cluster_of(profile.trainer, profile.kueue)
    if name is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name}")
    bodies = objects_of(story.ROOT, name)
    for body in bodies:
        lab.client.apply(body)

    assert len(personas.groups_of(bodies)) >= 6
    assert personas.disagreements(lab.client, bodies, [*namespaces_of(bodies), "default"]) == []


def test_every_persona_may_do_only_what_its_role_says(lab: Lab, two_teams: list[Object]) -> None:
    asked = personas.questions(two_teams, namespaces_of(two_teams))
    allowed = [question for question in asked if rights_of(two_teams).allow(question)]

    assert {question.group for question in allowed} == {*personas.groups_of(two_teams)}
    assert not [question for question in allowed if not question.namespace]
    assert not [question for question in allowed if question.resource in ("secrets", "serviceaccounts/token")]
    assert personas.disagreements(lab.client, two_teams, [*namespaces_of(two_teams), "default"]) == []


def test_a_right_that_only_one_side_grants_is_noticed(lab: Lab, two_teams: list[Object]) -> None:
    viewer = ("ClusterRole", "mpijob-viewer")
    bodies = [body for body in two_teams if (body["kind"], body["metadata"]["name"]) != viewer]
    more = {
        **next(body for body in two_teams if body["metadata"]["name"] == "mpijob-debugger"),
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }
    found = personas.disagreements(lab.client, [*bodies, more], ["persona-blue"])

    secret = str(Question("blue-on-call", "get", "", "secrets", "persona-blue"))
    assert f"{secret}: the server says no" in found
    assert any("auditors" in line and line.endswith("says yes") for line in found)


@pytest.mark.parametrize(
    ("group", "path", "status"),
    [
        ("blue-scientists", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/persona-blue/trainjobs", 200),
        ("blue-scientists", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/persona-red/trainjobs", 403),
        ("blue-scientists", "/apis/trainer.kubeflow.org/v1alpha1/trainjobs", 403),
        ("red scientists", "/api/v1/namespaces/persona-blue/pods", 403),
        ("auditors", "/api/v1/namespaces/persona-red/pods", 200),
        ("blue-leads", "/api/v1/namespaces/persona-blue/resourcequotas", 200),
        ("blue-leads", "/api/v1/namespaces/persona-blue/secrets", 403),
        ("blue-leads", "/api/v1/namespaces/persona-red/resourcequotas", 403),
        ("blue-on-call", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/persona-blue/trainjobs", 403),
        (personas.STRANGER, "/api/v1/namespaces/persona-blue/pods", 403),
    ],
)
def test_requests_as_a_persona(lab: Lab, two_teams: list[Object], group: str, path: str, status: int) -> None:
    headers = {"Impersonate-User": "somebody", "Impersonate-Group": group}
    try:
        lab.client.request("GET", path, headers=headers)
        answered = 200
    except ApiError as refusal:
        answered = refusal.status

    assert answered == status


@pytest.mark.parametrize(("role", "verb"), [("view", "list"), ("edit", "create"), ("admin", "create")])
def test_built_in_roles_of_projects_include_runs(
    lab: Lab, two_teams: list[Object], role: str, verb: str
) -> None:
    def knows(body: Object) -> bool:
        return any(
            "trainjobs" in rule.get("resources", ()) and verb in rule["verbs"] for rule in body["rules"] or ()
        )

    lab.client.wait("ClusterRole", role, until=knows)
