"""Merge a step of an Azure ML pipeline with its component into one job.

The step's fields override the component's, and values that the pipeline passes are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.made import SELF_KEY, MadeNode, OriginValue
from gangplan.imports.managed.rest import EXPRESSION_PATTERN
from gangplan.source import FileLimits, load_all_documents

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
PARENT_INPUT_PATTERN = re.compile(r"\$\{\{\s*parent\.inputs\.([\w.-]+)\s*\}\}")
_OVER = "the step of the pipeline says another"


class StepAccount(Account):
    """The account of a step; `others` are those of its component and of the pipeline inputs that it gets."""

    __slots__ = ("others", "tree")

    def __init__(self, step: Account, tree: Any, others: tuple[Account, ...]) -> None:
        super().__init__(step.file, step._leaves, step._root)
        self._marks, self.miscounts = step._marks, step.miscounts
        self.tree, self.others = tree, others

    def root(self) -> SourceNode:
        """Return the node at the top of the whole job."""
        return MadeNode(self, self.tree)


def find_azureml_step_component(
    step: SourceNode, known: Mapping[str, Account], key: str = "component"
) -> Account | None:
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
    documents, _ = load_all_documents(path.read_bytes(), path.as_posix(), _LIMITS)
    is_command = (
        len(documents) == 1
        and isinstance(documents[0].value, dict)
        and ("command" in documents[0].value or isinstance(documents[0].value.get("jobs"), dict))
    )
    return Account.of(documents[0]) if is_command else None


def merge_azureml_step(step: Account, name: str, component: Account | None, given: SourceNode) -> StepAccount:
    """Merge the step `name` and its component into one job; `given` are the inputs of the pipeline."""
    root = step.root()
    base = component.root() if component is not None else None
    tree: dict[str, Any] = {"name": OriginValue(name)}
    if base is not None:
        tree |= {
            key: build_azureml_origin_tree(node)
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
                below[inner] = build_azureml_origin_tree(one)
        else:
            if base is not None:
                base[key].dropped(_OVER)
            tree[key] = build_azureml_origin_tree(node)
    _fill_in_azureml_pipeline_inputs(tree.get("inputs"), given)
    others = (component,) if component is not None else ()
    return StepAccount(step, tree, others)


def _fill_in_azureml_pipeline_inputs(inputs: Any, given: SourceNode) -> None:
    """Fill in inputs that refer to the pipeline's: scalars, data, or defaults of inputs with a type."""
    for name, one in inputs.items() if isinstance(inputs, dict) else ():
        place = one.get("path") if isinstance(one, dict) else one
        found = EXPRESSION_PATTERN.fullmatch(str(place.value)) if isinstance(place, OriginValue) else None
        if not isinstance(place, OriginValue) or found is None or not found[1].startswith(_PARENT):
            continue
        value = given[found[1].removeprefix(_PARENT)]
        if value and place.node is not None:
            place.node.mapped("command")
            value.mapped("command")
            inputs[name] = _build_azureml_pipeline_value_tree(value.value, place.node)


def _build_azureml_pipeline_value_tree(value: Any, node: SourceNode) -> Any:
    """Return a value of the pipeline, at the place in the step that refers to it."""
    if isinstance(value, dict):
        return {
            SELF_KEY: OriginValue(None, node),
            **{key: _build_azureml_pipeline_value_tree(one, node) for key, one in value.items()},
        }
    return OriginValue(value, node)


def build_azureml_origin_tree(node: SourceNode) -> Any:
    """Convert a part of a source to a tree whose leaves know where they come from."""
    if isinstance(node.value, dict):
        return {
            SELF_KEY: OriginValue(None, node),
            **{key: build_azureml_origin_tree(one) for key, one in node.fields()},
        }
    if isinstance(node.value, list):
        return [build_azureml_origin_tree(one) for one in node.items()]
    return OriginValue(node.value, node)
