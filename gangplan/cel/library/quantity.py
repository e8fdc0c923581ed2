"""`kubernetes.Quantity` (k8s.io/apiserver v0.34 `pkg/cel/library/quantity.go`)."""

from __future__ import annotations

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.library.amounts import Quantity, parse
from gangplan.cel.library.base import I, Overload, S


def is_quantity(text: str) -> bool:
    """`isQuantity(text)`."""
    try:
        parse(text)
    except EvalError:
        return False
    return True


def as_integer(quantity: Quantity) -> int:
    """`quantity.asInteger()`."""
    value = quantity.as_int64()
    if value is None:
        raise EvalError("cannot convert value to integer")
    return value


def sign(quantity: Quantity) -> int:
    """`sign(quantity)`."""
    return (quantity.unscaled > 0) - (quantity.unscaled < 0)


_Q = types.QUANTITY
TABLE = (
    Overload("string_to_quantity", "quantity", (S,), parse),
    Overload("is_quantity_string", "isQuantity", (S,), is_quantity),
    Overload("quantity_sign", "sign", (_Q,), sign),
    Overload(
        "quantity_is_greater_than", "isGreaterThan", (_Q, _Q), lambda one, other: one.compare(other) > 0
    ),
    Overload("quantity_is_less_than", "isLessThan", (_Q, _Q), lambda one, other: one.compare(other) < 0),
    Overload("quantity_compare_to", "compareTo", (_Q, _Q), Quantity.compare),
    Overload("quantity_get_float", "asApproximateFloat", (_Q,), Quantity.as_float),
    Overload("quantity_get_int", "asInteger", (_Q,), as_integer),
    Overload("quantity_is_integer", "isInteger", (_Q,), lambda quantity: quantity.as_int64() is not None),
    Overload("quantity_add", "add", (_Q, _Q), Quantity.plus),
    Overload("quantity_add_int", "add", (_Q, I), lambda quantity, units: quantity.plus(Quantity(units))),
    Overload("quantity_sub", "sub", (_Q, _Q), Quantity.minus),
    Overload("quantity_sub_int", "sub", (_Q, I), lambda quantity, units: quantity.minus(Quantity(units))),
)
