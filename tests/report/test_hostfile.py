"""`plan --hostfile`: the host file of each MPI and controller, and what runs without MPI use instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.generators.scripts import generate_launch_script_config_map
from gangplan.local.pods import LOCAL, build_local_pods
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.report.hostfile import format_hostfiles_of_run
from tests.mpijob.base import MIXED, OPERATOR, spec, workspace
from tests.mpijob.base import run as run_bodies
from tests.workspaces import CLUSTER, TEAM, gangplan

ETC, TMP = "/etc/mpi/hostfile", "/tmp/gangplan-hostfile"
OWN = "launcher: {runsRanks: true}\n"
# RUN is the run's name. Each worker has two slots, and there are three.
NODES = ["RUN-node-0-0.RUN slots=2", "RUN-node-0-1.RUN slots=2", "RUN-node-0-2.RUN slots=2"]
HYDRA = ["RUN-node-0-0.RUN:2", "RUN-node-0-1.RUN:2", "RUN-node-0-2.RUN:2"]
OPERATED = [f"RUN-worker-{number}.RUN.nlp.svc" for number in range(3)]
CASES: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "Open MPI": (spec(), CLUSTER, {ETC: NODES}),
    "Open MPI 4": (spec("openmpi4"), CLUSTER, {ETC: NODES}),
    "Horovod": (spec("horovod"), CLUSTER, {ETC: NODES}),
    "Intel MPI": (spec("intel"), CLUSTER, {ETC: NODES, TMP: HYDRA}),
    "MPICH": (spec("mpich"), CLUSTER, {ETC: NODES, TMP: HYDRA}),
    "the launcher runs ranks": (
        spec("openmpi", OWN),
        CLUSTER,
        {ETC: [*NODES[:2], "RUN-launcher-0-0.RUN slots=2"]},
    ),
    "the launcher runs ranks, by Hydra": (
        spec("mpich", OWN),
        CLUSTER,
        {ETC: [*NODES[:2], "RUN-launcher-0-0.RUN slots=2"], TMP: [*HYDRA[:2], "RUN-launcher-0-0:2"]},
    ),
    "MPIJob, Open MPI": (spec(), OPERATOR, {ETC: [f"{one} slots=2" for one in OPERATED]}),
    "near: MPIJob, Intel MPI, which needs no other": (
        spec("intel"),
        OPERATOR,
        {ETC: [f"{one}:2" for one in OPERATED]},
    ),
    "MPIJob, Intel MPI, the launcher runs ranks": (
        spec("intel", OWN),
        OPERATOR,
        {
            ETC: [f"{one}:2" for one in ("RUN-launcher.RUN.nlp.svc", *OPERATED[:2])],
            TMP: [f"{one}:2" for one in ("RUN-launcher", *OPERATED[:2])],
        },
    ),
    "both backends: a TrainJob": (spec(), MIXED, {ETC: NODES}),
    "torch": (spec("pytorch"), CLUSTER, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_each_run_has_the_host_file_of_its_mpi(name: str, tmp_path: Path) -> None:
    text, cluster, expected = CASES[name]
    workspace(tmp_path, text, cluster)
    outcome = gangplan("plan", "--hostfile", "-C", tmp_path, "--engine", "serial", "--format", "json")
    assert outcome.code == Exit.CLEAN, outcome.out
    (run,) = json.loads(outcome.out)["runs"]
    found = {
        file["path"]: [line.replace(run["name"], "RUN") for line in file["lines"]] for file in run["files"]
    }
    assert found == expected
    assert (run["instead"] is None) == bool(expected)


def test_text_is_a_host_file_with_comments(tmp_path: Path) -> None:
    workspace(tmp_path, spec("mpich"), CLUSTER)
    lines = gangplan("plan", "--hostfile", "-C", tmp_path, "--engine", "serial").out.splitlines()
    assert lines[0].startswith("# specs/nlp/filings.yaml on lab: nlp/filings-")
    assert lines[1] == f"# {ETC}, written by Trainer"
    assert lines[5] == f"# {TMP}, written by the launch script, for Hydra"
    assert [line for line in lines if not line.startswith("#")] == [*lines[2:5], *lines[6:9]]


def test_a_job_without_mpi_says_what_it_uses(tmp_path: Path) -> None:
    workspace(tmp_path, spec("pytorch"), CLUSTER)
    outcome = gangplan("plan", "--hostfile", "-C", tmp_path, "--engine", "serial")
    assert outcome.code == Exit.CLEAN
    assert "# no host file: pytorch is torch, not MPI; torchrun meets at filings-" in outcome.out
    assert "slots=" not in outcome.out


def test_every_cluster_has_a_block(tmp_path: Path) -> None:
    files = {
        "specs/nlp/team.yaml": TEAM.replace("clusters: [lab]", "clusters: [lab, hall]"),
        "overlays/hall/cluster.yaml": OPERATOR,
    }
    workspace(tmp_path, spec(), CLUSTER, **files)
    out = gangplan("plan", "--hostfile", "-C", tmp_path, "--engine", "serial").out
    hall, lab = out.split("\n\n")
    assert (" on hall: " in hall, ".svc slots=2" in hall) == (True, True)
    assert (" on lab: " in lab, "-node-0-2." in lab) == (True, True)
    assert " on hall: " not in gangplan("plan", "--hostfile", "--cluster", "lab", "-C", tmp_path).out


def test_a_schedule_starts_runs_with_a_date(tmp_path: Path) -> None:
    cluster = CLUSTER + "schedules: {backend: commit}\n"
    more = 'schedule: {cron: "0 3 * * *", timeZone: Etc/UTC}\n'
    workspace(tmp_path, spec("openmpi", more), cluster)
    by_commit = gangplan("plan", "--hostfile", "-C", tmp_path, "--engine", "serial").out
    assert "YYYYMMDD" not in by_commit, "commits raise run: such runs have names with a hash"


@pytest.mark.parametrize("image", ["openmpi", "horovod"])
@pytest.mark.parametrize("more", ["", OWN])
def test_runs_on_a_laptop_get_the_same_lines(image: str, more: str, tmp_path: Path) -> None:
    """`gangplan run` gives processes the host file that Trainer would write (tests/local)."""
    workspace(tmp_path, spec(image, more), CLUSTER)
    (run,) = preview_render(Request(tmp_path, engine="serial")).runs
    bodies = run_bodies(tmp_path)
    cast = build_local_pods(
        run.unit.job, [*bodies, generate_launch_script_config_map(run.unit.job)], {}, 29500
    )
    name = next(body["metadata"]["name"] for body in bodies if body["kind"] == "TrainingRuntime")
    assert cast.hostfile.replace(name, "RUN").splitlines() == [
        line.replace(run.name, "RUN") for line in format_hostfiles_of_run(run)[0].lines
    ]
    assert LOCAL not in cast.hostfile


@pytest.mark.parametrize("flags", [("--network",), ("--base", "HEAD")])
def test_other_views_exclude_it(flags: tuple[str, ...], tmp_path: Path) -> None:
    workspace(tmp_path, spec(), CLUSTER)
    assert gangplan("plan", "--hostfile", *flags, "-C", tmp_path).code == Exit.INPUT
