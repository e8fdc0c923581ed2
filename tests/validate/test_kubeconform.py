"""The real kubeconform, with the same schemas, agrees with the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gangplan.pipeline.second_opinion import _WORD
from gangplan.tools.kubeconform import Kubeconform
from gangplan.validate.apiserver.schema import (
    SchemaVersions,
    check_object_against_api_schema,
    judge_object_by_reference_json_schema,
    write_schemas,
)
from tests.validate.cases import CLUSTERS, broken, broken_object, valid

pytestmark = pytest.mark.real_tool("kubeconform")


@pytest.mark.parametrize("is_narrowed", [False, True], ids=["whole", "narrowed"])
@pytest.mark.parametrize("at", CLUSTERS, ids=str)
def test_kubeconform_agrees_with_the_embedded_engine(
    at: SchemaVersions, is_narrowed: bool, tmp_path: Path, real_kubeconform: Kubeconform
) -> None:
    bodies = [good.body for good in valid().values() if at in good.clusters()]
    bodies += [
        broken_object(case)
        for case in broken()
        if case.get("engine") != "ours"
        and at in valid()[case["object"]].clusters(case.get("versions"))
        # kubeconform itself, not its schema, requires a name, and then checks nothing else.
        and case["case"] != "generated name"
    ]
    manifests = "---\n".join(yaml.safe_dump(body) for body in bodies).encode()
    words = set(_WORD.findall(manifests.decode())) if is_narrowed else None
    schemas = write_schemas(at, tmp_path / "schemas", words=words)
    verdicts = real_kubeconform.check(manifests, schemas, expected=len(bodies))
    for body, verdict in zip(bodies, verdicts, strict=True):
        ours = check_object_against_api_schema(body, at)
        assert (verdict.status == "valid") == (not ours), (body, verdict, ours)
        assert bool(ours) == bool(judge_object_by_reference_json_schema(body, at))
    assert {verdict.status for verdict in verdicts} == {"valid", "invalid"}


def test_materialise_rewrites_only_changed_schemas(tmp_path: Path) -> None:
    folder = write_schemas(CLUSTERS[-1], tmp_path)
    files = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert {"trainjob-trainer-v1alpha1.json", "pod-v1.json", "localqueue-kueue-v1beta2.json"} <= set(files)
    (tmp_path / "pod-v1.json").write_text("{}", encoding="utf-8")
    write_schemas(CLUSTERS[-1], tmp_path)
    after = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert {name for name in files if files[name] != after[name]} == {"pod-v1.json"}
