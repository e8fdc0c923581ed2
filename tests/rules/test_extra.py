"""Rules whose example would be too long for a page, and rules that name another test."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.rulebook import load_built_in_rules
from gangplan.rules.model import Rule
from tests.standing.base import CLUSTER, workspace
from tests.workspaces import REPOSITORY, gangplan, write

UNTESTED = [rule for rule in load_built_in_rules().values() if rule.untested]


@pytest.mark.parametrize("rule", UNTESTED, ids=str)
def test_a_rule_without_an_example_names_a_file_that_tests_it(rule: Rule) -> None:
    named = re.search(r"tests/[a-z_/]+\.(py|yaml)", rule.untested)
    assert named, "name the file that tests it"
    text = (REPOSITORY / named[0]).read_text(encoding="utf-8")
    words = {"kubeconform": "verdict", "schema-missing": "RULE_MISSING"}
    assert rule in text or words.get(rule, rule) in text


def test_few_pages_have_no_example() -> None:
    assert (
        len(
            [
                rule
                for rule in UNTESTED
                if not any(
                    one in rule.untested for one in ("live API server", "needs a registry", "needs an image")
                )
            ]
        )
        <= 23
    )


def test_a_workspace_without_clusters_is_empty(root: Path) -> None:
    shutil.rmtree(root / "overlays/lab")
    outcome = gangplan("validate", "-C", root)
    assert ("overlays", "workspace-empty") in outcome.errors()
    assert outcome.code == Exit.INPUT


@pytest.mark.parametrize(("kinds", "refused"), [(6, False), (7, True)])
def test_more_than_512_pairs_of_flavor_and_resource_are_refused(
    kinds: int, refused: bool, tmp_path: Path
) -> None:
    """64 pools with cpu, memory and some kinds of GPU slices."""
    root = workspace(tmp_path)
    pools = "".join(
        f"  p{number}: {{count: 1, cpu: 60, memory: 240Gi, labels: {{pool: p{number}}},"
        f" gpu: {{model: m{number}, count: 7, resource: example.com/slice-{number % kinds}}}}}\n"
        for number in range(64)
    )
    before, rest = CLUSTER.split("  cpu: {count", 1)
    text = before + pools + rest[rest.index("topology:\n  -") :]
    write(root, {"overlays/lab/cluster.yaml": text})
    rules_found = {shown.rule for shown in gangplan("validate", "-C", root, "--engine", "serial").findings}
    assert rules_found >= {"pool-unknown"}  # quotas of pools that were replaced
    assert ("pools-too-many" in rules_found) == refused
