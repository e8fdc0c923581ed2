"""The catalog's facts about an image compared with pools: architecture, CUDA and ROCm with drivers, tiers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gangplan.model.gpu_drivers import (
    CUDA_DRIVERS,
    CUDA_LEAST,
    ROCM_OF_DRIVER,
    judge_cuda_driver,
    judge_rocm_driver,
)
from tests import workspaces
from tests.workspaces import Outcome, gangplan

MPI = 'mpi: {implementation: OpenMPI, version: "5.0.8"}\n'
GPU = "gpu: {model: a100-80gb, count: 8}"


def write_workspace(
    tmp_path: Path, *, image: str = "", pool: str = "", catalog: str = "", **files: str
) -> Path:
    """Write the small workspace, with these lines of the first image, pool a100 and the catalog."""
    entries = workspaces.CATALOG.replace(MPI, MPI + image, 1) + catalog
    cluster = workspaces.CLUSTER.replace(
        f"{GPU}, labels: {{pool: a100}}", pool or f"{GPU}, labels: {{pool: a100}}"
    )
    own = {name.replace("__", "/") + ".yaml": text for name, text in files.items()}
    base = workspaces.STOCK | {"images/catalog.yaml": entries, "overlays/lab/cluster.yaml": cluster} | own
    return workspaces.write(tmp_path, base)


def check(tmp_path: Path, **parts: str) -> Outcome:
    """Run `validate` on such a workspace."""
    return gangplan("validate", "--no-cache", "-C", write_workspace(tmp_path, **parts))


def with_driver(version: str) -> str:
    return f'gpu: {{model: a100-80gb, count: 8, driver: "{version}"}}, labels: {{pool: a100}}'


@pytest.mark.parametrize(
    ("cuda", "driver", "has_compat", "outcome"),
    [
        ("12.8", "570.26", False, "fits"),
        ("12.8", "570.25.99", False, "minor"),
        ("12.8.1", "595.45.04", False, "fits"),
        ("12.8", "525.60.13", False, "minor"),
        ("12.8", "525.60.12", False, "refused"),
        ("13.0", "575.57.08", False, "refused"),
        ("13.0", "575.57.08", True, "forward"),
        ("11.8", "450.80.02", False, "minor"),
        ("11.0", "450.80.02", False, "fits"),
        ("12.7", "570.26", False, "unknown"),  # there was no CUDA 12.7
        ("14.0", "595.45.04", False, "unknown"),
        ("twelve", "570.26", False, "unknown"),
    ],
)
def test_cuda_is_compared_with_the_driver(cuda: str, driver: str, has_compat: bool, outcome: str) -> None:
    assert judge_cuda_driver(cuda, driver, has_compat).outcome == outcome


@pytest.mark.parametrize(
    ("rocm", "driver", "outcome"),
    [
        ("6.4.1", "6.2.4", "fits"),
        ("7.0", "6.1", "refused"),
        ("7.2", "30.30.1", "fits"),
        ("6.2", "30.30", "refused"),
        ("7.0", "99.1", "unknown"),
    ],
)
def test_rocm_is_compared_with_the_driver(rocm: str, driver: str, outcome: str) -> None:
    assert judge_rocm_driver(rocm, driver).outcome == outcome


def test_the_tables_grow_with_the_versions() -> None:
    """Newer CUDA came with newer drivers, each major version has a least driver, and ROCm's drivers are in
    order."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")]

    lines = sorted(CUDA_DRIVERS, key=numbers)
    assert lines == list(CUDA_DRIVERS)
    drivers = [numbers(CUDA_DRIVERS[line]) for line in lines]
    assert drivers == sorted(drivers)
    assert {int(line.split(".")[0]) for line in lines} == set(CUDA_LEAST)
    for line, runs in ROCM_OF_DRIVER.items():
        assert list(runs) == sorted(runs, key=numbers), line


def test_a_driver_that_is_too_old_is_reported_with_the_pool(tmp_path: Path) -> None:
    done = check(tmp_path, image='    cuda: "13.0"\n', pool=with_driver("535.183.01"))
    (found,) = [one for one in done.findings if one.severity == "error"]
    assert (found.rule, found.place) == ("image-driver", "specs/nlp/filings.yaml:3:8")
    reason = "its GPU driver is 535.183.01, and the image has CUDA 13.0: CUDA 13.0 needs driver 580.65.06"
    assert f"a100: {reason} or later" in found.message
    assert done.code == 2


