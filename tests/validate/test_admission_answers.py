"""Verdicts on runs, compared with what a real Kueue and scheduler did: answers kept from the lab."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import pytest

from tests.e2e.admission import compare, mistakes, recording, report, runs, scenes, sites
from tests.e2e.admission.compare import differences, say
from tests.e2e.admission.recording import Answer
from tests.e2e.admission.scene import GPU, Scene
from tests.e2e.fidelity.sides import versions_of
from tests.lab import profiles

FILES = sorted((Path(__file__).parents[1] / "e2e" / "admission" / "answers").glob("kueue-*.json.gz"))
NEW = profiles.find("new")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_kept_answers_agree_or_have_a_known_cause(file: Path) -> None:
    """gangplan's answer to each question is the control plane's, or the cause of the difference is known."""
    result = report.compared(recording.read(file))

    assert not result.open, "\n".join(report.lines(result, file.name))
    assert result.asked >= 300
    admitted = sum(count for what, count in result.seen.items() if what.startswith("admitted"))
    assert result.asked // 5 <= admitted <= result.asked * 4 // 5
    assert result.agree >= result.asked * 9 // 10


def test_there_are_answers_of_two_versions() -> None:
    assert len({next(recording.read(file)).profile for file in FILES}) >= 2


def _admitted() -> Answer:
    return next(one for file in FILES for one in recording.read(file) if one.seen.fits and one.seen.pods > 1)


def test_each_kind_of_difference_is_detected() -> None:
    """Each part of an answer is compared: a change of it is a difference of its own kind."""
    answer = _admitted()
    said, seen = say(answer.world, answer.bodies), answer.seen
    assert not differences(said, seen)

    name = next(iter(seen.assignment))
    elsewhere = {**seen.assignment, name: dict.fromkeys(seen.assignment[name], "elsewhere")}
    more = dict.fromkeys(seen.requests[name], "1000")
    wrong = {
        "outcome": replace(seen, outcome="pending", reason="ExceedsMaxQuota"),
        "assignment": replace(seen, assignment=elsewhere),
        "requests": replace(seen, requests={**seen.requests, name: more}),
        "fit": replace(seen, bound=seen.bound - 1),
    }
    assert {what: [kind for kind, _ in differences(said, one)] for what, one in wrong.items()} == {
        what: [what] for what in wrong
    }


def test_reasons_and_messages_are_compared() -> None:
    answer = next(
        one for file in FILES for one in recording.read(file) if one.seen.reason == "ExceedsMaxQuota"
    )
    said, seen = say(answer.world, answer.bodies), answer.seen
    assert not differences(said, seen)
    assert [kind for kind, _ in differences(said, replace(seen, reason="Misconfigured"))] == ["reason"]
    assert [kind for kind, _ in differences(said, replace(seen, message="something else"))] == ["words"]


def test_older_versions_may_report_fewer_lacking_resources() -> None:
    """They may omit some of each flavor only: another amount, another flavor and a repeated word differ."""
    start = "couldn't assign flavors to pod set node: "
    most = ", previously considered podsets requests (0) + current podset request (9) > maximum capacity (4)"
    cpu, gpu = (f"insufficient quota for {name} in flavor a{most}" for name in ("cpu", GPU))
    other = f"insufficient quota for cpu in flavor b{most}"
    mismatch = "untolerated taint {spot true NoSchedule <nil>} in flavor c"
    mine = f"{start}{cpu}, {gpu}, {other}, {mismatch}"

    assert compare.is_less(mine, mine)
    assert compare.is_less(f"{start}{gpu}, {other}, {mismatch}", mine)
    assert not compare.is_less(f"{start}{cpu}, {gpu}, {mismatch}", mine)
    assert not compare.is_less(f"{start}{gpu}, {other}", mine)
    assert not compare.is_less(f"{start}{gpu.replace('9', '8')}, {other}, {mismatch}", mine)
    assert not compare.is_less(f"{start}{gpu}, {gpu}, {other}, {mismatch}", mine)
    assert not compare.is_less(f"{start}{cpu}", f"{start}{gpu}")


def test_a_refusal_of_a_running_run_is_a_difference() -> None:
    answer = _admitted()
    said = say(answer.world, answer.bodies)
    assert [kind for kind, _ in differences(replace(said, refusal="no"), answer.seen)] == ["gate"]
    assert not differences(replace(said, refusal="no"), replace(answer.seen, outcome="refused"))


def test_answers_of_several_seeds_share_a_file(tmp_path: Path) -> None:
    """Worlds of two seeds have the same names, and must not be mixed up."""
    kept = list(itertools.islice(recording.read(FILES[0]), 40))
    later = [replace(one, name=f"again/{one.name.partition('/')[2]}") for one in kept]
    mixed = [one for pair in zip(kept, reversed(later), strict=True) for one in pair]
    recording.write(tmp_path / "mixed.json.gz", mixed)
    again = recording.read(tmp_path / "mixed.json.gz")
    assert list(map(asdict, again)) == list(map(asdict, mixed))  # a World equals only itself
    assert len(report.compared(mixed).worlds) == 2 * len(report.compared(kept).worlds)


def _drawn(seed: str) -> Scene:
    scene = scenes.draw("w1", Random(seed))
    mistakes.make(scene)
    return scene


def test_scenes_are_reproducible_and_isolated() -> None:
    """The same seed gives the same world, and no object outside of a namespace could affect another world."""
    shapes = runs.rendered(NEW)
    for number in range(30):
        one, other = _drawn(f"s/{number}"), _drawn(f"s/{number}")
        assert one.standing == other.standing
        assert one.groups == other.groups
        assert runs.draw(one, shapes, "w1-r0").bodies == runs.draw(other, shapes, "w1-r0").bodies
        for body in one.standing:
            metadata = body["metadata"]
            assert metadata.get("namespace", metadata["name"]).startswith("w1-")


def test_whole_workspaces_are_isolated_too() -> None:
    scene, questions = sites.draw("w2", Random("site"), NEW, 4)
    assert questions
    for body in scene.standing:
        metadata = body["metadata"]
        name = metadata.get("namespace", metadata["name"])
        assert name.startswith("w2-") or body["kind"] == "Topology"
    assert all(one.name.startswith("w2-") for one in questions)


def test_every_mistake_is_drawn() -> None:
    made = {_drawn(f"m/{number}").mistake for number in range(400)}
    assert made == {"", *mistakes.MISTAKES}


def test_overhead_above_a_limit_range_has_a_known_cause() -> None:
    """In seed 90817263, the pod maximum is 32 cores, and the pods want 32 and an overhead of a quarter.

    Only one of Kueue's two checks counts the overhead.
    """
    random = Random("90817263/0")
    scene = scenes.draw("w90817263-0", random)
    mistakes.make(scene)
    shapes = runs.rendered(NEW)
    question = [runs.draw(scene, shapes, f"w90817263-0-r{index}") for index in range(8)][7]
    assert "overhead" in question.edits
    world, bodies = scene.world(versions_of(NEW)), tuple(question.judged)
    whole = say(world, bodies).verdict
    more = (
        'spec.podSets[0].template.spec: Invalid value: ["cpu"]: requests must not be above the limitRange max'
    )
    assert whole.message.endswith(f", {more}]")
    start = "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: "
    less = f'{start}Invalid value: ["memory"]: requests must not be above the limitRange max'
    answer = Answer("s", "new", world, bodies, recording.Seen("pending", "Misconfigured", less))
    ((what, text),) = differences(say(world, bodies), answer.seen)
    found = compare.known(what, text, answer)
    assert found is not None
    assert found.name == "words-without-overhead"
    other = replace(answer, seen=replace(answer.seen, message=less.replace("[0]", "[1]", 1)))
    assert [what for what, _ in compare.opened(other)] == ["words"]
