"""Alert rules without Prometheus: their shape, their order, and that every series they read exists."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from gangplan.generators import PLATFORM_GENERATORS, generate_platform_objects
from gangplan.generators.alerts import generate_prometheus_rules
from gangplan.generators.dashboards import generate_dashboards
from gangplan.model.site import Monitor, Site
from gangplan.objects import dump_all
from gangplan.source import load_objects
from gangplan.validate.apiserver.schema import SchemaVersions, check_object_against_api_schema
from tests.observability.known import known, names_in
from tests.observability.promtool import groups_of
from tests.observability.sites import NEW, SITES
from tests.workspaces import REPOSITORY

WANTED = {"mpijob_count", "mpijob_duration_seconds", "mpijob_worker_restarts", "mpijob_gpu_utilization"}
each_site = pytest.mark.parametrize("site", SITES.values(), ids=SITES)


def rules_of(site: Site) -> list[dict[str, Any]]:
    """Return every rule, in order."""
    return [rule for group in groups_of(site) for rule in group["rules"]]


def recorded(site: Site) -> set[str]:
    """Return the names that rules record."""
    return {rule["record"] for rule in rules_of(site) if "record" in rule}


def kueue_of(site: Site) -> tuple[int, int] | None:
    """Return the minor version of a site's Kueue."""
    kueue = site.platform.kueue
    return (kueue.major, kueue.minor) if kueue else None


@each_site
def test_the_gate_accepts_every_object(site: Site) -> None:
    versions = SchemaVersions("1.34", kueue=site.platform.kueue.line if site.platform.kueue else None)
    bodies = [*generate_prometheus_rules(site), *generate_dashboards(site)]
    assert [body["kind"] for body in bodies] == ["PrometheusRule"] * 2 + ["ConfigMap"] * 3
    for body in bodies:
        assert check_object_against_api_schema(body, versions) == []
        assert body["metadata"]["namespace"] == "monitoring"
        assert body["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "-10"
        assert body["metadata"]["annotations"]["gangplan.dev/source"] == site.source
    assert load_objects(dump_all(bodies)) == bodies


def test_labels_are_those_that_prometheus_and_grafana_select() -> None:
    for body in generate_prometheus_rules(NEW):
        assert body["metadata"]["labels"]["release"] == "prometheus"
    for body in generate_dashboards(NEW):
        assert body["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_nothing_is_generated_without_monitoring() -> None:
    site = replace(NEW, monitor=None)
    assert generate_prometheus_rules(site) == generate_dashboards(site) == []
    kinds = {body["kind"] for file in PLATFORM_GENERATORS for body in generate_platform_objects(site, file)}
    assert not kinds & {"PrometheusRule", "ConfigMap"}


@each_site
def test_every_series_that_is_read_exists(site: Site) -> None:
    there = known(kueue_of(site)) | recorded(site)
    for rule in rules_of(site):
        assert names_in(rule["expr"]) <= there, rule


@each_site
def test_the_promised_series_are_recorded(site: Site) -> None:
    assert recorded(site) >= WANTED
    assert ("gangplan_team_quota_ratio" in recorded(site)) == bool(site.queues)
    states = {rule["labels"]["state"] for rule in rules_of(site) if rule.get("record") == "mpijob_count"}
    assert states == {"pending", "starting", "running", "succeeded", "failed"}


@each_site
def test_every_alert_says_what_to_do(site: Site) -> None:
    found = [rule for rule in rules_of(site) if "alert" in rule]
    assert len(found) >= 8
    for rule in found:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}
        assert rule["alert"].startswith("Gangplan")
        names = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        gpu = {"worker_id", "gpu", "UUID", "Hostname"} if "Gpu" in rule["alert"] else set()
        assert names <= {"namespace", "team", "run", "pod", "cluster_queue", "flavor", "resource"} | gpu


def test_a_failure_alerts_within_five_minutes() -> None:
    (rule,) = [rule for rule in rules_of(NEW) if rule.get("alert") == "GangplanRunFailed"]
    assert rule["for"] == "1m"


def test_waits_come_from_the_cluster_file() -> None:
    monitor = Monitor("monitoring", (), (), 5400)
    site = replace(NEW, monitor=monitor, platform=replace(NEW.platform, start_wait_s=600))
    by_name = {rule["alert"]: rule.get("for") for rule in rules_of(site) if "alert" in rule}
    assert by_name["GangplanRunPendingTooLong"] == by_name["GangplanQueueStuck"] == "1h30m"
    assert by_name["GangplanRunNotReady"] == "5m"


def test_alerts_about_gpus_exist_only_where_dcgm_is_expected() -> None:
    alert = {name: {rule.get("alert") for rule in rules_of(site)} for name, site in SITES.items()}
    own = {"GangplanGpusIdle", "GangplanCollectiveStuck", "GangplanGpuFault", "GangplanGpuProgramError"}
    assert all(own <= alert[name] for name in ("new", "old", "bare"))
    assert not own & alert["cpu"]
    assert "gangplan_run_gpu_xid" not in recorded(SITES["cpu"])


def test_only_teams_of_the_cluster_are_recorded() -> None:
    teams = [rule for rule in rules_of(NEW) if rule.get("record") == "gangplan_team_info"]
    assert [rule["labels"]["team"] for rule in teams] == ["team-cv", "team-nlp"]
    assert teams[0]["labels"] == {
        "team": "team-cv",
        "namespace": "ns-team-cv",
        "cluster_queue": "team-cv-queue",
    }
    (rule,) = [rule for rule in rules_of(SITES["bare"]) if rule.get("record") == "gangplan_team_info"]
    assert "kube_namespace_labels" in rule["expr"]


def test_an_older_trainer_has_no_second_deadline() -> None:
    texts = {
        name: next(r for r in rules_of(SITES[name]) if r.get("record") == "gangplan_run_deadline_seconds")
        for name in ("new", "old")
    }
    assert texts["new"]["expr"].endswith("- 60")
    assert not texts["old"]["expr"].endswith("- 60")


def test_groups_have_stable_names_and_order() -> None:
    assert [group["name"] for group in groups_of(NEW)] == [
        "gangplan.teams",
        "gangplan.runs",
        "gangplan.mpijob",
        "gangplan.restarts",
        "gangplan.quota",
        "gangplan.run-alerts",
        "gangplan.gpu-alerts",
        "gangplan.queue-alerts",
        "gangplan.input-alerts",
    ]
    assert dump_all(generate_prometheus_rules(NEW)) == dump_all(generate_prometheus_rules(NEW))


@each_site
def test_every_record_and_alert_is_on_the_page(site: Site) -> None:
    page = (REPOSITORY / "docs/observability.md").read_text(encoding="utf-8")
    inputs = {name for rule in rules_of(site) for name in names_in(rule["expr"])}
    for name in recorded(site) | {rule["alert"] for rule in rules_of(site) if "alert" in rule} | inputs:
        assert f"`{name}" in page, f"docs/observability.md does not name {name}"


def test_names_are_found_in_expressions() -> None:
    text = (
        'sum by (a, b) (rate(x_total{c="d(e"}[5m])) / on (f) group_left (g) (h_1 == bool 1) unless time() - k'
    )
    assert names_in(text) == {"x_total", "h_1", "k"}
