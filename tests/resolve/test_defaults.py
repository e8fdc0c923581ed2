"""Where a value comes from: spec, profile, team, cluster, built-in; and which mirror, pool and claim."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gangplan.model.job import Job
from gangplan.model.profiles import Profile
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.resolve.image import apply_mirrors
from gangplan.rules.model import Severity
from gangplan.spec.cluster import Mirror
from gangplan.spec.job import TrainingJob
from tests import workspaces

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\ncommand: [p]\n"


def job(root: Path, spec: str, team: str = "", cluster: str = "") -> Job:
    """Return the only job of a workspace whose files have these lines added."""
    workspaces.write(
        root,
        {
            "specs/nlp/filings.yaml": HEAD + spec,
            "specs/nlp/team.yaml": workspaces.TEAM + team,
            "overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER + cluster,
        },
    )
    result = preview_render(Request(root, engine="serial"))
    assert [one.message for one in result.findings if one.severity is Severity.ERROR] == []
    (run,) = result.runs
    return run.unit.job


LAYERS = {
    "spec": "image: openmpi\nprofile: small\nworkers: 7\n",
    "profile": "image: openmpi\nprofile: small\n",
    "team": "image: openmpi\n",
}
DEFAULTS = "defaults: {workers: %d}\n"


@pytest.mark.parametrize(
    ("spec", "team", "cluster", "workers", "layer"),
    [
        ("workers: 7\nprofile: small\n", 5, 6, 7, "spec"),
        ("profile: small\n", 5, 6, 2, "profile small"),
        ("", 5, 6, 5, "team nlp"),
        ("", None, 6, 6, "cluster lab"),
        ("", None, None, 4, "built-in"),
    ],
)
def test_the_first_layer_that_states_a_value_wins(
    spec: str, team: int | None, cluster: int | None, workers: int, layer: str, root: Path
) -> None:
    found = job(
        root,
        "image: openmpi\n" + spec,
        DEFAULTS % team if team else "",
        DEFAULTS % cluster if cluster else "",
    )
    assert (found.workers, found.origins["workers"].layer) == (workers, layer)


@pytest.mark.parametrize(
    ("profile", "expected"), [("small", (2, 1, 4)), ("medium", (8, 4, 12)), ("large", (32, 4, 72))]
)
def test_profiles_set_workers_gpus_and_timeout(
    profile: str, expected: tuple[int, int, int], root: Path
) -> None:
    found = job(root, f"image: openmpi\nprofile: {profile}\n", "defaults: {timeout: 2h}\n")
    assert (found.workers, found.gpus, found.timeout_s / 3600) == expected
    assert found.origins["timeout"].layer == f"profile {profile}"
    assert found.slots == found.gpus


def test_a_spec_has_each_field_of_a_profile() -> None:
    # `timeout_s` was looked up as `timeout` and never found, so every profile got 24 hours.
    assert {one.name for one in fields(Profile)} <= set(TrainingJob.model_fields)


def test_a_timeout_wins_over_the_profile(root: Path) -> None:
    found = job(root, "image: openmpi\nprofile: medium\ntimeout: 20h\n")
    assert found.timeout_s == 20 * 3600


def test_environments_are_merged_name_by_name(root: Path) -> None:
    found = job(
        root,
        "image: openmpi\nenv: {A: spec, B: spec}\n",
        "defaults: {env: {B: team, C: team, D: team}}\n",
        "defaults: {env: {C: cluster defaults, D: cluster defaults, E: cluster defaults}}\n"
        "env: {E: cluster, F: cluster}\n",
    )
    env = {variable.name: variable.value for variable in found.env}
    assert env == {
        "A": "spec",
        "B": "spec",
        "C": "team",
        "D": "team",
        "E": "cluster defaults",
        "F": "cluster",
        "OMP_NUM_THREADS": "4",
    }


def test_texts_of_variables_and_labels_keep_their_spelling(root: Path) -> None:
    words = {
        "A": "007",
        "B": "1e-4",
        "C": "yes",
        "D": "0x1F",
        "E": "1_000",
        "F": "3.10",
        "G": "true",
        "H": "~x",
    }
    line = ", ".join(f"{name}: {word}" for name, word in words.items())
    found = job(root, f"image: openmpi\nenv: {{{line}}}\nlabels: {{version: 1.10}}\n")
    assert {variable.name: variable.value for variable in found.env} == words | {"OMP_NUM_THREADS": "4"}
    assert found.labels == (("version", "1.10"),)


@pytest.mark.parametrize(
    ("spec", "pool"),
    [
        ("gpus: 0\n", "cpu"),
        ("gpus: 1\n", "a100"),
        ("gpus: 0\nmemory: 500Gi\n", "a100"),
        ("gpus: 1\nplacement: {capacity: spot}\ncheckpoint: {to: filings}\nretries: 1\n", "a100-spot"),
        ("gpus: 1\nplacement: {nodePool: a100-spot}\ncheckpoint: {to: filings}\nretries: 1\n", "a100-spot"),
        ("gpus: 1\ngpu: {model: a100-80gb}\n", "a100"),
    ],
)
def test_the_first_pool_that_fits_is_chosen(spec: str, pool: str, root: Path) -> None:
    assert job(root, "image: openmpi\n" + spec).worker_pool.name == pool


def test_a_dedicated_launcher_stays_off_gpu_nodes(root: Path) -> None:
    found = job(root, "image: openmpi\ngpus: 8\n")
    assert (found.worker_pool.name, found.launcher_pool.name) == ("a100", "cpu")
    assert found.launcher.devices == ()


@pytest.mark.parametrize(
    ("workers", "cpu"), [(1, "1"), (16, "1"), (17, "2"), (33, "4"), (65, "8"), (100, "8")]
)
def test_the_launcher_grows_with_the_workers(workers: int, cpu: str, root: Path) -> None:
    assert job(root, f"image: openmpi\nworkers: {workers}\n").launcher.cpu.canonical() == cpu


def test_a_dedicated_launcher_may_be_sized(root: Path) -> None:
    found = job(root, "image: openmpi\nlauncher: {cpu: 3, memory: 5Gi}\n")
    assert (found.launcher.cpu.canonical(), found.launcher.memory.canonical()) == ("3", "5Gi")


MIRRORS = (("registry.example.com", "a.example.com/up"), ("registry.example.com/hpc", "b.example.com/hpc"))


@pytest.mark.parametrize(
    ("repository", "expected"),
    [
        ("registry.example.com/x", "a.example.com/up/x"),
        ("registry.example.com/hpc/x", "b.example.com/hpc/x"),
        ("registry.example.com/hpcx/x", "a.example.com/up/hpcx/x"),
        ("registry.example.community/x", "registry.example.community/x"),
        ("other.example.com/registry.example.com/x", "other.example.com/registry.example.com/x"),
    ],
)
def test_mirrors_replace_the_longest_matching_prefix(repository: str, expected: str) -> None:
    class Site:
        mirrors = tuple(Mirror(source=source, mirror=mirror) for source, mirror in MIRRORS)

    site: Any = Site()
    assert apply_mirrors(repository, site) == expected


def test_connections_give_variables_mounts_and_egress(root: Path) -> None:
    found = job(root, "image: openmpi\ndata: {lidar: env, radar: /radar}\n")
    env = {variable.name: variable for variable in found.env}
    assert env["S3_URL"].value == "s3://lidar"
    assert (env["AWS_SECRET_ACCESS_KEY"].secret, env["AWS_SECRET_ACCESS_KEY"].key) == (
        "lidar-s3",
        "AWS_SECRET_ACCESS_KEY",
    )
    assert [(mount.claim, mount.path, mount.read_only) for mount in found.mounts] == [
        ("lidar-files", "/radar", True)
    ]
    assert {rule.name for rule in found.egress} == {"s3"}
