"""`gangplan import` of a rendered MPIJob restores the spec; fields of TrainJobs alone are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import plain
from tests.mpijob.base import FAMILIES, run, spec, workspace
from tests.workspaces import gangplan

MORE = "timeout: 6h\nretries: 1\npriority: high\nenv: {MODE: fast}\nlauncher: {runsRanks: %s}\n"


@pytest.mark.parametrize(("image", "runs"), [*((one, "false") for one in FAMILIES), ("mpich", "true")])
def test_importing_a_rendered_mpijob_restores_the_spec(image: str, runs: str, tmp_path: Path) -> None:
    root = workspace(tmp_path / "workspace", spec(image, MORE % runs))
    run(root)
    (file,) = root.glob("rendered/lab/runs/nlp/*-*.yaml")
    licence = ("--license-acknowledged",) if image == "intel" else ()
    outcome = gangplan("import", "mpijob", file, "-C", root, *licence)
    assert outcome.code == 0, outcome.err
    assert "on lab: 100% of what the source says is so in the run" in outcome.out + outcome.err
    (path,) = (root / "specs/nlp").glob("migrated-*.yaml")
    found, given = plain.load(path.read_text()), plain.load((root / "specs/nlp/filings.yaml").read_text())
    same = ("image", "command", "workers", "slots", "timeout", "retries", "priority")
    assert {name: found.get(name) for name in same} == {name: given[name] for name in same}
    assert found["env"]["MODE"] == "fast"
    assert found.get("launcher", {}).get("runsRanks", False) is (runs == "true")


@pytest.mark.parametrize("grace", ["", "45s", "5m"])
def test_importing_restores_the_grace_period_without_the_margin(grace: str, tmp_path: Path) -> None:
    line = f"gracePeriod: {grace}\n" if grace else ""
    root = workspace(tmp_path / "workspace", spec("openmpi", line))
    run(root)
    (file,) = root.glob("rendered/lab/runs/nlp/*-*.yaml")
    assert gangplan("import", "mpijob", file, "-C", root).code == 0
    (path,) = (root / "specs/nlp").glob("migrated-*.yaml")
    assert plain.load(path.read_text()).get("gracePeriod", "") == grace


# Fields that an MPIJob cannot have, and the rule that says why.
REFUSED = {
    "elastic": ("elastic: {min: 1, max: 2}\n", "pytorch", "backend-framework"),
    "roles": ("framework: plain\nroles: {loader: {workers: 1}}\n", "openmpi", "backend-framework"),
    "schedule": ('timeout: 2h\nschedule: {cron: "@daily"}\n', "openmpi", "schedule-unusable"),
    "after": ("after: [other]\n", "openmpi", "after-unusable"),
}
OFFER = (
    "egress:\n  kubernetes: [{cidr: 10.96.0.1/32, ports: [443]}]\n",
    "schedules: {client: openmpi, egress: [kubernetes]}\n",
)


@pytest.mark.parametrize("name", REFUSED)
def test_fields_that_only_a_trainjob_can_have_are_refused(name: str, tmp_path: Path) -> None:
    more, image, rule = REFUSED[name]
    text = spec(image, more)
    for line, fits in (("slots: 2\n", name in ("schedule", "after")), ("workers: 3\n", name != "elastic")):
        text = text if fits else text.replace(line, "")
    root = workspace(tmp_path, text, **{"specs/nlp/other.yaml": spec()})
    cluster = root / "overlays/lab/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("egress:\n", OFFER[0], 1) + OFFER[1])
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == rule]
    assert found, gangplan("validate", "-C", root).err
    assert found[0].message
    assert found[0].help
