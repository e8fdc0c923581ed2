"""`kubernetes.Quantity` (k8s.io/apiserver v0.34 `pkg/cel/library/quantity.go`)."""

from __future__ import annotations

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.library.amounts import QuantityValue, parse_quantity_value
from gangplan.cel.library.base import I, Implementation, S


def is_quantity(text: str) -> bool:
    """Evaluate `isQuantity(text)`."""
    try:
        parse_quantity_value(text)
    except EvalError:
        return False
    return True


def as_integer(quantity: QuantityValue) -> int:
    """Evaluate `quantity.asInteger()`."""
    value = quantity.as_int64()
    if value is None:
        raise EvalError("cannot convert value to integer")
    return value


def sign(quantity: QuantityValue) -> int:
    """Evaluate `sign(quantity)`."""
    return (quantity.unscaled > 0) - (quantity.unscaled < 0)


_Q = types.QUANTITY_TYPE
TABLE = (
    Implementation("string_to_quantity", "quantity", (S,), parse_quantity_value),
    Implementation("is_quantity_string", "isQuantity", (S,), is_quantity),
    Implementation("quantity_sign", "sign", (_Q,), sign),
    Implementation(
        "quantity_is_greater_than", "isGreaterThan", (_Q, _Q), lambda one, other: one.compare(other) > 0
    ),
    Implementation(
        "quantity_is_less_than", "isLessThan", (_Q, _Q), lambda one, other: one.compare(other) < 0
    ),
    Implementation("quantity_compare_to", "compareTo", (_Q, _Q), QuantityValue.compare),
    Implementation("quantity_get_float", "asApproximateFloat", (_Q,), QuantityValue.as_float),
    Implementation("quantity_get_int", "asInteger", (_Q,), as_integer),
    Implementation(
        "quantity_is_integer", "isInteger", (_Q,), lambda quantity: quantity.as_int64() is not None
    ),
    Implementation("quantity_add", "add", (_Q, _Q), QuantityValue.plus),
    Implementation(
        "quantity_add_int", "add", (_Q, I), lambda quantity, units: quantity.plus(QuantityValue(units))
    ),
    Implementation("quantity_sub", "sub", (_Q, _Q), QuantityValue.minus),
    Implementation(
        "quantity_sub_int", "sub", (_Q, I), lambda quantity, units: quantity.minus(QuantityValue(units))
    ),
)
