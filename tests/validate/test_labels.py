"""Label requirements: all implementations give the same answer."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.validate.apiserver.labels import matches_any_node_selector_term, matches_labels
from gangplan.validate.apiserver.policy.selectors import matches_admission_policy_selector as policy_selects
from gangplan.validate.kueue.matching import fits_resource_flavor_labels, matches_pod_selector
from gangplan.validate.scheduler.match import matches_node_selector_and_affinity, matches_pods


def one(operator: str, *values: str, key: str = "k") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": list(expressions)}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("value", "is_more"),
    [
        ("6", True),
        ("5", False),
        ("+6", True),
        ("-6", False),
        ("006", True),
        ("0" * 5000 + "6", True),
        ("9223372036854775807", True),
        ("9223372036854775808", False),
        ("-9223372036854775809", False),
        ("9" * 5000, False),
        ("1_0", False),
        (" 10 ", False),
        ("٣٣", False),
        ("", False),
        ("+", False),
        ("6Gi", False),
    ],
)
def test_whole_numbers_are_read_as_in_go(value: str, is_more: bool) -> None:
    asked, labels = one("Gt", "5"), {"k": value}
    assert matches_node_selector_and_affinity(affinity(asked), labels) is is_more
    assert fits_resource_flavor_labels(affinity(asked), labels, {"k"}) is is_more


@pytest.mark.parametrize(
    ("asked", "is_taken"),
    [
        (one("In", "1", "2"), True),
        (one("In", "2"), False),
        (one("In", "1", key="absent"), False),
        (one("NotIn", "1"), False),
        (one("NotIn", "1", key="absent"), True),
        (one("Exists"), True),
        (one("Exists", key="absent"), False),
        (one("DoesNotExist"), False),
        (one("DoesNotExist", key="absent"), True),
        (one("Gt", "0"), True),
        (one("Gt", "0", "0"), False),
        (one("Lt", "2"), True),
        (one("Lt", "1"), False),
        (one("Lt", "2", key="absent"), False),
    ],
)
def test_each_requirement_has_the_same_answer_everywhere(asked: dict[str, Any], is_taken: bool) -> None:
    selector, labels = {"matchExpressions": [asked]}, {"k": "1"}
    answers = [
        judge(selector, labels)
        for judge in (matches_labels, matches_pod_selector, matches_pods, policy_selects)
    ]
    answers += [
        matches_node_selector_and_affinity(affinity(asked), labels),
        fits_resource_flavor_labels(affinity(asked), labels, {"k", "absent"}),
    ]
    assert set(answers) == {is_taken}
    assert not matches_labels({**selector, "matchLabels": {"k": "2"}}, labels)


def test_no_selector_differs_from_an_empty_one() -> None:
    assert (matches_pod_selector(None, {}), matches_pods(None, {}), policy_selects(None, None)) == (
        False,
        False,
        True,
    )
    assert matches_pod_selector({}, {})
    assert matches_pods({}, {})


@pytest.mark.parametrize(
    ("term", "named", "unnamed", "aside"),
    [
        ({}, False, False, False),
        ({"matchFields": [one("In", "n1", key="metadata.name")]}, True, False, True),
        ({"matchFields": [one("NotIn", "n1", key="metadata.name")]}, False, True, True),
        (
            {"matchFields": [one("In", "n1", key="metadata.name")], "matchExpressions": [one("Exists")]},
            *[False] * 3,
        ),
    ],
)
def test_node_selector_terms_match_fields(
    term: dict[str, Any], named: bool, unnamed: bool, aside: bool
) -> None:
    """The node has the name, or has no name yet, or `matchFields` is ignored."""
    assert [matches_any_node_selector_term([term], {}, name) for name in ("n1", None, "")] == [
        named,
        unnamed,
        aside,
    ]
