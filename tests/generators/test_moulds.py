"""Moulds give the same objects as rendering, for values that no template has seen before."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import mould
from gangplan.generators import generate_run_objects
from gangplan.model.job import Egress, EnvVar, Mount, Toleration
from gangplan.mould import Moulds, render_template_objects
from gangplan.objects import Body
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.plan import RunPlan
from tests.strategies import words
from tests.test_examples import EXAMPLES

SAMPLE = Path(__file__).resolve().parents[2]


@cache
def units() -> tuple[RunPlan, ...]:
    """Return the plans of all runs of the sample and of the examples."""
    roots = [SAMPLE, *(example / "input" for example in EXAMPLES)]
    return tuple(run.unit for root in roots for run in preview_render(Request(root, engine="serial")).runs)


@cache
def used() -> Moulds:
    """Return moulds that have seen every one of them."""
    moulds = Moulds(patience=0)
    for unit in units():
        generate_run_objects(unit, moulds.objects_of)
    return moulds


def same(left: Any, right: Any) -> bool:
    """Return whether values are equal, of the same types, with keys in the same order."""
    return repr(left) == repr(right)


def test_moulds_give_the_objects_of_every_run_of_the_examples() -> None:
    for _ in range(2):  # the first pass makes the moulds
        for unit in units():
            assert same(generate_run_objects(unit, used().objects_of), generate_run_objects(unit)), (
                unit.run_name
            )


def test_every_template_of_a_run_has_a_mould() -> None:
    plain = {name for name, tree in used().trees.items() if tree.is_plain}
    assert plain == used().trees.keys()
    assert {"networkpolicy.yaml.j2", "runtime.yaml.j2", "trainjob.yaml.j2"} <= plain
    assert {name[0] for name in plain if isinstance(name, tuple)} >= {
        *("mapping", "entries", "env_list", "mount_list", "volume_list", "toleration_list", "rule"),
    }


variables = st.lists(
    st.builds(EnvVar, words, words) | st.builds(EnvVar, words, secret=words, key=words), max_size=4
).map(tuple)
mounts = st.lists(
    st.builds(Mount, words, words, claim=words, secret=words, read_only=st.booleans()), max_size=3
).map(tuple)


@st.composite
def changed(draw: st.DrawFn) -> RunPlan:
    """Draw a run of an example with other words and amounts in it; not all of them could be resolved."""
    unit = draw(st.sampled_from(units()))
    job, launch = unit.job, unit.launch
    pool = replace(
        job.worker_pool,
        selector=tuple(draw(st.dictionaries(words, words, max_size=3)).items()),
        tolerations=tuple(draw(st.lists(st.builds(Toleration, words, words, words), max_size=2))),
    )
    job = replace(
        job,
        name=draw(words),
        description=draw(words),
        namespace=draw(words),
        labels=tuple(draw(st.dictionaries(words, words, max_size=3)).items()),
        worker_pool=pool,
        mounts=draw(mounts),
        egress=tuple(
            draw(st.lists(st.builds(Egress, words, words, st.just((draw(words),)), st.just((443, 80)))))
        ),
        posture=draw(st.sampled_from(["default", "restricted", "isolated"])),
        queue=draw(words),
        retries=draw(st.integers(0, 2)),
        timeout_s=draw(st.integers(0, 2**40)),
        spread=draw(st.sampled_from(["", "pack", "spread"])),
    )
    launch = replace(
        launch,
        argv=tuple(draw(st.lists(words, max_size=4))),
        worker_env=draw(variables),
        launcher_env=draw(variables),
    )
    layout = replace(unit.layout, slots=draw(st.integers(0, 2**31)))
    return replace(unit, job=job, launch=launch, layout=layout)


def outcome(unit: RunPlan, moulds: Moulds | None) -> Any:
    """Return the objects, or the type and text of the exception."""
    try:
        return generate_run_objects(unit, moulds.objects_of) if moulds else generate_run_objects(unit)
    except Exception as wrong:  # noqa: BLE001  whatever it is, it must be the same
        return type(wrong), str(wrong)


@settings(deadline=None)
@given(changed())
def test_moulds_give_the_objects_of_any_values(unit: RunPlan) -> None:
    plain = outcome(unit, None)
    assert same(outcome(unit, used()), plain)
    assert same(outcome(unit, used()), plain), "with a mould of its own"


def test_renderings_do_not_grow_with_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(
        mould,
        "render_template_objects",
        lambda name, values: calls.append(name) or render_template_objects(name, values),
    )
    moulds, counts = Moulds(), []
    unit = next(unit for unit in units() if unit.job.uses_mpi)
    for number in range(200):
        job = replace(unit.job, name=f"run-{number}", spec_hash=str(number), description=f"trial {number}")
        generate_run_objects(replace(unit, job=job), moulds.objects_of)
        counts.append(len(calls))
    assert counts[30] == counts[-1]


def test_moulds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mould, "MOST", 5)
    moulds = Moulds(patience=0)
    unit = units()[0]
    for number in range(60):
        labels = tuple((f"x{number}-{index}", "a") for index in range(number % 3))
        changed = replace(unit, job=replace(unit.job, labels=labels))
        assert same(generate_run_objects(changed, moulds.objects_of), generate_run_objects(changed))
        assert all(tree.moulds <= 6 for tree in moulds.trees.values())


def parts(value: Any) -> Iterator[Any]:
    """Yield every mapping and list in a value."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from parts(inner)


def test_no_stage_changes_objects_that_share_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """After all stages, the objects of moulds are as they were made."""
    made: list[tuple[list[Body], list[Body]]] = []

    def objects_of(self: Moulds, template: str, values: dict[str, Any]) -> list[Body]:
        bodies = original(self, template, values)
        made.append((bodies, copy.deepcopy(bodies)))
        return bodies

    original = Moulds.objects_of
    monkeypatch.setattr(Moulds, "objects_of", objects_of)
    monkeypatch.setattr(mould, "PATIENCE", 0)
    preview_render(Request(SAMPLE, engine="serial"))
    assert made
    for bodies, before in made:
        assert same(bodies, before)
    shared = [id(part) for bodies, _ in made for part in parts(bodies)]
    assert len(set(shared)) < len(shared)
