"""Laws of every simulation, whatever the queues and runs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.kueue.model import (
    ClusterQueue,
    KueueWorkload,
    Podset,
    PreemptionRules,
    QuotaSetup,
    ResourceGroup,
)
from gangplan.simulate.engine import Simulation, simulate_runs
from gangplan.simulate.outcome import compute_simulation_outcome

POLICIES = ("Never", "LowerPriority", "Any")
KEY = ("default", "gpu")


@st.composite
def setups(draw: st.DrawFn) -> QuotaSetup:
    queues = []
    for name in ("one", "two", "three")[: draw(st.integers(1, 3))]:
        nominal, in_cohort = draw(st.integers(0, 8)), draw(st.booleans())
        limits = [
            {KEY: draw(st.integers(0, nominal))} if in_cohort and draw(st.booleans()) else {}
            for _ in range(2)
        ]
        rules = PreemptionRules(
            draw(st.sampled_from(("Never", "LowerPriority"))), draw(st.sampled_from(POLICIES))
        )
        queues.append(
            ClusterQueue(
                name,
                "all" if in_cohort else "",
                {KEY: nominal},
                *limits,
                float(draw(st.integers(0, 3))),
                (ResourceGroup(("gpu",), ("default",)),),
                draw(st.booleans()),
                rules,
            )
        )
    return QuotaSetup(tuple(queues), (), draw(st.booleans()))


@st.composite
def runs(draw: st.DrawFn, setup: QuotaSetup, most: int = 12) -> list[KueueWorkload]:
    return [
        KueueWorkload(
            f"run{number}",
            draw(st.sampled_from([queue.name for queue in setup.queues])),
            (Podset("node", 1, {"gpu": draw(st.integers(1, 6))}),),
            draw(st.sampled_from((0, 10, 20))),
            float(draw(st.integers(1, 20))),
            float(draw(st.integers(0, 30))),
            draw(st.sampled_from((None, 0.0, 3.0))),
        )
        for number in range(draw(st.integers(1, most)))
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[QuotaSetup, list[KueueWorkload]]:
    setup = draw(setups())
    return setup, draw(runs(setup))


def check_quota(engine: Simulation) -> None:
    """Check that no queue holds more than there is, and that the tree counts exactly what is held."""
    tree = engine.state.tree
    held = [Counter[int]() for _ in engine.state.setup.queues]
    for queue, rows in enumerate(engine.state.holdings):
        for one in rows.values():
            held[queue].update(one.usage)
    for queue, counted in enumerate(held):
        for key in range(len(tree.keys)):
            assert tree.usage[queue][key] == counted[key]
            assert counted[key] <= tree.potential[queue][key]
    for key in range(len(tree.keys)):
        total = sum(tree.nominal[node][key] for node in range(len(tree.parent)))
        assert sum(counted[key] for counted in held) <= total


@settings(max_examples=300, deadline=None)
@given(cases())
def test_usage_is_within_the_quota_at_every_moment(case: tuple[QuotaSetup, list[KueueWorkload]]) -> None:
    engine = Simulation(*case)
    while engine._future:
        engine.step()
        check_quota(engine)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_same_input_gives_the_same_events(case: tuple[QuotaSetup, list[KueueWorkload]]) -> None:
    assert simulate_runs(*case).events == simulate_runs(*case).events


@settings(max_examples=300, deadline=None)
@given(cases())
def test_runs_alternate_between_admitted_and_preempted_until_they_finish(
    case: tuple[QuotaSetup, list[KueueWorkload]],
) -> None:
    """Events are in order of time; in the end, a run is either finished or waiting."""
    setup, all_runs = case
    engine = simulate_runs(setup, all_runs)
    assert [event.time for event in engine.events] == sorted(event.time for event in engine.events)
    waiting = {run.name for run in engine.waiting()}
    for run in all_runs:
        told = [event for event in engine.events if event.run == run.name]
        assert all(event.what == "admitted" for event in told[::2])
        assert all(event.what == "preempted" for event in told[1:-1:2])
        ends = bool(told) and told[-1].what == "finished"
        assert ends != (run.name in waiting)
        if ends:
            spans = zip(told[::2], told[1::2], strict=True)
            worked = sum(end.time - start.time for start, end in spans)
            assert abs(worked - run.duration - engine.lost.get(run.name, 0.0)) < 1e-6


@settings(max_examples=200, deadline=None)
@given(cases())
def test_no_run_waits_that_would_fit(case: tuple[QuotaSetup, list[KueueWorkload]]) -> None:
    """After every moment, a run that fits and waits is behind another one in a strict queue."""
    engine = Simulation(*case)
    while engine._future:
        now = engine.step()
        for pending in engine.pending:
            for asking in pending.all()[: 1 if pending.is_strict else None]:
                usage = {0: asking.run.podsets[0].amounts["gpu"]}
                free = engine.state.tree.fits(asking.queue, usage)
                # A waiting run that cannot reclaim its quota keeps room free that others may not use.
                keeps = any(queue.preemption.reclaim != "Any" for queue in case[0].queues)
                assert not free or keeps or asking.run.name in engine.endless, (now, asking.run)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), min_size=1, max_size=12), st.integers(6, 12)
)
def test_a_strict_queue_with_more_quota_starts_no_run_later(
    sizes: list[tuple[int, int]], capacity: int
) -> None:
    """This holds without preemption, if all runs are submitted at the start."""

    def starts(quota: int) -> dict[str, float]:
        queue = ClusterQueue(
            "one", "", {KEY: quota}, {}, {}, 1.0, (ResourceGroup(("gpu",), ("default",)),), is_strict=True
        )
        found = [
            KueueWorkload(f"run{number}", "one", (Podset("node", 1, {"gpu": size}),), 0, float(length))
            for number, (size, length) in enumerate(sizes)
        ]
        events = simulate_runs(QuotaSetup((queue,), (), False), found).events
        return {event.run: event.time for event in events if event.what == "admitted"}

    less, more = starts(capacity), starts(capacity + 3)
    assert all(more[name] <= less[name] for name in less)


def test_more_quota_can_be_slower_if_small_runs_pass_large_ones() -> None:
    """Graham's anomaly: where runs pass each other, one more GPU can make the whole take longer.

    With 5, the last run slips in at 4 and the third starts at 9; with 6, the third fits at 4, and the last
    waits.
    """

    def makespan(quota: int) -> float:
        queue = ClusterQueue("one", "", {KEY: quota}, {}, {}, 1.0, (ResourceGroup(("gpu",), ("default",)),))
        found = [
            KueueWorkload(f"run{number}", "one", (Podset("node", 1, {"gpu": size}),), 0, float(length))
            for number, (size, length) in enumerate([(3, 9), (2, 4), (3, 7), (2, 8)])
        ]
        return simulate_runs(QuotaSetup((queue,), (), False), found).events[-1].time

    assert (makespan(5), makespan(6)) == (16, 17)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_utilisation_is_the_work_done(case: tuple[QuotaSetup, list[KueueWorkload]]) -> None:
    setup, all_runs = case
    engine = simulate_runs(setup, all_runs)
    outcome = compute_simulation_outcome(engine, all_runs)
    if not outcome.used or outcome.waiting:
        return
    sizes = {run.name: run.podsets[0].amounts["gpu"] for run in all_runs}
    work = sum(sizes[run.name] * (run.duration + engine.lost.get(run.name, 0.0)) for run in all_runs)
    assert abs(outcome.mean * outcome.capacity * outcome.total.makespan - work) < 1e-6 * max(1.0, work)
    assert 0 <= outcome.mean <= outcome.peak + 1e-9 <= 1 + 2e-9
