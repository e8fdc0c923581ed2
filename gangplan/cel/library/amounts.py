"""Quantities with those quirks of Go's `resource.Quantity` that CEL can see.

An amount is stored as an int64 or, if it did not fit or had a binary suffix with a fraction, as a decimal;
only the former is an integer for `isInteger`. Source: k8s.io/apimachinery v0.34 `pkg/api/resource`.
(`gangplan.model.quantity` is for people: it refuses what Go merely rounds or caps.)
"""

from __future__ import annotations

from functools import lru_cache
from math import log10
from typing import ClassVar

from gangplan.cel import types
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.numbers import INT_MAX, INT_MIN
from gangplan.cel.types import Type
from gangplan.cel.values import Opaque

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MOST_DIGITS = 18
_NANO = -9
# Limits on what is evaluated at all: the exponent, and the length of the text.
_HUGE, _LONG = 10_000, 4000
_LETTERS = frozenset("eEinumkKMGTP")
_DIGITS = frozenset("0123456789")

_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX_WRONG = "unable to parse quantity's suffix"


class QuantityValue(Opaque):
    """`unscaled` × 10^`exponent`; `decimal` once Go stores it as an arbitrary-precision decimal."""

    __slots__ = ("decimal", "exponent", "unscaled")
    cel_type: ClassVar[Type] = types.QUANTITY_TYPE

    def __init__(self, unscaled: int, exponent: int = 0, decimal: bool = False) -> None:
        self.unscaled = unscaled
        self.exponent = exponent
        self.decimal = decimal

    def compare(self, other: QuantityValue) -> int:
        """Return -1, 0 or 1.

        Go turns the left amount into a decimal if the right one is a decimal, and it stays one: `isInteger`
        is then false.
        """
        self.decimal = self.decimal or other.decimal
        return self._compare(other)

    def same(self, other: Opaque) -> bool:
        """Return whether amounts are equal; unlike in `compare`, Go compares copies here."""
        return isinstance(other, QuantityValue) and self._compare(other) == 0

    def _compare(self, other: QuantityValue) -> int:
        if not self.unscaled or not other.unscaled or (self.unscaled > 0) != (other.unscaled > 0):
            return (self.unscaled > other.unscaled) - (self.unscaled < other.unscaled)
        apart = self._digits() - other._digits()
        if abs(apart) > 2:
            # They are so far apart that no power of ten need be built.
            return 1 if (apart > 0) == (self.unscaled > 0) else -1
        lowest = min(self.exponent, other.exponent)
        left = self.unscaled * 10 ** (self.exponent - lowest)
        right = other.unscaled * 10 ** (other.exponent - lowest)
        return int(left > right) - int(left < right)

    def _digits(self) -> float:
        """Return about how many digits there are before the point, give or take one."""
        return self.unscaled.bit_length() * log10(2) + self.exponent

    def as_int64(self) -> int | None:
        """Return the amount as Go's `AsInt64` does; None where Go cannot."""
        if self.decimal or self.exponent < 0:
            return None
        return _scale_within_int64(self.unscaled, self.exponent)

    def as_float(self) -> float:
        """Return Go's `AsApproximateFloat64`."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = float("inf") if self.unscaled > 0 else float("-inf")
        return base * _compute_float_power_of_ten(self.exponent) if self.exponent else base

    def plus(self, other: QuantityValue) -> QuantityValue:
        """Return the sum, as a decimal if it exceeds int64."""
        if not self.decimal and not other.decimal:
            total = _add_cel_quantities_as_int64(self, other)
            if total is not None:
                return total
        lowest = min(self.exponent, other.exponent)
        left = self.unscaled * _compute_exact_power_of_ten(self.exponent - lowest)
        return QuantityValue(
            left + other.unscaled * _compute_exact_power_of_ten(other.exponent - lowest), lowest, decimal=True
        )

    def negated(self) -> QuantityValue:
        """Return the opposite; Go's int64 wraps around at its lowest."""
        value = -self.unscaled
        return QuantityValue(value if self.decimal else _wrap_to_int64(value), self.exponent, self.decimal)

    def minus(self, other: QuantityValue) -> QuantityValue:
        """Return the difference, as a decimal if it exceeds int64."""
        if not self.decimal and not other.decimal:
            total = _add_cel_quantities_as_int64(self, other.negated())
            if total is not None:
                return total
        return self.plus(QuantityValue(-other.unscaled, other.exponent, decimal=True))

    def __repr__(self) -> str:
        return f"Quantity({self.unscaled}e{self.exponent}{', decimal' if self.decimal else ''})"


def _compute_exact_power_of_ten(exponent: int) -> int:
    """Return a power of ten. Raises `UnknownError` for one that would take minutes to compute."""
    if exponent > _HUGE:
        raise UnknownError(f"a quantity of the order of 1e{exponent} is not reckoned with")
    return int(10**exponent)


def _wrap_to_int64(value: int) -> int:
    return (value - INT_MIN) % 2**64 + INT_MIN


def _fit_into_int64(value: int) -> int | None:
    return value if INT_MIN <= value <= INT_MAX else None


def _scale_within_int64(value: int, exponent: int) -> int | None:
    if not value or not exponent:
        return value
    return None if exponent > _MOST_DIGITS else _fit_into_int64(value * 10**exponent)


