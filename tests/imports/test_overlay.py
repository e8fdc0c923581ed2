"""`gangplan import overlay`: the JSON6902 patch has the same result as kustomize's strategic merge."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gangplan.errors import Exit, UserError
from gangplan.imports.merge import UnclearMergeError, convert_strategic_merge_to_json6902
from gangplan.objects import Body, dump_all, dump_object_as_block_yaml
from gangplan.rules.imports import IMPORT_PATCH
from gangplan.tools.kustomize import require_engine
from tests import plain
from tests.overlay.test_build import bodies
from tests.workspaces import STOCK, WIDE_CLUSTER, gangplan, tree, write

KINDS = ("TrainingRuntime", "TrainJob", "NetworkPolicy", "Namespace", "LocalQueue")
OVERLAY = "overlays/lab/kustomization.yaml"
VALUES = st.sampled_from(
    [
        "x",
        7,
        True,
        None,
        None,
        ["c", 1],
        {"a": "b"},
        {"a": None, "b": {"c": "d"}},
        {"$patch": "replace", "z": "y"},
    ]
)


def built(folder: Path, body: Body, patch: Any, target: dict[str, str] | None = None) -> Body:
    """Return what kustomize builds from an object and a patch."""
    write(folder, {"object.yaml": dump_all([body]), "patch.yaml": json.dumps(patch)})
    entry = {"path": "patch.yaml", **({"target": target} if target else {})}
    write(
        folder,
        {"kustomization.yaml": dump_object_as_block_yaml({"resources": ["object.yaml"], "patches": [entry]})},
    )
    (one,) = plain.load_all(require_engine().build(folder))
    return one  # type: ignore[no-any-return]


def same(body: Body, patch: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the operations for a merge, after checking that kustomize builds the same from both."""
    made = convert_strategic_merge_to_json6902(body, patch)
    head = {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": {"name": body["metadata"]["name"]},
    }
    if "namespace" in body["metadata"]:
        head["metadata"]["namespace"] = body["metadata"]["namespace"]
    whole = {**patch, **head, "metadata": {**patch.get("metadata", {}), **head["metadata"]}}
    with tempfile.TemporaryDirectory() as name:
        merged = built(Path(name) / "merge", body, whole)
        try:
            patched = built(Path(name) / "json", body, made, {"kind": body["kind"]}) if made else body
        except UserError as error:
            raise AssertionError(made) from error
    assert patched == merged, made
    return made


@st.composite
def merges(draw: st.DrawFn) -> tuple[Body, dict[str, Any]]:
    """Draw an object, and a merge that follows its mappings and changes some of their values."""
    kind = draw(st.sampled_from(KINDS))
    body = draw(st.sampled_from([one for one in bodies() if one["kind"] == kind]))

    def level(value: Any, depth: int) -> dict[str, Any]:
        patch: dict[str, Any] = {}
        known = [key for key in value if key not in ("apiVersion", "kind", "name", "namespace")]
        for key in draw(
            st.lists(st.sampled_from([*known, "new", "a/b"]), min_size=1, max_size=2, unique=True)
        ):
            inner = value.get(key)
            goes_on = isinstance(inner, dict) and inner and depth < 6 and draw(st.integers(0, 4))
            patch[key] = level(inner, depth + 1) if goes_on else draw(VALUES)
        return patch

    top = draw(st.sampled_from([key for key in ("metadata", "spec") if isinstance(body.get(key), dict)]))
    return body, {top: level(body[top], 0)}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(one=merges())
def test_operations_have_the_same_result_as_the_merge(one: tuple[Body, dict[str, Any]]) -> None:
    body, patch = one
    try:
        same(body, patch)
    except (UnclearMergeError, UserError):  # kustomize refuses it, too
        assume(False)


RUNTIME = next(one for one in bodies() if one["kind"] == "TrainingRuntime")


@pytest.mark.parametrize(
    ("patch", "made"),
    [
        ({"metadata": {"labels": {"tier": "gold"}}}, [("add", "/metadata/labels/tier")]),
        (
            {"metadata": {"labels": {"gangplan.dev/team": None}}},
            [("remove", "/metadata/labels/gangplan.dev~1team")],
        ),
        ({"metadata": {"labels": {"unheard": None}}}, []),
        (
            {"spec": {"template": {"spec": {"network": {"$patch": "delete"}}}}},
            [("remove", "/spec/template/spec/network")],
        ),
        (
            {"spec": {"template": {"spec": {"replicatedJobs": [{"name": "x"}]}}}},
            [("replace", "/spec/template/spec/replicatedJobs")],
        ),
        (
            {"metadata": {"annotations": {"$patch": "replace", "a": "b"}}},
            [("replace", "/metadata/annotations")],
        ),
        ({"spec": {"new": {"a": {"b": None, "c": "d"}}}}, [("add", "/spec/new")]),
        (dict(RUNTIME), []),
    ],
)
def test_merges_become_the_expected_operations(patch: dict[str, Any], made: list[tuple[str, str]]) -> None:
    found = same(RUNTIME, {key: value for key, value in patch.items() if key not in ("apiVersion", "kind")})
    assert [(one["op"], one["path"]) for one in found] == made


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"$patch": "delete"}, "takes the whole object away"),
        ({"metadata": {"labels": {"gangplan.dev/team": 7}}}, "quote this one"),
        ({"metadata": {"labels": "x"}}, "another kind of value"),
        ({"spec": {"$retainKeys": ["a"]}}, "does not read"),
        ({"spec": {"new": [{"$patch": "replace"}]}}, "directive"),
    ],
)
def test_unclear_merges_are_refused(patch: dict[str, Any], message: str) -> None:
    with pytest.raises(UnclearMergeError, match=message):
        convert_strategic_merge_to_json6902(RUNTIME, patch)


