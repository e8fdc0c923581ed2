"""Ways to break an object on purpose. Some leave it valid: then both sides must say so.

A mutation takes a random generator and an object, and returns edits, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests import plain
from tests.e2e.fidelity.edits import Edit, Object, Place, at, nodes

Edits = tuple[Edit, ...]
Mutation = Callable[[Random, Object], "Edits | None"]


@dataclass(frozen=True, slots=True)
class Named:
    """A mutation with its name and its kinds (empty: every kind)."""

    name: str
    kinds: tuple[str, ...]
    make: Mutation


TABLE: list[Named] = []
TABLES = plain.load((Path(__file__).parent / "values.yaml").read_text(encoding="utf-8"))


def mutation(*kinds: str) -> Callable[[Mutation], Mutation]:
    """Return a decorator that adds a function to the table, under the function's name."""

    def enter(make: Mutation) -> Mutation:
        TABLE.append(Named(make.__name__.replace("_", "-"), kinds, make))
        return make

    return enter


def _values(row: Object) -> list[Any]:
    """Return the values of a row of values.yaml."""
    return [*(value for name in row.get("like", ()) for value in anchor(name)), *_grown(row.get("put", []))]


def anchor(name: str) -> list[Any]:
    """Return the values that have a name in values.yaml."""
    values: list[Any] = _grown(TABLES["anchors"][name])
    return values


def _grown(value: Any) -> Any:
    """Return a value in which short notations of long texts and lists are expanded."""
    if isinstance(value, list):
        return [_grown(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) >= {"then", "times"}:
        return value.get("text", "") + value["then"] * value["times"]
    if set(value) == {"count", "of"}:
        return [_numbered(value["of"], number) for number in range(value["count"])]
    return {key: _grown(item) for key, item in value.items()}


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(item, number) for key, item in value.items()}
    return value.replace("%", str(number)) if isinstance(value, str) else value


def _putting(way: list[str], values: list[Any]) -> Mutation:
    """Return a mutation that puts one of some values at one of the places that a path names."""

    def make(random: Random, body: Object) -> Edits | None:
        places = find(body, way)
        return (Edit(random.choice(places), random.choice(values)),) if places else None

    return make


def find(body: Object, way: list[str]) -> list[Place]:
    """Return the places that a path of values.yaml names. The last field may be missing."""
    starts = {"POD": pods, "NODE": containers, "JOB": jobs}
    first = starts.get(way[0])
    paths = first(body) if first else [()]
    for step in way[1:] if first else way:
        paths = [inner for path in paths for inner in _step(body, path, step)]
    return paths


def _step(body: Object, path: Place, step: str) -> list[Place]:
    value = at(body, path)
    if step == "[]":
        return [(*path, index) for index in range(len(value))] if isinstance(value, list) else []
    if step == "[+]":
        return [(*path, len(value))] if isinstance(value, list) else []
    if step == "{}":
        return [(*path, key) for key in value] if isinstance(value, dict) else []
    return [(*path, step)] if isinstance(value, dict) else []


def replicas(body: Object) -> list[Place]:
    """Return the paths of the roles of an MPIJob."""
    found = at(body, ("spec", "mpiReplicaSpecs")) if body["kind"] == "MPIJob" else None
    return [("spec", "mpiReplicaSpecs", name) for name in found or ()]


def jobs(body: Object) -> list[Place]:
    """Return the paths of a runtime's replicated jobs."""
    found = at(body, ("spec", "template", "spec", "replicatedJobs"))
    return [("spec", "template", "spec", "replicatedJobs", index) for index in range(len(found or ()))]


def pods(body: Object) -> list[Place]:
    """Return the paths of the pod specs of a runtime or an MPIJob."""
    own = [(*role, "template", "spec") for role in replicas(body)]
    return [*own, *((*job, "template", "spec", "template", "spec") for job in jobs(body))]


def containers(body: Object) -> list[Place]:
    """Return the paths of a runtime's first containers."""
    return [(*pod, "containers", 0) for pod in pods(body)]


# --- any object ----------------------------------------------------------------------------------------


def _place(
    random: Random, body: Object, wanted: Callable[[Any], bool] = lambda _: True
) -> tuple[Place, Any] | None:
    """Return a random place; deep and shallow ones are equally likely."""
    found = [
        (path, value)
        for path, value in nodes(body)
        if path[0] not in ("apiVersion", "kind") and wanted(value)
    ]
    return random.choice(found) if found else None


@mutation()
def typo_in_a_field_name(random: Random, body: Object) -> Edits | None:
    found = [(path, value) for path, value in nodes(body) if isinstance(path[-1], str) and len(path[-1]) > 2]
    path, value = random.choice(found)
    name = str(path[-1])
    spot = random.randrange(len(name) - 1)
    wrong = name[:spot] + name[spot + 1] + name[spot] + name[spot + 2 :]
    if wrong == name or at(body, (*path[:-1], wrong)) is not None:
        return None
    return (Edit(path, drop=True), Edit((*path[:-1], wrong), value))


