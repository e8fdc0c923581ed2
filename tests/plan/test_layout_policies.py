"""Values of --map-by, --rank-by and --bind-to, as mpirun of Open MPI 4.1.8 and 5.0.11 accepts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.test_command import planned

# Image, options: the rule and the end of the help; empty if they are accepted.
CASES: dict[tuple[str, str], tuple[str, str]] = {
    ("openmpi", "-np, 8, --map-by, seq"): ("ranks-mismatch", "[mpirun, -np, 8, p]."),
    ("openmpi4", "-np, 8, --mca, rmaps, seq"): ("ranks-mismatch", "[mpirun, -np, 8, p]."),
    ("openmpi", "--rank-by, core"): ("command-option", "Remove it. Write command: [mpirun, p]."),
    ("openmpi4", "--rank-by, core"): ("", ""),
    ("openmpi4", "--rank-by, span"): ("command-option", "[mpirun, p]."),
    ("openmpi", "--rank-by, span"): ("", ""),
    ("openmpi4", "--map-by, 'package:PE=2'"): ("command-option", "--map-by, socket:PE=2, p]."),
    ("openmpi", "--map-by, 'package:PE=2'"): ("", ""),
    ("openmpi", "--map-by, Socket"): ("", ""),
    ("openmpi", "--map-by, 'dist:span'"): ("command-option", "[mpirun, p]."),
    ("openmpi4", "--map-by, 'pe-list=0,1'"): ("command-option", "[mpirun, p]."),
    ("openmpi", "--map-by, 'pe-list=0,1'"): ("", ""),
    ("openmpi4", "--map-by, nodes"): ("command-option", "[mpirun, --map-by, node, p]."),
    ("openmpi", "--map-by, nodes"): ("", ""),
    ("openmpi", "--map-by, ':OVERSUBSCRIBE'"): ("", ""),
    ("openmpi4", "--bind-to, 'cores:overload-allowed'"): ("command-option", "core:overload-allowed, p]."),
    ("openmpi", "--bind-to, board"): ("command-option", "[mpirun, p]."),
    ("openmpi4", "--bind-to, board"): ("", ""),
    ("openmpi", "--map-by, 'ppr:1:numa'"): ("command-unreadable", "[mpirun, -np, 8, --map-by, ppr:1:numa, p]."),
    ("openmpi", "-np, 8, --map-by, 'ppr:1:numa'"): ("", ""),
    ("openmpi", "--map-by, 'ppr:2:node'"): ("", ""),
}  # fmt: skip


@pytest.mark.parametrize(("image", "options"), CASES)
def test_layouts_that_the_version_lacks_are_refused(image: str, options: str, root: Path) -> None:
    rule, help = CASES[image, options]
    found = [one for one in planned(root, image, f"[mpirun, {options}, p]").findings if one.is_error]
    assert [str(one.rule) for one in found] == [rule] * bool(rule)
    assert all(one.help.endswith(help) for one in found)


def test_a_sequence_is_right_for_one_rank_on_each_worker(root: Path) -> None:
    result = planned(root, "openmpi", "[mpirun, --map-by, seq, p]", "slots: 1")
    assert not [one for one in result.findings if one.is_error]


@pytest.mark.parametrize(
    ("flags", "refused"),
    [("--map-by, 'ppr:2:socket'", False), ("--rank-by, socket", True), ("--rank-by, fill", False)],
)
def test_flags_are_checked_as_well(flags: str, refused: bool, root: Path) -> None:
    found = planned(root, "openmpi", "[p]", f"mpi: {{flags: [{flags}]}}").findings
    assert [str(one.rule) for one in found if one.is_error] == ["command-option"] * refused


def test_a_value_that_a_script_computes_is_not_judged(root: Path) -> None:
    found = planned(root, "openmpi", "[bash, -c, 'mpirun --map-by $(cat how) p']").findings
    assert not [one for one in found if one.is_error]
