"""A faster `dataclass`, for a program that has hundreds of them and is started often.

The standard library generates, compiles and runs the source of up to six methods for every class at import
time, which takes a third of a millisecond per class. Here the methods for comparison, hash and repr are
closures, and only `__init__` is source, compiled for the first object of a class. The classes behave the
same: `tests/test_records.py` compares every record of the program with the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache
from inspect import get_annotations
from operator import attrgetter, ge, gt, le, lt
from reprlib import recursive_repr
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        order: bool = False,
    ) -> Any:
        """Make a record of a class, like `dataclasses.dataclass` with the flags that are used here.

        `field()` is the standard library's. Raises TypeError for a pseudo-field (`InitVar`, `KW_ONLY`).
        """
        if cls is None:
            return lambda decorated: _build_dataclass_type(decorated, frozen, slots, eq, order)
        return _build_dataclass_type(cls, frozen, slots, eq, order)


# The attribute of a class for its fields, with those of its bases.
_FIELDS = "__record_fields__"
# The default of an argument whose real default comes from a factory.
_NOT_GIVEN: Any = type("_NotGiven", (), {"__repr__": lambda self: "<factory>"})()


class _AtFirstUse:
    """A class attribute whose value is made on first use and then replaces this object."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[type], Any]) -> None:
        self.name, self.make = name, make

    def __get__(self, instance: object, owner: type) -> Any:
        cls = next(base for base in owner.__mro__ if base.__dict__.get(self.name) is self)
        made = self.make(cls)
        setattr(cls, self.name, made)
        return made.__get__(instance, owner) if isinstance(made, FunctionType) else made


def _build_dataclass_type(cls: type, frozen: bool, slots: bool, eq: bool, order: bool) -> type:
    own = dict(_list_own_dataclass_fields(cls))
    fields: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        fields |= base.__dict__.get(_FIELDS, {})
    fields |= own
    added: dict[str, Any] = {_FIELDS: fields}
    methods = _build_dataclass_methods(fields, eq, order)
    if frozen and slots:
        methods |= {"__getstate__": _read_record_state, "__setstate__": _set_state}
    added |= {name: method for name, method in methods.items() if name not in cls.__dict__}
    if eq and cls.__dict__.get("__hash__") is None:
        hashed = [name for name, one in fields.items() if (one.compare if one.hash is None else one.hash)]
        added["__hash__"] = _hash_of(_build_dataclass_values_reader(hashed)) if frozen else None
    if frozen:
        added |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if slots:
        return _build_dataclass_with_slots(cls, tuple(own), added)
    for name, one in own.items():
        if one.default is not MISSING:
            added[name] = one.default
        elif name in cls.__dict__:  # a field() without a default
            delattr(cls, name)
    for name, value in added.items():
        setattr(cls, name, value)
    return cls


def _build_dataclass_methods(fields: dict[str, Field[Any]], eq: bool, order: bool) -> dict[str, Any]:
    """Return the methods and attributes of a class that does not define its own."""
    values = _build_dataclass_values_reader([name for name, one in fields.items() if one.compare])
    methods: dict[str, Any] = {
        "__init__": _AtFirstUse("__init__", _compile_dataclass_init_method),
        "__repr__": _build_dataclass_repr_method([name for name, one in fields.items() if one.repr]),
        "__match_args__": tuple(name for name, one in fields.items() if one.init),
        "__dataclass_fields__": _AtFirstUse("__dataclass_fields__", _build_dataclass_fields),
    }
    if eq:
        methods["__eq__"] = _build_dataclass_eq_method(values)
    if order:
        methods |= {
            f"__{compare.__name__}__": _build_dataclass_order_method(compare, values)
            for compare in (lt, le, gt, ge)
        }
    return methods


def _list_own_dataclass_fields(cls: type) -> Iterator[tuple[str, Field[Any]]]:
    """Yield the fields that the class itself declares. Annotations of its module must be strings."""
    for name, annotation in get_annotations(cls).items():
        if annotation.startswith("ClassVar"):
            continue
        if annotation.startswith(("InitVar", "KW_ONLY")):
            raise TypeError(f"{cls.__name__}.{name}: {annotation} is not for records")
        default = cls.__dict__.get(name, MISSING)
        one = default if isinstance(default, Field) else dataclasses.field(default=default)
        one.type = annotation
        yield name, one


def _build_dataclass_with_slots(cls: type, names: tuple[str, ...], added: dict[str, Any]) -> type:
    """Return a new class with slots for its fields, since an existing class cannot get any.

    `added` is part of the class body, which is faster than setting methods later.
    """
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    gone = {*names, "__dict__", "__weakref__"}
    space = {name: value for name, value in cls.__dict__.items() if name not in gone} | added
    space["__slots__"] = tuple(name for name in names if name not in inherited)
    space["__qualname__"] = cls.__qualname__
    return type(cls)(cls.__name__, cls.__bases__, space)


