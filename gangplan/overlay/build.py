"""Build objects with a cluster's patches, in order; kustomize sees only what a patch can touch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from gangplan.component import Component
from gangplan.component.operations import BUILD_MARK
from gangplan.component.target import TARGET_HASH_DIGITS, replace_run_hash
from gangplan.errors import ToolError, UserError
from gangplan.findings import Location
from gangplan.objects import Body, dump_all, ref_of
from gangplan.overlay.shape import (
    PointerTree,
    build_overlay_pointer_tree,
    build_overlay_shape_representative,
    fill_overlay_shape_slots,
    insert_overlay_shape_slots,
    order_keys_as_before_patch,
    split_overlay_shape,
)
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.records import dataclass
from gangplan.source import load_blocks
from gangplan.tools.kustomize import KustomizeEngine, OverlayError, require_engine

# A build is cheapest with 120 to 240 objects: below, start-up dominates; above, kustomize is quadratic.
SHARD = 200

# How kustomize 5 names a field in which it looks for names of other objects, and of which the form is wrong.
_NAME_REFERENCE = r"updating name reference in '([^']+)/name' field of '(\w+)\."


class PatchError(UserError):
    """Raised if a patch cannot be applied; `where` is the place of that patch."""

    def __init__(self, message: str, help: str, where: Location) -> None:
        super().__init__(message, help)
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return PatchError, (self.message, self.help, self.where)  # workers pass it on


class Shapes(Protocol):
    """Outcomes by the keys of shapes, from earlier commands and for later ones."""

    def get(self, key: Any) -> Body | None:
        """Return the outcome of a shape, if it is known."""

    def add(self, made: Mapping[Any, Body]) -> None:
        """Store the outcomes of more shapes."""


@dataclass(slots=True)
class OverlayBuilder:
    """Builds the objects of one cluster. It remembers outcomes by shape, and in `shapes` for later commands.

    `hits` are the numbers of the patches that matched each object of the last build.
    """

    component: Component
    shapes: Shapes | None = None
    hits: list[tuple[int, ...]] = field(default_factory=list)
    _engine: KustomizeEngine | None = None
    _by_shape: dict[Any, Any] = field(default_factory=dict)
    _tree: PointerTree = field(init=False)

    def __post_init__(self) -> None:
        self._tree = build_overlay_pointer_tree(
            path for patch in self.component.patches for path in patch.paths
        )

    def build(self, bodies: Sequence[Body]) -> list[Body]:
        """Build objects, in order.

        Raises PatchError if a patch cannot be applied, ToolError if there is no kustomize.
        """
        built = list(bodies)
        direct: list[int] = []
        by_shape: dict[int, tuple[Any, list[Any]]] = {}
        self.hits = []
        for index, body in enumerate(bodies):
            hits = [
                number for number, patch in enumerate(self.component.patches) if patch.target.matches(body)
            ]
            self.hits.append(tuple(hits))
            if not hits:
                continue
            self._check_replaced(body, hits)
            if self._needs_values(body):
                direct.append(index)
            else:
                by_shape[index] = split_overlay_shape(body, self._tree)
        self._learn(bodies, by_shape)
        for index, (key, parts) in by_shape.items():
            built[index] = fill_overlay_shape_slots(self._by_shape[key], parts)
        chosen = [_replace_run_hash_for_kustomize_build(bodies[index]) for index in direct]
        for index, outcome in zip(direct, self._run(chosen), strict=True):
            built[index] = _restore_run_hash_after_kustomize_build(outcome)
        return built

    def _check_replaced(self, body: Body, hits: list[int]) -> None:
        """Check that each replaced path exists.

        JSON6902 refuses to replace a missing path; kustomize adds it silently (5.5.0 and 5.8.1).
        """
        added: list[str] = []
        for patch in (self.component.patches[number] for number in hits):
            added += patch.added
            for path in patch.replaced:
                if not any(
                    _may_create_patched_path(one, path) for one in added
                ) and not has_patch_target_in_object(body, path):
                    raise PatchError(
                        f"the patch replaces {path}, which {ref_of(body).kind} objects do not have",
                        "Use op: add, or correct the path.",
                        patch.where_of(path),
                    )

    def _needs_values(self, body: Body) -> bool:
        """Return whether a patch of this object looks at its values, so that its shape is not enough.

        A patch that selects by value counts even if it does not match: it must not match a placeholder.
        """
        if any(b"x0gp" in data for data in self.component.files.values()):
            return True  # a patch writes something like a placeholder
        return any(
            (patch.looks_at_values or patch.target.is_by_value) and patch.target.matches_kind(body)
            for patch in self.component.patches
        )

    def _learn(self, bodies: Sequence[Body], wanted: dict[int, tuple[Any, list[Any]]]) -> None:
        """Build one representative of each shape that neither this command nor an earlier one has seen."""
        new = {key: bodies[index] for index, (key, _) in wanted.items() if key not in self._by_shape}
        if self.shapes is not None:
            kept = {key: outcome for key in new if (outcome := self.shapes.get(key)) is not None}
            self._by_shape.update((key, insert_overlay_shape_slots(outcome)) for key, outcome in kept.items())
            new = {key: body for key, body in new.items() if key not in kept}
        chosen = [
            build_overlay_shape_representative(body, self._tree, number)
            for number, body in enumerate(new.values())
        ]
        made = dict(zip(new, self._run(chosen), strict=True))
        self._by_shape.update((key, insert_overlay_shape_slots(outcome)) for key, outcome in made.items())
        if made and self.shapes is not None:
            self.shapes.add(made)

    def _run(self, bodies: list[Body]) -> list[Body]:
        outcomes: list[Body] = []
        for start in range(0, len(bodies), SHARD):
            outcomes.extend(self._run_shard(bodies[start : start + SHARD]))
        return outcomes

    def _run_shard(self, bodies: list[Body]) -> list[Body]:
        """Run one kustomize build; an annotation, removed afterwards, identifies each object."""
        if self._engine is None:
            self._engine = require_engine()
        marked = [_add_kustomize_build_mark(body, index) for index, body in enumerate(bodies)]
        with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
            self._write(Path(folder), marked)
            try:
                text = self._engine.build(Path(folder))
            except OverlayError as refused:
                cause = refused.cause.removeprefix("component: ").replace('\\"', "'")
                raise self._refused(cause) from refused
        return _parse_kustomize_build_output(self._engine, text, bodies)

    def _refused(self, cause: str) -> PatchError:
        """Return kustomize's complaint, at the patch whose path or field it names."""
        help = "Check the patch's paths against a file in rendered/."
        named = re.search(_NAME_REFERENCE, cause)
        if named:
            cause = f"{named[1]} of a {named[2]}: {cause.rpartition(': ')[2]}"
            help = f"Write {named[1]} as the schema of {named[2]} says, with each name as {{name: NAME}}."
        where = next(
            (
                patch.where_of(path)
                for patch in self.component.patches
                for path in patch.paths
                if f"'{path}'" in cause or (named and named[1].split("/")[0] in path.split("/"))
            ),
            Location(self.component.file, 1, 1),
        )
        return PatchError(f"a patch cannot be applied: {cause}", help, where)

    def _write(self, folder: Path, bodies: list[Body]) -> None:
        (folder / "component").mkdir()
        for name, data in self.component.files.items():
            (folder / "component" / name).write_bytes(data)
        (folder / "objects.yaml").write_text(dump_all(bodies), encoding="utf-8")
        (folder / "kustomization.yaml").write_text(
            "resources: [objects.yaml]\ncomponents: [component]\n", encoding="utf-8"
        )


