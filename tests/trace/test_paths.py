"""How the path of a traced field is written."""

from __future__ import annotations

import pytest

from gangplan.findings import FieldPath, Location
from gangplan.trace.cause import Cause, build_trace_from_causes
from gangplan.validate.problems import format_path


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (("nodePools", "a100-80gb", "taints", 0, "key"), "nodePools.a100-80gb.taints[0].key"),
        (("labels", "example.com/team"), "labels['example.com/team']"),
        (("labels", "two words"), "labels['two words']"),
        (("teams", "it's"), 'teams["it\'s"]'),
        (("env", ""), "env['']"),
    ],
)
def test_a_path_is_written_as_in_every_finding(path: FieldPath, written: str) -> None:
    trace = build_trace_from_causes(
        [Cause(Location("a.yaml", 1, 1), "it is there", "a.yaml", path)], Location("b.yaml")
    )
    assert trace.field == written == format_path(path)
