"""What a catalog requires of its images: owner, licences, scans."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from gangplan.resolve.image_requirements import find_outdated_image_scans, find_refused_spdx_licences
from gangplan.source import load_document
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.load import parse_spec_document
from tests import workspaces
from tests.workspaces import gangplan

ALLOWED = ("Apache-2.0", "BSD-3-Clause", "GPL-2.0-only WITH Classpath-exception-2.0")


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("Apache-2.0", []),
        ("MIT", ["MIT"]),
        ("Apache-2.0 AND BSD-3-Clause", []),
        ("Apache-2.0 AND MIT AND MIT", ["MIT"]),
        ("MIT OR Apache-2.0", []),
        ("(MIT OR BSD-3-Clause) AND (Apache-2.0 OR Proprietary)", []),
        ("MIT AND Apache-2.0 OR GPL-3.0-only", ["MIT"]),
        ("GPL-2.0-only WITH Classpath-exception-2.0", []),
        ("GPL-2.0-only", ["GPL-2.0-only"]),
        ("Apache-2.0 AND", ["Apache-2.0 AND"]),
        ("(Apache-2.0", ["(Apache-2.0"]),
        ("Apache-2.0)", ["Apache-2.0)"]),
        ("(" * 60 + "MIT", ["(" * 60 + "MIT"]),
    ],
)
def test_licence_expressions_are_compared_with_the_allowed_ones(expression: str, refused: list[str]) -> None:
    assert find_refused_spdx_licences(expression, ALLOWED) == refused


def catalog(lines: str, requirements: str) -> str:
    head, mpi, tail = workspaces.CATALOG.partition('    mpi: {implementation: OpenMPI, version: "5.0.8"}\n')
    return head + mpi + lines + tail + f"requirements: {requirements}\n"


def test_missing_facts_are_reported_at_each_image(tmp_path: Path) -> None:
    lines = (
        "    owner: ml-platform@example.com\n    licence: Apache-2.0 AND MIT\n    scan: {date: 2020-01-31}\n"
    )
    text = catalog(lines, "{owner: true, licences: [Apache-2.0], scanDays: 90}")
    done = gangplan(
        "validate",
        "--no-cache",
        "-C",
        workspaces.write(tmp_path, workspaces.STOCK | {"images/catalog.yaml": text}),
    )
    assert done.code == 1, done.err
    by_rule: dict[str, list[str]] = {}
    for place, rule in done.errors():
        by_rule.setdefault(rule, []).append(place)
    assert set(by_rule) == {"image-owner", "image-licence", "image-scan-missing", "image-scan-old"}
    assert by_rule["image-licence"][0] == "images/catalog.yaml:9:14"
    assert by_rule["image-scan-old"] == ["images/catalog.yaml:10:18"]
    assert [len(by_rule[rule]) for rule in ("image-owner", "image-scan-missing")] == [6, 6]
    assert "licence MIT of image 'openmpi' is not one that the catalog allows: Apache-2.0" in done.err


@pytest.mark.parametrize(
    ("day", "is_old"),
    [
        ("2026-04-01", False),
        ("2026-04-02", True),
        ("2026-01-01", False),
        ("2025-12-31", False),
        ("2025-12-30", True),
    ],
)
@pytest.mark.parametrize("written", ["catalog", "report"])
def test_a_scan_is_of_the_allowed_days(written: str, day: str, is_old: bool, tmp_path: Path) -> None:
    line = "    scan: {date: 2026-01-01}\n" if written == "catalog" else ""
    document, _ = load_document(catalog(line, "{scanDays: 90}").encode(), "images/catalog.yaml")
    assert document is not None
    value, _ = parse_spec_document(ImageCatalog, document)
    assert value is not None
    digest = value.images["openmpi"].digest
    if written == "report":
        file = tmp_path / "images/scans/openmpi.json"
        file.parent.mkdir(parents=True)
        about = {"SchemaVersion": 2, "ArtifactName": f"registry.example.com/openmpi@{digest}"}
        file.with_name("older.json").write_text(json.dumps(about | {"CreatedAt": "2019-01-01T00:00:00Z"}))
        file.write_text(json.dumps(about | {"CreatedAt": "2026-01-01T08:00:00.1+01:00"}))
    found = find_outdated_image_scans(value, document, datetime.date.fromisoformat(day), tmp_path)
    assert [one.where.file for one in found] == (
        [] if not is_old else ["images/catalog.yaml" if written == "catalog" else "images/scans/openmpi.json"]
    )
    assert all("has not come yet" in one.message for one in found) or day > "2026"


def test_rendering_does_not_depend_on_the_day(tmp_path: Path) -> None:
    text = catalog("    scan: {date: 2020-01-31}\n", "{}").replace("{}", "{scanDays: 90}")
    text = (
        text.replace("    mpi:", "    scan: {date: 2020-01-31}\n    mpi:")
        .replace(
            '    scan: {date: 2020-01-31}\n    mpi: {implementation: OpenMPI, version: "5.0.8"}\n    scan',
            '    mpi: {implementation: OpenMPI, version: "5.0.8"}\n    scan',
        )
        .replace("    framework: torch\n", "    framework: torch\n    scan: {date: 2020-01-31}\n")
    )
    root = workspaces.write(tmp_path, workspaces.STOCK | {"images/catalog.yaml": text})
    assert gangplan("render", "-C", root).code == 0
    assert {rule for _, rule in gangplan("validate", "--no-cache", "-C", root).errors()} == {"image-scan-old"}
