"""The type checker's results so far, and the choice of overloads (cel-go v0.26.0, checker.go)."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.cel.ast import AstNode
from gangplan.cel.declarations import Overload
from gangplan.cel.errors import Issue
from gangplan.cel.types import BOOL, DYN, ERROR_TYPE, Type, optional_of
from gangplan.cel.unify import Bindings, describe_cel_type, find_more_general, is_dyn, unwrap_optional

_LOGICAL = frozenset(("_&&_", "_||_"))


class Resolution:
    """Types and overloads by node id, bindings of type parameters, and complaints."""

    def __init__(self) -> None:
        self.bindings = Bindings()
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, tuple[str, ...]] = {}
        self.issues: list[Issue] = []

    def complain(self, node: AstNode, message: str) -> None:
        """Record that something is wrong at a node."""
        self.issues.append(Issue(node.offset, message))

    def mismatch(self, node: AstNode, wanted: Type, found: Type) -> None:
        """Record that a node is of another type than is wanted."""
        self.complain(
            node, f"expected type '{describe_cel_type(wanted)}' but found '{describe_cel_type(found)}'"
        )

    def undeclared(self, node: AstNode, name: str) -> None:
        """Record that nothing has the name of a node."""
        self.complain(node, f"undeclared reference to '{name}' (in container '')")
        self.types[node.id] = ERROR_TYPE

    def resolve(
        self,
        node: AstNode,
        function: str,
        known: Sequence[Overload],
        target: AstNode | None,
        arguments: Sequence[AstNode],
    ) -> None:
        """Choose the overloads of a call; if those that fit differ in their results, the result is dyn."""
        operands = arguments if target is None else (target, *arguments)
        given = [self.types[operand.id] for operand in operands]
        if function in _LOGICAL:
            self.logical(node, known[0], operands, given)
            return
        chosen = []
        result: Type | None = None
        for overload in known:
            if overload.is_member != (target is not None):
                continue
            wanted, type_ = self.instance(overload)
            if self.bindings.assign(given, wanted):
                chosen.append(overload.id)
                type_ = self.bindings.substitute(type_)
                if result is None:
                    result = type_
                elif not is_dyn(result) and type_ != result:
                    result = DYN
        if result is None:
            self.complain(node, self.no_overload(function, given, is_member=target is not None))
            result = ERROR_TYPE
        else:
            self.overloads[node.id] = tuple(chosen)
        self.types[node.id] = result

    def instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Return an overload's arguments and result with type parameters of this call."""
        if not overload.parameters:
            return overload.arguments, overload.result
        fresh = Bindings()
        fresh.bound = {name: self.bindings.fresh() for name in overload.parameters}
        return tuple(map(fresh.substitute, overload.arguments)), fresh.substitute(overload.result)

    def logical(
        self, node: AstNode, overload: Overload, operands: Sequence[AstNode], given: Sequence[Type]
    ) -> None:
        """Resolve a logical operator, whose operands are all of type bool."""
        is_wrong = False
        for operand, type_ in zip(operands, given, strict=True):
            if not self.bindings.assign((type_,), (BOOL,)):
                self.mismatch(operand, BOOL, type_)
                is_wrong = True
        self.types[node.id] = ERROR_TYPE if is_wrong else BOOL
        self.overloads[node.id] = (overload.id,)

    def no_overload(self, function: str, given: Sequence[Type], *, is_member: bool) -> str:
        """Return the message that a function does not take operands of these types."""
        shown = [describe_cel_type(self.bindings.substitute(type_, is_final=True)) for type_ in given]
        prefix = f"{shown.pop(0)}." if is_member else ""
        return f"found no matching overload for '{function}' applied to '{prefix}({', '.join(shown)})'"

    # Agreement

    def entry_type(self, node: AstNode, *, is_optional: bool) -> Type:
        """Return the type that an element adds; one marked `?` must be an optional, and adds what
        it holds."""
        type_ = self.types[node.id]
        if not is_optional:
            return type_
        inner, was_optional = unwrap_optional(type_)
        if not was_optional and not is_dyn(inner):
            self.mismatch(node, optional_of(inner), inner)
        return inner

    def join(self, before: Type | None, type_: Type) -> Type:
        """Return the type of all elements so far. Whether they may differ is checked later
        (validators.py)."""
        if before is None:
            return type_
        if self.bindings.assign((before,), (type_,)):
            return find_more_general(before, type_)
        return DYN

    def want(self, node: AstNode, wanted: Type) -> None:
        """Check that a node is of a type."""
        if not self.bindings.assign((wanted,), (self.types[node.id],)):
            self.mismatch(node, wanted, self.types[node.id])