def test_minor_version_compatibility_is_a_note(tmp_path: Path) -> None:
    done = check(tmp_path, image='    cuda: "12.8"\n', pool=with_driver("535.183.01"))
    assert done.code == 0
    assert [one.rule for one in done.findings if one.rule.startswith("cuda")] == ["cuda-minor-version"]


def test_the_compatibility_package_allows_an_older_driver(tmp_path: Path) -> None:
    done = check(tmp_path, image='    cuda: "13.0"\n    cudaCompat: true\n', pool=with_driver("535.183.01"))
    assert done.code == 0
    assert "cuda-forward" in {one.rule for one in done.findings}


def test_a_run_goes_to_the_pool_with_a_new_enough_driver(tmp_path: Path) -> None:
    old = with_driver("535.183.01") + "}\n"
    newer = with_driver("580.95.05").replace("pool: a", "pool: b")
    done = check(
        tmp_path,
        image='    cuda: "13.0"\n',
        pool=f"{old}  b100: {{count: 4, cpu: 124, memory: 1900Gi, {newer}",
    )
    assert done.code == 0, done.err
    assert gangplan("render", "-C", tmp_path).code == 0
    (run,) = (tmp_path / "rendered/lab/runs/nlp").glob("*-*.yaml")
    assert re.search(r"pool: ['\"]?b100", run.read_text())


def test_an_image_for_other_processors_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path, image="    architectures: [arm64]\n")
    assert done.errors() == [("specs/nlp/filings.yaml:3:8", "architecture-mismatch")]
    assert "its nodes are amd64, and the image is built for arm64" in done.err


def test_pods_are_sent_to_the_architecture_that_the_pool_states(tmp_path: Path) -> None:
    pool = f"arch: arm64, {GPU}, labels: {{pool: a100}}"
    done = check(tmp_path, image="    architectures: [amd64, arm64]\n", pool=pool)
    assert done.code == 0, done.err
    assert gangplan("render", "-C", tmp_path).code == 0
    (run,) = (tmp_path / "rendered/lab/runs/nlp").glob("*-*.yaml")
    text = run.read_text()
    assert "kubernetes.io/arch" in text
    line = 1 + text[: text.index("kubernetes.io/arch")].count("\n")
    why = gangplan("why", f"{run.relative_to(tmp_path)}:{line}", "-C", tmp_path)
    assert "overlays/lab/cluster.yaml" in why.out


def test_a_sidecar_must_run_on_the_node_of_its_worker(tmp_path: Path) -> None:
    spec = workspaces.SPEC + "sidecars: [{image: mpich, command: [tail]}]\n"
    catalog = workspaces.CATALOG.rstrip("\n") + "\n    architectures: [arm64]\n"  # of mpich, the last image
    files = workspaces.STOCK | {"specs/nlp/filings.yaml": spec, "images/catalog.yaml": catalog}
    done = gangplan("validate", "--no-cache", "-C", workspaces.write(tmp_path, files))
    assert [one for one in done.errors() if one[1] == "architecture-mismatch"], done.err


def test_an_untested_combination_warns_with_its_tier(tmp_path: Path) -> None:
    done = check(tmp_path, catalog="requirements: {tier: tested}\n")
    (found,) = [one for one in done.findings if one.rule == "image-tier"]
    assert found.severity == "warning"
    assert "image 'openmpi' (mpi OpenMPI 5.0.8) on a100-80gb is untested" in found.message
    assert done.code == 0


def test_the_first_matching_tier_of_the_catalog_counts(tmp_path: Path) -> None:
    rows = (
        "requirements: {tier: certified}\n"
        "tiers:\n"
        '- {tier: certified, mpi: OpenMPI, mpiVersion: "5.0", gpus: [a100-80gb, h100-80gb]}\n'
        "- {tier: untested}\n"
    )
    assert "image-tier" not in check(tmp_path, catalog=rows).err
    other = rows.replace('"5.0"', '"5.00"').replace("certified, mpi", "certified, framework: mpi, mpi")
    assert "is untested (the catalog's tiers)" in check(tmp_path, catalog=other).err


