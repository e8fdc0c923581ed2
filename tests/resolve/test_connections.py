"""Object stores: keys in the environment, or files through a claim; a run has one pair of keys."""

from __future__ import annotations

from pathlib import Path

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.rules.model import Severity
from tests import workspaces

SPEC = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: openmpi\ncommand: [p]\nworkers: 2\n"
MAPS = '  maps: {endpoint: "https://s3.example.com", bucket: maps, secret: maps-s3}\n'


def previewed(root: Path, lines: str) -> Result:
    """Preview a workspace with one spec of these lines, and one more connection with its own keys."""
    team = workspaces.TEAM.replace("connections:\n", "connections:\n" + MAPS)
    workspaces.write(
        root,
        {**workspaces.STOCK, "specs/nlp/filings.yaml": SPEC + lines, "specs/nlp/team.yaml": team},
    )
    return preview_render(Request(root, engine="serial"))


def test_two_connections_with_different_keys_are_refused(tmp_path: Path) -> None:
    result = previewed(tmp_path, "data: {lidar: env, maps: env}\n")

    (found,) = [one for one in result.findings if one.severity is Severity.ERROR]
    assert (found.rule, found.where.line, found.where.column) == ("connection-clash", 6, 20)
    assert "'maps' and 'lidar' have different addresses or keys" in found.message


def test_a_mounted_connection_brings_no_keys(tmp_path: Path) -> None:
    result = previewed(tmp_path, "data: {maps: env, radar: /radar}\n")

    assert not [one for one in result.findings if one.severity is Severity.ERROR]
    (run,) = result.runs
    secrets = {variable.secret for variable in run.unit.job.env if variable.secret}
    assert secrets == {"maps-s3"}
    assert [mount.claim for mount in run.unit.job.mounts] == ["lidar-files"]
