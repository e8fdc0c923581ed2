"""What kubeconform need not see: objects whose every answer to their schemas it has found good before."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.findings import Finding
from gangplan.objects import walk
from gangplan.pipeline.render import rendered_aside
from gangplan.pipeline.request import Request
from gangplan.pipeline.second_opinion import second_opinion
from gangplan.resolve.platform import resolve_platform
from gangplan.source import load_objects
from gangplan.tools.kubeconform import Kubeconform
from gangplan.validate.apiserver.schema import CompiledSchema, SchemaVersions, schema_for
from gangplan.validate.apiserver.schema_facts import Facts
from gangplan.validate.versions import versions_of
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.workspaces import write

SAMPLE = Path(__file__).resolve().parents[2]
Body = dict[str, Any]


@cache
def objects() -> dict[tuple[SchemaVersions, str], list[Body]]:
    """The sample's objects by versions and kind."""
    found: dict[tuple[SchemaVersions, str], list[Body]] = {}
    clusters = load_workspace(SAMPLE).clusters
    for file in sorted((SAMPLE / "rendered").rglob("*.yaml")):
        versions = versions_of(resolve_platform(clusters[file.relative_to(SAMPLE / "rendered").parts[0]]))
        for body in load_objects(file.read_text(encoding="utf-8")):
            found.setdefault((versions, body["kind"]), []).append(body)
    return found


@cache
def validator(versions: SchemaVersions, kind: str) -> Any:
    """Another judge of the schema."""
    body = objects()[versions, kind][0]
    return jsonschema_rs.Draft202012Validator(schema_for(versions, body["apiVersion"], kind))


VALUES: list[Any] = [
    *(
        "",
        "a",
        "A",
        "-a",
        "a b",
        "é",
        "1",
        "0x1",
        "1Gi",
        "Always",
        "64Ki",
        "a" * 64,
        "a" * 400,
        "a\n",
        "node",
    ),
    *(0, 1, -1, 7, 80, 65536, 2**31, 2**40, 2**70, 1.0, 1.5, True, False, None),
    *({}, [], ["a"], ["a", "a"], {"a": "b"}, {"name": "x"}, [{"name": "x"}], [{"name": "x"}, {"name": "x"}]),
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every mapping or list with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, item in inner for one in ((value, key), *places(item))]


def mutated(body: Body, other: Body, chance: random.Random) -> Body:
    """An object with some parts changed, taken away, added, or taken from another object."""
    changed, donor = copy.deepcopy(body), places(other)
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(places(changed))
        kind = chance.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        elif kind == 2:
            source, at = chance.choice(donor)
            holder[key] = copy.deepcopy(source[at])
        elif isinstance(holder, dict):
            source, at = chance.choice(donor)
            holder[at if isinstance(at, str) else "more"] = copy.deepcopy(source[at])
        else:
            holder.append(copy.deepcopy(holder[key]))
        if not changed:
            return changed
    return changed


@settings(deadline=None)  # compiling a schema takes its time
@given(st.randoms(use_true_random=False), st.data())
def test_what_shows_nothing_new_is_good(chance: random.Random, data: st.DataObject) -> None:
    """The law. Bodies that were seen are good; of those changed from them, what is not new is good too."""
    versions, kind = data.draw(st.sampled_from(sorted(objects(), key=repr)))
    bodies, judge = objects()[versions, kind], validator(versions, kind)
    seen = [body for body in chance.sample(bodies, min(3, len(bodies))) if judge.is_valid(body)]
    for _ in range(4):
        facts = Facts()
        facts.are_new(seen, versions)
        changed = mutated(chance.choice(bodies), chance.choice(bodies), chance)
        if changed.get("kind") == kind and changed.get("apiVersion") == bodies[0]["apiVersion"]:
            assert facts.are_new([changed], versions) or judge.is_valid(changed)
            assert not facts.are_new([changed], versions), "shown now"


def test_everything_asked_is_understood() -> None:
    """No schema of what is rendered has a keyword that would make each of its values count as new."""
    for (versions, kind), bodies in objects().items():
        facts = Facts()
        facts.are_new(bodies, versions)
        answers = [answer for _, answer in facts._known if isinstance(answer, str)]  # type: ignore[misc]
        assert not [answer for answer in answers if answer.startswith("{")], kind
        others = [renamed(body) for body in bodies]
        assert not facts.are_new(others, versions), kind


def renamed(body: Body) -> Body:
    """The same under another name, with other words in it."""
    changed = copy.deepcopy(body)
    changed["metadata"]["name"] = f"x-{changed['metadata']['name']}"[:50].rstrip("-")
    for field in ("labels", "annotations"):
        for name in changed["metadata"].get(field) or {}:
            changed["metadata"][field][name] = "other"
    return changed


def test_an_odd_character_is_shown_once() -> None:
    (versions, _), bodies = next(item for item in objects().items() if item[0][1] == "TrainJob")
    facts, (body, other) = Facts(), (copy.deepcopy(bodies[0]), copy.deepcopy(bodies[0]))
    facts.are_new([body], versions)
    body["metadata"]["annotations"]["gangplan.dev/description"] = "Größe"
    other["metadata"]["annotations"]["gangplan.dev/description"] = "größer"
    assert facts.are_new([body], versions)
    assert not facts.are_new([other], versions)


