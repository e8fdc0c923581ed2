"""Alerts about starts of schedules, evaluated by the real promtool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.generators.alerts import generate_prometheus_rules
from tests.observability.promtool import check, promtool, tell
from tests.observability.sites import NEW
from tests.observability.stories import NS, Series, series, story

WITH = replace(NEW, has_cronjobs=True)
NAMED = f'namespace="{NS}",cronjob="weekly"'
FIRING = 'ALERTS{alertname="%s",alertstate="firing"}'
FAILED, MISSED = FIRING % "GangplanScheduleStartFailed", FIRING % "GangplanScheduleStartMissed"
SHOWN = f'cronjob="weekly",namespace="{NS}",severity="warning",team="team-cv"'
IS_FAILED, IS_MISSED = (one.replace("}", f",{SHOWN}}}") for one in (FAILED, MISSED))


def job(at: int, failed: bool, owner: str = "CronJob") -> Series:
    """Return a Job of the schedule, created at this second, as kube-state-metrics reports it."""
    name = f'namespace="{NS}",job_name="weekly-{at}"'
    found = series("kube_job_owner", f'{name},owner_kind="{owner}",owner_name="weekly"', "1x60")
    found |= series("kube_job_created", name, f"{at}x60")
    return found | series("kube_job_failed", f'{name},condition="true"', f"{int(failed)}x60")


def succeeded(at: int) -> Series:
    return series("kube_cronjob_status_last_successful_time", NAMED, f"{at}x60")


STORIES = {
    "the last start failed": story("failed", job(60, True) | succeeded(10), (5, FAILED, {IS_FAILED: 1})),
    "the first start failed": story("first", job(60, True), (5, FAILED, {IS_FAILED: 1})),
    "a later one succeeded": story("later", job(60, True) | succeeded(120), (5, FAILED, {})),
    "it succeeded": story("good", job(60, False) | succeeded(60), (5, FAILED, {})),
    "a Job of a run failed": story("run", job(60, True, "JobSet"), (5, FAILED, {})),
    "on time": story("time", series("kube_cronjob_next_schedule_time", NAMED, "600x60"), (24, MISSED, {})),
    "overdue": story(
        "late", series("kube_cronjob_next_schedule_time", NAMED, "600x60"), (28, MISSED, {IS_MISSED: 1})
    ),
}


@pytest.mark.e2e
@pytest.mark.real_tool("promtool")
def test_alert_rules_parse_and_lint(tmp_path: Path) -> None:
    promtool()
    check(WITH, tmp_path)


@pytest.mark.e2e
@pytest.mark.real_tool("promtool")
@pytest.mark.parametrize("name", STORIES)
def test_each_story_fires_the_expected_alerts(name: str, tmp_path: Path) -> None:
    promtool()
    tell(WITH, [STORIES[name]], tmp_path)


def test_clusters_without_cronjobs_have_no_schedule_alerts() -> None:
    names = [group["name"] for body in generate_prometheus_rules(NEW) for group in body["spec"]["groups"]]
    assert "gangplan.schedule-alerts" not in names