# The methods


def _compile_dataclass_init_method(cls: type) -> Callable[..., None]:
    """Compile an `__init__`, the fastest way to make an object.

    Compiling takes time, so classes of the same shape share the code, renamed to the fields of each.
    """
    space: dict[str, Any] = {"_not_given": _NOT_GIVEN, "_set": object.__setattr__}
    arguments, names, defaults, lines = ["self"], {}, [], []
    for index, (name, one) in enumerate(getattr(cls, _FIELDS).items()):
        own, value, default = f"f{index}", f"f{index}", one.default
        if one.default_factory is not MISSING:
            space[f"_make_{own}"], default = one.default_factory, _NOT_GIVEN
            value = f"_make_{own}() if {own} is _not_given else {own}" if one.init else f"_make_{own}()"
        elif not one.init:
            if default is MISSING:  # the class sets it itself
                continue
            space[f"_default_{own}"] = default
            value = f"_default_{own}"
        if one.init:
            if default is not MISSING:
                defaults.append(default)
            elif defaults:
                raise TypeError(f"non-default argument {name!r} follows default argument")
            arguments.append(own)
        names[own] = name
        lines.append(_write_dataclass_field_assignment(cls, name, own, value, space))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n  ".join(lines or ["pass"])
    code = _replace_names_in_dataclass_code(
        _compile_dataclass_init_code(f"def __init__({', '.join(arguments)}):\n  {body}"), names
    )
    init = FunctionType(code, space, "__init__", tuple(defaults))
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    fields = getattr(cls, _FIELDS)
    init.__annotations__ = {name: fields[name].type for name in code.co_varnames[1:]} | {"return": None}
    return init


def _write_dataclass_field_assignment(
    cls: type, name: str, own: str, value: str, space: dict[str, Any]
) -> str:
    """Return the line that sets a field, called `own` in the source; it bypasses a refusing `__setattr__`."""
    if cls.__dict__.get("__setattr__") is not _refuse_to_set:
        return f"self.{own} = {value}"
    member = getattr(cls, name, None)
    if type(member) is MemberDescriptorType:
        space[f"_set_{own}"] = member.__set__
        return f"_set_{own}(self, {value})"
    space[f"_name_{own}"] = name
    return f"_set(self, _name_{own}, {value})"


@cache
def _compile_dataclass_init_code(source: str) -> CodeType:
    """Return the code of the one function that a source defines."""
    space: dict[str, Any] = {}
    # Compiled first: CPython 3.11 to 3.13 treats an interrupt inside exec(text) as unhandled and ends the
    # program by SIGINT when it exits, even if it was caught (Python/pythonrun.c, run_eval_code_obj).
    exec(compile(source, "<record>", "exec"), space)
    code: CodeType = space["__init__"].__code__
    return code


def _replace_names_in_dataclass_code(code: CodeType, names: dict[str, str]) -> CodeType:
    """Return the code with its arguments and attributes renamed."""
    return code.replace(
        co_varnames=tuple(names.get(name, name) for name in code.co_varnames),
        co_names=tuple(names.get(name, name) for name in code.co_names),
    )


def _build_dataclass_fields(cls: type) -> dict[str, Field[Any]]:
    """Return what `dataclasses.fields`, `replace` and `asdict` read, as the standard library writes it."""
    fields: dict[str, Field[Any]] = getattr(cls, _FIELDS)
    named = [(name, one.type, one) for name, one in fields.items()]
    # Without a docstring, the library would write one, with a signature that it reads from source.
    made: Any = dataclasses.make_dataclass(
        cls.__name__, named, namespace={"__doc__": cls.__doc__ or "-"}, init=False, repr=False, eq=False
    )
    found: dict[str, Field[Any]] = made.__dataclass_fields__
    return found


def _build_dataclass_values_reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads these attributes of an object, always as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        read = attrgetter(*names)
        return lambda self: (read(self),)
    return lambda self: ()


def _build_dataclass_eq_method(values: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def same(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return same


def _build_dataclass_order_method(
    compare: Callable[[Any, Any], Any], values: Callable[[Any], Any]
) -> Callable[[Any, Any], Any]:
    def compared(self: Any, other: Any) -> Any:
        return compare(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

    return compared


def _hash_of(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _build_dataclass_repr_method(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def shown(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    return shown


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _read_record_state(self: Any) -> list[Any]:
    """Return the state for `pickle`, which cannot set the slots of a frozen object by itself."""
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state, strict=True):
        object.__setattr__(self, name, value)
