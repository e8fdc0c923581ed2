"""The real promtool on the rules: they parse and lint, and each alert fires when it must but not in near
misses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.generators.alerts import inputs
from tests.observability import gpu_stories, mpijob_stories, stories
from tests.observability.busy import panels
from tests.observability.promtool import check, check_expressions, promtool, tell
from tests.observability.sites import MPIJOBS, NEW, SITES
from tests.observability.test_dashboards import expressions

pytestmark = [pytest.mark.real_tool("promtool"), pytest.mark.e2e]


@pytest.fixture(autouse=True)
def needs_promtool() -> None:
    """Skip every test here, by name, if promtool is missing."""
    promtool()


@pytest.mark.parametrize("name", SITES)
def test_rules_parse_and_lint(name: str, tmp_path: Path) -> None:
    check(SITES[name], tmp_path)


@pytest.mark.parametrize("name", SITES)
def test_expressions_of_dashboards_parse(name: str, tmp_path: Path) -> None:
    check_expressions(expressions(SITES[name]), tmp_path)


STORIES = stories.everything() | gpu_stories.everything()


@pytest.mark.parametrize("name", STORIES)
def test_each_story_ends_as_written(name: str, tmp_path: Path) -> None:
    tell(NEW, STORIES[name], tmp_path)


def test_stories_of_mpijobs_end_as_written(tmp_path: Path) -> None:
    """The stories of TrainJobs run with them, on a cluster with both."""
    tell(MPIJOBS, [*mpijob_stories.everything(), *stories.states()], tmp_path)


def test_deadlines_that_only_the_job_has_end_as_written(tmp_path: Path) -> None:
    """These stories depend on the minute that a Job is given beyond the deadline of its run."""
    names = {"eighty percent of the deadline", "the deadline ends the run"}
    told = [one for one in stories.deadlines(0) if one["name"] in names]
    assert len(told) == len(names)
    tell(SITES["old"], told, tmp_path)


@pytest.mark.parametrize("name", SITES)
def test_missing_exporters_are_alerted(name: str, tmp_path: Path) -> None:
    site = SITES[name]
    tell(site, stories.missing(*((one.exporter, one.series) for one in inputs(site))), tmp_path)


def test_every_panel_shows_something(tmp_path: Path) -> None:
    tell(NEW, [panels(expressions(NEW))], tmp_path)


def test_the_query_of_measured_costs_finds_all_that_it_asks_for(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/cost.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```promql\n(.*?)```", text, re.DOTALL)
    story = panels([])
    story["promql_expr_test"] = [
        {
            "expr": f"count by (measured) ({query})",
            "eval_time": "30m",
            "exp_samples": [
                {"labels": f'{{measured="{name}"}}', "value": 1} for name in ("cpu", "gpu", "hours", "memory")
            ],
        },
        {  # every five minutes, the first and the last one included
            "expr": f'sum(({query}) and on (measured) label_replace(vector(1), "measured", "hours", "", ""))',
            "eval_time": "30m",
            "exp_samples": [{"labels": "{}", "value": 7 / 12}],
        },
    ]
    tell(NEW, [story], tmp_path)


def test_teams_may_come_from_labels_of_namespaces(tmp_path: Path) -> None:
    labelled = {'kube_namespace_labels{namespace="ns-team-cv",label_gangplan_dev_team="team-cv"}': "1x3000"}
    for story in stories.failures():
        wanted = [test for test in story["promql_expr_test"] if "mpijob_count" not in test["expr"]]
        more = [{"series": name, "values": values} for name, values in labelled.items()]
        changed = {**story, "promql_expr_test": wanted, "input_series": story["input_series"] + more}
        tell(SITES["bare"], [changed], tmp_path)


def test_a_story_can_fail(tmp_path: Path) -> None:
    wrong = stories.story("nothing is not something", {"up": "1x60"}, (5, "up", {}))
    with pytest.raises(AssertionError, match="FAILED"):
        tell(NEW, [wrong], tmp_path)
