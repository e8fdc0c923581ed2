"""Alert rules under the Prometheus Operator's definition; tests/observability uses promtool."""

from __future__ import annotations

import json

import pytest

from gangplan.generators.alerts import generate_prometheus_rules
from tests.lab import addons
from tests.observability.sites import SITES
from tests.validate import crd

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("name", SITES)
def test_the_real_definition_accepts_the_rules_and_adds_nothing(name: str) -> None:
    (definition,) = [one for one in addons.definitions() if one["spec"]["names"]["kind"] == "PrometheusRule"]
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert '"default"' not in json.dumps(schema)
    for body in generate_prometheus_rules(SITES[name]):
        assert crd.violations(body, schema) == []
