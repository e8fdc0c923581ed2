"""Find the static types of an expression as the API server does (cel-go v0.26.0, checker/checker.go).

Complaints are cel-go's, word for word, at cel-go's places; checking continues after a complaint.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel.ast import (
    AstNode,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapEntry,
    MapNode,
    Select,
    Struct,
)
from gangplan.cel.checked import Checked
from gangplan.cel.declarations import find_overloads
from gangplan.cel.errors import CompileError
from gangplan.cel.lexer import CEL_RESERVED_WORDS
from gangplan.cel.resolution import Resolution
from gangplan.cel.scopes import Scopes, find_qualified_cel_name
from gangplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR_TYPE,
    INT,
    NULL,
    STRING,
    UINT,
    ObjectType,
    Parameter,
    Type,
    list_of,
    map_of,
    optional_of,
)
from gangplan.cel.unify import cel_type_kind_of, describe_cel_type, is_wild, unwrap_optional
from gangplan.cel.values import Uint

_CONSTANTS: dict[type, Type] = {
    bool: BOOL,
    bytes: BYTES,
    float: DOUBLE,
    int: INT,
    type(None): NULL,
    str: STRING,
    Uint: UINT,
}


def check_cel_types(node: AstNode, text: str, variables: Mapping[str, Type], minor: int) -> Checked:
    """Return the types of a tree with these variables on a server of Kubernetes 1.`minor`.

    Raises `CompileError` if something does not fit, with issues in the order of the text.
    """
    checker = _Checker(variables, minor)
    resolved = checker.check(node)
    if checker.issues:
        raise CompileError(text, tuple(sorted(checker.issues, key=lambda issue: issue.offset)))
    final = checker.bindings.substitute
    types = {number: final(type_, is_final=True) for number, type_ in checker.types.items()}
    return Checked(resolved, types, checker.overloads)


class _Checker(Resolution):
    """One check. Every method that checks returns the node with its names resolved."""

    def __init__(self, variables: Mapping[str, Type], minor: int) -> None:
        super().__init__()
        self.scopes = Scopes(variables, minor)
        self.minor = minor

    def check(self, node: AstNode) -> AstNode:
        match node:
            case Literal(value=value):
                self.types[node.id] = _CONSTANTS[type(value)]
                return node
            case Ident():
                return self.ident(node)
            case Select():
                return self.select(node)
            case Call():
                return self.optional_select(node) if node.function == "_?._" else self.call(node)
            case ListNode():
                return self.list(node)
            case MapNode():
                return self.map(node)
            case Comprehension():
                return self.loop(node)
            case Struct():
                self.message(node)
        return node

    def message(self, node: Struct) -> None:
        """Report a message, since Kubernetes declares none.

        The API server builds the protobuf library's own messages, but they add nothing to plain values, so
        gangplan refuses them too.
        """
        if node.name.startswith("google.protobuf."):
            self.complain(node, f"gangplan does not build {node.name}: write the plain value instead")
            self.types[node.id] = ERROR_TYPE
        else:
            self.undeclared(node, node.name)

    # Names

    def ident(self, node: Ident) -> AstNode:
        found = self.scopes.find(node.name)
        if found is None:
            self.undeclared(node, node.name)
            return node
        self.types[node.id] = found[1]
        return node if found[0] == node.name else Ident(node.id, node.offset, found[0])

    def select(self, node: Select) -> AstNode:
        name = find_qualified_cel_name(node)
        found = self.scopes.find(name) if name is not None else None
        if found is not None:
            self.types[node.id] = found[1]
            return Ident(node.id, node.offset, found[0])
        operand = self.check(node.operand)
        type_ = self.field(node, node.operand, node.field, is_optional=False)
        self.types[node.id] = BOOL if node.test else self.bindings.substitute(type_)
        if operand is node.operand:
            return node
        return Select(node.id, node.offset, operand, node.field, node.test)

    def optional_select(self, node: Call) -> AstNode:
        operand, field = node.arguments
        name = str(getattr(field, "value", ""))
        checked = self.check(operand)
        self.types[field.id] = DYN
        self.types[node.id] = self.bindings.substitute(self.field(node, operand, name, is_optional=True))
        self.overloads[node.id] = ("select_optional_field",)
        return Call(node.id, node.offset, node.function, None, (checked, field))

    def field(self, node: AstNode, operand: AstNode, name: str, *, is_optional: bool) -> Type:
        """Return the type of a field of an operand that is checked already."""
        whole = self.bindings.substitute(self.types[operand.id])
        target, was_optional = unwrap_optional(whole)
        result = DYN
        if isinstance(target, ObjectType):
            result = self.object_field(node, target, name)
        elif cel_type_kind_of(target) == "map":
            result = target.parameters[1]
        elif cel_type_kind_of(target) == "struct":
            self.complain(node, f"unexpected failed resolution of '{target.name}'")
            result = ERROR_TYPE
        elif target.__class__ is Parameter:
            # The parameter becomes dyn, so that nothing later gives it a type without fields.
            self.bindings.assign((DYN,), (target,))
        elif not is_wild(target):
            self.complain(node, f"type '{describe_cel_type(target)}' does not support field selection")
        return optional_of(result) if was_optional or is_optional else result

    def object_field(self, node: AstNode, target: ObjectType, name: str) -> Type:
        found = target.fields.get(name)
        if found is None and name in CEL_RESERVED_WORDS and self.minor >= 31:
            found = target.fields.get(f"__{name}__")
        if found is None:
            self.complain(node, f"undefined field '{name}'")
            return ERROR_TYPE
        return found

    # Calls

    def call(self, node: Call) -> AstNode:
        arguments = tuple(map(self.check, node.arguments))
        function, target = node.function.removeprefix("."), node.target
        prefix = find_qualified_cel_name(target) if target is not None else None
        qualified = f"{prefix}.{function}".removeprefix(".")
        if prefix is not None and find_overloads(qualified, self.minor):
            function, target = qualified, None
        checked = self.check(target) if target is not None else None
        known = find_overloads(function, self.minor)
        if known:
            self.resolve(node, function, known, target, node.arguments)
        else:
            self.undeclared(node, node.function)
        return Call(node.id, node.offset, function, checked, arguments)

    # Aggregates

    def list(self, node: ListNode) -> AstNode:
        elements = []
        common: Type | None = None
        for position, element in enumerate(node.elements):
            elements.append(self.check(element))
            type_ = self.entry_type(element, is_optional=position in node.optional)
            common = self.join(common, type_)
        self.types[node.id] = list_of(common if common is not None else self.bindings.fresh())
        return ListNode(node.id, node.offset, tuple(elements), node.optional)

    def map(self, node: MapNode) -> AstNode:
        entries = []
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            key = self.check(entry.key)
            keys = self.join(keys, self.types[entry.key.id])
            value = self.check(entry.value)
            type_ = self.entry_type(entry.value, is_optional=entry.optional)
            values = self.join(values, type_)
            entries.append(MapEntry(entry.id, key, value, entry.optional))
        if keys is None or values is None:
            keys, values = self.bindings.fresh(), self.bindings.fresh()
        self.types[node.id] = map_of(keys, values)
        return MapNode(node.id, node.offset, tuple(entries))

    # Loops

    def loop(self, node: Comprehension) -> AstNode:
        range_, initial = self.check(node.range), self.check(node.initial)
        accumulated = self.types[node.initial.id]
        variables = self.loop_variables(node)
        self.scopes.push({node.accumulator: accumulated})
        self.scopes.push(variables)
        condition = self.check(node.condition)
        self.want(node.condition, BOOL)
        step = self.check(node.step)
        self.want(node.step, accumulated)
        self.scopes.pop()
        result = self.check(node.result)
        self.scopes.pop()
        self.types[node.id] = self.bindings.substitute(self.types[node.result.id])
        names = (node.variable, node.variable2, node.accumulator)
        parts = (initial, condition, step, result)
        return Comprehension(node.id, node.offset, range_, *names, *parts, node.macro)

    def loop_variables(self, node: Comprehension) -> dict[str, Type]:
        """Return the types of a loop's variables from what it iterates over."""
        over = self.bindings.substitute(self.types[node.range.id])
        types = (DYN, DYN)
        if cel_type_kind_of(over) == "list":
            element = over.parameters[0]
            types = (INT, element) if node.variable2 else (element, DYN)
        elif cel_type_kind_of(over) == "map":
            types = (over.parameters[0], over.parameters[1])
        elif is_wild(over) or over.__class__ is Parameter:
            self.bindings.assign((DYN,), (over,))
        else:
            must = "(must be list, map, or dynamic)"
            message = (
                f"expression of type '{describe_cel_type(over)}' cannot be range of a comprehension {must}"
            )
            self.complain(node.range, message)
            types = (ERROR_TYPE, ERROR_TYPE)
        variables = {node.variable: types[0]}
        if node.variable2:
            variables[node.variable2] = types[1]
        return variables
