"""Fast paths agree with slow ones: templates read by the YAML parser, shapes patched by kustomize itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.component import load_component
from gangplan.objects import dump_all, ref_of
from gangplan.overlay import OverlayBuilder
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import ManifestError, load_blocks, load_objects
from gangplan.source import blocks as reader

ROOT = Path(__file__).resolve().parent.parent
RENDERED = sorted((ROOT / "rendered").rglob("*.yaml"))

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
objects = st.lists(st.dictionaries(st.text(), values, min_size=1, max_size=4), max_size=3)
# Pieces of YAML, valid and invalid, in any order.
pieces = st.sampled_from(
    [
        *(
            "a: ",
            "b: ",
            '"c": ',
            "- ",
            "- - ",
            "a:",
            "- a: ",
            "? ",
            "<<: ",
            "1: ",
            "a : ",
            "a:  ",
            "%",
            "---\n",
        ),
        *("\n", "\n  ", "\n    ", "\n\n", "\n- ", "\n  - ", " #", "#", "\t", "\r", "\u2028", "\x85", "\xa0"),
        *(
            "x",
            "-",
            "- ",
            "1",
            "1_0",
            "0x1F",
            "1e3",
            "yes",
            "~",
            ".inf",
            "1:30",
            '"q"',
            '"\\n"',
            '"\\x41"',
            "'s'",
        ),
        *(
            "{}",
            "[]",
            "{a: b}",
            "[a]",
            "|",
            ">",
            "&x",
            "*x",
            "!t",
            "@",
            "`",
            ":",
            "::",
            "a:b",
            "a#b",
            "--x",
            "=",
        ),
    ]
)


def outcome(load: Any, text: str) -> Any:
    try:
        return repr(load(text))
    except ManifestError:
        return "refused"


@given(objects)
def test_the_template_reader_agrees_on_objects_that_we_write(bodies: list[dict[str, Any]]) -> None:
    text = dump_all(bodies)
    assert outcome(load_blocks, text) == outcome(load_objects, text)


@given(st.lists(pieces, max_size=14).map("".join))
def test_the_template_reader_agrees_on_any_text(text: str) -> None:
    assert outcome(load_blocks, text) == outcome(load_objects, text)


def test_the_template_reader_rarely_hands_over_to_the_parser(
    builder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handing over to the YAML parser is always correct but four times slower, so it must stay rare.

    Rules and dashboards, once per cluster, have texts of many lines; nothing else does.
    """
    handed: list[str] = []
    monkeypatch.setattr(reader, "load_objects", lambda text: handed.append(text) or load_objects(text))
    preview_render(Request(ROOT, engine="serial"))
    assert [text for text in handed if not re.match("title: |.*\nkind: PrometheusRule", text)] == []


PATCHES = {
    "add and append": """
- op: add
  path: /metadata/labels/example.com~1site
  value: hall-2
- op: add
  path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/volumeMounts/-
  value: {name: site, mountPath: /site}
""",
    "insert and remove": """
- op: add
  path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/volumeMounts/0
  value: {name: extra, mountPath: /extra, a10: 1, a2: 2}
- op: remove
  path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/resources/limits
""",
    "replace and whole lists": """
- op: replace
  path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/securityContext
  value: {runAsNonRoot: true}
- op: replace
  path: /spec/template/spec/replicatedJobs/0/template/spec/backoffLimit
  value: 3
""",
    "copy and test": """
- op: copy
  from: /spec/mlPolicy
  path: /spec/template/metadata
- op: add
  path: /spec/template/metadata/more
  value: "1"
- op: test
  path: /kind
  value: TrainingRuntime
""",
}


def rendered(kind: str) -> list[dict[str, Any]]:
    """Return the sample's objects of a kind, each name once (clusters share names, but one build cannot)."""
    bodies = {
        str(ref_of(body)): body
        for file in RENDERED
        for body in load_objects(file.read_text(encoding="utf-8"))
        if body["kind"] == kind
    }
    return list(bodies.values())


@pytest.mark.parametrize("operations", PATCHES.values(), ids=PATCHES)
def test_shapes_are_patched_as_kustomize_patches_objects(
    operations: str, builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_patched_alike("TrainingRuntime", operations, tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["NetworkPolicy", "TrainJob", "Namespace", "ServiceAccount", "LocalQueue"])
def test_shapes_of_every_kind_are_patched_as_kustomize_patches_objects(
    kind: str, builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = '- {op: add, path: /metadata/annotations/example.com~1note, value: "on"}\n'
    assert_patched_alike(kind, operations, tmp_path, monkeypatch)


def assert_patched_alike(kind: str, operations: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "overlays" / "here"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        f"patches:\n- target: {{kind: {kind}}}\n  path: patch.yaml\n",
        encoding="utf-8",
    )
    (folder / "patch.yaml").write_text(operations, encoding="utf-8")
    component, findings = load_component(tmp_path, "here")
    assert not findings
    bodies = rendered(kind)
    assert bodies
    by_shape = OverlayBuilder(component).build(bodies)
    monkeypatch.setattr(OverlayBuilder, "_needs_values", lambda self, body: True)
    assert dump_all(by_shape) == dump_all(OverlayBuilder(component).build(bodies))
