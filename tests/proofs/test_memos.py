"""Cached answers equal those that would be computed again, for every run, valid or with a mistake."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.workspace import write_workspace
from gangplan.validate.kueue.contention import (
    can_preempted_run_resume,
    summarise_demand_of_queued_run,
    summed_up,
)
from gangplan.validate.kueue.model import NeverError
from gangplan.validate.kueue.request import build_run_request, build_unreduced_run_request
from gangplan.validate.kueue.solver import find_idle_verdict, solve_admission_without_cache
from gangplan.validate.memo import Memo, digest_memo_key
from gangplan.validate.network import check_reachability, connections
from gangplan.validate.network.clean import CleanRuns
from gangplan.validate.network.scene import network_scene_of
from gangplan.validate.scheduler.admitted import find_node_fit_of_admitted_pods, fit_pods_of_admitted_run
from gangplan.validate.world import BuiltRun, World
from tests.proofs.pool import Judged, judged, mistaken, outcome, shaken
from tests.test_examples import EXAMPLES

LAW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    """Return runs of all frameworks on three kinds of clusters; some teams have equal shares."""
    root = tmp_path_factory.mktemp("pool") / "workspace"
    write_workspace(root, 24, 1, 3, 4)
    return judged(root)


def check(world: World, run: BuiltRun) -> None:
    """Compare cached answers with those that are computed from all of the objects."""
    whole = outcome(lambda: build_unreduced_run_request(world, run.bodies))
    resumes = outcome(lambda: can_preempted_run_resume(run.bodies))
    if isinstance(whole, type) or isinstance(resumes, type):
        return
    request = outcome(lambda: build_run_request(world, run.bodies))
    if isinstance(request, type):
        return
    same(lambda: list(check_reachability(world, run)), lambda: plain_connections(world, run))
    same(lambda: find_idle_verdict(world, request), lambda: solve_admission_without_cache(world, whole))
    same(lambda: fit(find_node_fit_of_admitted_pods(world, request)), lambda: plain_fit(world, whole))
    same(
        lambda: summarise_demand_of_queued_run(world, request, resumes),
        lambda: summed_up(world, whole, resumes),
    )


def same(ask: Callable[[], Any], ask_plainly: Callable[[], Any]) -> None:
    """Check that both give the same answer, or that the objects would never pass the gate."""
    plain = outcome(ask_plainly)
    if not isinstance(plain, type) or issubclass(plain, NeverError):
        assert outcome(ask) == plain


def fit(found: Any) -> Any:
    """Return the answer, and what each pod requests."""
    return found and (found.fit, [(one.name, one.count, one.requests, one.ports) for one in found.pods])


def plain_fit(world: World, whole: Any) -> Any:
    """Return the same, computed without earlier answers."""
    return (
        None
        if solve_admission_without_cache(world, whole).outcome == "never"
        else fit(fit_pods_of_admitted_run(world, whole))
    )


def plain_connections(world: World, run: BuiltRun) -> Any:
    """Return what the proof of networks finds about the run itself."""
    scene = network_scene_of(world, run)
    return [] if scene is None else list(connections(scene))


def test_cached_answers_are_right_for_every_run_of_the_pool(pool: list[Judged]) -> None:
    for world, run in pool:
        check(world, run)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_cached_answers_are_right_for_every_run_of_the_examples(
    example: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if list((example / "input").glob("overlays/*/kustomization.yaml")):
        request.getfixturevalue("builder")
    shutil.copytree(example / "input", tmp_path / "workspace")
    for world, run in judged(tmp_path / "workspace"):
        check(world, run)


@LAW
@given(data=st.data())
def test_cached_answers_are_right_for_runs_with_a_mistake(pool: list[Judged], data: st.DataObject) -> None:
    world, run = data.draw(st.sampled_from(pool))
    check(world, data.draw(mistaken(run)))


@settings(LAW, max_examples=40)  # each checks all runs of a cluster
@given(data=st.data())
def test_cached_answers_are_right_for_worlds_with_a_mistake(pool: list[Judged], data: st.DataObject) -> None:
    """All runs of a cluster are checked in one world: those of one team after those of another."""
    world, _ = data.draw(st.sampled_from(pool))
    other = data.draw(shaken(world))
    for home, run in pool:
        if home is world:
            check(other, run)


def test_runs_of_teams_with_equal_shares_share_answers(pool: list[Judged]) -> None:
    """Otherwise the laws above would compare nothing."""
    found = {id(world): world for world, _ in pool}
    for world in found.values():
        requests = {build_run_request(world, run.bodies).key for home, run in pool if home is world}
        pods = {build_run_request(world, run.bodies).pods_key for home, run in pool if home is world}
        assert len(pods) < len(requests)


def test_runs_with_the_same_connections_share_answers(pool: list[Judged]) -> None:
    found = {id(world): world for world, _ in pool}
    for world in found.values():
        clean = world.once(CleanRuns)
        runs = [clean.key(run) for home, run in pool if home is world]
        assert len({*runs}) < len(runs)


def test_keys_differ_by_type_and_order() -> None:
    different = [{"a": 1}, {"a": True}, {"a": 1.0}, {"a": "1"}, {"a": None}, {}, [], {"a": 1, "b": 2}]
    different += [{"b": 2, "a": 1}, [["a"], "b"], [["a", "b"]]]
    assert len({digest_memo_key(one) for one in different}) == len(different)
    assert digest_memo_key({"a": [1, "x"]}) == digest_memo_key({"a": [1, "x"]})
    assert digest_memo_key(object()) is None


def test_a_memo_is_bounded() -> None:
    memo = Memo[int](most=3)
    for number in range(10):
        assert memo.answer(b"%d" % number, lambda number=number: number) == number
        assert len(memo) <= 3
    assert memo.answer(b"9", lambda: 0) == 9
    assert memo.answer(None, lambda: 5) == 5
