"""The checker's result for an expression."""

from __future__ import annotations

from gangplan.cel.ast import AstNode
from gangplan.cel.types import Type
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression that the API server accepts.

    `node` is the tree with names resolved, as cel-go rewrites it: `authorizer.requestResource` is one Ident,
    `ip.isCanonical(x)` a Call without a target of the function `ip.isCanonical`, and leading dots are
    removed. `types` has the static type of every node by its id. `overloads` has the overload ids of calls in
    the order of the declarations; `.?` has `select_optional_field`.
    """

    node: AstNode
    types: dict[int, Type]
    overloads: dict[int, tuple[str, ...]]

    @property
    def type(self) -> Type:
        """The static type of the whole expression."""
        return self.types[self.node.id]
