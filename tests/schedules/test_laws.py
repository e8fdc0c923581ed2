"""Laws of schedules: no overlap is missed, and every reported gap exists."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gangplan.model.cron import HOUR, MINUTE, iterate_cron_starts, parse_cron
from gangplan.model.starts import find_clock_changes, find_shortest_cron_start_gap, find_time_zone
from tests.schedules import worlds
from tests.workspaces import gangplan, write

ZONES = ("Etc/UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
EXPRESSIONS = st.tuples(
    st.sampled_from(["0", "30", "*/15", "0,45", "59"]),
    st.sampled_from(["*", "2", "0,12", "*/6", "1-3", "22", "*/5"]),
    st.sampled_from(["*", "1", "*/2", "1,15", "31"]),
    st.sampled_from(["*", "1-6", "3,10", "2"]),
    st.sampled_from(["*", "sun", "1-5", "0,3"]),
).map(" ".join)


@settings(max_examples=120, deadline=None)
@given(EXPRESSIONS, st.sampled_from(ZONES), st.integers(0, 5 * 366))
def test_no_two_starts_are_nearer_than_the_shortest_gap(expression: str, zone: str, day: int) -> None:
    begin = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) + day * 24 * HOUR
    found = list(islice(iterate_cron_starts(parse_cron(expression), begin, find_time_zone(zone)), 40))
    assume(len(found) > 1)
    gap = find_shortest_cron_start_gap(expression, zone)
    assert gap is not None
    # Only a clock that is set back brings a start sooner, and that has a finding of its own.
    is_told = any(one.is_twice for one in find_clock_changes(expression, zone))
    near = [pair for pair in pairwise(found) if pair[1] - pair[0] < gap[0]]
    assert is_told or not near


@settings(max_examples=80, deadline=None)
@given(EXPRESSIONS, st.sampled_from(ZONES))
def test_the_shortest_gap_exists(expression: str, zone: str) -> None:
    gap = find_shortest_cron_start_gap(expression, zone)
    assume(gap is not None)
    assert gap is not None
    seconds, first = gap
    found = list(
        islice(iterate_cron_starts(parse_cron(expression), first - MINUTE, find_time_zone("Etc/UTC")), 2)
    )
    plain = [later - sooner for sooner, later in pairwise(found)]
    near = list(islice(iterate_cron_starts(parse_cron(expression), first - MINUTE, find_time_zone(zone)), 3))
    assert seconds in [*plain, *(later - sooner for sooner, later in pairwise(near))]


# Cron, zone, timeout, whether it overlaps.
OVERLAPS = {
    "a night of 24 hours": ("0 4 * * *", "Etc/UTC", "24h", False),
    "a night of 23 hours": ("0 4 * * *", "Europe/Berlin", "24h", True),
    "as long as the shortest night": ("0 4 * * *", "Europe/Berlin", "23h", False),
    "longer than an hour": ("@hourly", "Etc/UTC", "61m", True),
    "an hour": ("@hourly", "Etc/UTC", "1h", False),
    "uneven hours": ("0 8,20 * * *", "Etc/UTC", "12h", False),
    "more uneven hours": ("0 8,18 * * *", "Etc/UTC", "11h", True),
    "from Friday to Monday": ("0 6 * * 1-5", "Etc/UTC", "24h", False),
    "the end of a month": ("0 0 31,1 * *", "Etc/UTC", "23h", False),
    "the last and the first day": ("0 22 31 * *", "Etc/UTC", "24h", False),
    "months that meet": ("0 0 1 * *", "Etc/UTC", "24h", False),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_an_overlap_with_the_timeout_is_reported(name: str, root: Path) -> None:
    cron, zone, timeout, overlaps = OVERLAPS[name]
    lines = f'schedule: {{cron: "{cron}", timeZone: {zone}}}\ntimeout: {timeout}\n'
    worlds.stock(root, worlds.workspaces.SPEC + lines)
    rules = [one.rule for one in gangplan("validate", "-C", root).findings]
    assert ("schedule-overlap" in rules) == overlaps


@settings(max_examples=20, deadline=None)
@given(EXPRESSIONS, st.sampled_from(ZONES), st.sampled_from([10, 30, 59, 60, 90, 360, 721, 1380, 1440]))
def test_no_schedule_overlaps_its_timeout_unseen(expression: str, zone: str, minutes: int) -> None:
    """The starts of years, counted one by one, say what `validate` must."""
    begin = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    found = list(islice(iterate_cron_starts(parse_cron(expression), begin, find_time_zone(zone)), 1500))
    assume(len(found) > 1)
    shortest = min(later - sooner for sooner, later in pairwise(found))
    lines = f'schedule: {{cron: "{expression}", timeZone: {zone}}}\ntimeout: {minutes}m\n'
    with TemporaryDirectory() as name:
        root = Path(name) / "workspace"
        worlds.stock(root, worlds.workspaces.SPEC + lines)
        rules = {one.rule for one in gangplan("validate", "-C", root).findings}
    if shortest < minutes * MINUTE:
        assert rules & {"schedule-overlap", "schedule-clock"}, (shortest, rules)
    if "schedule-overlap" in rules:
        gap = find_shortest_cron_start_gap(expression, zone)
        assert gap is not None
        assert gap[0] < minutes * MINUTE


def test_coinciding_schedules_that_exceed_the_queue_are_reported(root: Path) -> None:
    """Each requests 32 GPUs, which is all that the queue gets in the pool."""
    lines = 'placement: {nodePool: a100}\nschedule: {cron: "%s"}\ntimeout: %s\n'
    big = worlds.workspaces.SPEC.replace("gpus: 2", "gpus: 8")
    worlds.stock(root, big + lines % ("0 22 * * *", "4h"))
    write(root, {"specs/nlp/other.yaml": big + lines % ("0 1 * * SUN", "4h")})
    (found,) = gangplan("validate", "-C", root).findings
    assert found.rule == "schedule-crowded"
    assert found.message.startswith("at Sun 01:00 UTC (first on 2026-01-04) runs of nlp/filings")
    assert "64 GPUs of flavor a100, and the queue gets 32 at most" in found.message
    write(root, {"specs/nlp/other.yaml": big + lines % ("0 2 * * SUN", "4h")})
    assert gangplan("validate", "-C", root).findings == []


def test_kept_runs_count_against_the_quota(root: Path) -> None:
    worlds.stock(root, worlds.SPEC.replace("Europe/Berlin}", "Europe/Berlin, keep: 9}"))
    limited = worlds.CLUSTER + "limits: {objects: {runs: 9}}\n"
    write(root, {"overlays/lab/cluster.yaml": limited})
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.severity) == ("run-count", "error")
    assert "Git has 10 runs of nlp" in found.message
    assert "9 that schedules keep" in found.message
    write(root, {"overlays/lab/cluster.yaml": limited.replace("runs: 9", "runs: 20")})
    assert gangplan("validate", "-C", root).findings == []


def test_cached_schedules_give_the_same_findings(root: Path) -> None:
    """From the cache on disk, schedules, their hours and their runs are those of the first command."""
    lines = 'placement: {nodePool: a100}\nschedule: {cron: "%s"}\ntimeout: 4h\nretired: [%s-0a1b2c3d]\n'
    big = worlds.workspaces.SPEC.replace("gpus: 2", "gpus: 8")
    worlds.stock(root, big + lines % ("0 22 * * *", "filings"))
    write(root, {"specs/nlp/other.yaml": big + lines % ("0 23 * * *", "other")})
    first = gangplan("validate", "-C", root, "--no-cache")
    assert "schedule-crowded" in [one.rule for one in first.findings]
    for _ in range(2):
        gangplan("render", "-C", root)
        again = gangplan("validate", "-C", root)
        assert again.findings == first.findings


@pytest.mark.parametrize("others", [0, 1])
def test_kept_runs_count_when_the_team_comes_from_the_cache(others: int, root: Path) -> None:
    """A cached team is read as a whole, and must neither lose its schedules nor count them twice."""
    worlds.stock(root, worlds.SPEC.replace("Europe/Berlin}", "Europe/Berlin, keep: 9}"))
    for number in range(others):
        write(root, {f"specs/nlp/other{number}.yaml": worlds.SPEC.replace("cron: ", "keep: 9, cron: ")})
    limit = 11 + 10 * others
    write(root, {"overlays/lab/cluster.yaml": f"{worlds.CLUSTER}limits: {{objects: {{runs: {limit}}}}}\n"})
    first = gangplan("validate", "-C", root, "--no-cache").findings
    assert "run-count" in [one.rule for one in first]
    for _ in range(3):
        gangplan("render", "-C", root)
        assert gangplan("validate", "-C", root).findings == first


# What the spec says, and what is counted: TrainJobs (quota, plus one per file), and runtimes.
OVER = {
    "active": ("", 10, 1),
    "stopped": ("state: stopped\n", 10, 1),
    "archived: its runs stay": ("state: archived\n", 10, 1),
    "another template, the old one retired": ("run: 2\nretired: [{}]\n", 10, 2),
}


@pytest.mark.parametrize("name", OVER)
def test_runs_of_a_schedule_count_in_every_state(name: str, root: Path) -> None:
    lines, runs, runtimes = OVER[name]
    spec = worlds.SPEC.replace("Europe/Berlin}", "Europe/Berlin, keep: 9}")
    worlds.stock(root, spec)
    worlds.rendered(root)
    (old,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    write(root, {"specs/nlp/filings.yaml": spec + lines.format(old.stem)})
    for key, most in (("trainjobs", runs), ("trainingruntimes", runtimes)):
        path = f"/spec/hard/count~1{key}.trainer.kubeflow.org"
        patch = f'    - {{op: add, path: {path}, value: "{most - 1}"}}\n'
        head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
        head += "- target: {kind: ResourceQuota, name: training}\n  patch: |-\n"
        write(root, {"overlays/lab/kustomization.yaml": head + patch})
        messages = [
            one.message for one in gangplan("validate", "-C", root).findings if one.rule == "run-count"
        ]
        assert [one.partition(" of nlp")[0] for one in messages] == [
            f"namespace nlp may hold {most - 1} {key} on lab, and Git has {most} run{'s' * (most > 1)}"
        ]
