"""The shape of an object: what patches see of it. Objects of one shape are patched alike.

kustomize costs about a millisecond an object and grows quadratically. A patch that looks at no values sees
only the mappings and lists that its paths pass through. So one representative per shape is built, in which
every value, and within `spec` every part that no path enters, is a placeholder; the outcome is filled in for
all others.

kustomize also sorts the keys of an object that it patches, by rules that differ between its versions. The
generator's order is restored, so that the bytes do not depend on the engine and patched files read like
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from gangplan.objects import Body
from gangplan.records import dataclass

# The steps of all paths of a component's patches, as a tree. None means that everything below is visible.
Tree = dict[str, "Tree"]

_PLACEHOLDER = re.compile(r"gp[0-9]+x([0-9]+)x0gp")
# Keys whose values decide what kustomize does with an object.
_LITERAL = ("apiVersion", "kind")


@dataclass(frozen=True, slots=True)
class _Slot:
    """The slot of a part, by its index among the parts of the object."""

    index: int


def tree_of(pointers: Iterable[str]) -> Tree:
    """Return the JSON pointers of patches as a tree. `spec` itself is always a mapping in it."""
    tree: Tree = {"spec": {"": {}}}
    for pointer in pointers:
        inner = tree
        for step in pointer.split("/")[1:]:
            inner = inner.setdefault(step.replace("~1", "/").replace("~0", "~"), {})
    return tree


def shape_of(body: Body, tree: Tree) -> tuple[Any, list[Any]]:
    """Return a hashable key of the shape, and the parts that are not in it, in order."""
    parts: list[Any] = []
    return tuple(
        [
            (name, value if name in _LITERAL else _key(value, _below(tree, name, body), parts))
            for name, value in body.items()
        ]
    ), parts


def _below(tree: Tree, name: str, body: Body) -> Tree | None:
    """Return the tree below a top-level field; only `spec` is limited, as kustomize reads all the others.

    kustomize itself looks at names, labels and references. In a CronJob it looks for references in the pod's
    volumes, too (5.8.1, namereference.go).
    """
    return tree["spec"] if name == "spec" and body["kind"] != "CronJob" else None


def _key(value: Any, tree: Tree | None, parts: list[Any]) -> Any:
    if tree is None or tree:
        if isinstance(value, dict):
            return tuple([(name, _key(item, _step(tree, name), parts)) for name, item in value.items()])
        if isinstance(value, list):
            return ("[", *[_key(item, _step(tree, str(at)), parts) for at, item in enumerate(value)])
    parts.append(value)
    return None


def _step(tree: Tree | None, step: str) -> Tree | None:
    return None if tree is None else tree.get(step, {})


def representative(body: Body, tree: Tree, number: int) -> Body:
    """Return the object with a placeholder for each part; the number keeps names in one build distinct.

    Even a numeric value becomes text: kustomize's JSON patches do not look at types.
    """
    placeholders = (f"gp{number}x{index}x0gp" for index in count())
    return {
        name: value if name in _LITERAL else _placed(value, _below(tree, name, body), placeholders)
        for name, value in body.items()
    }


def _placed(value: Any, tree: Tree | None, placeholders: Iterator[str]) -> Any:
    if tree is None or tree:
        if isinstance(value, dict):
            return {name: _placed(item, _step(tree, name), placeholders) for name, item in value.items()}
        if isinstance(value, list):
            return [_placed(item, _step(tree, str(at)), placeholders) for at, item in enumerate(value)]
    return next(placeholders)


def slotted(value: Any) -> Any:
    """Return a built representative with slots for its placeholders, ready to be filled."""
    if isinstance(value, dict):
        return {name: slotted(item) for name, item in value.items()}
    if isinstance(value, list):
        return [slotted(item) for item in value]
    match = _PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return _Slot(int(match[1])) if match else value


def filled(value: Any, parts: list[Any]) -> Any:
    """Fill the slots of a representative with the parts of one object."""
    kind = type(value)
    if kind is _Slot:
        return parts[value.index]
    if kind is dict:
        return {name: filled(item, parts) for name, item in value.items()}
    if kind is list:
        return [filled(item, parts) for item in value]
    return value


def in_order_of(model: Any, built: Any) -> Any:
    """Return a built value with its keys in the order of `model`; keys added by a patch come last, sorted."""
    if isinstance(built, dict):
        known = model if isinstance(model, dict) else {}
        names = [name for name in known if name in built] + sorted(
            name for name in built if name not in known
        )
        return {name: in_order_of(known.get(name), built[name]) for name in names}
    if isinstance(built, list):
        models = model if isinstance(model, list) else []
        aligned = models if len(models) == len(built) else []
        return [
            in_order_of(_counterpart(item, models, aligned[index : index + 1]), item)
            for index, item in enumerate(built)
        ]
    return built


def _counterpart(item: Any, models: list[Any], same_place: list[Any]) -> Any:
    """Return the model of a list entry that a patch may have moved or changed.

    It is an equal entry, else the one of the same name, else the one at the same index.
    """
    for model in (*same_place, *models):
        if model == item:
            return model
    if not isinstance(item, dict):
        return same_place[0] if same_place else None
    named = [model for model in models if isinstance(model, dict)]
    for name in ("name", "mountPath", "key", "to", "from"):
        for model in named:
            if name in item and model.get(name) == item[name]:
                return model
    return same_place[0] if same_place else None
