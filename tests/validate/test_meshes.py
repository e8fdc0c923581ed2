"""Meshes and other injectors that an overlay patch enables, on namespaces and on pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan

OVERLAY = "overlays/lab/kustomization.yaml"
HEAD = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
POD = "/spec/template/spec/replicatedJobs/{at}/template/spec/template/metadata"


def on_namespace(part: str, key: str, value: str) -> str:
    return (
        "- target: {kind: Namespace}\n  patch: |-\n"
        f"    - {{op: add, path: /metadata/{part}/{key.replace('/', '~1')}, value: {value}}}\n"
    )


def on_pods(part: str, marks: dict[str, str]) -> str:
    """Return a patch of launcher and workers."""
    lines = ""
    for at in (0, 1):
        path = POD.format(at=at)
        for key, value in marks.items():
            one = f"{path}/{part}/{key.replace('/', '~1')}"
            lines += f"    - {{op: add, path: {one}, value: {value}}}\n"
        if part == "annotations":
            lines = f"    - {{op: add, path: {path}/annotations, value: {{}}}}\n" + lines
    return f"- target: {{kind: TrainingRuntime}}\n  patch: |-\n{lines}"


def told(root: Path, *patches: str) -> list[tuple[str, str]]:
    """Return place and message of each mesh that takes pods in; no other error is allowed."""
    workspaces.write(workspaces.stock(root), {OVERLAY: HEAD + "".join(patches)})
    outcome = gangplan("validate", "-C", root)
    errors = [one for one in outcome.findings if one.severity == "error"]
    assert {one.rule for one in errors} <= {"mesh-joined"}, outcome.err
    return [(one.place, one.message) for one in errors]


LINKERD = on_namespace("annotations", "linkerd.io/inject", "enabled")
AMBIENT = on_namespace("labels", "istio.io/dataplane-mode", "ambient")


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        (LINKERD, "Linkerd"),
        (on_namespace("annotations", "linkerd.io/inject", "ingress"), ""),  # it counts only on pods
        (on_namespace("annotations", "linkerd.io/inject", "disabled"), ""),
        (AMBIENT, "Istio's ambient mode"),
        (on_namespace("labels", "istio.io/dataplane-mode", "none"), ""),
        (on_namespace("labels", "kuma.io/sidecar-injection", "enabled"), "Kuma"),
        (on_namespace("annotations", "kuma.io/sidecar-injection", '"true"'), "Kuma"),
        # gangplan's pods have their own label that keeps Istio's sidecars out.
        (on_namespace("labels", "istio-injection", "enabled"), ""),
        (on_namespace("labels", "istio.io/rev", "stable"), ""),
        (on_namespace("labels", "example.com/inject", "enabled"), ""),
    ],
)
def test_a_mesh_on_a_namespace_is_reported(patch: str, name: str, tmp_path: Path) -> None:
    found = told(tmp_path, patch)
    if not name:
        assert found == []
        return
    ((place, message),) = found  # one team, reported once for all its runs
    assert place == f"{OVERLAY}:6:{patch.splitlines()[2].index('value: ') + 8}"
    assert message.startswith(f"Namespace/nlp: {name} takes these pods in (")
    assert "on namespace 'nlp'" in message


@pytest.mark.parametrize(
    ("part", "marks", "name"),
    [
        ("annotations", {"linkerd.io/inject": "enabled"}, "Linkerd"),
        ("annotations", {"linkerd.io/inject": "ingress"}, "Linkerd"),
        ("labels", {"sidecar.istio.io/inject": '"true"'}, "Istio"),
        ("labels", {"istio.io/dataplane-mode": "ambient"}, "Istio's ambient mode"),
        ("annotations", {"consul.hashicorp.com/connect-inject": '"true"'}, "Consul"),
        ("annotations", {"dapr.io/enabled": '"true"'}, "Dapr"),
        ("annotations", {"vault.hashicorp.com/agent-inject": '"true"'}, "Vault's agent"),
        ("annotations", {"linkerd.io/inject": "disabled", "dapr.io/enabled": '"false"'}, ""),
        (
            "annotations",
            {
                "vault.hashicorp.com/agent-inject": '"true"',
                "vault.hashicorp.com/agent-pre-populate-only": '"true"',
            },
            "",
        ),
    ],
)
def test_a_mesh_on_pods_is_reported(part: str, marks: dict[str, str], name: str, tmp_path: Path) -> None:
    found = told(tmp_path, on_pods(part, marks))
    assert bool(found) == bool(name)
    assert all(f": {name} takes these pods in (" in message for _, message in found)
    assert all(place.startswith(OVERLAY) for place, _ in found)


@pytest.mark.parametrize(
    ("patch", "part", "key", "value"),
    [
        (LINKERD, "annotations", "linkerd.io/inject", "disabled"),
        (AMBIENT, "labels", "istio.io/dataplane-mode", "none"),
    ],
)
def test_following_the_help_keeps_pods_out_of_the_mesh(
    patch: str, part: str, key: str, value: str, tmp_path: Path
) -> None:
    workspaces.write(workspaces.stock(tmp_path / "joined"), {OVERLAY: HEAD + patch})
    (found,) = [
        one for one in gangplan("validate", "-C", tmp_path / "joined").findings if one.rule == "mesh-joined"
    ]
    assert f"add {key}: {value} to the {part} of the pod templates" in found.help
    assert told(tmp_path / "out", patch, on_pods(part, {key: value})) == []


def test_each_mesh_is_reported_despite_a_harmless_agent(tmp_path: Path) -> None:
    """The namespace has two marks, and a harmless agent has nothing to do with a mesh."""
    kuma = on_namespace("labels", "kuma.io/sidecar-injection", "enabled")
    agent = {
        "vault.hashicorp.com/agent-inject": '"true"',
        "vault.hashicorp.com/agent-pre-populate-only": '"true"',
    }
    found = told(tmp_path, LINKERD, kuma, on_pods("annotations", agent))
    assert [message.partition(" takes")[0] for _, message in found] == [
        "Namespace/nlp: Linkerd",
        "Namespace/nlp: Kuma",
    ]
    assert [int(place.split(":")[1]) for place, _ in found] == [6, 9]


def test_without_gangplans_label_istio_takes_the_pods_in(tmp_path: Path) -> None:
    label = POD.format(at=1) + "/labels/sidecar.istio.io~1inject"
    without = f"- target: {{kind: TrainingRuntime}}\n  patch: |-\n    - {{op: remove, path: {label}}}\n"
    ((_, message),) = told(tmp_path, on_namespace("labels", "istio-injection", "enabled"), without)
    assert "Istio takes these pods in (istio-injection: enabled on namespace 'nlp')" in message
