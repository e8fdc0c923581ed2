"""How quota counts: excluded and transformed resources, shares of disk and other devices."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gangplan.kueue.counting import apply_kueue_resource_transformations
from gangplan.model.manager import ManagerSettings, Transformation
from gangplan.model.quantity import parse_quantity
from gangplan.model.support import KUEUE_LINES
from tests import plain, workspaces
from tests.resolve.test_queues import CLUSTER, objects
from tests.resolve.test_workdir import put
from tests.workspaces import gangplan

NANO = 10**9
FPGA = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
WITH_FPGA = f"{FPGA}, devices: {{example.com/fpga: 2}}, disk: 2Ti"
CREDITS = "nvidia.com/gpu: {strategy: Replace, outputs: {example.com/credits: 10}}"


def change(root: Path, lines: str, old: str = "", new: str = "") -> None:
    """Write the cluster file with these lines at its end, and one text replaced."""
    assert old in workspaces.CLUSTER
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER.replace(old, new, 1) + lines})


def quotas(root: Path) -> dict[str, dict[str, Any]]:
    """Return the quotas of the team's queue, by flavor and resource."""
    (queue,) = objects(root, "ClusterQueue")
    (group,) = queue["spec"]["resourceGroups"]
    found = {
        one["name"]: {item["name"]: item["nominalQuota"] for item in one["resources"]}
        for one in group["flavors"]
    }
    assert all(list(one) == group["coveredResources"] for one in found.values())
    return found


def test_quotas_count_credits_in_place_of_devices(root: Path) -> None:
    change(root, f"kueue: {{resources: {{transformations: {{{CREDITS}}}}}}}\n")
    a100 = quotas(root)["a100"]
    assert set(a100) == {"cpu", "memory", "example.com/credits"}
    assert a100["example.com/credits"] == "320"  # 4 nodes with 8 GPUs
    assert quotas(root)["cpu"]["example.com/credits"] == "0"
    assert gangplan("validate", "-C", root).findings == []
    quota = next(one for one in objects(root, "ResourceQuota") if one["metadata"]["name"] == "training")
    assert "requests.nvidia.com/gpu" not in quota["spec"]["hard"]


def test_quotas_count_credits_in_addition_to_devices(root: Path) -> None:
    stated = CREDITS.replace("strategy: Replace, ", "")
    change(root, f"kueue: {{resources: {{transformations: {{{stated}}}}}}}\n")
    a100 = quotas(root)["a100"]
    assert (a100["nvidia.com/gpu"], a100["example.com/credits"]) == ("32", "320")


def test_an_excluded_resource_has_no_quota(root: Path) -> None:
    change(root, "kueue: {resources: {excludeResourcePrefixes: [example.com/]}}\n", FPGA, WITH_FPGA)
    put(root, "devices: {example.com/fpga: 1}\n")
    assert "example.com/fpga" not in quotas(root)["a100"]
    assert gangplan("validate", "-C", root).findings == []


# Workers of a run with two GPUs each, and the broken rules where the pool has 320 credits.
@pytest.mark.parametrize(("workers", "rules"), [(16, []), (17, ["over-quota"])])
def test_runs_are_admitted_by_credits(workers: int, rules: list[str], root: Path) -> None:
    """16 workers with 2 GPUs need 32 GPUs and 320 credits, which is the whole pool."""
    lines = f"kueue: {{resources: {{transformations: {{{CREDITS}}}}}}}\n"
    change(root, lines, ", capacity: spot", ", capacity: spot, taints: [{key: spot, effect: NoSchedule}]")
    text = (root / "specs/nlp/filings.yaml").read_text().replace("workers: 4", f"workers: {workers}")
    workspaces.write(root, {"specs/nlp/filings.yaml": f"{text}placement: {{nodePool: a100}}\n"})
    found = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert [one.rule for one in found if one.rule in ("over-quota", "no-flavor")] == rules
    if rules:
        assert "credits" in found[0].message or "credits" in found[0].help


