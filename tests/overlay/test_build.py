"""The builder builds from a component what kustomize builds from all objects at once."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gangplan.component import Component, load_component
from gangplan.errors import UserError
from gangplan.objects import Body, dump_all, dump_object_as_block_yaml
from gangplan.overlay import OverlayBuilder, PatchError
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.rules.model import Severity
from gangplan.tools.kustomize import require_engine
from tests import plain, workspaces

FILE = "overlays/lab/kustomization.yaml"
IMAGES = ("openmpi", "openmpi4", "pytorch", "mpich", "openmpi")
KINDS = ("TrainingRuntime", "TrainJob", "NetworkPolicy", "Namespace", "LocalQueue", "ServiceAccount")
Path_ = tuple[str | int, ...]


@cache
def bodies() -> tuple[Body, ...]:
    """Return objects of several runs, two of them of one shape, and of their team."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = workspaces.stock(Path(folder))
        for number, image in enumerate(IMAGES):
            spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}")
            workspaces.write(
                root, {f"specs/nlp/job-{number}.yaml": spec + f"env: {{SEED: {number}, NAME: 'no'}}\n"}
            )
        result = preview_render(Request(root, engine="serial"))
        assert not [one for one in result.findings if one.severity is Severity.ERROR]
        texts = [text for path, text in sorted(result.texts.items()) if "/platform/" not in path]
        return tuple(body for text in texts for body in plain.load_all(text) if body)


def pointer(path: Path_) -> str:
    """Return a JSON pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def places(value: Any, path: Path_ = ()) -> list[Path_]:
    """Return every path inside a value, those of mappings and lists included."""
    found = [path] if path else []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, item in entries:
        found += places(item, (*path, step))
    return found


VALUES = st.sampled_from(
    ["x", "yes", "1", "", "gp0x1x0gp", 7, True, {"a": "b"}, ["c", 1], {"z": 1, "a": {"y": "x"}}]
)


@st.composite
def operations(draw: st.DrawFn, kind: str) -> list[dict[str, Any]]:
    """Draw a few operations at places that objects of the kind have."""
    known = places(draw(st.sampled_from([body for body in bodies() if body["kind"] == kind])))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(known))
        op = draw(st.sampled_from(["add", "add", "replace", "remove", "copy", "move", "test"]))
        operation: dict[str, Any] = {"op": op, "path": pointer(path)}
        if op == "add" and draw(st.booleans()):
            operation["path"] = pointer((*path[:-1], draw(st.sampled_from(["new", "a/b", "-", "0"]))))
        if op in ("copy", "move"):
            # A move into itself is refused (tests/malformed/overlay.yaml).
            outside = [place for place in known if path[: len(place)] != place]
            operation["from"] = pointer(draw(st.sampled_from(outside)))
        if op in ("add", "replace", "test"):
            operation["value"] = draw(VALUES)
        found.append(operation)
    return found


@st.composite
def components(draw: st.DrawFn) -> str:
    """Draw a component of one to three patches."""
    patches = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(KINDS))
        target = draw(
            st.sampled_from(
                [
                    {"kind": kind},
                    {"kind": kind},
                    {"kind": kind, "name": "job-[12]-.*"},
                    {"kind": kind, "labelSelector": "gangplan.dev/job=job-1"},
                ]
            )
        )
        patches.append({"target": target, "patch": json.dumps(draw(operations(kind)))})
    return json.dumps(
        {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": patches}
    )


def component_of(root: Path, text: str) -> Component | None:
    """Return the component, or None if it is refused without building."""
    workspaces.write(root, {FILE: text})
    component, findings = load_component(root, "lab")
    return None if findings else component


def direct(folder: Path, text: str) -> list[Body] | None:
    """Return what kustomize builds from all objects at once, or None if it refuses."""
    folder.mkdir(exist_ok=True)
    (folder / "component").mkdir(exist_ok=True)
    (folder / "component/kustomization.yaml").write_text(text)
    (folder / "objects.yaml").write_text(dump_all(bodies()))
    (folder / "kustomization.yaml").write_text("resources: [objects.yaml]\ncomponents: [component]\n")
    try:
        built = plain.load_all(require_engine().build(folder))
        return list(built)
    except UserError:
        return None


def key(body: Body) -> tuple[str, str, str]:
    """Return what identifies an object."""
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


@pytest.mark.usefixtures("builder")
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=components())
def test_built_objects_equal_those_of_kustomize(text: str, tmp_path: Path) -> None:
    component = component_of(tmp_path, text)
    assume(component)
    assert component
    expected = direct(tmp_path / "direct", text)
    try:
        built = OverlayBuilder(component).build(bodies())
    except PatchError as refused:
        # Stricter in one way: it refuses to replace what does not exist.
        if expected is not None:
            assume("the patch replaces" not in refused.message)
            raise
        return
    assert expected is not None
    by_key = {key(body): body for body in expected}
    assert len(by_key) == len(built)
    for body in built:
        assert body == by_key[key(body)]


@pytest.mark.usefixtures("builder")
def test_objects_that_no_patch_changes_are_the_generated_ones(tmp_path: Path) -> None:
    component = component_of(tmp_path, workspaces.KUSTOMIZATION)
    assert component
    built = OverlayBuilder(component).build(bodies())
    for before, after in zip(bodies(), built, strict=True):
        if before["kind"] == "Namespace":
            assert after["metadata"]["labels"].pop("site.example.com/monitoring") == "true"
            assert after == before
        else:
            assert after is before


@pytest.mark.usefixtures("builder")
def test_objects_built_together_and_one_by_one_are_equal(tmp_path: Path) -> None:
    """The caches of a builder never change what it builds."""
    text = workspaces.KUSTOMIZATION.replace("kind: Namespace", "kind: TrainingRuntime").replace(
        "/metadata/labels/site.example.com~1monitoring",
        "/spec/template/spec/replicatedJobs/0/template/spec/template/metadata/labels/site",
    )
    component = component_of(tmp_path, text)
    assert component
    together = OverlayBuilder(component).build(bodies())
    builder = OverlayBuilder(component)
    one_by_one = [builder.build([body])[0] for body in bodies()]
    backwards = [OverlayBuilder(component).build([body])[0] for body in reversed(bodies())][::-1]
    assert [dump_object_as_block_yaml(body) for body in together] == [
        dump_object_as_block_yaml(body) for body in one_by_one
    ]
    assert [dump_object_as_block_yaml(body) for body in together] == [
        dump_object_as_block_yaml(body) for body in backwards
    ]
    assert sum(body != before for body, before in zip(together, bodies(), strict=True)) == len(IMAGES) + 1


def test_without_patches_kustomize_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gangplan.overlay.build.require_engine", lambda: pytest.fail("not needed"))
    assert OverlayBuilder(Component(FILE)).build(bodies()) == list(bodies())
