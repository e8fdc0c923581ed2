"""gangplan and the API server agree on policies, on objects judged by them, and on rules of CRDs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.objects import BINDING_KIND, POLICY_KIND, Body
from gangplan.policy.export import export_objects
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import story
from tests.e2e.policies import answers, ask, broken, case_check, crd_rules, folders
from tests.e2e.policies.server import Server
from tests.lab import fixtures
from tests.lab.client import ApiError
from tests.lab.lab import Lab

pytestmark = pytest.mark.e2e
SEED, OBJECTS, BROKEN, RULES = 20, 200, 200, 300


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample cluster of the lab's versions with every pack: its policies as exported, and its objects."""

    cluster: str
    versions: SchemaVersions
    policies: list[Body]
    objects: list[Body]


@pytest.fixture(scope="session")
def sample() -> Iterator[Sample]:
    profile = fixtures.chosen()
    name = story.cluster_of(profile.trainer, profile.kueue)
    if name is None:
        pytest.skip(f"no sample cluster has the versions of profile {profile.name} ({profile.versions()})")
    with tempfile.TemporaryDirectory(prefix="gangplan-policies-") as folder:
        root = ask.workspace(Path(folder), name)
        loaded = load_workspace(root)
        versions = choose_schema_versions_of(resolve_platform_of_cluster_file(loaded.clusters[name]))
        yield Sample(name, versions, export_objects(loaded, name), ask.random_objects(root, name))


def test_the_server_stores_every_policy_as_exported(lab: Lab, sample: Sample) -> None:
    server = Server(lab.client)
    server.install(sample.policies)
    try:
        for body in sample.policies:
            metadata = body["metadata"]
            kind = f"{body['apiVersion']}/{body['kind']}"
            there = lab.client.get(kind, metadata["name"], metadata.get("namespace"))
            assert {**body.get("spec", {})} == there.get("spec", {}) or body["kind"] == "Namespace", metadata
    finally:
        server.remove()
    assert sum(body["kind"] == POLICY_KIND for body in sample.policies) > 40
    assert sum(body["kind"] == BINDING_KIND for body in sample.policies) > 40


def test_defaults_equal_those_of_the_server(lab: Lab, sample: Sample, is_updating: bool) -> None:
    """`--update` records the answers for `tests/policy/test_builtin_defaults.py`."""
    objects = plain.load((Path(ask.__file__).parent / "builtin.yaml").read_text(encoding="utf-8"))
    minor = sample.versions.kubernetes
    if minor == "1.33":  # it serves the group, but not yet this version of it
        objects = [body for body in objects if body["apiVersion"] != "resource.k8s.io/v1"]
    said = answers.asked(lab.client, objects)
    if is_updating:
        answers.keep(minor, said)
    assert not answers.drift(sample.versions, said)
    assert answers.kept(minor) == said


def test_both_sides_agree_on_every_case_of_every_policy(lab: Lab) -> None:
    """Verdicts and messages are compared, with policies, bindings and parameters as they are applied."""
    judged, lost, wrong = case_check.compare(lab.client, ask.ROOT, fixtures.chosen().trainer)
    assert not wrong, "\n".join(wrong)
    assert not lost
    assert judged > 200


def test_both_sides_agree_on_random_objects(lab: Lab, sample: Sample) -> None:
    result = ask.ask(lab.client, sample.cluster, SEED, OBJECTS)
    assert not result.wrong, "\n".join(result.wrong)
    assert result.judged > OBJECTS / 2
    assert result.refused > 20


@pytest.mark.parametrize("name", ["params", "libraries"])
def test_both_sides_agree_on_policies_of_users(lab: Lab, sample: Sample, name: str) -> None:
    """They have named, labelled and missing parameters, audit annotations, every library, messages and
    selectors."""
    folder = folders.load(Path(folders.__file__).parent / "probes" / name)
    folders.define(lab.client, folder.crds)
    result = folders.ask(lab.client, folder, sample.versions, SEED, 1)
    assert not result.wrong, "\n".join(result.wrong)
    assert result.judged > OBJECTS / 2
    assert result.messages > 20
    assert len(result.names - result.spoken) < len(result.names) / 2


def test_both_sides_agree_on_broken_policies(lab: Lab, sample: Sample) -> None:
    bodies = [body for body in sample.policies if body["kind"] in (POLICY_KIND, BINDING_KIND)]
    result = broken.ask(lab.client, bodies, sample.versions, SEED, BROKEN)
    assert not result.wrong, "\n".join(result.wrong)
    assert result.refused > BROKEN / 2


@pytest.mark.parametrize(
    ("expression", "is_taken"),
    [
        ("object.metadata.name.split('-').distinct().size() > 0", False),  # 1.34: new policies may use 1.33
        ("semver('1.2.3').major() == 1", True),  # 1.33
        ("object.metadata.name.split('-').all(i, part, i < 9 && part != '')", True),  # 1.32
    ],
)
def test_policies_may_use_functions_of_the_minor_before(lab: Lab, expression: str, is_taken: bool) -> None:
    if not fixtures.chosen().kubernetes.startswith("1.34"):
        pytest.skip("the table is that of Kubernetes 1.34")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression}],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": POLICY_KIND,
        "metadata": {"name": "minor"},
        "spec": spec,
    }
    try:
        lab.client.create(body, dry_run=True)
        taken = True
    except ApiError:
        taken = False
    assert taken == is_taken
    assert (not broken.ours(body, SchemaVersions("1.34"))) == is_taken


def test_both_sides_agree_on_rules_of_crds(lab: Lab, sample: Sample) -> None:
    for body in sample.objects:
        if body["kind"] == "Namespace":
            lab.client.apply(body)
    result = crd_rules.ask(lab.client, sample.objects, sample.versions, SEED, RULES)
    assert not result.wrong, "\n".join(result.wrong)
    assert result.judged > RULES / 4
    assert result.broken > 20
    assert result.changes > 10


def test_parameters_come_before_conditions(lab: Lab) -> None:
    """gangplan relies on this where it does not know the namespace: a false condition ends a policy, a
    missing parameter comes first, and conditions see the parameters."""
    server, api = Server(lab.client), "admissionregistration.k8s.io/v1"

    def config(name: str, **data: str) -> Body:
        metadata = {"name": name, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def bound(name: str) -> list[Body]:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
        spec = {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "resourceRules": [{**rule, "resources": ["configmaps"], "resourceNames": [name]}]
            },
            "matchConditions": [{"name": "on", "expression": "params.data.on == 'yes'"}],
            "validations": [{"expression": "false", "message": "reached"}],
        }
        ref = {"name": f"param-{name}", "namespace": "default", "parameterNotFoundAction": "Deny"}
        binding = {"policyName": name, "validationActions": ["Deny"], "paramRef": ref}
        return [
            {"apiVersion": api, "kind": POLICY_KIND, "metadata": {"name": name}, "spec": spec},
            {"apiVersion": api, "kind": BINDING_KIND, "metadata": {"name": name}, "spec": binding},
        ]

    params = [config("param-asked-no", on="no"), config("param-asked-yes", on="yes")]
    names = ("asked-none", "asked-no", "asked-yes")
    server.install([*params, *(body for name in names for body in bound(name))])
    try:
        said = [server.ask(config(name)).refusal for name in names]
        assert "no params found" in said[0]
        assert said[1] == ""
        assert "reached" in said[2]
    finally:
        server.remove()
