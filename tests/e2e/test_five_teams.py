"""Five teams share 128 GPUs on a real Kueue: admitted as planned, borrowed, reclaimed, preempted (US-01)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
EXAMPLE = story.ROOT / "tests/examples/five-teams"
# The example's clusters by the line of Trainer.
CLUSTERS = {"2.1": "gpu-21", "2.2": "gpu-22", "2.3": "gpu-23"}
GPU = "nvidia.com/gpu"
FIRST = (
    *("detect-large", "detect-small", "pretrain", "finetune", "demand-large", "demand-small"),
    *("rank-large", "rank-small", "ablation-large", "ablation-small"),
)


@dataclass(slots=True)
class Company:
    """The five teams on a lab."""

    lab: Lab
    cluster: str
    standing: list[Object]
    files: dict[str, Path]

    def start(self, job: str) -> None:
        """Apply the file of a job's run, as a sync does."""
        for body in load_objects(self.files[job].read_text()):
            self.lab.client.apply_patiently(body)

    def workload(self, job: str) -> Object | None:
        """Return the Workload of a job's run."""
        name = f"trainjob-{self.files[job].stem}-"
        found = [one for one in self.lab.client.list("Workload") if one["metadata"]["name"].startswith(name)]
        return found[0] if found else None

    def is_admitted(self, job: str) -> bool:
        """Return whether Kueue admitted the run."""
        found = self.workload(job)
        return found is not None and condition(found, "Admitted") == "True"

    def until(self, job: str, admitted: bool = True) -> None:
        """Wait until a run is admitted, or no longer is."""
        poll(
            lambda: self.is_admitted(job) is admitted,
            60,
            lambda: f"{job}: {(self.workload(job) or {}).get('status', {}).get('conditions')}",
        )

    def gpus(self, team: str, field: str = "total") -> dict[str, int]:
        """Return the GPUs that a team uses, by flavor."""
        status = self.lab.client.get("ClusterQueue", team)["status"]
        return {
            flavor["name"]: int(item.get(field) or 0)
            for flavor in status["flavorsUsage"]
            for item in flavor["resources"]
            if item["name"] == GPU
        }

    def uses(self, wanted: dict[str, int]) -> None:
        """Wait until teams use so many GPUs; a queue's status is updated a moment after its admissions."""
        poll(
            lambda: {team: sum(self.gpus(team).values()) for team in wanted} == wanted,
            20,
            lambda: f"{ {team: self.gpus(team) for team in wanted} }",
        )


@pytest.fixture(scope="module")
def company() -> Iterator[Company]:
    """Apply the example's golden tree to a lab of its own, with Kueue's settings as gangplan prints them."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    line = ".".join(profile.trainer.split(".")[:2])
    if profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    cluster = CLUSTERS[line]
    root = EXAMPLE / "input"
    spec = load_workspace(root).clusters[cluster].spec
    printed = gangplan("cluster", "kueue-config", "-C", root, "--cluster", cluster).out
    settings = plain.load(printed)
    wanted = {name: settings[name] for name in ("fairSharing",)}
    with Lab(profile, settings={"kueue": wanted}) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.client.apply_all(world.monitoring(spec))
        tree = render_example(EXAMPLE.name) / cluster
        files = sorted((tree / "platform").glob("*.yaml")) + sorted((tree / "tenants").rglob("*.yaml"))
        runs = {re.sub(r"-[0-9a-f]{8}$", "", path.stem): path for path in world.run_files(tree)}
        files += sorted({*(tree / "runs").rglob("*.yaml")} - {*runs.values()})  # launch scripts
        standing = [body for path in files for body in load_objects(path.read_text())]
        found = Company(lab, cluster, standing, runs)
        for body in standing:
            answer = lab.client.apply(body)
            assert not answer.warnings, (body["kind"], answer.warnings)
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        yield found


def test_all_queues_are_active(company: Company) -> None:
    for body in company.standing:
        if body["kind"] in ("ClusterQueue", "LocalQueue"):
            meta = body["metadata"]
            company.lab.client.wait(
                body["kind"],
                meta["name"],
                meta.get("namespace"),
                until=lambda item: condition(item, "Active") == "True",
            )


def test_ten_runs_are_admitted_at_once(company: Company, tmp_path: Path) -> None:
    """30 + 28 + 24 + 20 + 16 = 118 of 128 GPUs, and the quota table shows this for the real snapshot."""
    for job in FIRST:
        company.start(job)
    for job in FIRST:
        company.until(job)
    company.uses({"cv": 30, "nlp": 28, "forecasting": 24, "recommender": 20, "research": 16})

    snapshot = tmp_path / "usage.json"
    snapshot.write_text(json.dumps({"items": company.lab.client.list("ClusterQueue")}))
    table = gangplan(
        *("cluster", "quota", "-C", EXAMPLE / "input", "--cluster", company.cluster, "--usage", snapshot)
    )
    assert "118/128 used (92 %)" in table.out
    assert "team cv is approaching its quota limit (30/32 GPUs used)" in table.err


def test_idle_quota_is_borrowed(company: Company) -> None:
    """Eight more GPUs for computer vision: 38 = 32 + 6 borrowed."""
    company.start("segment-extra")
    company.until("segment-extra")
    company.uses({"cv": 38})
    assert company.gpus("cv", "borrowed") == {"a100-80gb": 0, "a100-40gb": 6}


def test_a_run_waits_if_too_little_is_idle_to_borrow(company: Company) -> None:
    """Research may borrow 16 more, but only two are idle."""
    company.start("sweep-late")
    poll(lambda: company.workload("sweep-late") is not None, 30, lambda: "no workload")

    def is_told() -> bool:
        found = company.workload("sweep-late") or {}
        return condition(found, "QuotaReserved") == "False"

    poll(is_told, 30, lambda: f"{company.workload('sweep-late')}")
    assert not company.is_admitted("sweep-late")


def test_lent_quota_is_reclaimed_from_the_borrower_alone(company: Company) -> None:
    """Recommender wants its own four GPUs: the borrower is preempted, no other run is."""
    company.start("rank-refresh")
    company.until("rank-refresh")
    company.until("segment-extra", admitted=False)
    assert all(company.is_admitted(job) for job in FIRST)
    company.uses({"recommender": 24, "cv": 30})


def test_a_high_priority_run_preempts_only_its_own_teams_runs(company: Company) -> None:
    """A high run of language models preempts a normal one of the same team, and none of another team."""
    company.start("production-retrain")
    company.until("production-retrain")
    company.until("pretrain", admitted=False)
    assert all(company.is_admitted(job) for job in FIRST if job != "pretrain")


def test_rendered_objects_have_not_drifted(company: Company) -> None:
    """After all of the above, the cluster's objects are those that were rendered."""
    found = {}
    for body in company.standing:
        meta = body["metadata"]
        lines = drift(body, company.lab.client.get(body["kind"], meta["name"], meta.get("namespace")))
        if lines:
            found[f"{body['kind']}/{meta['name']}"] = lines
    assert not found
