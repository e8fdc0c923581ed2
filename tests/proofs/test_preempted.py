"""Which runs preempt which others, compared with looking at all pairs; only few pairs are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gangplan.pipeline.whole import can_ranked_runs_clash, clash_rank_of
from gangplan.validate import collisions
from gangplan.validate.collisions import Preempted, find_preempted_runs_without_checkpoints
from gangplan.validate.kueue.contention import RunDemand

KEYS = [("a100", "cpu"), ("a100", "nvidia.com/gpu"), ("cpu", "memory")]
MOST = {key: Fraction(8) for key in KEYS}


def by_pairs(demands: Mapping[str, RunDemand]) -> Iterator[Preempted]:
    """Yield the preempted runs by the definition: look at every pair of runs in one queue."""
    for name, one in demands.items():
        if one.resumes or one.borrows or not one.gives_way:
            continue
        rivals = []
        for rival, other in demands.items():
            if other.queue == one.queue and other.priority > one.priority:
                for key, amount in (one.usage or {}).items():
                    total = amount + (other.usage or {}).get(key, Fraction(0))
                    if total > (one.most or {})[key] and total > amount:
                        rivals.append((other.priority, rival, (key[1], total, (one.most or {})[key])))
                        break
        if rivals:
            _, rival, clash = max(rivals)
            yield Preempted(name, rival, *clash)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, RunDemand]:
    names = draw(st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=12))
    amounts = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 10).map(Fraction))
    return {
        name: RunDemand(
            *(1, {}, (), True, draw(st.sampled_from(("", "x", "y"))), draw(st.integers(0, 3))),
            *(draw(st.booleans()), draw(st.integers(0, 4)) > 0, draw(st.integers(0, 4)) == 0),
            draw(amounts),
            {key: draw(st.sampled_from((Fraction(0), Fraction(4), Fraction(12)))) for key in KEYS},
        )
        for name in names
    }


@given(demands=runs())
def test_preempted_runs_equal_those_found_by_all_pairs(demands: dict[str, RunDemand]) -> None:
    assert list(find_preempted_runs_without_checkpoints(demands)) == list(by_pairs(demands))
    if not can_ranked_runs_clash({clash_rank_of(one) for one in demands.values()}):
        assert not list(
            find_preempted_runs_without_checkpoints(demands)
        )  # so nothing needs to know what the runs request


def test_the_search_for_rivals_grows_linearly_with_runs() -> None:
    """Four times the runs cause four times the lookups."""
    asked = []
    plain = collisions._Rivals.in_the_way_of

    def counted(self: collisions._Rivals, one: RunDemand) -> str:
        asked.append(one)
        return plain(self, one)

    counts = []
    for number in (50, 200):
        demands = {
            f"{at:03}": RunDemand(
                1, {}, (), True, "x", at % 3, False, True, False, {KEYS[0]: Fraction(at % 5)}, MOST
            )
            for at in range(number)
        }
        asked.clear()
        collisions._Rivals.in_the_way_of = counted  # type: ignore[method-assign]
        try:
            found = list(find_preempted_runs_without_checkpoints(demands))
        finally:
            collisions._Rivals.in_the_way_of = plain  # type: ignore[method-assign]
        assert found == list(by_pairs(demands))
        counts.append(len(asked))
    assert counts[1] <= 4.2 * counts[0]
