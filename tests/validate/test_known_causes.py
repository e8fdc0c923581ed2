"""Known causes of disagreements with the control plane, found by a campaign: each covers only its case."""

from __future__ import annotations

import pytest

from tests.e2e.fidelity.known import GANGPLAN, SERVER, known

QUOTA = "spec.resourceGroups[0].flavors[1].resources[0].nominalQuota"
FORGOTTEN = f"{QUOTA}: required field 'nominalQuota' is missing in spec.resourceGroups[0]"
TOO_MUCH = "value: value is 2147483648; the most is 1000000000 [schema]"


@pytest.mark.parametrize(
    ("kind", "place", "message", "name"),
    [
        ("ClusterQueue", QUOTA, FORGOTTEN, "quota-that-was-forgotten"),
        ("PriorityClass", "value", TOO_MUCH, "priority-cut-to-32-bits"),
    ],
)
def test_causes_of_seed_721_cover_only_their_case(kind: str, place: str, message: str, name: str) -> None:
    found = known(kind, [place], GANGPLAN, message)
    assert found is not None
    assert found.name == name
    other = known("Namespace", [place], GANGPLAN, message)
    assert other is None or other.name != name
    assert known(kind, [place], SERVER, message) is None


def test_a_priority_that_fits_32_bits_is_not_excused() -> None:
    said = "value: value is 1000000001; the most is 1000000000 [schema]"
    assert known("PriorityClass", ["value"], GANGPLAN, said) is None


@pytest.mark.parametrize(
    ("kind", "place", "message", "name"),
    [
        (
            "ResourceQuota",
            "spec.hard['count/x']",
            "x is the text ' 500'; expected: a quantity",
            "quota-with-spaces",
        ),
        (
            "PrometheusRule",
            "spec.groups[4].rules[3].record",
            r"spec.groups[4].rules[3].record is the text 'a_ratio\n'; expected: letters",
            "record-of-other-letters",
        ),
        (
            "PrometheusRule",
            "spec.groups[1].rules[11].record",
            "spec.groups[1].rules[11].record is the text 'übrig'; expected: letters, digits, '_' and ':'",
            "record-of-other-letters",
        ),
        (
            "PrometheusRule",
            "spec.groups[1].rules[4].expr",
            "spec.groups[1].rules[4].expr is empty",
            "expression-of-nothing",
        ),
        ("PriorityClass", "value", "value: required field 'value' is missing", "priority-that-was-forgotten"),
        ("LimitRange", "spec", "spec: required field 'spec' is missing", "range-of-nothing"),
        ("ResourceFlavor", "spec", "spec: required field 'spec' is missing", "flavor-without-a-spec"),
        (
            "ResourceQuota",
            "spec.hard['requests.memory']",
            "is the number 1.5; a quantity that",
            "fraction-as-a-number",
        ),
        ("LimitRange", "metadata", "metadata: required field 'metadata' is missing", "name-from-the-address"),
        (
            "TrainingRuntime",
            "spec.mlPolicy.torch.Name",
            "unknown field 'Name' in spec.mlPolicy.torch",
            "torch-without-fields",
        ),
    ],
)
def test_causes_of_seed_20261122_cover_only_their_case(
    kind: str, place: str, message: str, name: str
) -> None:
    found = known(kind, [place], GANGPLAN, message)
    assert found is not None
    assert found.name == name
    assert known(kind, [place], SERVER, message) is None