def test_combinations_that_our_tests_start_count_only_without_gpus(tmp_path: Path) -> None:
    spec = workspaces.SPEC.replace("gpus: 2", "gpus: 0")
    done = check(tmp_path, catalog="requirements: {tier: tested}\n", specs__nlp__filings=spec)
    assert "image-tier" not in done.err


@pytest.mark.parametrize(
    ("image", "catalog", "support"),
    [
        ("", "", None),
        ("    tier: certified\n", "", "certified (stated for the image)"),
        (
            "    owner: ml@example.com\n",
            "",
            "untested (no row of the catalog's tiers has it), owner ml@example.com",
        ),
        ("", "requirements: {tier: community}\n", "untested (no row of the catalog's tiers has it)"),
        (
            "",
            "tiers:\n- {tier: tested, gpus: [a100-80gb], source: acceptance test of 2026-10-12}\n",
            "tested (acceptance test of 2026-10-12)",
        ),
        (
            "",
            "tiers:\n- {tier: tested, gpus: [h100-80gb]}\n",
            "untested (no row of the catalog's tiers has it)",
        ),
    ],
)
def test_a_plan_tells_how_well_a_run_is_supported(
    tmp_path: Path, image: str, catalog: str, support: str | None
) -> None:
    root = write_workspace(tmp_path, image=image, catalog=catalog)
    lines = gangplan("plan", "specs/nlp/filings.yaml", "-C", root).out.splitlines()
    assert [line.split(None, 1)[1] for line in lines if line.startswith("  support ")] == (
        [support] if support else []
    )
    (run,) = json.loads(gangplan("plan", "specs/nlp/filings.yaml", "--format", "json", "-C", root).out)[
        "runs"
    ]
    found = run.get("support")
    assert (found and f"{found['tier']} ({found['source']})") == (support and support.partition(", owner")[0])
    assert (found or {}).get("owner") == ("ml@example.com" if "owner" in image else None)


ARM = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100, kubernetes.io/arch: arm64}"


@pytest.mark.parametrize(
    ("pool", "image", "reason"),
    [
        (ARM, "", "a100: its nodes are arm64, and the image is built for amd64"),
        (ARM, "    architectures: [arm64]\n", ""),
        (ARM, "    architectures: [amd64, arm64]\n", ""),
        (ARM.replace("kubernetes", "beta.kubernetes"), "", "a100: its nodes are arm64"),
        (ARM.replace("arm64", "ppc64le"), "", "a100: its nodes are ppc64le"),
        (ARM.replace("arm64", "amd64"), "", ""),
    ],
)
def test_the_label_of_a_pool_sets_its_architecture(
    pool: str, image: str, reason: str, tmp_path: Path
) -> None:
    done = check(tmp_path, image=image, pool=pool)
    found = [one for one in done.findings if one.severity == "error"]
    assert bool(found) == bool(reason), done.err
    for one in found:
        assert (one.rule, one.place) == ("architecture-mismatch", "specs/nlp/filings.yaml:3:8")
        assert reason in one.message


def test_a_launcher_runs_on_the_architecture_of_its_workers(tmp_path: Path) -> None:
    """The image would start on the other nodes as well, and a launcher needs no GPU."""
    both = "    architectures: [amd64, arm64]\n"
    assert check(tmp_path, image=both, pool=ARM).code == 0
    assert "launcher on a100" in gangplan("plan", "specs/nlp/filings.yaml", "-C", tmp_path).out
    check(tmp_path, image=both, pool=ARM.replace("arm64", "amd64"))
    assert "launcher on cpu" in gangplan("plan", "specs/nlp/filings.yaml", "-C", tmp_path).out


@pytest.mark.parametrize("stated", ["arch: amd64, ", "arch: arm64, "])
def test_a_pool_with_two_architectures_is_refused(stated: str, tmp_path: Path) -> None:
    done = check(tmp_path, pool=stated + ARM, image="    architectures: [arm64]\n")
    wrong = [one for one in done.findings if one.rule == "spec-value"]
    assert len(wrong) == ("amd64" in stated)
    assert all(
        "its processors are amd64, and the label kubernetes.io/arch says arm64" in one.message
        for one in wrong
    )
