"""Unify types as the type checker does (cel-go v0.26.0, checker/types.go)."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.cel.types import DYN, ObjectType, Parameter, Type

# Kinds that are the names of their types.
_NAMED = frozenset(
    (
        "!error!",
        "any",
        "bool",
        "bytes",
        "double",
        "dyn",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
    )
)
_WILD = frozenset(("dyn", "any", "!error!"))
# What null may stand for, besides dyn.
_NULLABLE = frozenset(("opaque", "struct", "any", "google.protobuf.Duration", "google.protobuf.Timestamp"))
_WITH_PARTS = frozenset(("opaque", "list", "map"))


def cel_type_kind_of(type_: Type) -> str:
    """Return the name of a type of the language, or `param`, `struct` or `opaque`."""
    if type_.__class__ is Parameter:
        return "param"
    if type_.__class__ is ObjectType:
        return "struct"
    if type_.name in _NAMED:
        return type_.name
    # Kubernetes declares its own types as objects without fields, and those of `net` as opaque.
    return "struct" if type_.name.startswith("kubernetes.") else "opaque"


def is_dyn(type_: Type) -> bool:
    """Return whether the type is only known at run time."""
    return cel_type_kind_of(type_) in ("dyn", "any")


def is_wild(type_: Type) -> bool:
    """Return whether the type agrees with every other one: dynamic, or already complained about."""
    return type_.__class__ is Type and type_.name in _WILD


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """Return what an optional holds and True, or the type itself and False."""
    if type_.name == "optional_type" and type_.parameters:
        return type_.parameters[0], True
    return type_, False


def describe_cel_type(type_: Type) -> str:
    """Return a type as the API server writes it in complaints."""
    short = {
        "google.protobuf.Duration": "duration",
        "google.protobuf.Timestamp": "timestamp",
        "null_type": "null",
    }
    if cel_type_kind_of(type_) in short:
        return short[type_.name]
    if not type_.parameters:
        return type_.name
    return f"{type_.name}({', '.join(map(describe_cel_type, type_.parameters))})"


def find_more_general(one: Type, other: Type) -> Type:
    """Return the less specific one of two types that agree."""
    return one if _is_same_or_broader_cel_type(one, other) else other


def _is_same_or_broader_cel_type(one: Type, other: Type) -> bool:
    """Return whether a type is equal to another or less specific."""
    kind1, kind2 = cel_type_kind_of(one), cel_type_kind_of(other)
    if is_dyn(one) or kind1 == "param":
        return True
    if is_dyn(other) or kind2 == "param" or kind1 != kind2:
        return False
    if kind1 in _WITH_PARTS:
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(map(_is_same_or_broader_cel_type, one.parameters, other.parameters))
        )
    return kind1 == "type" or one == other


class Bindings:
    """The types that type parameters stand for, found step by step; failed attempts leave no trace."""

    def __init__(self) -> None:
        self.bound: dict[str, Type] = {}
        self.trail: list[tuple[str, Type | None]] = []
        self.made = 0

    def fresh(self) -> Parameter:
        """Return a new type parameter."""
        self.made += 1
        return Parameter(f"_var{self.made - 1}")

    def assign(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Return whether each type may be used where its partner is wanted, and keep the bindings if so."""
        if len(given) != len(wanted):
            return False
        mark = len(self.trail)
        if all(map(self._agree, given, wanted)):
            return True
        while len(self.trail) > mark:
            name, before = self.trail.pop()
            if before is None:
                del self.bound[name]
            else:
                self.bound[name] = before
        return False

    def substitute(self, type_: Type, *, is_final: bool = False) -> Type:
        """Return a type with its parameters replaced; if `is_final`, parameters without a binding
        become dyn."""
        while type_.__class__ is Parameter:
            found = self.bound.get(type_.name)
            if found is None:
                return DYN if is_final else type_
            type_ = found
        if not type_.parameters or type_.__class__ is ObjectType:
            return type_
        parts = tuple(self.substitute(part, is_final=is_final) for part in type_.parameters)
        return type_ if parts == type_.parameters else Type(type_.name, parts)

    def _bind(self, name: str, type_: Type) -> None:
        self.trail.append((name, self.bound.get(name)))
        self.bound[name] = type_

    def _agree(self, one: Type, other: Type) -> bool:
        kind1, kind2 = cel_type_kind_of(one), cel_type_kind_of(other)
        if kind2 == "param":
            fits, has_meaning = self._stands_for(one, other)
            if fits or has_meaning:
                return fits
        if kind1 == "param":
            return self._stands_for(other, one)[0]
        if kind1 in _WILD or kind2 in _WILD:
            return True
        if kind1 == "null_type":
            return kind2 in _NULLABLE or kind2 == "null_type"
        if kind2 == "null_type":
            return kind1 in _NULLABLE
        if kind1 == "type":
            return kind2 == "type"
        if kind1 not in _WITH_PARTS:
            return one == other
        return (
            kind1 == kind2
            and one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(map(self._agree, one.parameters, other.parameters))
        )

    def _stands_for(self, type_: Type, parameter: Type) -> tuple[bool, bool]:
        """Return whether a parameter may stand for a type, and whether it already stood for one."""
        if type_ == parameter:
            return True, True
        meaning = self.bound.get(parameter.name)
        if meaning is not None:
            if type_ == meaning:
                return True, True
            if not self._agree(type_, meaning):
                return False, True
            general = find_more_general(type_, meaning)
            if not self._is_within(parameter, general):
                self._bind(parameter.name, general)
            return True, True
        if self._is_within(parameter, type_):
            return False, False
        self._bind(parameter.name, type_)
        return True, False

    def _is_within(self, parameter: Type, type_: Type) -> bool:
        """Return whether a type contains the parameter, which can't stand for a type that contains it."""
        if parameter == type_:
            return True
        if type_.__class__ is Parameter:
            meaning = self.bound.get(type_.name)
            return meaning is not None and self._is_within(parameter, meaning)
        return any(self._is_within(parameter, part) for part in type_.parameters)
