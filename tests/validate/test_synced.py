"""Patches that change how sync engines treat an object: each case of synced.yaml, and the command line."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.model.syncing import SYNC_ENGINES, build_data_annotations
from gangplan.source import load_objects
from gangplan.validate.synced import find_changes_of_syncing
from tests import plain
from tests.workspaces import REPOSITORY, gangplan, write

CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("synced.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def rendered() -> list[dict[str, Any]]:
    """Return one object of each kind, as generated, with the runtime of the run, and a claim."""
    files = sorted((REPOSITORY / "rendered" / "onprem-a100").rglob("*.yaml"))
    bodies = [body for file in files for body in load_objects(file.read_text(encoding="utf-8"))]
    found = {body["kind"]: body for body in bodies}
    runtime = found["TrainJob"]["spec"]["runtimeRef"]["name"]
    runtimes = (one for one in bodies if one["kind"] == "TrainingRuntime")
    found["TrainingRuntime"] = next(one for one in runtimes if one["metadata"]["name"] == runtime)
    head = {"name": "data", "namespace": "nlp", "annotations": build_data_annotations()}
    return [*found.values(), {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": head}]


@pytest.mark.parametrize("name", CASES)
def test_each_change_of_syncing_is_found(name: str, rendered: list[dict[str, Any]]) -> None:
    case = CASES[name]
    built = copy.deepcopy(rendered)
    [target] = [body for body in built if body["kind"] == case["of"]]
    for place in ("annotations", "labels"):
        change_pairs(target["metadata"], place, case.get(place, {}))

    judged = find_changes_of_syncing(built, rendered, case.get("engines", tuple(SYNC_ENGINES)))

    found = [(body, problem) for body, wrong in zip(built, judged, strict=True) for problem in wrong]
    if "finds" not in case:
        assert not found
        return
    [(body, problem)] = found
    assert problem.rule == case["finds"]
    assert body["kind"] == case.get("blames", case["of"])
    assert problem.path[:2] == ("metadata", case.get("at", "annotations"))
    assert case.get("says", "") in problem.message


def change_pairs(metadata: dict[str, Any], place: str, changes: Mapping[str, Any]) -> None:
    """Change labels or annotations; None removes one."""
    pairs = {**metadata.get(place, {}), **changes}
    metadata[place] = {key: value for key, value in pairs.items() if value is not None}


def test_objects_as_generated_are_synced_as_planned(rendered: list[dict[str, Any]]) -> None:
    assert find_changes_of_syncing(copy.deepcopy(rendered), rendered, tuple(SYNC_ENGINES)) == [[]] * len(
        rendered
    )


@pytest.mark.parametrize(
    ("engine", "key", "value"),
    [("argocd", "argocd.argoproj.io/hook", "Skip"), ("flux", "kustomize.toolkit.fluxcd.io/ssa", "Ignore")],
)
def test_an_archived_run_must_stay_archived(engine: str, key: str, value: str, rendered: list[Any]) -> None:
    archived = copy.deepcopy(rendered)
    for body in archived:
        change_pairs(body["metadata"], "annotations", {key: value})
    assert not any(find_changes_of_syncing(archived, archived, [engine]))
    built = copy.deepcopy(archived)
    [run] = [body for body in built if body["kind"] == "TrainJob"]
    del run["metadata"]["annotations"][key]
    [problem] = [one for wrong in find_changes_of_syncing(built, archived, [engine]) for one in wrong]
    assert problem.rule == "plan-broken"
    assert problem.message.startswith("the run is archived, but")


PATCHES = """apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: NetworkPolicy, name: default-deny}
  patch: |-
    - {op: add, path: /metadata/annotations/argocd.argoproj.io~1hook, value: Skip}
- target: {kind: TrainingRuntime}
  patch: |-
    - {op: add, path: /metadata/annotations/kustomize.toolkit.fluxcd.io~1ssa, value: Ignore}
- target: {kind: TrainJob}
  patch: |-
    - {op: add, path: /status, value: {conditions: []}}
    - {op: remove, path: /metadata/annotations/argocd.argoproj.io~1sync-options}
"""


def test_each_is_reported_once_at_its_patch(root: Path) -> None:
    write(root, {"overlays/lab/kustomization.yaml": PATCHES})
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == Exit.FINDINGS
    assert [(one.place.rpartition(":")[0], one.rule) for one in outcome.findings] == [
        ("overlays/lab/kustomization.yaml:6", "sync-skips"),
        ("overlays/lab/kustomization.yaml:9", "sync-skips"),
        ("overlays/lab/kustomization.yaml:12", "status-ignored"),
        ("overlays/lab/kustomization.yaml:13", "sync-destroys"),
    ]