def _parse_kustomize_build_output(engine: KustomizeEngine, text: bytes, bodies: list[Body]) -> list[Body]:
    """Return what kustomize built from each object, in order.

    Raises ToolError if the output does not match these objects.
    """
    help = f"{engine.path} is not a working kustomize; `gangplan tools list` shows which programs are used"
    outcomes: dict[int, Body] = {}
    try:
        for body in load_blocks(text.decode()):
            index, outcome = _remove_kustomize_build_mark(body)
            outcomes[index] = order_keys_as_before_patch(bodies[index], outcome)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ToolError(f"{engine.label} printed something else than what it was given", help) from None
    if len(outcomes) != len(bodies) or not text.endswith(b"\n"):
        raise ToolError(f"{engine.label} did not print all of the {len(bodies)} objects it was given", help)
    return [outcomes[index] for index in range(len(bodies))]


def _may_create_patched_path(added: str, path: str) -> bool:
    """Return whether an `add` may have created a path: at or around it, or as an entry at a list's end."""
    if added.endswith("/-") and path.startswith(added[:-1]):
        return path[len(added) - 1 :].split("/")[0].isdigit()
    return f"{path}/".startswith(f"{added}/")


def _replace_run_hash_for_kustomize_build(body: Body) -> Body:
    """Return the object under the name that targets see."""
    meta = dict(body["metadata"])
    meta["name"] = replace_run_hash(meta["name"])
    return {**body, "metadata": meta}


def _restore_run_hash_after_kustomize_build(value: Any) -> Any:
    """Restore the placeholder of the run's name in what was built, also where a patch copied the name."""
    if isinstance(value, dict):
        return {key: _restore_run_hash_after_kustomize_build(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore_run_hash_after_kustomize_build(item) for item in value]
    is_name = isinstance(value, str) and value.endswith(f"-{TARGET_HASH_DIGITS}")
    return f"{value[: -len(TARGET_HASH_DIGITS)]}{HASH_PLACEHOLDER}" if is_name else value


def _add_kustomize_build_mark(body: Body, index: int) -> Body:
    """Return the object with its index in an annotation, so that equal names in one build do not clash."""
    meta = dict(body["metadata"])
    meta["annotations"] = {**meta.get("annotations", {}), BUILD_MARK: f"i{index}"}
    return {**body, "metadata": meta}


def _remove_kustomize_build_mark(body: Body) -> tuple[int, Body]:
    annotations = body["metadata"]["annotations"]
    index = int(annotations.pop(BUILD_MARK)[1:])
    if not annotations:
        del body["metadata"]["annotations"]
    return index, body


def has_patch_target_in_object(value: Any, path: str) -> bool:
    """Return whether a JSON pointer leads to something in the value."""
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return False
    return True
