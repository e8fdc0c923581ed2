"""What objects have in common is one part: known by its id, never changed, and processed once."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import objects as writer
from gangplan import slots
from gangplan.generators import generate_run_objects
from gangplan.mould import Moulds
from gangplan.objects import Body, WrittenParts, dump_object_as_block_yaml
from gangplan.parts import SharedParts
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.plan import RunPlan
from gangplan.validate.apiserver.schema_facts import SchemaFacts
from tests.generators.test_moulds import changed, outcome, same, units
from tests.test_examples import EXAMPLES
from tests.validate.test_schema_facts import mutated, objects


def other(unit: RunPlan, number: int) -> RunPlan:
    """Return the same run under another name."""
    job = replace(unit.job, name=f"run-{number}", spec_hash=str(number), description=f"trial {number}")
    return replace(unit, job=job)


def mpi_unit() -> RunPlan:
    return next(unit for unit in units() if unit.job.uses_mpi)


def pod_of(bodies: list[Body]) -> Any:
    (runtime,) = [body for body in bodies if body["kind"] == "TrainingRuntime"]
    return runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def test_runs_with_the_same_resources_share_them() -> None:
    moulds = Moulds(patience=0)
    made = [pod_of(generate_run_objects(other(mpi_unit(), number), moulds.objects_of)) for number in range(5)]
    first, second, third = made[0], made[-2], made[-1]
    assert second["containers"][0]["resources"] is third["containers"][0]["resources"]
    assert second["securityContext"] is third["securityContext"]
    assert id(third["securityContext"]) in moulds.parts.ids
    assert same(first, second)


def test_layout_work_does_not_grow_with_what_runs_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further run lays out only what contains its name."""
    laid: list[Any] = []
    real = slots._fill_variable_entries
    monkeypatch.setattr(slots, "_MOST_KEPT", 40)
    monkeypatch.setattr(
        slots, "_fill_variable_entries", lambda holder, values: laid.append(holder) or real(holder, values)
    )
    moulds, counts = Moulds(patience=0), []
    for number in range(120):
        laid.clear()
        generate_run_objects(other(mpi_unit(), number), moulds.objects_of)
        counts.append(len(laid))
    assert len(set(counts[60:])) == 1
    assert all(len(holder.kept) <= 40 for holder in laid)


def test_the_number_of_parts_is_limited() -> None:
    parts = SharedParts(most=3)
    for number in range(9):
        parts.hold({"a": number})
    assert len(parts) == 3


@settings(deadline=None, max_examples=40)
@given(st.lists(changed(), min_size=2, max_size=4))
def test_any_values_are_the_same_with_and_without_moulds(some: list[RunPlan]) -> None:
    """One worker fills its moulds with different values, and each result is as if rendered without them."""
    moulds = Moulds(patience=0)
    for unit in some * 3:
        assert same(outcome(unit, moulds), outcome(unit, None))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_parts_are_never_changed(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[tuple[Any, Any]] = []
    real = SharedParts.hold

    def hold(self: SharedParts, part: Any) -> None:
        held.append((part, copy.deepcopy(part)))
        real(self, part)

    monkeypatch.setattr("gangplan.mould.PATIENCE", 0)
    monkeypatch.setattr(SharedParts, "hold", hold)
    preview_render(Request(example / "input", engine="serial", with_facts=True))
    assert all(same(part, before) for part, before in held)


# Facts about parts


def shared(value: Any, parts: SharedParts, pool: dict[str, Any]) -> Any:
    """Return an equal value that shares its mappings and lists with other values; the parts hold them."""
    if isinstance(value, dict):
        value = {key: shared(item, parts, pool) for key, item in value.items()}
    elif isinstance(value, list):
        value = [shared(item, parts, pool) for item in value]
    else:
        return value
    if repr(value) not in pool:
        pool[repr(value)] = value
        parts.hold(value)
    return pool[repr(value)]


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.data(), st.integers(0, 400))
def test_facts_are_the_same_with_and_without_parts(chance: Any, data: st.DataObject, most: int) -> None:
    versions, kind = data.draw(st.sampled_from(sorted(objects(), key=repr)))
    bodies, parts, pool = objects()[versions, kind], SharedParts(most), {}
    quick, slow = SchemaFacts(parts), SchemaFacts()
    for _ in range(6):
        body = mutated(chance.choice(bodies), chance.choice(bodies), chance)
        body = chance.choice([body, chance.choice(bodies)])
        if "kind" in body and "apiVersion" in body:
            one = shared(body, parts, pool)
            assert quick.are_new([one], versions) == slow.are_new([body], versions)


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.data(), st.integers(0, 400))
def test_texts_are_the_same_with_and_without_parts(chance: Any, data: st.DataObject, most: int) -> None:
    key = data.draw(st.sampled_from(sorted(objects(), key=repr)))
    bodies, parts, pool = objects()[key], SharedParts(most), {}
    written = WrittenParts(parts)
    for _ in range(6):
        body = mutated(chance.choice(bodies), chance.choice(bodies), chance)
        assert _text(shared(body, parts, pool), written) == _text(body, None)


def _text(body: Body, written: WrittenParts | None) -> str:
    try:
        return dump_object_as_block_yaml(body, written=written)
    except (TypeError, ValueError) as wrong:
        return repr(wrong)


def test_the_lines_written_do_not_grow_with_what_runs_share(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    real = writer._append_mapping_lines
    monkeypatch.setattr(writer, "_append_mapping_lines", lambda *given: calls.append(None) or real(*given))
    moulds = Moulds(patience=0)
    written, counts = WrittenParts(moulds.parts), []
    for number in range(120):
        bodies = generate_run_objects(other(mpi_unit(), number), moulds.objects_of)
        calls.clear()
        for body in bodies:
            dump_object_as_block_yaml(body, written=written)
        counts.append(len(calls))
    assert counts[0] > counts[-1]
    assert max(counts[80:]) == min(counts[80:])


def test_the_schema_facts_noted_do_not_grow_with_what_runs_share(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    real = SchemaFacts._note
    monkeypatch.setattr(SchemaFacts, "_note", lambda *given: calls.append(None) or real(*given))
    moulds = Moulds(patience=0)
    facts, counts = SchemaFacts(moulds.parts), []
    versions = next(iter(objects()))[0]
    for number in range(120):
        bodies = generate_run_objects(other(mpi_unit(), number), moulds.objects_of)
        calls.clear()
        facts.are_new(bodies, versions)
        counts.append(len(calls))
    assert counts[0] > 4 * counts[-1]
    assert max(counts[80:]) == min(counts[80:])
