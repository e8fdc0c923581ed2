"""The committed schema files: small, canonical, and as the generator builds them from the pinned packages."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from gangplan.model.support import parse_line_key
from gangplan.validate.apiserver.schema import SCHEMA_FILES

FILES = ["addons.json", "jobset.json", "kubernetes.json", "kueue.json", "mpi.json", "trainer.json"]
# Development only: a folder with the wheels that schemas/build.py names (it downloads missing ones).
PACKAGES = os.environ.get("GANGPLAN_SCHEMA_PACKAGES")


def test_the_files_are_few_and_small() -> None:
    assert sorted(file.name for file in SCHEMA_FILES.glob("*.json")) == FILES
    assert sum((SCHEMA_FILES / name).stat().st_size for name in FILES) < 300_000


@pytest.mark.parametrize("name", FILES)
def test_no_definition_is_repeated_in_successive_versions(name: str) -> None:
    content = json.loads((SCHEMA_FILES / name).read_bytes())
    assert content["versions"] == sorted(content["versions"], key=parse_line_key)
    for definition, variants in content["definitions"].items():
        ordered = [variants[minor] for minor in sorted(variants, key=parse_line_key)]
        assert all(one != two for one, two in pairwise(ordered)), definition
        assert "description" not in (ordered[0] or {})


@pytest.mark.skipif(not PACKAGES, reason="GANGPLAN_SCHEMA_PACKAGES is not set (development only)")
def test_the_files_are_fresh() -> None:
    from gangplan.validate.apiserver.schemas.build import build_apiserver_schema_files

    assert PACKAGES
    for name, text in build_apiserver_schema_files(Path(PACKAGES)).items():
        assert (SCHEMA_FILES / name).read_text(encoding="utf-8") == text, (
            "run python validate/apiserver/schemas/build.py"
        )
