"""Node fit compared with an exhaustive search on small worlds: as many pods at best, and at worst."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.validate.scheduler import Fit, fit_pods
from gangplan.validate.scheduler.fits import fit_pods as fit_again
from gangplan.validate.scheduler.reduce import Reducer
from gangplan.validate.scheduler.search import search_best_pod_packing
from gangplan.validate.scheduler.solve import solve_fit_question
from tests.fit.oracle import Case, Oracle, pods_of, random_case


def small(seed: int) -> Case:
    """Return a world that is small enough for an exhaustive search."""
    chance = random.Random(seed)
    return random_case(chance, nodes=2, pods=3, kinds=chance.choice((1, 2, 2, 3)))


def disagreement(case: Case) -> str:
    """Return what the solver says and the oracle refutes; empty if they agree."""
    fit = fit_pods(case.world, pods_of(case))
    most, least = Oracle(case).bounds()
    if fit.bound > most:
        return f"{fit.bound} placed, at most {most} can be"
    if fit.is_exact and fit.bound != most:
        return f"{fit.bound} said to be the most, {most} can be placed"
    if fit.sure is not None and fit.sure != least:
        return f"{fit.sure} said to be sure, a dead end has {least}"
    # The search must agree with the count.
    found = search_best_pod_packing(Reducer(case.world, pods_of(case)).question())
    if found.sure is not None and (found.bound, found.sure) != (most, least):
        return f"searched {found.sure} to {found.bound}, it is {least} to {most}"
    return ""


@pytest.mark.parametrize("part", range(8))
def test_answers_on_small_worlds_equal_an_exhaustive_search(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        case = small(seed)
        assert not disagreement(case), case


@settings(max_examples=100, deadline=None)
@given(st.integers(800, 2**32))
def test_answers_on_random_small_worlds_equal_an_exhaustive_search(seed: int) -> None:
    assert not disagreement(small(seed))


def test_the_random_worlds_have_every_verdict() -> None:
    """Otherwise the property above would prove little."""
    found: Counter[str] = Counter()
    for seed in range(400):
        case = small(seed)
        fit = fit_pods(case.world, pods_of(case))
        found[fit.verdict] += 1
        found["partly"] += 0 < fit.bound < fit.pods
    assert found["sure"] > 60, found
    assert found["possible"] > 3, found
    assert found["no"] > 60, found
    assert found["partly"] > 30, found
    assert found["unknown"] < 20, found


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_counting_and_search_agree(seed: int) -> None:
    """Two ways to one answer, on pools of dozens of nodes on which the search can still end."""
    chance = random.Random(seed)
    case = random_case(chance, nodes=8, pods=6, kinds=chance.choice((1, 2)))
    question = Reducer(case.world, pods_of(case)).question()
    counted, searched = solve_fit_question(question), search_best_pod_packing(question, budget=1500)
    assert searched.bound <= counted.bound or not counted.is_most
    if searched.sure is not None:
        assert (counted.bound, counted.sure) == (searched.bound, searched.sure)


def test_an_answer_does_not_depend_on_earlier_questions() -> None:
    for seed in range(40):
        case = random_case(random.Random(seed))
        first: Fit = fit_pods(case.world, pods_of(case))
        solve_fit_question.cache_clear()
        assert fit_again(case.world, pods_of(case)) == first
