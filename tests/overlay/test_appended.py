"""Several patches that append to one list: each entry is traced to the operation that added it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import gangplan, write

PODS = "/spec/template/spec/replicatedJobs/1/template/spec/template/spec/volumes/-"
TARGET = "  - target: {kind: TrainingRuntime}\n    patch: |-\n"
CONFIG = f"      - {{op: add, path: {PODS}, value: {{name: settings, configMap: {{name: missing}}}}}}\n"
ABSENT = "{name: more, persistentVolumeClaim: {claimName: absent}}"
CLAIM = f"      - {{op: add, path: {PODS}, value: {ABSENT}}}\n"
HEAD = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
FILE = "overlays/lab/kustomization.yaml"
PATCHES = {
    "two operations": (HEAD + TARGET + CONFIG + CLAIM, 6, 7),
    "two patches": (HEAD + TARGET + CONFIG + TARGET + CLAIM, 6, 9),
    "the other way round": (HEAD + TARGET + CLAIM + CONFIG, 7, 6),
}


@pytest.mark.parametrize("case", PATCHES)
def test_a_missing_object_is_reported_where_its_volume_was_appended(case: str, root: Path) -> None:
    text, config, claim = PATCHES[case]
    outcome = gangplan("validate", "-C", write(root, {FILE: text}))
    places = {
        name: one.place
        for one in outcome.findings
        for name in ("missing", "absent")
        if f"'{name}'" in one.message
    }
    assert places["missing"].startswith(f"{FILE}:{config}:"), outcome.err
    assert places["absent"].startswith(f"{FILE}:{claim}:"), outcome.err


@pytest.mark.parametrize("case", PATCHES)
def test_why_names_the_operation_that_appended_a_volume(case: str, root: Path) -> None:
    text, config, claim = PATCHES[case]
    text = text.replace("configMap: {name: missing}", "emptyDir: {sizeLimit: 1Mi}")
    text = text.replace("persistentVolumeClaim: {claimName: absent}", "emptyDir: {sizeLimit: 2Mi}")
    rendered = gangplan("render", "-C", write(root, {FILE: text}))
    assert rendered.code == Exit.CLEAN, rendered.err
    (run,) = (root / "rendered/lab/runs/nlp").glob("filings-*.yaml")
    lines = run.read_text(encoding="utf-8").splitlines()
    for name, number in (("sizeLimit: 1Mi", config), ("sizeLimit: 2Mi", claim)):
        at = next(index for index, line in enumerate(lines, 1) if name in line)
        shown = gangplan("why", f"{run.relative_to(root)}:{at}", "-C", root)
        assert f"{FILE}:{number}:" in shown.out, shown.out
