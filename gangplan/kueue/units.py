"""Amounts as Kueue counts them: thousandths of a core for cpu, whole units (bytes, devices) otherwise.

Source: pkg/resources/{requests,amount,resource_formatter}.go of Kueue v0.19.2. v0.18.2 saturates only
thousandths of a core at 2^63-1, v0.15.2 nothing; up to v0.18.2 the texts are in requests.go.
"""

from __future__ import annotations

from fractions import Fraction

from gangplan.model.quantity import Quantity, QuantityFormat

MOST_INT64 = 2**63 - 1
NANO = 10**9  # quantities are written in billionths
BINARY = ("memory", "ephemeral-storage")
KUEUE_CPU = "cpu"
KUEUE_PODS = "pods"


def round_to_kueue_count(resource: str, nano: int) -> int:
    """Convert billionths to the number that Kueue counts: rounded up, at most 2^63-1 (`ResourceValue`)."""
    quantity = Quantity(nano)
    value = quantity.milli() if resource == KUEUE_CPU else quantity.value()
    return max(-MOST_INT64, min(value, MOST_INT64))


def convert_to_kueue_count(resource: str, exact: Fraction) -> int:
    """Convert cores, bytes or devices to the number that Kueue counts (`ResourceValue`)."""
    nano = exact * NANO
    return round_to_kueue_count(resource, -(-nano.numerator // nano.denominator))


def convert_from_kueue_count(resource: str, value: int) -> Fraction:
    """Convert a number that Kueue counts to cores, bytes or devices (the inverse of `ResourceValue`)."""
    return Fraction(value, 1000 if resource == KUEUE_CPU else 1)


def format_kueue_amount(resource: str, value: int) -> str:
    """Format an amount as in Kueue's messages (`AmountQuantityString`, resource_formatter.go)."""
    if value >= MOST_INT64:
        return "unlimited"
    if resource == KUEUE_CPU:
        return Quantity(value * 10**6).canonical()
    return Quantity.of(value, quantity_format_of(resource)).canonical()


def quantity_format_of(resource: str) -> QuantityFormat:
    """Return the family of suffixes for amounts of a resource (resource_formatter.go)."""
    is_bytes = resource in BINARY or resource.startswith("hugepages-")
    return QuantityFormat.BINARY_SI if is_bytes else QuantityFormat.DECIMAL_SI
