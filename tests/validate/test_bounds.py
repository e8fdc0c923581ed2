"""LimitRange and ResourceQuota as the API server checks them: valid, invalid, and near misses."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.validate.apiserver.bounds import check_limit_range, check_resource_quota

GOOD: dict[str, Any] = {
    "type": "Container",
    "max": {"cpu": "8", "memory": "64Gi"},
    "default": {"cpu": "1", "memory": "1Gi"},
    "defaultRequest": {"cpu": "1", "memory": "1Gi"},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"default": {"cpu": "8"}}, ""),
        ({"default": {"cpu": "8001m"}}, "default of cpu is 8001m, above max (8)"),
        ({"defaultRequest": {"memory": "2Gi"}}, "defaultRequest of memory is 2Gi, above default (1Gi)"),
        ({"defaultRequest": {"memory": "1024Mi"}}, ""),
        ({"min": {"cpu": "2"}}, "min of cpu is 2, above defaultRequest (1)"),
        ({"max": {"nvidia.com/gpu": "8"}}, ""),
        ({"max": {"gpu": "8"}}, "'gpu' is not a resource of containers"),
        ({"max": {"hugepages-2Mi": "1Gi"}}, ""),
        ({"max": {"pods": "8"}}, "'pods' is not a resource of containers"),
        (
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}, "default": {}, "defaultRequest": {}},
            "",
        ),
    ],
)
def test_limit_ranges_follow_the_server(change: dict[str, Any], said: str) -> None:
    body = {"spec": {"limits": [{**GOOD, **change}]}}
    messages = [problem.message for problem in check_limit_range(body)]
    assert (said in messages) if said else not messages


def test_a_limit_range_has_one_entry_per_type() -> None:
    assert [problem.path for problem in check_limit_range({"spec": {"limits": [GOOD, GOOD]}})] == [
        ("spec", "limits", 1, "type")
    ]
    assert not list(check_limit_range({"spec": {"limits": [GOOD, {"type": "Pod", "max": {"cpu": "9"}}]}}))


@pytest.mark.parametrize(
    ("resource", "amount", "is_good"),
    [
        ("requests.nvidia.com/gpu", "8", True),
        ("nvidia.com/gpu", "8", True),
        ("requests.cpu", "1500m", True),
        ("requests.gpu", "8", False),
        ("count/trainjobs.trainer.kubeflow.org", "5", True),
        ("count/trainjobs.trainer.kubeflow.org", "500m", False),
        ("pods", "1k", True),
        ("pods", "1500m", False),
        ("podz", "1", False),
        ("services.nodeports", "0", True),
        ("requests.storage", "1Ti", True),
        ("requests.hugepages-1Gi", "4Gi", True),
    ],
)
def test_resource_quotas_follow_the_server(resource: str, amount: str, is_good: bool) -> None:
    assert (not list(check_resource_quota({"spec": {"hard": {resource: amount}}}))) is is_good
