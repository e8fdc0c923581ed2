"""A tree of a pod that a source describes in another format; its leaves know where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.findings import FieldPath
from gangplan.imports.account import Account, SourceNode
from gangplan.records import dataclass

# No source has a leaf here: marking this path changes nothing in an account.
NOWHERE: FieldPath = ("",)
# The key under which a mapping of the tree keeps its own origin.
SELF_KEY = ""


@dataclass(frozen=True, slots=True)
class OriginValue:
    """A value as a pod would have it, and its node in the source; None if it is not from the source."""

    value: Any
    node: SourceNode | None = None


class MadeNode(SourceNode):
    """A node of such a tree of mappings, lists and origins. Marking it marks the source."""

    __slots__ = ("_tree",)

    def __init__(self, account: Account, tree: Any) -> None:
        self._tree = tree
        super().__init__(
            _find_origin_account(account, tree), _find_origin_path(tree), _strip_origins_of_source_tree(tree)
        )

    def __getitem__(self, key: str | int) -> SourceNode:
        inner = None
        if isinstance(self._tree, Mapping) and isinstance(key, str) and key != SELF_KEY:
            inner = self._tree.get(key)
        elif isinstance(self._tree, list) and isinstance(key, int) and key < len(self._tree):
            inner = self._tree[key]
        elif isinstance(self._tree, OriginValue):
            below = self._tree.value
            is_there = (
                key in below if isinstance(below, dict) else isinstance(key, int) and key < len(below or ())
            )
            if isinstance(below, dict | list) and is_there:
                inner = OriginValue(below[key], self._tree.node)  # type: ignore[index]
        return MadeNode(self.account, inner) if inner is not None else SourceNode(self.account, NOWHERE, None)

    def fields(self) -> Iterator[tuple[str, SourceNode]]:
        """Yield the fields of a mapping; none if this is not a mapping."""
        return ((key, self[key]) for key in self.value) if isinstance(self.value, dict) else iter(())


def _find_tree_origin(tree: Any) -> OriginValue | None:
    if isinstance(tree, Mapping):
        tree = tree.get(SELF_KEY)
    return tree if isinstance(tree, OriginValue) else None


def _find_origin_path(tree: Any) -> FieldPath:
    origin = _find_tree_origin(tree)
    return origin.node.path if origin is not None and origin.node is not None else NOWHERE


def _find_origin_account(account: Account, tree: Any) -> Account:
    """Return the account of the file that has the value: a job may consist of several files."""
    origin = _find_tree_origin(tree)
    return origin.node.account if origin is not None and origin.node is not None else account


def _strip_origins_of_source_tree(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _strip_origins_of_source_tree(one) for key, one in tree.items() if key != SELF_KEY}
    if isinstance(tree, list):
        return [_strip_origins_of_source_tree(one) for one in tree]
    return tree.value if isinstance(tree, OriginValue) else tree
