"""What kubeconform is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.validate.apiserver.schema import SchemaVersions
from tests import workspaces
from tests.workspaces import gangplan, write

CRD = {
    "group": "example.com",
    "kind": "Gateway",
    "plural": "gateways",
    "scope": "Cluster",
    "versions": {"v1": {"type": "object"}},
}


class Judge:
    """A validator that finds nothing wrong."""

    label = "a judge"

    def check(self, files: list[Path], schemas: Path) -> list[Any]:
        assert files
        return []


def test_kubeconform_gets_the_versions_and_crds_of_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[SchemaVersions] = []
    monkeypatch.setattr("gangplan.pipeline.second_opinion.find_kubeconform", lambda *_: Judge())
    monkeypatch.setattr(
        "gangplan.pipeline.second_opinion.write_schemas", lambda versions, *_: given.append(versions)
    )
    root = write(workspaces.stock(tmp_path), {"schemas/example.com/gateways.json": json.dumps(CRD)})
    assert gangplan("validate", "-C", root).code == Exit.CLEAN
    assert given
    assert all(one.crds and one.crds.engine("example.com/v1", "Gateway", 34) for one in given)
