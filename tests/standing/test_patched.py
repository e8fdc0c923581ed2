"""Objects broken by a patch: Kueue would refuse them, or accept them and never admit a run."""

from __future__ import annotations

import copy
import fnmatch
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.resolve import resolve_site
from gangplan.resolve.shares import compute_pool_capacity
from gangplan.rules.objects import OBJECT_INVALID
from gangplan.rules.security import RIGHTS_TOO_WIDE
from gangplan.source import load_objects
from gangplan.validate.agreement import judge_agreement_of_cluster_objects
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.gate import find_object_problems
from gangplan.workspace import load_workspace
from tests import plain
from tests.standing.base import workspace
from tests.workspaces import gangplan, write

CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("patched.yaml").read_text(encoding="utf-8")
)
Body = dict[str, Any]
VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Body], Any]:
    """Return the objects of the small cluster, and what its nodes have."""
    root = workspace(tmp_path_factory.mktemp("standing"))
    result = preview_render(Request(root))
    assert not result.has_errors
    texts = [text for path, text in sorted(result.texts.items()) if "/runs/" not in path]
    loaded = load_workspace(root)
    pools = loaded.clusters["lab"].spec.node_pools
    offered = {
        flavor.name: compute_pool_capacity(pools[flavor.pool])
        for flavor in resolve_site(loaded, "lab").flavors
    }
    return [body for text in texts for body in load_objects(text)], offered


def test_rendered_objects_of_the_cluster_have_no_problems(standing: tuple[list[Body], Any]) -> None:
    bodies, offered = standing
    assert judge_agreement_of_cluster_objects(bodies, offered) == [[] for _ in bodies]


@pytest.mark.parametrize("name", CASES)
def test_each_broken_object_has_the_listed_problem(name: str, standing: tuple[list[Body], Any]) -> None:
    case = CASES[name]
    bodies, offered = copy.deepcopy(standing[0]), standing[1]
    place, *path = case["at"]
    target = _find(bodies, place)
    _set(target, path, case.get("to"))

    # As in gangplan.pipeline.worker: objects are compared with each other only if each is valid by itself.
    alone = find_object_problems(bodies, VERSIONS)
    judged = (
        alone if any(alone) else judge_agreement_of_cluster_objects(bodies, offered, generated=standing[0])
    )

    found = [(body, problem) for body, wrong in zip(bodies, judged, strict=True) for problem in wrong]
    if "finds" not in case:
        assert not found
        return
    told = [(body, problem) for body, problem in found if problem.rule == case["finds"]]
    assert len(told) == case.get("count", 1), found
    assert {problem.rule for _, problem in found} == {case["finds"], *case.get("rest", [])}
    if "blames" in case:
        assert f"{told[0][0]['kind']}/{told[0][0]['metadata']['name']}" == case["blames"]
    else:
        assert told[0][0] is target
    assert case.get("says", "") in told[0][1].message


def _find(bodies: list[Body], place: str) -> Body:
    kind, _, name = place.partition("/")
    name, _, namespace = name.partition("@")
    (found,) = (
        body
        for body in bodies
        if body["kind"] == kind
        and fnmatch.fnmatch(body["metadata"]["name"], name)
        and (not namespace or body["metadata"]["namespace"] == namespace)
    )
    return found


def _set(body: Any, path: list[Any], value: Any) -> None:
    for step in path[:-1]:
        body = body[step]
    if isinstance(body, list) and path[-1] == len(body):
        body.append(value)
    elif value is None:
        del body[path[-1]]
    else:
        body[path[-1]] = value


def test_the_label_of_kueue_on_openshift_is_kept(standing: tuple[list[Body], Any]) -> None:
    """A label that only the overlay has changes nothing."""
    generated = copy.deepcopy(standing[0])
    labels = _find(generated, "Namespace/team-cv")["metadata"]["labels"]
    labels["kueue.openshift.io/managed"] = "true"
    for changed, found in (
        ({}, 0),
        ({"example.com/tier": "gold"}, 0),
        ({"kueue.openshift.io/managed": "no"}, 1),
    ):
        bodies = copy.deepcopy(generated)
        _find(bodies, "Namespace/team-cv")["metadata"]["labels"] |= changed
        judged = judge_agreement_of_cluster_objects(bodies, None, generated=generated)
        assert [one.rule for wrong in judged for one in wrong] == [RIGHTS_TOO_WIDE] * found
    judged = judge_agreement_of_cluster_objects(standing[0], None, generated=generated)
    (problem,) = (one for wrong in judged for one in wrong)
    assert "the Red Hat build of Kueue no longer looks at this namespace" in problem.message


def test_one_priority_at_most_is_the_default_of_all_pods(standing: tuple[list[Body], Any]) -> None:
    bodies = copy.deepcopy(standing[0])
    classes = [body for body in bodies if body["kind"] == "PriorityClass"]
    classes[0]["globalDefault"], classes[1]["globalDefault"] = True, False
    assert not any(find_object_problems(bodies, VERSIONS))
    classes[2]["globalDefault"] = True
    (problem,) = (one for wrong in find_object_problems(bodies, VERSIONS) for one in wrong)
    assert problem.rule == OBJECT_INVALID
    assert f"'{classes[0]['metadata']['name']}' is one already" in problem.message


def test_the_finding_is_at_the_patch(tmp_path: Path, builder: None) -> None:
    """It is not at the cluster file, and nothing is written."""
    patch = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: ResourceQuota, name: training, namespace: team-cv}
  patch: |-
    - op: replace
      path: /spec/hard/requests.nvidia.com~1gpu
      value: "32"
"""
    root = write(workspace(tmp_path), {"overlays/lab/kustomization.yaml": patch})
    outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.FINDINGS
    assert outcome.errors() == [("overlays/lab/kustomization.yaml:8:14", "hard-quota-below-queue")]
    assert "ResourceQuota/team-cv/training" in outcome.err
    assert not (root / "rendered").exists()


def test_a_cohort_without_a_spec_is_a_root_without_quota(tmp_path: Path, builder: None) -> None:
    """Kueue accepts it (v0.19.2), and so does every command."""
    patch = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: Cohort, name: company}
  patch: |-
    - {op: remove, path: /spec}
"""
    root = write(workspace(tmp_path), {"overlays/lab/kustomization.yaml": patch})
    why = "why overlays/lab/kustomization.yaml:6"
    for command in ("render", "validate", "simulate --cluster lab", "cluster quota", "plan", why):
        outcome = gangplan(*command.split(), "-C", root)
        assert outcome.code == Exit.CLEAN, (command, outcome.out, outcome.err)
    bodies = load_objects((root / "rendered/lab/platform/queues.yaml").read_text())
    cohorts = {body["metadata"]["name"]: body for body in bodies if body["kind"] == "Cohort"}
    assert {name: "spec" in body for name, body in cohorts.items()} == {"company": False, "labs": True}
