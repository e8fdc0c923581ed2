"""Laws of queues with several flavors: the search for a flavor is resumed and cut short, but never lost."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.kueue.model import (
    ClusterQueue,
    Fungibility,
    KueueWorkload,
    Podset,
    PreemptionRules,
    QuotaSetup,
    ResourceGroup,
)
from gangplan.model.support import KUEUE_LINES, KueueLine
from gangplan.simulate.engine import Simulation, simulate_runs

VERSIONS = (KUEUE_LINES["0.15"], KUEUE_LINES["0.18"], KUEUE_LINES["0.19"])
POLICIES = ("Never", "LowerPriority", "Any")
ON = ("MayStopSearch", "TryNextFlavor")


@st.composite
def cases(draw: st.DrawFn) -> tuple[QuotaSetup, list[KueueWorkload]]:
    """Draw one to three queues of a cohort with two or three flavors, and a few runs."""
    flavors = ("fast", "slow", "slowest")[: draw(st.integers(2, 3))]
    queues = tuple(
        ClusterQueue(
            name,
            "all",
            {(flavor, "cpu"): draw(st.sampled_from((0, 2, 4, 8))) for flavor in flavors},
            {},
            {},
            1.0,
            (ResourceGroup(("cpu",), flavors),),
            draw(st.booleans()),
            PreemptionRules(
                draw(st.sampled_from(("Never", "LowerPriority"))), draw(st.sampled_from(POLICIES))
            ),
            Fungibility(draw(st.sampled_from(ON)), draw(st.sampled_from(ON))),
        )
        for name in ("one", "two", "three")[: draw(st.integers(1, 3))]
    )
    runs = [
        KueueWorkload(
            f"run{number}",
            draw(st.sampled_from(queues)).name,
            (Podset("node", 1, {"cpu": draw(st.integers(1, 6))}),),
            draw(st.sampled_from((0, 10, 20))),
            float(draw(st.integers(1, 30))),
            float(draw(st.integers(0, 60))),
        )
        for number in range(draw(st.integers(3, 9)))
    ]
    return QuotaSetup(queues, (), draw(st.booleans()), kueue=draw(st.sampled_from(VERSIONS))), runs


@settings(max_examples=400, deadline=None)
@given(cases())
def test_the_short_cut_gives_the_events_of_the_whole_search(
    case: tuple[QuotaSetup, list[KueueWorkload]],
) -> None:
    """`_is_hopeless` only saves time: the same happens with it and without it."""
    short = simulate_runs(*case)
    with patch("gangplan.kueue.cycle._is_hopeless", lambda state, asking: False):
        whole = simulate_runs(*case)
    assert short.endless or whole.endless or short.events == whole.events


@settings(max_examples=400, deadline=None)
@given(cases())
def test_no_run_that_fits_waits_forever_in_an_idle_cluster(
    case: tuple[QuotaSetup, list[KueueWorkload]],
) -> None:
    """At the end, a waiting run fits no flavor of the idle cluster, or is queued after such a run."""
    setup, runs = case
    engine = simulate_runs(setup, runs)
    if engine.endless:
        return
    assert not any(engine.state.holdings)
    for pending in engine.pending:
        for asking in pending.all()[: 1 if pending.is_strict else None]:
            assert not _is_admitted_alone(setup, asking.run), asking.run


def _is_admitted_alone(setup: QuotaSetup, run: KueueWorkload) -> bool:
    engine = Simulation(setup, [run])
    engine.step()
    return bool(engine.events)


@pytest.mark.parametrize("kueue", VERSIONS)
def test_a_preempted_run_starts_again_on_the_first_flavor(kueue: KueueLine) -> None:
    """A run that borrowed lost a race, its search was at the second flavor, and idle GPUs never woke it.

    An evaluation that finds nothing starts the next one at the first flavor (pkg/scheduler/scheduler.go
    recordAssignment, v0.19.2).
    """
    gpu = "nvidia.com/gpu"
    rules = PreemptionRules("LowerPriority", "Any")

    def queue(name: str, first: int) -> ClusterQueue:
        nominal = {("h100", gpu): first, ("a100", gpu): 0}
        return ClusterQueue(
            name, "all", nominal, {}, {}, 1.0, (ResourceGroup((gpu,), ("h100", "a100")),), False, rules
        )

    setup = QuotaSetup((queue("owner", 128), queue("guest", 0)), (), False, kueue=kueue)
    pods = (Podset("node", 8, {gpu: 64}),)
    runs = [
        KueueWorkload("first", "owner", pods, 20, 1000.0, 0.0),
        KueueWorkload("guest", "guest", pods, 10, 100.0, 10.0),
        KueueWorkload("second", "owner", pods, 20, 50.0, 20.0),
    ]
    told = [(event.time, event.what) for event in simulate_runs(setup, runs).events if event.run == "guest"]
    assert told == [(10, "admitted"), (20, "preempted"), (70, "admitted"), (170, "finished")]
