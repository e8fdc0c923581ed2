"""The user stories with a schedule: weekly and nightly training, with their numbers and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.schedules import worlds
from tests.workspaces import gangplan, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: openmpi\ncommand: [python, train.py]\n"
GPU = "gpu: {model: a100-80gb, count: 8}"
PRICED = worlds.CLUSTER.replace(GPU, f"{GPU}, price: {{perGpuHour: 1.5625}}")
WEEKLY = (
    HEAD
    + "workers: 4\ngpus: 8\ncpu: 8\nmemory: 32Gi\ntimeout: 24h\nplacement: {nodePool: a100}\n"
    + 'schedule: {cron: "0 22 * * SUN", timeZone: Europe/Berlin, concurrency: forbid}\n'
)
NIGHTLY = HEAD + 'workers: 8\ncpu: 8\nmemory: 32Gi\ntimeout: 6h\nschedule: {cron: "@daily"}\n'


def plan(root: Path, day: str) -> list[str]:
    outcome = gangplan("plan", "-C", root, "--today", day)
    assert outcome.code == 0, outcome.err
    return [line.strip() for line in outcome.out.splitlines()]


def test_weekly_training_with_its_hours_and_cost(root: Path) -> None:
    """US-05: 32 GPUs for a day each week, 768 GPU-hours, at most $1,200; dated names, never two at a time."""
    worlds.stock(root, WEEKLY)
    write(root, {"overlays/lab/cluster.yaml": PRICED})
    lines = plan(root, "2026-01-12")
    assert any(
        "new schedule; each start is a run, at most 768 GPU-hours (1200.00 USD)" in one for one in lines
    )
    assert any("by a CronJob, never two at a time" in one for one in lines)
    assert "Sun 2026-01-18 22:00 +0100  filings-20260118-2100" in lines
    assert "Sun 2026-03-29 22:00 +0200  filings-20260329-2000" not in lines  # the eleventh
    assert sum("filings-2026" in one for one in lines) == 10


def test_nightly_training_has_a_dated_run_each_night(root: Path) -> None:
    """US-06 and US-12: a run each night, named after its day."""
    worlds.stock(root, NIGHTLY)
    lines = plan(root, "2026-12-31")
    assert "Thu 2026-12-31 00:00 +0000  filings-20261231-0000" in lines
    assert "Fri 2027-01-01 00:00 +0000  filings-20270101-0000" in lines
    assert gangplan("validate", "-C", root).findings == []


def test_nightly_training_at_two_never_overlaps(root: Path) -> None:
    """US-11: forbid, by the CronJob and across runs; a skipped start is not made up for."""
    schedule = 'schedule: {cron: "0 2 * * *", timeZone: Europe/Berlin, concurrency: forbid, keep: 7}\n'
    worlds.stock(root, HEAD + "workers: 4\ncpu: 8\nmemory: 32Gi\ntimeout: 8h\n" + schedule)
    bodies = worlds.rendered(root)
    cron = worlds.one(bodies, "CronJob")["spec"]
    assert (cron["schedule"], cron["timeZone"], cron["concurrencyPolicy"]) == (
        "0 2 * * *",
        "Europe/Berlin",
        "Forbid",
    )
    (skipped, *_) = cron["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert (skipped["action"], skipped["onExitCodes"]["values"]) == ("FailJob", [75])
    assert worlds.template(bodies)["metadata"]["labels"]["gangplan.dev/schedule"] == "filings"
    lines = plan(root, "2026-11-23")
    assert "Tue 2026-11-24 02:00 +0100  filings-20261124-0100" in lines


def test_a_week_of_64_gpus_never_fits_a_quota_of_32(root: Path) -> None:
    worlds.stock(root, WEEKLY.replace("workers: 4", "workers: 8"))
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2 or any(one.severity == "error" for one in outcome.findings)


def test_the_pod_that_creates_runs_is_checked_and_has_quota(root: Path) -> None:
    """The CronJob's pod under the packs of a production cluster, with a team quota that includes its CPU."""
    worlds.stock(root, NIGHTLY)
    packs = "policies: {packs: [baseline, restricted, images, labels, lifecycle, priorities]}\n"
    write(root, {"overlays/lab/cluster.yaml": worlds.CLUSTER + packs})
    team = workspaces.TEAM + 'costCentre: "4711"\ncontact: nlp@example.com\n'
    write(root, {"specs/nlp/team.yaml": team})
    assert gangplan("validate", "-C", root).findings == []
    standing = worlds.rendered(root, "tenants")
    quota = worlds.one(standing, "ResourceQuota", "training")["spec"]["hard"]
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER, "specs/nlp/filings.yaml": workspaces.SPEC})
    plain = worlds.one(worlds.rendered(root, "tenants"), "ResourceQuota", "training")["spec"]["hard"]
    assert int(quota["requests.cpu"]) == int(plain["requests.cpu"]) + 1
    # A patch that breaks it is reported at the patch.
    worlds.stock(root, NIGHTLY)
    write(root, {"overlays/lab/cluster.yaml": worlds.CLUSTER + packs, "specs/nlp/team.yaml": team})
    path = "/spec/jobTemplate/spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation"
    patch = f"- target: {{kind: CronJob}}\n  patch: |-\n    - {{op: replace, path: {path}, value: true}}\n"
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n" + patch
    write(root, {"overlays/lab/kustomization.yaml": component})
    found = gangplan("validate", "-C", root).findings
    assert [(one.place.split(":")[0], one.rule) for one in found] == [
        ("overlays/lab/kustomization.yaml", "privilege-escalation")
    ]


# What people write first, and the help that leads on.
FIRST_TRIES = {
    "a schedule as a text": (
        HEAD + 'workers: 2\nschedule: "0 2 * * *"\n',
        "Write schedule: {cron: '0 2 * * *'}.",
    ),
    "a claim of a team that has none": (
        HEAD + "workers: 2\ndata: {lidar: /data}\n",
        "Add lidar: {accessModes: [ReadWriteMany]} under claims: in specs/nlp/team.yaml.",
    ),
    "a secret of a team that has none": (
        HEAD + "workers: 2\nsecrets: {env: {TOKEN: huggingface/token}}\n",
        "Add huggingface to secrets: in specs/nlp/team.yaml.",
    ),
}


@pytest.mark.parametrize("name", FIRST_TRIES)
def test_the_help_for_a_common_first_mistake_can_be_pasted(name: str, root: Path) -> None:
    spec, help = FIRST_TRIES[name]
    team = "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"
    worlds.stock(root, spec, **{"specs/nlp/team.yaml": team})
    (found,) = (one for one in gangplan("validate", "-C", root).findings if one.severity == "error")
    assert found.help == help


def test_a_job_after_a_scheduled_job_gets_the_same_starts(root: Path) -> None:
    """US-11: the model of each night is registered once that night's run is complete."""
    after = HEAD + 'workers: 1\ntimeout: 10m\nafter: [filings]\nmodel: {name: perception, version: "1"}\n'
    worlds.stock(root, NIGHTLY, **{"specs/nlp/register.yaml": after})
    assert [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"] == []
    lines = plan(root, "2026-12-31")
    for job in ("filings", "register"):
        assert f"Thu 2026-12-31 00:00 +0000  {job}-20261231-0000" in lines