MERGE = """\
# Every run of the team goes to the quiet rack.
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: filings
  labels: {example.com/rack: quiet}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: old}
spec: {nprocPerNode: "4"}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "workspace", {**STOCK, "overlays/lab/cluster.yaml": WIDE_CLUSTER})


def test_a_merge_for_a_job_becomes_a_patch_of_its_runs(root: Path) -> None:
    file = root.parent / "merge.yaml"
    file.write_text(MERGE.partition("---")[0])
    before = tree(root)
    shown = gangplan("import", "overlay", file, "--cluster", "lab", "-C", root)
    assert shown.code == Exit.CLEAN, shown.err
    assert "labelSelector: gangplan.dev/job=filings" in shown.out
    assert tree(root) == before
    done = gangplan("import", "overlay", file, "--cluster", "lab", "-C", root, "--apply")
    assert done.code == Exit.CLEAN, done.err
    assert set(tree(root)) - set(before) == {OVERLAY}
    rendered = gangplan("render", "-C", root)
    assert rendered.code == Exit.CLEAN, rendered.err
    (run,) = (root / "rendered/lab/runs/nlp").glob("filings*.yaml")
    runtime = next(one for one in plain.load_all(run.read_text()) if one["kind"] == "TrainingRuntime")
    assert runtime["metadata"]["labels"]["example.com/rack"] == "quiet"


def test_patches_are_added_after_existing_ones(root: Path) -> None:
    folder = root.parent / "theirs"
    text = "kind: Kustomization\npatches:\n- path: merge.yaml\n- target: {kind: TrainJob}\n  patch: 'metadata: {labels: {example.com/tier: gold}}'\n"
    write(folder, {"kustomization.yaml": text, "merge.yaml": MERGE.partition("---")[0]})
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:  # ours\n  - target: {kind: TrainJob}\n    patch: |-\n      - {op: add, path: /metadata/labels/example.com~1own, value: a}\n"
    write(root, {OVERLAY: component})
    done = gangplan("import", "overlay", folder, "--cluster", "lab", "-C", root, "--apply")
    assert done.code == Exit.CLEAN, done.err
    after = (root / OVERLAY).read_text()
    assert after.startswith(component)
    assert len(plain.load(after)["patches"]) == 3
    assert gangplan("render", "-C", root).code == Exit.CLEAN


def test_a_merge_for_an_object_that_is_not_rendered_is_refused(root: Path) -> None:
    file = root.parent / "merge.yaml"
    file.write_text(MERGE)
    outcome = gangplan("import", "overlay", file, "--cluster", "lab", "-C", root, "--apply")
    assert outcome.code == Exit.INPUT
    (error,) = [one for one in outcome.findings if one.severity == "error"]
    assert error.rule == IMPORT_PATCH
    assert error.place.endswith("merge.yaml:8:1")
    assert "PyTorchJob old" in error.message
    assert "kustomize build" in error.help
    assert not (root / OVERLAY).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "nowhere"], "there is no cluster 'nowhere'"),
        (["--cluster", "lab"], "there is no strategic merge"),
    ],
)
def test_wrong_clusters_and_sources_are_refused(root: Path, arguments: list[str], message: str) -> None:
    file = write(root.parent, {"none.yaml": "[]\n"}) / "none.yaml"
    outcome = gangplan("import", "overlay", file, *arguments, "-C", root)
    assert outcome.code == Exit.INPUT
    assert message in outcome.err


def test_what_is_not_taken_over_of_a_kustomization_is_named(root: Path, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "theirs",
        {
            "kustomization.yaml": "kind: Kustomization\ncomponents: [../proxy]\nimages: [{name: a, newName: b}]\n"
            "namePrefix: x-\nresources: [jobs.yaml]\npatchesJson6902:\n"
            "- {target: {kind: TrainingRuntime}, path: labels.yaml}\n"
            "patches:\n- {target: {kind: TrainJob}, patch: '[{op: add, path: /metadata/labels/a, value: b}]'}\n",
            "labels.yaml": "- {op: add, path: /metadata/labels/a, value: b}\n",
        },
    )
    outcome = gangplan(
        "import", "overlay", folder / "kustomization.yaml", "--cluster", "lab", "-C", root, "--apply"
    )
    assert outcome.code == Exit.CLEAN, outcome.err
    assert {one.severity for one in outcome.findings} == {"warning"}
    assert [one.message for one in outcome.findings] == [
        "components is not taken over",
        "images is not taken over",
        "namePrefix is not taken over",
    ]
    added = plain.load((root / OVERLAY).read_text())["patches"]
    assert [one["target"] for one in added] == [{"kind": "TrainJob"}, {"kind": "TrainingRuntime"}]
    assert plain.load(added[0]["patch"]) == [{"op": "add", "path": "/metadata/labels/a", "value": "b"}]
    both = gangplan("import", "overlay", folder, "--cluster", "lab", "-C", root)
    assert "components is not taken over" in both.err