@mutation()
def unknown_field(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, dict))
    name = random.choice(["extra", "Name", "replicas", "x-y", "podTemplate"])
    return (Edit((*found[0], name), random.choice([1, "a", {}, [], True])),) if found else (Edit((name,), 1),)


@mutation()
def field_deleted(random: Random, body: Object) -> Edits | None:
    found = _place(random, body)
    return (Edit(found[0], drop=True),) if found else None


@mutation()
def wrong_type(random: Random, body: Object) -> Edits | None:
    found = _place(random, body)
    if not found:
        return None
    others = [
        other
        for other in ("text", 7, True, [], {}, ["a"], {"a": "b"}, 1.5)
        if type(other) is not type(found[1])
    ]
    return (Edit(found[0], random.choice(others)),)


@mutation()
def null_value(random: Random, body: Object) -> Edits | None:
    found = _place(random, body)
    return (Edit(found[0], None),) if found else None


@mutation()
def text_changed(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, str))
    if not found:
        return None
    text = found[1]
    return (
        Edit(
            found[0],
            random.choice(
                ["", text + "\n", text.upper(), text + "x", " " + text, "x" * 300, "ü" + text, text[:-1]]
            ),
        ),
    )


@mutation()
def number_changed(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, int) and not isinstance(value, bool))
    return (Edit(found[0], random.choice(anchor("numbers"))),) if found else None


@mutation()
def number_as_text(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, int | bool))
    return (Edit(found[0], str(found[1]).lower()),) if found else None


@mutation()
def text_as_number(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, str))
    return (Edit(found[0], random.choice([0, 1, 1.0, True])),) if found else None


@mutation()
def entry_twice(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, list) and bool(value))
    return (Edit((*found[0], len(found[1])), random.choice(found[1])),) if found else None


@mutation()
def list_emptied(random: Random, body: Object) -> Edits | None:
    found = _place(random, body, lambda value: isinstance(value, list | dict))
    return (Edit(found[0], type(found[1])()),) if found else None


@mutation()
def place_swapped(random: Random, body: Object) -> Edits | None:
    """Put the value of another field in place of a value."""
    first, second = _place(random, body), _place(random, body)
    return (Edit(first[0], second[1]),) if first and second and first[0] != second[0] else None


@mutation()
def label_key(random: Random, body: Object) -> Edits | None:
    place = random.choice(
        [
            path
            for path, _ in nodes(body)
            if path[-1] in ("labels", "annotations", "matchLabels", "nodeSelector")
        ]
    )
    return (Edit((*place, random.choice(anchor("label-keys"))), "x"),)


@mutation()
def label_value(random: Random, body: Object) -> Edits | None:
    place = random.choice(
        [
            path
            for path, _ in nodes(body)
            if path[-1] in ("labels", "annotations", "matchLabels", "nodeSelector")
        ]
    )
    return (Edit((*place, "example.com/x"), random.choice(anchor("label-values"))),)


def every(body: Object) -> Iterator[tuple[str, Edits]]:
    """Yield each value of values.yaml once, at the first possible place of an object."""
    for row in TABLES["rows"]:
        places = find(body, row["at"]) if body["kind"] in (kinds_of(row) or (body["kind"],)) else []
        for value in _values(row) if places else ():
            edit = Edit(places[0], value)
            if _differs(at(body, edit.at), value):
                yield row["name"], (edit,)


def mutate(random: Random, body: Object) -> tuple[str, Edits]:
    """Return a random mutation of an object: its name and its edits, which do change the object."""
    own = [one for one in TABLE if body["kind"] in one.kinds]
    general = [one for one in TABLE if not one.kinds]
    while True:
        chosen = random.choice(own if own and random.random() < 0.65 else general)
        edits = chosen.make(random, body)
        if edits and any(edit.drop or _differs(at(body, edit.at), edit.put) for edit in edits):
            return chosen.name, edits


def _differs(old: Any, new: Any) -> bool:
    return old != new or type(old) is not type(new) or old is None


def kinds_of(row: Object) -> tuple[str, ...]:
    """Return the kinds of a row: what is wrong with the pods of a runtime is also wrong with those of an
    MPIJob."""
    kinds = tuple(row.get("kinds", ()))
    has_pods = row["at"][0] in ("POD", "NODE") and "TrainingRuntime" in kinds
    return (*kinds, "MPIJob") if has_pods else kinds


for row in TABLES["rows"]:
    TABLE.append(Named(row["name"], kinds_of(row), _putting(row["at"], _values(row))))
