"""Objects that kubeconform need not check: it has already accepted all that they answer to their schemas."""

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
from gangplan.objects import walk_leaves
from gangplan.pipeline.render import render_into_temporary_folder
from gangplan.pipeline.request import Request
from gangplan.pipeline.second_opinion import ask_kubeconform_for_second_opinion
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.source import load_objects
from gangplan.tools.kubeconform import Kubeconform
from gangplan.validate.apiserver.schema import CompiledSchema, SchemaVersions, build_kind_schema
from gangplan.validate.apiserver.schema_facts import SchemaFacts
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.workspaces import write

SAMPLE = Path(__file__).resolve().parents[2]
Body = dict[str, Any]


@cache
def objects() -> dict[tuple[SchemaVersions, str], list[Body]]:
    """Return the sample's objects by versions and kind."""
    found: dict[tuple[SchemaVersions, str], list[Body]] = {}
    clusters = load_workspace(SAMPLE).clusters
    for file in sorted((SAMPLE / "rendered").rglob("*.yaml")):
        versions = choose_schema_versions_of(
            resolve_platform_of_cluster_file(clusters[file.relative_to(SAMPLE / "rendered").parts[0]])
        )
        for body in load_objects(file.read_text(encoding="utf-8")):
            found.setdefault((versions, body["kind"]), []).append(body)
    return found


