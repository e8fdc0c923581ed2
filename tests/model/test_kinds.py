"""The table of kinds, compared with the templates and with the objects that they render."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.kinds import NAMESPACED_KINDS, RENDERED_KINDS, SYNC_WAVES
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects

ROOT = Path(__file__).parents[2]
# A name end of objects outside the wave of their part: what a schedule mounts, just before it.
TEMPLATE = "-template"


def test_every_kind_that_a_template_writes_has_a_row() -> None:
    folder, others = ROOT / "templates", {"ci", "gitops", "sample", "workspace"}
    files = [
        file
        for file in folder.rglob("*.yaml.j2")
        if not others & {*file.parts} and file.stem != "tekton.yaml"
    ]
    texts = [file.read_text() for file in files]
    written = {kind for text in texts for kind in re.findall(r"^kind: \"?(\w+)", text, re.MULTILINE)}
    assert written <= {one.name for one in RENDERED_KINDS}
    # Policies are copied as they are written, and these ConfigMaps are made from files.
    without = {"ConfigMap", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert {one.name for one in RENDERED_KINDS} - written == without - written
    assert len({one.name for one in RENDERED_KINDS}) == len(RENDERED_KINDS)


def test_rendered_objects_have_the_scope_and_wave_of_the_table() -> None:
    parts = set()
    for path, text in preview_render(Request(ROOT)).texts.items():
        part = (
            "policies"
            if path.endswith("/policies.yaml")
            else path.split("/")[-3 if "/platform/" not in path else -2]
        )
        part = next(
            one for one in ("policies", "platform", "tenants", "runs") if one in (part, *path.split("/"))
        )
        for body in load_objects(text):
            kind, metadata = body["kind"], body["metadata"]
            assert (kind in NAMESPACED_KINDS) == ("namespace" in metadata), (path, kind)
            if not metadata["name"].endswith(TEMPLATE):
                wave = metadata["annotations"]["argocd.argoproj.io/sync-wave"]
                assert SYNC_WAVES[part, kind] == int(wave), (path, kind)
            parts.add((part, kind))
    assert len(parts) > 20


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("tenants", "Namespace"), ("tenants", "ServiceAccount")),
        (("tenants", "Namespace"), ("runs", "NetworkPolicy")),
        (("policies", "Namespace"), ("policies", "ValidatingAdmissionPolicy")),
        (("policies", "ConfigMap"), ("policies", "ValidatingAdmissionPolicyBinding")),
        (("policies", "ValidatingAdmissionPolicyBinding"), ("platform", "ClusterQueue")),
        (("platform", "ClusterRole"), ("runs", RUNTIME_KIND)),
        (("platform", "Topology"), ("platform", "ResourceFlavor")),
        (("platform", "ProvisioningRequestConfig"), ("platform", "AdmissionCheck")),
        (("platform", "MultiKueueCluster"), ("platform", "AdmissionCheck")),
        (("platform", "ResourceFlavor"), ("platform", "ClusterQueue")),
        (("platform", "AdmissionCheck"), ("platform", "ClusterQueue")),
        (("platform", "Cohort"), ("platform", "ClusterQueue")),
        (("platform", "ClusterQueue"), ("tenants", "LocalQueue")),
        (("tenants", "PersistentVolume"), ("tenants", "PersistentVolumeClaim")),
        (("tenants", "ResourceQuota"), ("runs", TRAINJOB.kind)),
        (("runs", "NetworkPolicy"), ("runs", RUNTIME_KIND)),
        (("runs", "ConfigMap"), ("runs", TRAINJOB.kind)),
        (("runs", RUNTIME_KIND), ("runs", TRAINJOB.kind)),
        (("runs", "NetworkPolicy"), ("runs", MPIJOB.kind)),
        (("runs", RUNTIME_KIND), ("runs", "CronJob")),
    ],
)
def test_an_object_comes_after_objects_it_names_and_its_policies(first: tuple, second: tuple) -> None:
    assert SYNC_WAVES[first] < SYNC_WAVES[second]


def test_nothing_comes_after_runs() -> None:
    """Argo CD ends a sync without the health of its last wave; in a later one, it would wait for runs."""
    last = max(wave for (part, _), wave in SYNC_WAVES.items() if part == "runs")
    for kind in (TRAINJOB.kind, MPIJOB.kind, "CronJob", "Job"):
        assert SYNC_WAVES["runs", kind] == last
