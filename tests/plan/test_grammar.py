"""Laws about reading commands: it never fails, keeps what is right, and follows the tables of options."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.plan.launchers import MPI_LAUNCHERS, MpiGeneration, UnreadableError, find_launchers
from gangplan.plan.launchers.foreign import OTHER_LAUNCHERS
from gangplan.plan.launchers.programs import MPI_PROGRAMS
from gangplan.plan.launchers.training import ACCELERATE, DEEPSPEED, HOROVODRUN, TORCH_LAUNCH, TORCHRUN
from gangplan.rules.model import Severity
from tests import workspaces
from tests.launchers import IMAGES, MARK, command_lines, junk, right_lines
from tests.plan.asking import decided
from tests.plan.test_typed import proposed

ROOT = workspaces.stock(Path(tempfile.mkdtemp()))
FAMILY = st.sampled_from(sorted(MPI_LAUNCHERS))


@given(st.lists(junk, min_size=1, max_size=9), st.sampled_from([*MPI_LAUNCHERS, None]))
@settings(max_examples=120, deadline=None)
def test_reading_never_fails(words: list[str], family: MpiGeneration | None) -> None:
    try:
        found = find_launchers(words, family)
    except UnreadableError:
        return
    for one in found:
        assert 0 <= one.start.begin <= one.start.at
        assert all(begin < end <= len(one.reading.words) for begin, end in one.reading.programs)


@given(st.lists(junk, max_size=9), st.sampled_from(["openmpi", "openmpi4", "mpich", "pytorch", "deepspeed"]))
@settings(max_examples=120, deadline=None)
def test_deciding_never_fails(words: list[str], image: str) -> None:
    """It never proposes a command that is itself wrong."""
    for problem in decided(
        ROOT, image, ["./a" if not words or not words[0].strip() else words[0], *words[1:]]
    ).problems:
        right = proposed(problem.help)
        if right is not None:
            again = decided(ROOT, image, right).problems
            assert [one for one in again if one.severity is Severity.ERROR] == [], problem


@given(st.data(), FAMILY)
@settings(max_examples=120, deadline=None)
def test_a_right_launcher_line_is_kept(data: st.DataObject, family: MpiGeneration) -> None:
    words = data.draw(right_lines(family, ranks=8, slots=2))
    final = decided(ROOT, IMAGES[family], words)
    assert [one.message for one in final.problems] == []
    assert not final.is_wrapped
    assert "".join(final.argv).count(MARK) == 1


@given(st.data(), FAMILY)
@settings(max_examples=120, deadline=None)
def test_rank_counts_of_another_plan_are_refused(data: st.DataObject, family: MpiGeneration) -> None:
    """A line for 6 workers of 3 ranks names a number that does not fit 4 workers of 2, or no number."""
    words = data.draw(right_lines(family, ranks=18, slots=3))
    numbers = re.findall(r"(?<![0-9])(?:18|3)(?![0-9])", " ".join(words).replace("C=3", ""))
    rules = {one.rule for one in decided(ROOT, IMAGES[family], words).problems}
    assert rules == ({"ranks-mismatch"} if numbers else set())


@given(st.data(), FAMILY)
@settings(max_examples=120, deadline=None)
def test_proposals_for_any_line_are_right(data: st.DataObject, family: MpiGeneration) -> None:
    """A line is kept, wrapped or refused; what is proposed instead is right."""
    words = data.draw(command_lines(family, ranks=8, slots=2))
    for problem in decided(ROOT, IMAGES[family], words).problems:
        right = proposed(problem.help)
        if right is not None:
            assert all(
                one.severity < Severity.ERROR for one in decided(ROOT, IMAGES[family], right).problems
            ), problem


@pytest.mark.parametrize(
    "launcher", [*MPI_LAUNCHERS.values(), HOROVODRUN, DEEPSPEED, TORCHRUN, TORCH_LAUNCH, ACCELERATE, *OTHER_LAUNCHERS.values()],
    ids=lambda one: f"{one.name} {one.source}",
)  # fmt: skip
def test_each_option_table_is_consistent(launcher: object) -> None:
    from gangplan.plan.launchers import LauncherProgram

    assert isinstance(launcher, LauncherProgram)
    assert launcher.kind == "foreign" or launcher.source
    for name, option in launcher.options.items():
        assert name == name.strip("-")
        assert 0 <= option.words <= 2
        assert launcher.option(name) == option
    assert launcher.joined | launcher.short <= set(launcher.options) | set("nNcgpra")


def test_each_family_has_a_launcher() -> None:
    assert set().union(*MPI_PROGRAMS.values()) == set(MPI_LAUNCHERS)
