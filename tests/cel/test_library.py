"""The libraries compared with the API server: recorded random calls, tables of examples, and laws."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.cel import conformance, declarations
from gangplan.cel.clock import parse_cel_timestamp, parse_go_duration, write_duration, write_timestamp
from gangplan.cel.environment import Environment
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.library.addresses import parse_cel_ip_with_zone
from gangplan.cel.library.amounts import parse_quantity_value as quantity
from gangplan.cel.library.formatting import format_cel_string
from gangplan.cel.library.lists import distinct, sort
from gangplan.cel.library.regex import find_all
from gangplan.cel.library.semver import parse as semver
from gangplan.cel.library.strings import join, split
from gangplan.cel.library.table import OVERLOADS
from gangplan.cel.numbers import (
    format_plain_cel_double,
    format_shortest_cel_double,
    parse_cel_double,
    quote_as_go,
)
from gangplan.cel.operators import compare_cel_numbers, is_equal_cel_value
from gangplan.cel.types import Type
from gangplan.cel.values import Duration, Timestamp, Uint

HERE = Path(__file__).parent
NEWEST = Environment(minor=declarations.LAST_MINOR, variables={})
# Overloads that the engine itself implements, and those whose result cannot be known offline.
WITHOUT_IMPLEMENTATION = """logical_and logical_or conditional select_optional_field index_list index_map
optional_or_optional list_optindex_optional_int map_optindex_optional_value optional_list_index_int
optional_list_optindex_optional_int optional_map_optindex_optional_value optional_map_index_value
optional_orValue_value __not_strictly_false__"""
AUTHORIZER = ("authorizer_", "pathcheck_", "groupcheck_", "resourcecheck_", "decision_")


def value(expression: str) -> Any:
    """Return the value, which must be the same when it is measured."""
    program = NEWEST.compile(expression)
    result = program.evaluate({})
    assert program.measure({})[0] == result
    return result


def test_recorded_calls_have_the_servers_values_errors_and_costs() -> None:
    data = json.loads(gzip.decompress((HERE / "calls.json.gz").read_bytes()))
    outcomes = [case["outcome"] for case in data["cases"]]
    assert len(outcomes) >= 2400
    assert min(map(outcomes.count, ("value", "runtime-error"))) >= 900
    assert [difference for difference in conformance.run(data) if not difference.reason] == []


def test_every_declared_overload_has_an_implementation_with_its_types() -> None:
    for function in declarations.functions(declarations.LAST_MINOR):
        for declared in declarations.find_overloads(function, declarations.LAST_MINOR):
            id = declared.id
            if id.startswith(AUTHORIZER) or id in WITHOUT_IMPLEMENTATION.split():
                assert id not in OVERLOADS
                continue
            assert OVERLOADS[id].function == function or id in ("in_list", "in_map"), id
            if OVERLOADS[id].guarded:
                assert list(map(shape, OVERLOADS[id].arguments)) == list(map(shape, declared.arguments)), id


def shape(type: Type) -> str:
    """Return a type with its parameters unnamed."""
    return re.sub(r"<\w+>", "<>", str(type))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("[1, 2].includes(2)", True),
        ("[1, 2].includes(dyn('a'))", False),
        ("dyn('a').includes(dyn('a'))", True),
        ("'%f and %e'.format([1234.5, 1234.5])", "1,234.500000 and 1.234500×10⁰³"),
        ("'%s'.format([dyn({'b': [1.5, 'x'], 'a': null})])", '{"a":null, "b":[1.500000, "x"]}'),
        ("quantity('1.5Gi').isInteger()", False),
        ("quantity('1000m').isInteger()", False),
        ("quantity('1k').asInteger()", 1000),
        ("quantity('1.1234567891').asApproximateFloat()", 1.12345679),
        ("[3, 1, 2].sort() + [1, 1].distinct()", [1, 2, 3, 1]),
        ("[[1], [2, 3]].flatten().map(x, x * 2)", [2, 4, 6]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'ünïcode'.charAt(2)", "ï"),
        ("'abc'.findAll('')", ["", "", "", ""]),
        ("'aab'.findAll('a*')", ["aa", ""]),
        ("timestamp('2026-03-29T01:30:00Z').getHours('Europe/Berlin')", 3),
        ("string(timestamp('2026-01-01T00:00:00+02:00'))", "2026-01-01T00:00:00+02:00"),
        ("string(cidr('10.1.2.3/8').masked())", "10.0.0.0/8"),
        ("url('https://[::1]:80/a%2Fb?x=1').getEscapedPath()", "/a%2Fb"),
        ("format.dns1123Label().validate('a.b').value()", ["must not contain dots"]),
        ("semver('v01.2', true) == semver('1.2.0')", True),
        ("dyn(9007199254740993) == 9007199254740992.0", True),
    ],
)
def test_quirks_of_the_libraries_are_kept(expression: str, result: Any) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("[1][3]", "index out of bounds: 3"),
        ("{'a': 1}['b']", "no such key: b"),
        ("dyn(1) + 'a'", "no such overload"),
        ("dyn(true) + 1", "no such overload: _+_"),
        ("dyn([1]).join()", "no such overload: join(list)"),
        ("[].max()", "max called on empty list"),
        ("optional.none().value()", "optional.none() dereference"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
    ],
)
def test_errors_are_in_the_servers_words(expression: str, text: str) -> None:
    program = NEWEST.compile(expression)
    for evaluate in (program.evaluate, program.measure):
        with pytest.raises(EvalError) as caught:
            evaluate({})
        assert str(caught.value) == text


def test_values_that_take_minutes_or_tables_are_unknown_not_wrong() -> None:
    for expression in ("quantity('1234567890123456789.5e99999').isInteger()", "'é'.matches('\\\\p{Greek}')"):
        with pytest.raises(UnknownError):
            NEWEST.compile(expression).evaluate({})
    assert value("quantity('1e999999999').isGreaterThan(quantity('1e-999999999'))") is True


# Laws

scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=5),
    st.floats(allow_nan=False),
    st.none(),
)


@given(st.lists(st.integers(-5, 5), max_size=8))
def test_sort_and_distinct_agree_with_python(numbers: list[int]) -> None:
    assert sort(numbers) == sorted(numbers)
    assert distinct(numbers) == list(dict.fromkeys(numbers))


@given(st.text(max_size=12), st.text(min_size=1, max_size=3))
def test_join_undoes_split(text: str, separator: str) -> None:
    assert join(list(split(text, separator)), separator) == text


@given(scalars, scalars)
def test_equality_is_symmetric_and_numbers_agree_with_their_order(one: Any, other: Any) -> None:
    assert is_equal_cel_value(one, other) == is_equal_cel_value(other, one)
    assert is_equal_cel_value(one, one)
    if type(one) in (int, float) and type(other) in (int, float):
        assert is_equal_cel_value(one, other) == (compare_cel_numbers(one, other) == 0)
        assert compare_cel_numbers(one, other) == -compare_cel_numbers(other, one)


@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_unsigned_numbers_compare_with_signed_ones(unsigned: int, signed: int) -> None:
    assert is_equal_cel_value(Uint(unsigned), signed) == (unsigned == signed)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(number: float) -> None:
    assert parse_cel_double(format_shortest_cel_double(number)) == number
    assert parse_cel_double(format_plain_cel_double(number)) == number


@given(st.integers(-(2**53), 2**53))
def test_durations_read_back_to_the_precision_of_their_text(nanoseconds: int) -> None:
    read = parse_go_duration(write_duration(Duration(nanoseconds)))
    assert read is not None
    # The text is made from a float64 of seconds.
    assert abs(read.nanoseconds - nanoseconds) <= max(1, abs(nanoseconds) >> 50)


@given(st.integers(-62135596800 * 10**9, 253402300799 * 10**9), st.integers(-14 * 60, 14 * 60))
def test_timestamps_read_back(nanoseconds: int, minutes: int) -> None:
    written = Timestamp(nanoseconds, minutes * 60)
    text = write_timestamp(written)
    if text[:4] != "0000" and text[4] == "-":
        read = parse_cel_timestamp(text)
        assert read == written
        assert read is not None
        assert read.offset == written.offset


@given(
    st.integers(-(10**17), 10**17), st.sampled_from(["", "m", "k", "Ki", "e3", "n"]), st.integers(-999, 999)
)
def test_quantities_add_and_compare(number: int, suffix: str, more: int) -> None:
    one, other = quantity(f"{number}{suffix}"), quantity(str(more))
    total = one.plus(other)
    assert total.minus(other).compare(one) == 0
    assert total.compare(one) == (more > 0) - (more < 0)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=2))
def test_versions_are_ordered_by_their_numbers(numbers: list[tuple[int, int, int]]) -> None:
    one, other = (semver(".".join(map(str, each))) for each in numbers)
    assert one.compare(other) == (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])


@given(st.ip_addresses())
def test_addresses_read_back(address: Any) -> None:
    assert parse_cel_ip_with_zone(str(address))[0] == address


@given(st.text(max_size=20))
def test_quoting_keeps_one_line_and_format_changes_no_text(text: str) -> None:
    assert quote_as_go(text).isprintable()
    assert format_cel_string("%s|%%|%s", [text, text]) == f"{text}|%|{text}"


@given(st.text("ab", max_size=10), st.sampled_from(["a*", "a", "(?:)", "b|a+", "$"]))
def test_matches_do_not_overlap(text: str, pattern: str) -> None:
    found = find_all(text, pattern)
    assert len("".join(found)) <= len(text)
    assert find_all(text, pattern, 1) == found[:1]
