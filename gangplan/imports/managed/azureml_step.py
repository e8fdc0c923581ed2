"""Merge a step of an Azure ML pipeline with its component into one job.

The step's fields override the component's, and values that the pipeline passes are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.imports.account import Account, Node
from gangplan.imports.made import SELF, Made, Origin
from gangplan.imports.managed.rest import PLACEHOLDER
from gangplan.source import FileLimits, load_several

# Blocks whose fields override those of the component one by one (azure-ai-ml 1.35,
# entities/_builders/command.py).
_JOINED = ("inputs", "outputs", "environment_variables", "resources", "distribution", "limits")
_LIMITS = FileLimits(max_bytes=1 << 20, max_depth=64, max_entries=20_000)
_REGISTERED = "azureml:"
# azureml:NAME@latest, azureml:NAME:3, azureml://registries/REGISTRY/components/NAME/versions/3, .../labels/latest
_KEPT = re.compile(
    r"azureml:([\w.-]+)(?:[:@][\w.-]+)?|azureml://(?:registries/[\w.-]+/)?components/([\w.-]+)(?:/.*)?"
)
_PARENT = "parent.inputs."
# A reference to an input of the pipeline.
PARENT = re.compile(r"\$\{\{\s*parent\.inputs\.([\w.-]+)\s*\}\}")
_OVER = "the step of the pipeline says another"


class StepAccount(Account):
    """The account of a step; `others` are those of its component and of the pipeline inputs that it gets."""

    __slots__ = ("others", "tree")

    def __init__(self, step: Account, tree: Any, others: tuple[Account, ...]) -> None:
        super().__init__(step.file, step._leaves, step._root)
        self._marks = step._marks
        self.tree, self.others = tree, others

    def root(self) -> Node:
        """Return the node at the top of the whole job."""
        return Made(self, self.tree)


def component_of(step: Node, known: Mapping[str, Account], key: str = "component") -> Account | None:
    """Return the component that a step refers to; None if it is not available here.

    It is a file next to the pipeline's, or one of the `known` by name if a workspace or a registry keeps it.
    """
    name = step[key].text()
    if not name:
        return None
    if name.startswith(_REGISTERED):
        found = _KEPT.fullmatch(name)
        return known.get(found[1] or found[2]) if found else None
    path = Path(step.account.file).parent / name.removeprefix("file:")
    if path.suffix.lower() not in (".yml", ".yaml") or not path.is_file() or path.is_symlink():
        return None
    documents, _ = load_several(path.read_bytes(), path.as_posix(), _LIMITS)
    is_command = (
        len(documents) == 1
        and isinstance(documents[0].value, dict)
        and ("command" in documents[0].value or isinstance(documents[0].value.get("jobs"), dict))
    )
    return Account.of(documents[0]) if is_command else None


def joined(step: Account, name: str, component: Account | None, given: Node) -> StepAccount:
    """Merge the step `name` and its component into one job; `given` are the inputs of the pipeline."""
    root = step.root()
    base = component.root() if component is not None else None
    tree: dict[str, Any] = {"name": Origin(name)}
    if base is not None:
        tree |= {
            key: tree_of(node)
            for key, node in base.fields()
            if key not in ("name", "version", "display_name")
        }
        for key in ("name", "version", "display_name"):
            base[key].dropped("the step has its own name")
    for key, node in root.fields():
        below = tree.get(key)
        if key == "component":
            node.dropped("the step has its command")
        elif key in _JOINED and isinstance(below, dict) and isinstance(node.value, dict) and base is not None:
            for inner, one in node.fields():
                base[key][inner].dropped(_OVER)
                below[inner] = tree_of(one)
        else:
            if base is not None:
                base[key].dropped(_OVER)
            tree[key] = tree_of(node)
    _hand_over(tree.get("inputs"), given)
    others = (component,) if component is not None else ()
    return StepAccount(step, tree, others)


def _hand_over(inputs: Any, given: Node) -> None:
    """Fill in inputs that refer to the pipeline's: scalars, data, or defaults of inputs with a type."""
    for name, one in inputs.items() if isinstance(inputs, dict) else ():
        place = one.get("path") if isinstance(one, dict) else one
        found = PLACEHOLDER.fullmatch(str(place.value)) if isinstance(place, Origin) else None
        if not isinstance(place, Origin) or found is None or not found[1].startswith(_PARENT):
            continue
        value = given[found[1].removeprefix(_PARENT)]
        if value and place.node is not None:
            place.node.mapped("command")
            value.mapped("command")
            inputs[name] = _plain(value.value, place.node)


def _plain(value: Any, node: Node) -> Any:
    """Return a value of the pipeline, at the place in the step that refers to it."""
    if isinstance(value, dict):
        return {SELF: Origin(None, node), **{key: _plain(one, node) for key, one in value.items()}}
    return Origin(value, node)


def tree_of(node: Node) -> Any:
    """Convert a part of a source to a tree whose leaves know where they come from."""
    if isinstance(node.value, dict):
        return {SELF: Origin(None, node), **{key: tree_of(one) for key, one in node.fields()}}
    if isinstance(node.value, list):
        return [tree_of(one) for one in node.items()]
    return Origin(node.value, node)
