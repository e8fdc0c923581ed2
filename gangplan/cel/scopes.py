"""The meaning of names: variables of the environment and of enclosing loops, and names of types."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel.ast import AstNode, Ident, Select
from gangplan.cel.declarations import list_cel_type_names
from gangplan.cel.types import INT, Type

# An enum constant of the protobuf library that the API server knows by name.
_NULL_VALUE = "google.protobuf.NullValue.NULL_VALUE"


def find_qualified_cel_name(node: AstNode) -> str | None:
    """Return `a.b.c` if the node is a chain of names, else None."""
    fields = []
    while isinstance(node, Select):
        if node.test:
            return None
        fields.append(node.field)
        node = node.operand
    return ".".join((node.name, *reversed(fields))) if isinstance(node, Ident) else None


# From cel-go v0.29 (Kubernetes 1.37), a loop's variable hides dotted names that begin with it, and a leading
# dot never refers to a loop's variable.
_HIDES = 37


class Scopes:
    """Variables, innermost scope last. cel-go looks up the whole dotted name before its parts."""

    def __init__(self, variables: Mapping[str, Type], minor: int) -> None:
        self.stack: list[Mapping[str, Type]] = [variables]
        self.minor = minor

    def push(self, variables: Mapping[str, Type]) -> None:
        """Enter a scope inside the existing ones."""
        self.stack.append(variables)

    def pop(self) -> None:
        """Leave the innermost scope."""
        self.stack.pop()

    def find(self, name: str) -> tuple[str, Type] | None:
        """Return a name without its leading dot and the type of its value, or None for an unknown name."""
        is_global = name.startswith(".") and self.minor >= _HIDES
        name = name.removeprefix(".")
        root, dot, _ = name.partition(".")
        if dot and not is_global and self.minor >= _HIDES and any(root in scope for scope in self.stack[1:]):
            return None
        for scope in self.stack[:1] if is_global else reversed(self.stack):
            found = scope.get(name)
            if found is not None:
                return name, found
        type_ = list_cel_type_names(self.minor).get(name)
        if type_ is not None:
            return name, type_
        return (name, INT) if name == _NULL_VALUE else None
