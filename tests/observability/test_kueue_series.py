"""Kueue's own source, if the lab has downloaded it, has every series that its version is asked for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.generators.alerts import generate_prometheus_rules
from gangplan.generators.dashboards import generate_dashboards
from gangplan.model.version import parse_version
from tests.lab.programs import CATALOG
from tests.observability.sites import NEW

pytestmark = pytest.mark.e2e

VERSIONS = [program.version for program in CATALOG if program.name == "kueue"]


def source(version: str) -> str:
    """Return the file that defines Kueue's metrics, or skip the test."""
    if not shutil.which("go"):
        pytest.skip("no Go toolchain: install Go (make lab downloads Kueue with it)")
    cache = subprocess.run(
        ["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    path = Path(cache) / f"sigs.k8s.io/kueue@v{version}/pkg/metrics/metrics.go"
    if not path.is_file():
        pytest.skip(f"Kueue {version} has not been downloaded (make lab)")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_series_is_in_the_source(version: str) -> None:
    defined = {f"kueue_{name}" for name in re.findall(r'Name:\s+"([a-z_]+)"', source(version))}
    site = replace(NEW, platform=replace(NEW.platform, kueue=parse_version(version)))
    asked = set(
        re.findall(
            r"\bkueue_[a-z_]+", json.dumps([generate_prometheus_rules(site), generate_dashboards(site)])
        )
    )
    asked = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}
    assert len(asked) >= 10
    assert asked <= defined
