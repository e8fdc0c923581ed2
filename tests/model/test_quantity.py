"""Quantities: the canonical text is the one that Kubernetes stores, and arithmetic is exact."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.model.quantity import (
    Quantity,
    QuantityError,
    QuantityFormat,
    parse_cpu,
    parse_memory_quantity,
    parse_quantity,
)

# From resource.ParseQuantity and Quantity.String of k8s.io/apimachinery v0.34.4:
# text: canonical text, Value(), MilliValue() (exact here, where Go overflows above 9.2e15).
CANONICAL = {
    "0": ("0", 0, 0), "00": ("0", 0, 0), "-0": ("0", 0, 0), "0Gi": ("0", 0, 0), "0e5": ("0", 0, 0),
    "1": ("1", 1, 1000), "+1": ("1", 1, 1000), "1.": ("1", 1, 1000), "1000": ("1k", 1000, 1000000),
    "1000m": ("1", 1, 1000), "12000m": ("12", 12, 12000), "100m": ("100m", 1, 100), "0.5": ("500m", 1, 500),
    ".5": ("500m", 1, 500), "0.75": ("750m", 1, 750), "1.500": ("1500m", 2, 1500), "1.0": ("1", 1, 1000),
    "0.1m": ("100u", 1, 1), "1u": ("1u", 1, 1), "0.1n": ("1n", 1, 1), "1500n": ("1500n", 1, 1),
    "-1500m": ("-1500m", -2, -1500), "-1Gi": ("-1Gi", -(2**30), -(2**30) * 1000),
    "1500": ("1500", 1500, 1500000), "1024": ("1024", 1024, 1024000), "1000k": ("1M", 10**6, 10**9),
    "1.5k": ("1500", 1500, 1500000), "1E": ("1E", 10**18, 10**21), "1000P": ("1E", 10**18, 10**21),
    "0.03E": ("30P", 3 * 10**16, 3 * 10**19), "1024Mi": ("1Gi", 2**30, 2**30 * 1000),
    "3072Mi": ("3Gi", 3 * 2**30, 3 * 2**30 * 1000), "0.5Gi": ("512Mi", 2**29, 2**29 * 1000),
    "1.5Gi": ("1536Mi", 3 * 2**29, 3 * 2**29 * 1000), "1.5Ti": ("1536Gi", 3 * 2**39, 3 * 2**39 * 1000),
    "1000Ki": ("1000Ki", 1024000, 1024000000), "1025Ki": ("1025Ki", 1049600, 1049600000),
    "01Gi": ("1Gi", 2**30, 2**30 * 1000), "320Gi": ("320Gi", 5 * 2**36, 5 * 2**36 * 1000),
    "0.5Ki": ("512", 512, 512000), "1.1Ki": ("1126400m", 1127, 1126400), "0.0001Ki": ("102400u", 1, 103),
    "1e3": ("1e3", 1000, 10**6), "1E3": ("1e3", 1000, 10**6), "12e4": ("120e3", 120000, 12 * 10**7),
    "1e0": ("1", 1, 1000), "1000e0": ("1e3", 1000, 10**6), "5e-1": ("500e-3", 1, 500),
    "1e-20": ("1e-9", 1, 1), "1e18": ("1e18", 10**18, 10**21),
    "9223372036854775807": ("9223372036854775807", 2**63 - 1, (2**63 - 1) * 1000),
}  # fmt: skip


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_and_values_are_those_of_kubernetes(text: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.canonical(), quantity.value(), quantity.milli()) == CANONICAL[text]
    assert str(quantity) == quantity.canonical()
    assert quantity.bytes == quantity.value()


# Invalid text: a part of the message, the help.
REFUSED = {
    "": ("empty", "Write a number and its unit"),
    " ": ("empty", "Write a number and its unit"),
    "32GB": ("'32GB' is not a valid amount", "Did you mean 32Gi or 32G (29.802 GiB)?"),
    "32gb": ("'32gb'", "Did you mean 32Gi or 32G (29.802 GiB)?"),
    "32GiB": ("'32GiB'", "Did you mean 32Gi?"),
    "32 Gi": ("'32 Gi'", "Did you mean 32Gi?"),
    " 32Gi": ("' 32Gi'", "Did you mean 32Gi?"),
    "32K": ("'32K'", "Did you mean 32Ki or 32k (31.25 KiB)?"),
    "1.5 TB": ("'1.5 TB'", "Did you mean 1.5Ti or 1.5T (1396.984 GiB)?"),
    "8 cores": ("'8 cores'", "Did you mean 8?"),
    "500 millicores": ("'500 millicores'", "Did you mean 500m?"),
    "1,5Gi": ("'1,5Gi'", "Did you mean 1.5Gi?"),
    "1,024Mi": ("'1,024Mi'", "Did you mean 1024Mi?"),
    "1_000Mi": ("'1_000Mi'", "Did you mean 1000Mi?"),
    "1.2.3Gi": ("'1.2.3Gi'", "Write a number and its unit"),
    "lots": ("'lots'", "Write a number and its unit"),
    "1e": ("'1e'", "Did you mean 1Ei or 1E (909494.702 TiB)?"),
    "1e1.5": ("'1e1.5'", "Write a number and its unit"),
    "+": ("'+'", "Write a number and its unit"),
    ".": ("'.'", "Write a number and its unit"),
    "Gi": ("'Gi'", "Write a number and its unit"),
    "\u0663Gi": ("not a valid amount", "Write a number and its unit"),
    "1Gi\n": ("not a valid amount", "Did you mean 1Gi?"),
    "8Ei": ("more than Kubernetes can count", "Check the unit"),
    "10E": ("more than Kubernetes can count", "Check the unit"),
    "-10E": ("more than Kubernetes can count", "Check the unit"),
    "1e999999999999": ("more than Kubernetes can count", "Check the unit"),
    "9" * 65: ("too long", "Write a number and its unit"),
    "1e" + "9" * 5000: ("too long", "Write a number and its unit"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_quantities_are_refused(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    message, help = REFUSED[text]
    assert message in caught.value.message
    assert caught.value.help.startswith(help)
    assert str(caught.value) == caught.value.message


@pytest.mark.parametrize(
    ("written", "canonical"),
    [(8, "8"), ("8", "8"), ("8000m", "8"), ("0.5", "500m"), (0.5, "500m"), (1.25, "1250m"), ("1k", "1k")],
)
def test_cores_have_their_canonical_text(written: Any, canonical: str) -> None:
    assert parse_cpu(written).canonical() == canonical


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("8Gi", "is an amount of memory"),
        ("0Ki", "is an amount of memory"),
        (0, "not more than zero"),
        (-1, "not more than zero"),
        ("0.1m", "finer than a thousandth"),
        (0.0001, "finer than a thousandth"),
        (1e22, "more than Kubernetes can count"),
        (True, "not a number of cores"),
        (None, "not a number of cores"),
        (float("nan"), "is not a valid amount"),
        ("8 cores", "is not a valid amount"),
    ],
)
def test_invalid_numbers_of_cores_are_refused(written: Any, message: str) -> None:
    with pytest.raises(QuantityError, match=message) as caught:
        parse_cpu(written)
    assert caught.value.help


@pytest.mark.parametrize(
    ("written", "canonical"), [("32Gi", "32Gi"), ("32G", "32G"), ("1e9", "1e9"), ("0.5Gi", "512Mi")]
)
def test_amounts_of_memory_have_their_canonical_text(written: str, canonical: str) -> None:
    assert parse_memory_quantity(written).canonical() == canonical


@pytest.mark.parametrize(
    ("written", "message", "help"),
    [
        (32, "has no unit", "Did you mean 32Gi?"),
        ("32", "has no unit", "Did you mean 32Gi?"),
        (1.5, "has no unit", "Did you mean 1.5Gi?"),
        ("32m", "not a whole number of bytes", "Write a number and its unit"),
        ("0.1n", "not a whole number of bytes", "Write a number and its unit"),
        ("-1Gi", "not more than zero", "above zero"),
        ("0Gi", "not more than zero", "above zero"),
        ("32GB", "is not a valid amount", "Did you mean 32Gi or 32G (29.802 GiB)?"),
        (False, "not an amount of memory", "Write a number and its unit"),
        ([], "not an amount of memory", "Write a number and its unit"),
    ],
)
def test_invalid_amounts_of_memory_are_refused(written: Any, message: str, help: str) -> None:
    with pytest.raises(QuantityError, match=message) as caught:
        parse_memory_quantity(written)
    assert help in caught.value.help


formats = st.sampled_from(QuantityFormat)
quantities = st.builds(
    Quantity, st.integers(-(2**63), 2**63).map(lambda n: n * 10**9) | st.integers(), formats
)
# All within 2^63-1.
suffixes = st.sampled_from(["", *"numkMGTP", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "e-3", "E6", "e-11"])
numbers = st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,4})?", fullmatch=True)
texts = st.builds("{}{}{}".format, st.sampled_from(["", "-", "+"]), numbers, suffixes)


@given(quantities.filter(lambda quantity: abs(quantity.nano) < 2**63 * 10**9))
def test_canonical_text_means_the_same(quantity: Quantity) -> None:
    again = parse_quantity(quantity.canonical())
    assert again == quantity
    assert again.canonical() == quantity.canonical()


def test_a_binary_amount_that_is_not_a_multiple_of_1ki_is_read_as_in_go() -> None:
    assert parse_quantity("4.8828125Ki").canonical() == "5k"


@given(texts)
def test_the_canonical_text_of_a_canonical_text_is_itself(text: str) -> None:
    quantity = parse_quantity(text)
    assert parse_quantity(quantity.canonical()) == quantity
    assert parse_quantity(quantity.canonical()).canonical() == quantity.canonical()
    assert "." not in quantity.canonical()
    assert not quantity.canonical().startswith("+")


@given(st.text(max_size=12) | texts, st.sampled_from([parse_quantity, parse_cpu, parse_memory_quantity]))
def test_any_text_is_parsed_or_explained(text: str, read: Any) -> None:
    try:
        quantity, message, help = read(text), "none", "none"
    except QuantityError as problem:
        quantity, message, help = Quantity(0), problem.message, problem.help
    assert isinstance(quantity, Quantity)
    assert message
    assert help


@given(quantities, quantities, st.integers(-1000, 1000))
def test_arithmetic_is_exact(a: Quantity, b: Quantity, times: int) -> None:
    assert (a + b).nano == a.nano + b.nano
    assert a + b - b == a
    assert (a * times).nano == (times * a).nano == a.nano * times
    assert (a < b) == (a.nano < b.nano)
    assert (a >= b) == (a.nano >= b.nano)
    assert (a == b) == (hash(a) == hash(b)) or a != b
    assert bool(a) == (a != Quantity(0))


@given(quantities)
def test_values_round_away_from_zero(quantity: Quantity) -> None:
    for got, exact in (
        (quantity.value(), Fraction(quantity.nano, 10**9)),
        (quantity.milli(), Fraction(quantity.nano, 10**6)),
    ):
        assert 0 <= abs(got) - abs(exact) < 1
        assert got * quantity.nano >= 0


def test_sums_keep_the_format_of_the_first_nonzero_amount() -> None:
    assert (parse_quantity("0") + parse_quantity("1Gi")).canonical() == "1Gi"
    assert (parse_quantity("1Gi") + parse_quantity("1G")).canonical() == "2073741824"
    assert (parse_quantity("1Gi") + parse_quantity("1024Mi")).canonical() == "2Gi"
    assert (parse_quantity("1") + parse_quantity("500m")).canonical() == "1500m"
    assert sum([parse_quantity("1Gi"), parse_quantity("1Gi")], Quantity(0)).canonical() == "2Gi"
    assert Quantity.of(8).canonical() == "8"
    assert parse_quantity("1Gi") != "1Gi"


@pytest.mark.parametrize("text", ["9" * 330, "1" * 5000, "9" * 60])
def test_a_number_beyond_all_machines_is_refused_with_a_message(text: str) -> None:
    """No reading with a unit could be proposed for such a number."""
    with pytest.raises(QuantityError, match=r"too long|more than Kubernetes can count"):
        parse_memory_quantity(text)


@pytest.mark.parametrize("text", [".555", "0 GB", "-1e", "922337203685.775808", "0.1234567"])
def test_no_help_for_memory_proposes_an_amount_that_is_refused(text: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_memory_quantity(text)
    assert not refused.value.help.startswith("Did")
