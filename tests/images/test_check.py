"""`images check` and `images list`: the catalog compared with itself and the specs, without a registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import REPOSITORY, gangplan


def root_with(tmp_path: Path, **files: str) -> Path:
    named = {name.replace("__", "/") + ".yaml": text for name, text in files.items()}
    return workspaces.write(tmp_path, workspaces.STOCK | named)


def test_the_sample_has_no_errors_or_warnings() -> None:
    done = gangplan("images", "check", "-C", REPOSITORY)
    assert done.code == 0, done.err
    assert not [one for one in done.findings if one.severity != "note"]


def test_image_errors_are_reported_at_the_spec(tmp_path: Path) -> None:
    spec = workspaces.SPEC.replace("image: openmpi", "image: intel")
    done = gangplan("images", "check", "-C", root_with(tmp_path, specs__nlp__filings=spec))
    assert done.code == 2
    assert ("specs/nlp/filings.yaml:3:8", "licence-not-acknowledged") in done.errors()


@pytest.mark.parametrize("family", ['OpenMPI, version: "3.1.6"', 'IntelMPI, version: "2019.9"'])
def test_an_mpi_that_was_never_tested_is_a_warning_in_the_catalog_and_at_the_spec(
    tmp_path: Path, family: str
) -> None:
    catalog = workspaces.CATALOG.replace('OpenMPI, version: "5.0.8"', family)
    spec = f"{workspaces.SPEC}mpi: {{licenseAcknowledged: true}}\n"
    root = root_with(tmp_path, images__catalog=catalog, specs__nlp__filings=spec)
    done = gangplan("images", "check", "-C", root)
    places = {one.place.split(":")[0] for one in done.findings if one.rule == "mpi-untested"}
    assert places == {"images/catalog.yaml", "specs/nlp/filings.yaml"}, done.err
    assert not [one for one in done.errors() if one[1].startswith("mpi")]


def test_errors_that_are_not_about_images_are_left_to_validate(tmp_path: Path) -> None:
    spec = workspaces.SPEC.replace("memory: 32Gi", "memory: 90Ti")
    done = gangplan("images", "check", "-C", root_with(tmp_path, specs__nlp__filings=spec))
    assert (done.code, done.errors()) == (0, [])


def test_contradictions_in_the_catalog_are_reported(tmp_path: Path) -> None:
    catalog = workspaces.CATALOG.replace('OpenMPI, version: "5.0.8"', 'OpenMPI, version: "2.1.0"').replace(
        "    framework: torch\n", '    framework: torch\n    tag: 2.9-cuda12.8\n    cuda: "12.7"\n'
    )
    done = gangplan("images", "check", "-C", root_with(tmp_path, images__catalog=catalog), "--format", "json")
    found = {(one["rule"], one["severity"]) for one in json.loads(done.out)["findings"]}
    assert {
        ("mpi-version", "error"),
        ("image-tag-contradicts", "warning"),
        ("image-version-unknown", "note"),
    } <= found
    assert done.code != 0


@pytest.mark.parametrize(("day", "code"), [("2026-03-01", 0), ("2026-12-01", 1)])
def test_scans_are_judged_by_the_given_day(tmp_path: Path, day: str, code: int) -> None:
    catalog = workspaces.CATALOG.partition("  openmpi4:")[0] + "    scan: {date: 2026-01-01}\n"
    root = root_with(tmp_path, images__catalog=catalog + "requirements: {scanDays: 90}\n")
    assert gangplan("images", "check", "-C", root, "--today", day).code == code


def test_an_unreadable_catalog_is_reported(tmp_path: Path) -> None:
    done = gangplan("images", "check", "-C", root_with(tmp_path, images__catalog="images: [\n"))
    assert done.code == 2
    assert "yaml-syntax" in done.err


def test_the_list_shows_contents_and_users_of_images(tmp_path: Path) -> None:
    mpi = '    mpi: {implementation: OpenMPI, version: "5.0.8"}\n'
    more = "    tier: tested\n    owner: ml@example.com\n    licence: MIT\n    scan: {date: 2026-01-01}\n"
    more += "    architectures: [amd64, arm64]\n"
    root = root_with(tmp_path, images__catalog=workspaces.CATALOG.replace(mpi, mpi + more, 1))
    rows = json.loads(gangplan("images", "list", "-C", root, "--format", "json").out)["images"]
    assert [row["image"] for row in rows][:2] == ["openmpi", "openmpi4"]
    first = rows[0]
    assert (first["tier"], first["owner"], first["scan"]) == (
        "tested",
        "ml@example.com",
        {"date": "2026-01-01"},
    )
    assert first["architectures"] == ["amd64", "arm64"]
    assert first["usedBy"] == ["specs/nlp/filings.yaml"]
    assert rows[1]["usedBy"] == []
    table = gangplan("images", "list", "-C", root).out.splitlines()
    assert table[0].split()[:2] == ["image", "framework"]
    assert "2026-01-01" in table[1]


def test_a_team_sees_images_that_its_regimes_allow(tmp_path: Path) -> None:
    team = workspaces.TEAM + "compliance: [hipaa]\n"
    catalog = workspaces.CATALOG.replace(
        "    framework: torch\n", "    framework: torch\n    approved: [hipaa]\n"
    )
    root = root_with(tmp_path, specs__nlp__team=team, images__catalog=catalog)
    rows = json.loads(gangplan("images", "list", "-C", root, "--team", "nlp", "--format", "json").out)[
        "images"
    ]
    assert [row["image"] for row in rows] == ["pytorch"]
    assert gangplan("images", "list", "-C", root, "--team", "nlq").code == 2
    assert gangplan("images", "list", "-C", root, "--format", "xml").code == 2
