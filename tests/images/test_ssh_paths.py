"""Where the SSH server of an image has keys and configuration: the user of a run must be able to read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests.workspaces import gangplan, stock

FILE = "images/catalog.yaml"
MPI = 'mpi: {implementation: OpenMPI, version: "5.0.8"}\n'

# Entry -> the fields that are refused, in order.
PATHS = {
    "both in the home of root": (
        "ssh: {keys: /root/.ssh, config: /root/.sshd_config}",
        ["ssh.keys", "ssh.config"],
    ),
    "the home itself": ("ssh: {keys: /root}", ["ssh.keys"]),
    "near: a folder that begins like it": ("ssh: {keys: /rooted/.ssh}", []),
    "near: the home of another user": ("ssh: {keys: /home/trainer/.ssh}", []),
}


@pytest.mark.parametrize("case", PATHS)
def test_the_home_of_root_is_refused(case: str, tmp_path: Path) -> None:
    entry, fields = PATHS[case]
    root = stock(tmp_path)
    text = (root / FILE).read_text(encoding="utf-8")
    assert MPI in text
    (root / FILE).write_text(text.replace(MPI, f"{MPI}    {entry}\n", 1), encoding="utf-8")
    outcome = gangplan("validate", "-C", root)
    messages = [one.message for one in outcome.findings if one.severity == "error"]
    why = "only root may enter /root, and containers of runs have another user"
    assert messages == [f"images.openmpi.{field}: {why}" for field in fields]
    assert outcome.code == (Exit.INPUT if fields else Exit.CLEAN)