def test_a_kind_without_schema_is_always_new() -> None:
    facts, versions = Facts(), SchemaVersions("1.34")
    body = {"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "a"}}
    assert facts.are_new([body], versions)
    assert facts.are_new([body], versions)


# The files that are chosen


def spec(number: int) -> str:
    """A spec unlike the others only in its words."""
    return workspaces.SPEC + f"description: trial {number}\nenv: {{SEED: '{number}'}}\n"


def telling(root: Path) -> tuple[set[str], int]:
    """The chosen files of a workspace, and the number of all."""
    with rendered_aside(Request(root, engine="serial", with_facts=True)) as (result, _):
        assert not result.has_errors, result.findings
        return result.telling, len(result.changes)


def test_more_runs_of_the_same_shape_are_not_shown(tmp_path: Path) -> None:
    """However many specs there are, the second judge sees the same files."""
    counts = []
    for specs in (3, 30):
        files = {f"specs/nlp/more-{number}.yaml": spec(number) for number in range(specs)}
        root = write(workspaces.stock(tmp_path / str(specs)), files)
        chosen, every = telling(root)
        assert every >= specs
        counts.append(len(chosen))
    assert counts[0] == counts[1]


def _broken(tree: Path) -> Iterator[Path]:
    """Runs broken after they were rendered, as no gate would let them pass."""
    for run in sorted((tree / "lab/runs/nlp").iterdir()):
        text = run.read_text()
        (deadline,) = [line for line in text.splitlines() if line.startswith("  activeDeadlineSeconds: ")]
        run.write_text(text.replace(deadline, "  activeDeadlineSeconds: soon"))
        yield run


def _refused(root: Path, with_facts: bool) -> list[Finding]:
    with rendered_aside(Request(root, engine="serial", with_facts=with_facts)) as (result, _):
        return result.findings


def test_the_gate_finds_the_same_whatever_was_shown(tmp_path: Path) -> None:
    """Patches break some of the runs, behind good ones and between them, each in the same field."""
    files = {f"specs/nlp/more-{number}.yaml": spec(number) for number in range(9)}
    root = write(workspaces.stock(tmp_path / "root"), files)
    assert not _refused(root, True)
    patch = (
        "- target: {{kind: TrainJob, name: more-{}-.*}}\n  patch: |-\n"
        "    - {{op: replace, path: /spec/activeDeadlineSeconds, value: soon}}\n"
    )
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    text = head + "".join(patch.format(number) for number in (4, 5, 7))
    write(root, {"overlays/lab/kustomization.yaml": text})
    found = _refused(root, True)
    assert found == _refused(root, False)
    assert sum(finding.is_error for finding in found) >= 3


def test_objects_that_show_nothing_new_are_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[bool] = []
    real = CompiledSchema.accepts

    def counted(engine: CompiledSchema, body: dict[str, Any], is_shown: bool = False) -> bool:
        judged.append(not is_shown)
        return real(engine, body, is_shown)

    monkeypatch.setattr(CompiledSchema, "accepts", counted)
    counts = []
    for specs in (3, 30):
        files = {f"specs/nlp/more-{number}.yaml": spec(number) for number in range(specs)}
        root = write(workspaces.stock(tmp_path / str(specs)), files)
        judged.clear()
        telling(root)
        counts.append(sum(judged))
        assert len(judged) > specs
    assert counts[0] == counts[1]


@pytest.mark.real_tool("kubeconform")
def test_what_is_wrong_in_many_runs_is_told_of_each(tmp_path: Path, real_kubeconform: Kubeconform) -> None:
    """The findings are those of a judge that sees every file."""
    files = {f"specs/nlp/more-{number}.yaml": spec(number) for number in range(4)}
    root = write(workspaces.stock(tmp_path / "root"), files)
    with rendered_aside(Request(root, engine="serial", with_facts=True)) as (result, tree):
        assert second_opinion(result.workspace, tree, None, result.telling) == (real_kubeconform.label, [])
        count = len(list(_broken(tree)))
        _, found = second_opinion(result.workspace, tree, None, result.telling)
        assert found == second_opinion(result.workspace, tree)[1]
    assert len(found) == count == 5
    assert {finding.where.file for finding in found} > set(files)


def test_a_wrong_value_is_new_wherever_it_stands() -> None:
    (versions, kind), bodies = next(item for item in objects().items() if item[0][1] == "TrainingRuntime")
    facts = Facts()
    facts.are_new(bodies, versions)
    for number, (path, value) in enumerate(walk(bodies[0])):
        changed: Any = copy.deepcopy(bodies[0])
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = {"not": [number]} if not isinstance(value, dict) else number
        assert facts.are_new([changed], versions), path
        assert not validator(versions, kind).is_valid(changed), path


def test_a_condition_that_does_not_hold_is_new() -> None:
    """A range of ports begins with a number: each field alone was seen with this value."""
    (versions, _), bodies = next(item for item in objects().items() if item[0][1] == "NetworkPolicy")
    ranged, named, wrong = ({"port": 1, "endPort": 9}, {"port": "dns"}, {"port": "dns", "endPort": 9})
    facts = Facts()
    for port, is_new in ((ranged, True), (named, True), (ranged, False), (wrong, True)):
        body: Body = copy.deepcopy(bodies[0])
        body["spec"]["egress"] = [{"ports": [port]}]
        assert facts.are_new([body], versions) is is_new
