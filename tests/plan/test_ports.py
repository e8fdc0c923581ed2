"""The port at which workers meet: open between them under the run's posture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan


@pytest.mark.parametrize(
    ("port", "posture", "is_closed"),
    [
        ("80", "restricted", True),
        ("1023", "isolated", True),
        ("80", "default", False),
        ("1024", "restricted", False),
        ("29500", "isolated", False),
    ],
)
def test_a_port_that_the_posture_closes_is_refused(
    port: str, posture: str, is_closed: bool, tmp_path: Path
) -> None:
    spec = workspaces.STOCK["specs/nlp/filings.yaml"].replace("image: openmpi", "image: pytorch")
    spec = spec.replace("[python, train.py]", f"torchrun --master-port={port} train.py")
    spec += f"network: {{posture: {posture}}}\n"
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/filings.yaml": spec})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "command-rendezvous"]
    assert [one.message for one in found] == [
        f"port {port} is closed between workers: posture {posture} opens 1024 to 65535"
    ] * is_closed
