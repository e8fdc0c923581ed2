"""Alert rules under the real promtool and Kueue's source: after `make lab` both are there."""

from __future__ import annotations

import json

import pytest

from gangplan.generators.alerts import alerts
from tests.lab import addons, build
from tests.lab.programs import PROMTOOL
from tests.observability.sites import SITES
from tests.observability.test_kueue_series import test_every_series_is_in_the_source as test_kueue_series
from tests.observability.test_promtool import (
    needs_promtool,
    test_deadlines_that_only_the_job_has,
    test_every_panel_shows_something,
    test_expressions_of_dashboards_parse,
    test_missing_exporters,
    test_rules_parse_and_lint,
    test_stories,
    test_teams_from_labels_of_namespaces,
)
from tests.validate import crd

__all__ = [
    "needs_promtool",
    "test_deadlines_that_only_the_job_has",
    "test_every_panel_shows_something",
    "test_expressions_of_dashboards_parse",
    "test_kueue_series",
    "test_missing_exporters",
    "test_rules_parse_and_lint",
    "test_stories",
    "test_teams_from_labels_of_namespaces",
]

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True, scope="module")
def built() -> None:
    """Built here when it is missing; without Go the tests are skipped by name."""
    try:
        build.ensure([PROMTOOL])
    except build.GoMissingError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", SITES)
def test_the_real_definition_accepts_the_rules_and_adds_nothing(name: str) -> None:
    (definition,) = [one for one in addons.definitions() if one["spec"]["names"]["kind"] == "PrometheusRule"]
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert '"default"' not in json.dumps(schema)
    for body in alerts(SITES[name]):
        assert crd.violations(body, schema) == []