def _add_cel_quantities_as_int64(left: QuantityValue, right: QuantityValue) -> QuantityValue | None:
    if not right.unscaled:
        return QuantityValue(left.unscaled, left.exponent)
    if not left.unscaled:
        return QuantityValue(right.unscaled, right.exponent)
    lowest = min(left.exponent, right.exponent)
    one = _scale_within_int64(left.unscaled, left.exponent - lowest)
    other = _scale_within_int64(right.unscaled, right.exponent - lowest)
    if one is None or other is None:
        return None
    total = _fit_into_int64(one + other)
    return None if total is None else QuantityValue(total, lowest)


def _compute_float_power_of_ten(exponent: int) -> float:
    """Return Go's `math.Pow10`: the product of two powers, rounded once more than the power itself."""
    if exponent > 308:
        return float("inf")
    if exponent < -323:
        return 0.0
    high, low = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{32 * high}") / float(f"1e{low}")
    return float(f"1e{32 * high}") * float(f"1e{low}")


# Reading


def parse_quantity_value(text: str) -> QuantityValue:
    """Evaluate `quantity(text)`. Raises `EvalError`."""
    return QuantityValue(*_parse_cel_quantity_parts(text))


@lru_cache(maxsize=1024)
def _parse_cel_quantity_parts(text: str) -> tuple[int, int, bool]:
    """Return the parts of a `QuantityValue`, which is mutable and so cannot be cached itself."""
    if not text:
        raise EvalError(_FORMAT_WRONG)
    if len(text) > _LONG:
        raise UnknownError(f"a quantity of {len(text)} characters is not reckoned with")
    positive, value, whole, fraction, suffix = _split_cel_quantity_text(text)
    binary, exponent = _parse_cel_quantity_suffix(suffix)
    found = _build_cel_int64_quantity(
        positive, whole, fraction, binary, exponent
    ) or _build_cel_decimal_quantity(value, binary, exponent)
    return found.unscaled, found.exponent, found.decimal


def _split_cel_quantity_text(text: str) -> tuple[bool, str, str, str, str]:
    """Return the sign, the number as written, its digits before and after the point, and the suffix."""
    at = 1 if text[0] in "+-" else 0
    positive = text[0] != "-"
    while at < len(text) and text[at] == "0":
        at += 1
    if at >= len(text):
        return positive, "0", "0", "", ""
    start, at = at, _skip_matching_characters(text, at, _DIGITS)
    whole = text[start:at] or "0"
    fraction = ""
    if text[at : at + 1] == ".":
        start, at = at + 1, _skip_matching_characters(text, at + 1, _DIGITS)
        fraction = text[start:at]
    number, start = text[:at], at
    at = _skip_matching_characters(text, at, _LETTERS)
    if at < len(text) and text[at] in "+-":
        at += 1
    if _skip_matching_characters(text, at, _DIGITS) < len(text):
        raise EvalError(_FORMAT_WRONG)
    return positive, number, whole, fraction, text[start:]


def _skip_matching_characters(text: str, at: int, letters: frozenset[str]) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def _parse_cel_quantity_suffix(suffix: str) -> tuple[bool, int]:
    """Return whether a suffix is binary, and its power of two or ten."""
    if suffix in _DECIMAL:
        return False, _DECIMAL[suffix]
    if suffix in _BINARY:
        return True, _BINARY[suffix]
    digits = suffix[1:].removeprefix("-" if suffix[1:2] == "-" else "+")
    if len(suffix) < 2 or suffix[0] not in "eE" or not digits or not set(digits) <= _DIGITS:
        raise EvalError(_SUFFIX_WRONG)
    power = int(suffix[1:])
    if _fit_into_int64(power) is None:
        raise EvalError(_SUFFIX_WRONG)
    # Go truncates it to 32 bits.
    return False, (power + 2**31) % 2**32 - 2**31


def _build_cel_int64_quantity(
    positive: bool, whole: str, fraction: str, binary: bool, exponent: int
) -> QuantityValue | None:
    """Return the amount if Go parses it directly into an int64."""
    factor = 1
    if binary:
        precision = -1
        if not fraction:
            factor = 1 << exponent
            precision = 15 - len(whole) - exponent * 3 // 10 - 1
        exponent = 0
    else:
        precision = _MOST_DIGITS - len(whole) - len(fraction)
    exponent -= len(fraction)
    if precision < 0 or exponent < _NANO:
        return None
    value = _fit_into_int64(int(whole + fraction) * factor)
    if value is None:
        return None
    return QuantityValue(value if positive else -value, exponent)


def _build_cel_decimal_quantity(value: str, binary: bool, exponent: int) -> QuantityValue:
    """Return the amount as a decimal, rounded away from zero to billionths."""
    whole, _, fraction = value.lstrip("+-").partition(".")
    if not whole and not fraction:
        raise EvalError("unable to parse numeric part of quantity")
    unscaled = int(whole + fraction)
    negative = value.startswith("-")
    power = -len(fraction)
    if binary:
        unscaled <<= exponent
    else:
        power += exponent
    if unscaled:
        if power >= _NANO:
            unscaled *= _compute_exact_power_of_ten(power - _NANO)
        elif _NANO - power > _HUGE:
            unscaled = 1
        else:
            unscaled = -(-unscaled // _compute_exact_power_of_ten(_NANO - power))
        power = _NANO
        if binary and unscaled > INT_MAX * 10**9:
            unscaled, power = INT_MAX, 0
    return QuantityValue(-unscaled if negative else unscaled, power, decimal=True)