# What a pod requests, the factor, and what quota counts up to 0.18 and from 0.19 on.
ARITHMETIC = {
    "whole units": ("2", "10", 20, 20),
    "half a core": ("500m", "10", 10, 5),
    "more than one core": ("1500m", "10", 20, 15),
    "a factor below one": ("3", "500m", Fraction(3, 2), Fraction(3, 2)),
    "a factor in bytes": ("2", "5Ki", 10240, 10240),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_transformations_follow_the_arithmetic_of_each_version(name: str) -> None:
    asked, factor, before, now = ARITHMETIC[name]
    rule = Transformation("a", (("out", parse_quantity(factor).nano),), False)
    manager = ManagerSettings(transformations=(rule,))
    for kueue, expected in (
        (KUEUE_LINES["0.15"], before),
        (KUEUE_LINES["0.18"], before),
        (KUEUE_LINES["0.19"], now),
    ):
        found = apply_kueue_resource_transformations(
            {"a": parse_quantity(asked).nano, "b": NANO}, manager, kueue
        )
        assert found == {"a": parse_quantity(asked).nano, "b": NANO, "out": expected * NANO}


def test_outputs_of_several_inputs_add_up() -> None:
    rules = (
        Transformation("a", (("out", 2 * NANO),), True),
        Transformation("b", (("out", 3 * NANO), ("more", NANO)), True),
        Transformation("c", (), True),
    )
    manager = ManagerSettings(transformations=rules, excluded=("x.example.com/",))
    asked = {"a": NANO, "b": 2 * NANO, "c": NANO, "x.example.com/d": NANO}
    assert apply_kueue_resource_transformations(asked, manager, KUEUE_LINES["0.19"]) == {
        "out": 8 * NANO,
        "more": 2 * NANO,
    }


RULES = {
    "a typo": ("excludeResourcePrefixes: [nvidia.org/]", "counting-unused"),
    "what is there": ("excludeResourcePrefixes: [example.com/]", ""),
    "all of a pool": ("excludeResourcePrefixes: [nvidia.com/]", "quota-not-counted"),
    "a transformation of nothing": (
        "transformations: {nvidia.com/gpus: {outputs: {example.com/credits: 1}}}",
        "counting-unused",
    ),
    "an output that nodes have": (
        "transformations: {nvidia.com/gpu: {outputs: {example.com/fpga: 1}}}",
        "output-not-its-own",
    ),
    "an output that only looks alike": (
        "transformations: {nvidia.com/gpu: {outputs: {example.com/fpgas: 1}}}",
        "",
    ),
    "nothing in place of GPUs": (
        "transformations: {nvidia.com/gpu: {strategy: Replace}}",
        "quota-not-counted",
    ),
    "nothing in place of FPGAs": ("transformations: {example.com/fpga: {strategy: Replace}}", ""),
}


@pytest.mark.parametrize("name", RULES)
def test_each_wrong_setting_breaks_one_rule(name: str, root: Path) -> None:
    lines, rule = RULES[name]
    change(root, f"kueue: {{resources: {{{lines}}}}}\n", FPGA, WITH_FPGA)
    found = [one for one in gangplan("validate", "-C", root).findings if one.place.startswith(CLUSTER)]
    assert {one.rule for one in found} == ({rule} if rule else set())
    assert all(one.help for one in found)


# What has a weight, the rest of the manager's configuration, and whether quota counts it.
WEIGHTS = {
    "a core": ("cpu: 2", "", True),
    "a device": ("nvidia.com/gpu: 10", "", True),
    "a typo": ("nvidia.com/gpus: 10", "", False),
    "an output": ("example.com/credits: 10", f"transformations: {{{CREDITS}}}", True),
    "what an output replaces": ("nvidia.com/gpu: 10", f"transformations: {{{CREDITS}}}", False),
    "what is excluded": ("example.com/fpga: 10", "excludeResourcePrefixes: [example.com/]", False),
    "pods, which sweeps count": ("pods: 1", "", True),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_weight_of_what_quota_does_not_count_is_reported(name: str, root: Path) -> None:
    weight, resources, counts = WEIGHTS[name]
    sharing = f"admissionFairSharing: {{usageHalfLifeTime: 1h, resourceWeights: {{{weight}}}}}"
    change(root, f"kueue: {{{sharing}, resources: {{{resources}}}}}\n", FPGA, WITH_FPGA)
    found = gangplan("validate", "-C", root).findings
    assert [one.rule for one in found] == ([] if counts else ["counting-unused"])
    assert all(one.place.startswith(CLUSTER) and one.help for one in found)


def test_the_configuration_of_kueue_has_the_resources(root: Path) -> None:
    lines = f"excludeResourcePrefixes: [example.com/], transformations: {{{CREDITS}}}"
    change(root, f"kueue: {{resources: {{{lines}}}}}\n", FPGA, WITH_FPGA)
    told = plain.load(gangplan("cluster", "kueue-config", "-C", root).out)
    assert told["resources"] == {
        "excludeResourcePrefixes": ["example.com/"],
        "transformations": [
            {"input": "nvidia.com/gpu", "strategy": "Replace", "outputs": {"example.com/credits": "10"}}
        ],
    }


def test_the_quota_command_counts_as_kueue_does(root: Path) -> None:
    change(root, f"kueue: {{resources: {{transformations: {{{CREDITS}}}}}}}\n")
    outcome = gangplan("cluster", "quota", "-C", root)
    assert outcome.code == 0
    assert "320" in outcome.out


# --- shares of disk and devices -------------------------------------------------------------------------

QUOTA = "nlp: {queue: training, quota: {cpu: {cpu: 60}, a100: {gpus: 16"


def share(root: Path, more: str) -> None:
    text = workspaces.CLUSTER.replace(FPGA, WITH_FPGA, 1).replace(
        "nlp: {queue: training", f"{QUOTA}{more}}}}}"
    )
    workspaces.write(root, {CLUSTER: text})


def test_shares_of_disk_and_devices_are_in_proportion_unless_stated(root: Path) -> None:
    share(root, "")
    a100 = quotas(root)["a100"]
    assert (a100["example.com/fpga"], a100["ephemeral-storage"]) == ("4", "4Ti")
    share(root, ", disk: 1Ti, devices: {example.com/fpga: 8}")
    a100 = quotas(root)["a100"]
    assert (a100["example.com/fpga"], a100["ephemeral-storage"]) == ("8", "1Ti")


SHARES = {
    "more than the pool has": (", devices: {example.com/fpga: 9}", "quota-over-pool"),
    "all that the pool has": (", devices: {example.com/fpga: 8}", ""),
    "more disk": (", disk: 9Ti", "quota-over-pool"),
    "a device that it does not have": (", devices: {example.com/fpgas: 1}", "quota-measure"),
    "the GPUs a second time": (", devices: {nvidia.com/gpu: 4}", "quota-measure"),
}


@pytest.mark.parametrize("name", SHARES)
def test_shares_larger_than_the_pool_are_refused(name: str, root: Path) -> None:
    more, rule = SHARES[name]
    share(root, more)
    found = [one for one in gangplan("validate", "-C", root).findings if one.severity != "note"]
    assert [one.rule for one in found] == ([rule] if rule else [])
    assert all(one.place.startswith(CLUSTER) and one.help for one in found)


@pytest.mark.parametrize("field", ["resourceClaims: [{name: gpu}]", "deviceClass: gpu.nvidia.com"])
def test_claims_of_devices_are_refused_with_a_help(field: str, root: Path) -> None:
    put(root, f"{field}\n")
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2
    (found,) = outcome.findings
    assert "dynamic resource allocation" in found.help
