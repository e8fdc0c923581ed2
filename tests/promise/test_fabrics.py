"""Patches of a run on a fabric: a patch that removes or redirects a part breaks the plan."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.workspaces import Shown, gangplan, write

EXAMPLES = Path(__file__).parents[1] / "examples"
CLUSTERS = {"gke-tcpxo": "gke", "host-network": "hall"}
NODE = "/spec/template/spec/replicatedJobs/0/template/spec/template"
PLACES = {
    "BESIDE": f"{NODE}/spec/initContainers/0",
    "BOX": f"{NODE}/spec/containers/0",
    "META": f"{NODE}/metadata",
    "POD": f"{NODE}/spec",
}


def told(
    root: Path, example: str, patch: dict[str, Any], target: str = "{kind: TrainingRuntime}"
) -> list[Shown]:
    """Return the findings about an example that a patch adds, without notes."""
    folder = root / "workspace"
    shutil.copytree(EXAMPLES / example / "input", folder, ignore=shutil.ignore_patterns(".gangplan"))
    plain_rules = {one.rule for one in gangplan("validate", "-C", folder).findings} - {"host-access"}
    start, _, rest = str(patch["path"]).partition("/")
    operation = json.dumps({**patch, "path": f"{PLACES.get(start, start)}/{rest}"})
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    text = f"{head}- target: {target}\n  patch: |-\n    - {operation}\n"
    write(folder, {f"overlays/{CLUSTERS[example]}/kustomization.yaml": text})
    outcome = gangplan("validate", "-C", folder, "--today", "2026-11-01")
    return [one for one in outcome.findings if one.rule not in plain_rules and one.severity != "note"]


CASES: list[dict[str, Any]] = plain.load(Path(__file__).with_name("fabrics.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['of']} {case['patch']['path']}")
def test_each_patch_of_a_fabric_has_its_verdict(case: dict[str, Any], tmp_path: Path, builder: str) -> None:
    found = told(tmp_path, case["of"], case["patch"])
    if words := case.get("refused"):
        broken = [one for one in found if one.rule == "plan-broken" and words in one.message]
        assert broken, found
        assert all(one.place.startswith("overlays/") and one.help for one in broken)
    elif other := case.get("other"):
        assert {one.rule for one in found} >= other.keys(), found
        assert all(one.rule not in other or other[one.rule] in one.message for one in found), found
    else:
        assert case["allowed"]
        assert not found
