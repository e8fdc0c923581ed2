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
PointerTree = dict[str, "PointerTree"]

_PLACEHOLDER = re.compile(r"gp[0-9]+x([0-9]+)x0gp")
# Keys whose values decide what kustomize does with an object.
_LITERAL = ("apiVersion", "kind")
# Kinds in whose pods kustomize looks for names of other objects (5.8.1, namereference.go).
_WITH_REFERENCES = ("CronJob", "Job")


@dataclass(frozen=True, slots=True)
class _Slot:
    """The slot of a part, by its index among the parts of the object."""

    index: int


def build_overlay_pointer_tree(pointers: Iterable[str]) -> PointerTree:
    """Return the JSON pointers of patches as a tree. `spec` itself is always a mapping in it."""
    tree: PointerTree = {"spec": {"": {}}}
    for pointer in pointers:
        inner = tree
        for step in pointer.split("/")[1:]:
            inner = inner.setdefault(step.replace("~1", "/").replace("~0", "~"), {})
    return tree


def split_overlay_shape(body: Body, tree: PointerTree) -> tuple[Any, list[Any]]:
    """Return a hashable key of the shape, and the parts that are not in it, in order."""
    parts: list[Any] = []
    return tuple(
        [
            (
                name,
                value
                if name in _LITERAL
                else _build_overlay_shape_key(
                    value, _select_overlay_pointer_subtree(tree, name, body), parts
                ),
            )
            for name, value in body.items()
        ]
    ), parts


def _select_overlay_pointer_subtree(tree: PointerTree, name: str, body: Body) -> PointerTree | None:
    """Return the tree below a top-level field; only `spec` is limited, as kustomize reads all the others."""
    return tree["spec"] if name == "spec" and body["kind"] not in _WITH_REFERENCES else None


def _build_overlay_shape_key(value: Any, tree: PointerTree | None, parts: list[Any]) -> Any:
    if tree is None or tree:
        if isinstance(value, dict):
            return tuple(
                [
                    (name, _build_overlay_shape_key(item, _descend_pointer_tree(tree, name), parts))
                    for name, item in value.items()
                ]
            )
        if isinstance(value, list):
            return (
                "[",
                *[
                    _build_overlay_shape_key(item, _descend_pointer_tree(tree, str(at)), parts)
                    for at, item in enumerate(value)
                ],
            )
    parts.append(value)
    return None


def _descend_pointer_tree(tree: PointerTree | None, step: str) -> PointerTree | None:
    return None if tree is None else tree.get(step, {})


def build_overlay_shape_representative(body: Body, tree: PointerTree, number: int) -> Body:
    """Return the object with a placeholder for each part; the number keeps names in one build distinct.

    Even a numeric value becomes text: kustomize's JSON patches do not look at types.
    """
    placeholders = (f"gp{number}x{index}x0gp" for index in count())
    return {
        name: value
        if name in _LITERAL
        else _insert_overlay_shape_placeholders(
            value, _select_overlay_pointer_subtree(tree, name, body), placeholders
        )
        for name, value in body.items()
    }


def _insert_overlay_shape_placeholders(
    value: Any, tree: PointerTree | None, placeholders: Iterator[str]
) -> Any:
    if tree is None or tree:
        if isinstance(value, dict):
            return {
                name: _insert_overlay_shape_placeholders(
                    item, _descend_pointer_tree(tree, name), placeholders
                )
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [
                _insert_overlay_shape_placeholders(item, _descend_pointer_tree(tree, str(at)), placeholders)
                for at, item in enumerate(value)
            ]
    return next(placeholders)


def insert_overlay_shape_slots(value: Any) -> Any:
    """Return a built representative with slots for its placeholders, ready to be filled."""
    if isinstance(value, dict):
        return {name: insert_overlay_shape_slots(item) for name, item in value.items()}
    if isinstance(value, list):
        return [insert_overlay_shape_slots(item) for item in value]
    match = _PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return _Slot(int(match[1])) if match else value


def fill_overlay_shape_slots(value: Any, parts: list[Any]) -> Any:
    """Fill the slots of a representative with the parts of one object."""
    kind = type(value)
    if kind is _Slot:
        return parts[value.index]
    if kind is dict:
        return {name: fill_overlay_shape_slots(item, parts) for name, item in value.items()}
    if kind is list:
        return [fill_overlay_shape_slots(item, parts) for item in value]
    return value


def order_keys_as_before_patch(model: Any, built: Any) -> Any:
    """Return a built value with its keys in the order of `model`; keys added by a patch come last, sorted."""
    if isinstance(built, dict):
        known = model if isinstance(model, dict) else {}
        names = [name for name in known if name in built] + sorted(
            name for name in built if name not in known
        )
        return {name: order_keys_as_before_patch(known.get(name), built[name]) for name in names}
    if isinstance(built, list):
        models = model if isinstance(model, list) else []
        aligned = models if len(models) == len(built) else []
        return [
            order_keys_as_before_patch(
                _find_overlay_model_of_list_entry(item, models, aligned[index : index + 1]), item
            )
            for index, item in enumerate(built)
        ]
    return built


def _find_overlay_model_of_list_entry(item: Any, models: list[Any], same_place: list[Any]) -> Any:
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
