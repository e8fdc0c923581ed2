"""Every family, posture and kind of launcher on 2, 3, 17 and 40 hosts (`make reality`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES

pytestmark = pytest.mark.reality


@pytest.mark.parametrize("posture", ["default", "restricted", "isolated"])
@pytest.mark.parametrize("runs_ranks", [False, True], ids=["launcher", "no launcher"])
@pytest.mark.parametrize("hosts", [2, 3, 17, 40])
@pytest.mark.parametrize("name", ALL)
def test_planned_ranks_run(name: str, hosts: int, runs_ranks: bool, posture: str, tmp_path: Path) -> None:
    lines = ["slots: 1", f"network: {{posture: {posture}}}"]
    lines += ["launcher: {runsRanks: true}"] if runs_ranks else []
    with running_spec(tmp_path, FAMILIES[name], spec(FAMILIES[name], hosts, *lines)) as run:
        assert run.end(300) == 0, run.story()
        run.check()
