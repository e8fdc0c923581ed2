"""Patches that pages and findings suggest can be built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.rulebook import load_built_in_rules
from gangplan.validate.transition import check_transition_between_commits
from gangplan.validate.versions import SchemaVersions
from tests import plain
from tests.workspaces import gangplan, stock, write

COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
VERSIONS = SchemaVersions("1.34", "2.3", "0.19", "0.12")
_ENTRY = re.compile(r"\{target: .*?'\}")
LABELS = {"kueue.x-k8s.io/queue-name": "training"}
RUN = {"kind": "TrainJob", "metadata": {"namespace": "team-nlp", "name": "a", "labels": LABELS}, "spec": {}}
QUEUES = [
    {
        "kind": "LocalQueue",
        "metadata": {"namespace": "team-nlp", "name": "training"},
        "spec": {"clusterQueue": "nlp"},
    },
    {"kind": "ClusterQueue", "metadata": {"name": "nlp"}, "spec": {}},
]


def suggested() -> list[str]:
    texts = [f"{rule.fix} {rule.why}" for rule in load_built_in_rules().values()]
    texts += [step.problem.help for step in check_transition_between_commits([RUN, *QUEUES], [RUN], VERSIONS)]
    return [entry for text in texts for entry in _ENTRY.findall(text)]


def test_patches_are_suggested() -> None:
    assert len(suggested()) >= 3


@pytest.mark.parametrize("entry", sorted(set(suggested())))
def test_a_suggested_patch_builds(entry: str, tmp_path: Path) -> None:
    assert set(plain.load(entry)) == {"target", "patch"}
    root = write(stock(tmp_path), {"overlays/lab/kustomization.yaml": f"{COMPONENT}patches:\n- {entry}\n"})
    outcome = gangplan("validate", "-C", root, "--engine", "serial")
    assert "overlay-patch" not in {one.rule for one in outcome.findings}, outcome.err