@cache
def validator(versions: SchemaVersions, kind: str) -> Any:
    """Return an independent validator of the schema."""
    body = objects()[versions, kind][0]
    return jsonschema_rs.Draft202012Validator(build_kind_schema(versions, body["apiVersion"], kind))


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
    """Return every mapping or list with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, item in inner for one in ((value, key), *places(item))]


def mutated(body: Body, other: Body, chance: random.Random) -> Body:
    """Return an object with some parts changed, removed, added, or taken from another object."""
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


@settings(deadline=None)  # compiling a schema takes time
@given(st.randoms(use_true_random=False), st.data())
def test_objects_without_new_facts_are_valid(chance: random.Random, data: st.DataObject) -> None:
    """The law: bodies that were shown are valid; changed ones that are not new are valid, too."""
    versions, kind = data.draw(st.sampled_from(sorted(objects(), key=repr)))
    bodies, judge = objects()[versions, kind], validator(versions, kind)
    seen = [body for body in chance.sample(bodies, min(3, len(bodies))) if judge.is_valid(body)]
    for _ in range(4):
        facts = SchemaFacts()
        facts.are_new(seen, versions)
        changed = mutated(chance.choice(bodies), chance.choice(bodies), chance)
        if changed.get("kind") == kind and changed.get("apiVersion") == bodies[0]["apiVersion"]:
            assert facts.are_new([changed], versions) or judge.is_valid(changed)
            assert not facts.are_new([changed], versions), "shown now"


def test_every_keyword_of_the_schemas_is_supported() -> None:
    """No schema of rendered objects has a keyword that would make each of its values count as new."""
    for (versions, kind), bodies in objects().items():
        facts = SchemaFacts()
        facts.are_new(bodies, versions)
        answers = [answer for _, answer in facts._known if isinstance(answer, str)]  # type: ignore[misc]
        assert not [answer for answer in answers if answer.startswith("{")], kind
        others = [renamed(body) for body in bodies]
        assert not facts.are_new(others, versions), kind


def renamed(body: Body) -> Body:
    """Return the same object with another name and other words."""
    changed = copy.deepcopy(body)
    changed["metadata"]["name"] = f"x-{changed['metadata']['name']}"[:50].rstrip("-")
    for field in ("labels", "annotations"):
        for name in changed["metadata"].get(field) or {}:
            changed["metadata"][field][name] = "other"
    return changed


def test_a_non_ascii_character_is_new_only_once() -> None:
    (versions, _), bodies = next(item for item in objects().items() if item[0][1] == "TrainJob")
    facts, (body, other) = SchemaFacts(), (copy.deepcopy(bodies[0]), copy.deepcopy(bodies[0]))
    facts.are_new([body], versions)
    body["metadata"]["annotations"]["gangplan.dev/description"] = "Größe"
    other["metadata"]["annotations"]["gangplan.dev/description"] = "größer"
    assert facts.are_new([body], versions)
    assert not facts.are_new([other], versions)


def test_a_kind_without_a_schema_is_always_new() -> None:
    facts, versions = SchemaFacts(), SchemaVersions("1.34")
    body = {"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "a"}}
    assert facts.are_new([body], versions)
    assert facts.are_new([body], versions)


# The files that are chosen


def spec(number: int) -> str:
    """Return a spec that differs from others only in its words."""
    return workspaces.SPEC + f"description: trial {number}\nenv: {{SEED: '{number}'}}\n"


def telling(root: Path) -> tuple[set[str], int]:
    """Return the chosen files of a workspace, and the number of all files."""
    with render_into_temporary_folder(Request(root, engine="serial", with_facts=True)) as (result, _):
        assert not result.has_errors, result.findings
        return result.telling, len(result.changes)


def test_more_runs_of_the_same_shape_are_not_chosen(tmp_path: Path) -> None:
    """The second validator sees the same files, however many specs there are."""
    counts = []
    for specs in (3, 30):
        files = {f"specs/nlp/more-{number}.yaml": spec(number) for number in range(specs)}
        root = write(workspaces.stock(tmp_path / str(specs)), files)
        chosen, every = telling(root)
        assert every >= specs
        counts.append(len(chosen))
    assert counts[0] == counts[1]


def _broken(tree: Path) -> Iterator[Path]:
    """Break runs after rendering, in a way that no gate would let pass, and yield their files."""
    for run in sorted((tree / "lab/runs/nlp").glob("*-*.yaml")):
        text = run.read_text()
        (deadline,) = [line for line in text.splitlines() if line.startswith("  activeDeadlineSeconds: ")]
        run.write_text(text.replace(deadline, "  activeDeadlineSeconds: soon"))
        yield run


def _refused(root: Path, with_facts: bool) -> list[Finding]:
    with render_into_temporary_folder(Request(root, engine="serial", with_facts=with_facts)) as (result, _):
        return result.findings


def test_the_gate_has_the_same_findings_with_and_without_facts(tmp_path: Path) -> None:
    """Patches break some of the runs, after and between valid ones, each in the same field."""
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


def test_objects_without_new_facts_are_not_validated_again(
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
def test_an_error_in_many_runs_is_reported_for_each(tmp_path: Path, real_kubeconform: Kubeconform) -> None:
    """The findings equal those of a validator that sees every file."""
    files = {f"specs/nlp/more-{number}.yaml": spec(number) for number in range(4)}
    root = write(workspaces.stock(tmp_path / "root"), files)
    with render_into_temporary_folder(Request(root, engine="serial", with_facts=True)) as (result, tree):
        assert ask_kubeconform_for_second_opinion(result.workspace, tree, None, result.telling) == (
            real_kubeconform.label,
            [],
        )
        count = len(list(_broken(tree)))
        _, found = ask_kubeconform_for_second_opinion(result.workspace, tree, None, result.telling)
        assert found == ask_kubeconform_for_second_opinion(result.workspace, tree)[1]
    assert len(found) == count == 5
    assert {finding.where.file for finding in found} > set(files)


def test_a_wrong_value_is_new_at_every_path() -> None:
    (versions, kind), bodies = next(item for item in objects().items() if item[0][1] == "TrainingRuntime")
    facts = SchemaFacts()
    facts.are_new(bodies, versions)
    for number, (path, value) in enumerate(walk_leaves(bodies[0])):
        changed: Any = copy.deepcopy(bodies[0])
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = {"not": [number]} if not isinstance(value, dict) else number
        assert facts.are_new([changed], versions), path
        assert not validator(versions, kind).is_valid(changed), path


def test_a_broken_condition_is_new() -> None:
    """A range of ports begins with a number: each field alone was shown with this value."""
    (versions, _), bodies = next(item for item in objects().items() if item[0][1] == "NetworkPolicy")
    ranged, named, wrong = ({"port": 1, "endPort": 9}, {"port": "dns"}, {"port": "dns", "endPort": 9})
    facts = SchemaFacts()
    for port, is_new in ((ranged, True), (named, True), (ranged, False), (wrong, True)):
        body: Body = copy.deepcopy(bodies[0])
        body["spec"]["egress"] = [{"ports": [port]}]
        assert facts.are_new([body], versions) is is_new
