"""What `gangplan gitops argocd` prints: safe options for runs, guardrails that heal."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.gitops.argocd import (
    CHILD_KINDS,
    PLATFORM_KINDS,
    RUN_KINDS,
    TENANT_KINDS,
    RepositorySource,
    argocd_objects,
)
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests.e2e.story import ROOT
from tests.workspaces import gangplan

SOURCE = RepositorySource("https://git.example.com/ml/jobs.git", "main", "argocd")


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    """Projects and applications of one cluster, by name and kind."""
    bodies = argocd_objects(
        "us-cloud", ["research", "team-nlp"], SOURCE, ["platform", "tenants", "runs"], "runtimePatches"
    )
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}


def test_two_projects_and_three_applications(objects: dict[str, Any]) -> None:
    assert sorted(objects) == [
        "AppProject/us-cloud-guardrails",
        "AppProject/us-cloud-runs",
        "Application/us-cloud-platform",
        "Application/us-cloud-runs",
        "Application/us-cloud-tenants",
    ]


def test_runs_are_never_pruned_nor_healed(objects: dict[str, Any]) -> None:
    automated = objects["Application/us-cloud-runs"]["spec"]["syncPolicy"]["automated"]

    assert automated == {"enabled": True, "prune": False, "selfHeal": False}


@pytest.mark.parametrize("part", ["platform", "tenants"])
def test_guardrails_are_pruned_and_healed(objects: dict[str, Any], part: str) -> None:
    automated = objects[f"Application/us-cloud-{part}"]["spec"]["syncPolicy"]["automated"]

    assert automated == {"enabled": True, "prune": True, "selfHeal": True}


@pytest.mark.parametrize("part", ["platform", "tenants", "runs"])
def test_server_side_apply_goes_with_server_side_diff(objects: dict[str, Any], part: str) -> None:
    application = objects[f"Application/us-cloud-{part}"]

    assert "ServerSideApply=true" in application["spec"]["syncPolicy"]["syncOptions"]
    assert (
        application["metadata"]["annotations"]["argocd.argoproj.io/compare-options"] == "ServerSideDiff=true"
    )


def test_nothing_replaces_or_forces(objects: dict[str, Any]) -> None:
    options = [
        option
        for body in objects.values()
        for option in body["spec"].get("syncPolicy", {}).get("syncOptions", [])
    ]

    assert not [option for option in options if option.startswith(("Force", "Replace"))]


def test_what_kueue_writes_is_ignored_where_the_trainer_has_it(objects: dict[str, Any]) -> None:
    # Trainer 2.1 was given the fields of 2.2: its runs showed as drifted as soon as Kueue started them.
    (new,) = objects["Application/us-cloud-runs"]["spec"]["ignoreDifferences"]
    (old,) = (
        ignored
        for body in argocd_objects("eu", ["research"], SOURCE, ["runs"], "podTemplateOverrides")
        for ignored in body["spec"].get("ignoreDifferences", ())
    )

    assert new["jsonPointers"] == ["/spec/suspend", "/spec/managedBy"]
    assert all("runtimePatches" in one for one in new["jqPathExpressions"])
    assert old["jsonPointers"] == [*new["jsonPointers"], "/spec/podTemplateOverrides", "/spec/labels"]
    assert "jqPathExpressions" not in old


def test_the_sample_s_old_trainer_gets_its_own_fields() -> None:
    outcome = gangplan("gitops", "argocd", "-C", ROOT, "--repo", SOURCE.repository)

    (old,) = (
        part
        for part in outcome.out.split("\n---\n")
        if "name: eu-airgap-runs\n  namespace" in part and "kind: Application" in part
    )
    (new,) = (
        part
        for part in outcome.out.split("\n---\n")
        if "name: us-cloud-runs\n  namespace" in part and "kind: Application" in part
    )
    assert ("podTemplateOverrides" in old, "runtimePatches" in old) == (True, False)
    assert ("podTemplateOverrides" in new, "runtimePatches" in new) == (False, True)


def test_the_runs_application_names_a_namespace_its_project_allows(objects: dict[str, Any]) -> None:
    # Found with a real Argo CD: an empty namespace matches no destination, and the application never syncs.
    allowed = {item["namespace"] for item in objects["AppProject/us-cloud-runs"]["spec"]["destinations"]}

    assert objects["Application/us-cloud-runs"]["spec"]["destination"]["namespace"] in allowed


def test_the_runs_project_allows_exactly_what_a_run_is_made_of() -> None:
    result = preview(Request(ROOT, ("us-cloud",)))
    rendered = {
        (body["apiVersion"].rpartition("/")[0], body["kind"])
        for path, text in result.texts.items()
        if "/runs/" in path
        for body in load_objects(text)
    }

    assert rendered == set(RUN_KINDS)
    assert not set(RUN_KINDS) & set(CHILD_KINDS)
    assert not {"Secret", "ConfigMap"} & {kind for _, kind in CHILD_KINDS}


def test_guardrails_stay_in_the_namespaces_of_teams(objects: dict[str, Any]) -> None:
    """A file that somebody slips in must not reach the system's namespaces, nor bring other kinds."""
    spec = objects["AppProject/us-cloud-guardrails"]["spec"]
    assert [one["namespace"] for one in spec["destinations"]] == ["research", "team-nlp"]
    kinds = {one["kind"] for one in spec["namespaceResourceWhitelist"]}
    assert kinds == {kind for _, kind in TENANT_KINDS}
    assert not kinds & {"Secret", "Role", "ClusterRoleBinding", "Pod", "Job", "Deployment"}
    homes = {one["namespace"] for one in spec["destinations"]}
    for part in ("platform", "tenants"):
        assert objects[f"Application/us-cloud-{part}"]["spec"]["destination"]["namespace"] in homes


def test_guardrails_hold_every_kind_that_is_rendered() -> None:
    known = {*TENANT_KINDS, *PLATFORM_KINDS, ("", "Namespace")}
    for file in sorted((ROOT / "tests/examples").glob("*/expected/*/[pt]*/**/*.yaml")):
        for body in load_objects(file.read_bytes()):
            group = body["apiVersion"].rpartition("/")[0]
            assert (group, body["kind"]) in known, file


def test_the_namespace_of_prometheus_is_open_to_guardrails() -> None:
    bodies = argocd_objects("a", ["team-nlp"], SOURCE, ["platform"], "runtimePatches", ["watch"])
    spaces = [one["namespace"] for one in bodies[0]["spec"]["destinations"]]
    assert spaces == ["team-nlp", "watch"]
    assert [one["namespace"] for one in bodies[1]["spec"]["destinations"]] == ["team-nlp"]
