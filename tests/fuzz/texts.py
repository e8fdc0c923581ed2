"""Laws about texts that people write: YAML, quantities, durations, CEL, regular expressions."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import yaml

from gangplan.cel.conformance import Runner
from gangplan.cel.errors import CompileError, EvalError, UnknownError
from gangplan.model.duration import DurationError, format_duration, parse_duration_to_seconds
from gangplan.model.quantity import Quantity, QuantityError, parse_cpu, parse_memory_quantity, parse_quantity
from gangplan.re2 import PatternError, UnknownScriptError, compile_search
from gangplan.re2.linear import PatternMachine
from gangplan.re2.syntax import parse_re2_pattern
from gangplan.re2.tree import estimate_re2_match_work, format_re2_pattern
from gangplan.source import (
    Document,
    ManifestError,
    load_all_documents,
    load_blocks,
    load_document,
    load_objects,
)
from tests import workspaces
from tests.cel.expressions import expressions
from tests.fuzz.base import Texts
from tests.workspaces import REPOSITORY

TESTS = Path(__file__).parents[1]

# YAML


def _yaml_corpus() -> list[bytes]:
    files = [*TESTS.glob("malformed/*.yaml"), *REPOSITORY.glob("specs/**/*.yaml")]
    files += REPOSITORY.glob("overlays/*/*.yaml")
    pieces = [piece for file in files for piece in file.read_bytes().split(b"\n\n")]
    return [*(piece[:2000] for piece in pieces if piece.strip()), *map(str.encode, workspaces.STOCK.values())]


YAML_WORDS = [
    *(b"---\n", b"...\n", b"&a ", b"*a", b"<<: ", b"!!str ", b"! ", b"!!binary ", b"? ", b"- ", b": ", b"\t"),
    *(b"|\n", b">-\n", b"|2+\n", b"'", b'"', b"\\x00", b"\\U00110000", b"{", b"}", b"[", b"]", b"# ", b"%YAML 1.2\n"),
    *(b"0x", b"0o7", b"1_0", b".inf", b"~", b"yes", b"null", "\u2028".encode(), "\ufeff".encode(), b"\r", b"\x85"),
]  # fmt: skip


def yaml_law(data: bytes) -> None:
    """Check that a file is read as PyYAML reads it, or refused with places that exist."""
    document, findings = load_document(data, "x.yaml")
    assert (document is None) == bool(findings)
    lines = data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines() or [""]
    for finding in findings:
        assert finding.message, finding
        assert finding.help, finding
        assert 0 <= finding.where.line <= len(lines) + 1, finding
    documents, problems = load_all_documents(data, "x.yaml")
    if document is not None:
        assert not problems
        assert [one.value for one in documents] == [document.value]
        # PyYAML's own parser, which accepts neither tabs inside words nor `a?b` in flow mappings.
        with contextlib.suppress(yaml.YAMLError):
            other = yaml.load(data.decode().removeprefix("\ufeff"), yaml.BaseLoader)
            _alike(document, document.value, other, ())
    _objects(data)


def _alike(document: Document, ours: Any, theirs: Any, path: tuple[str | int, ...]) -> None:
    where = document.where(path)
    assert where.line >= 1, path
    if isinstance(ours, dict):
        assert isinstance(theirs, dict), path
        assert len(ours) == len(theirs), path
        for (key, value), (name, other) in zip(ours.items(), theirs.items(), strict=True):
            if key == name:
                _alike(document, value, other, (*path, key))
    elif isinstance(ours, list):
        assert isinstance(theirs, list), path
        assert len(ours) == len(theirs), path
        for index, (value, other) in enumerate(zip(ours, theirs, strict=True)):
            _alike(document, value, other, (*path, index))
    elif isinstance(ours, str):
        assert ours == theirs, path


def _objects(data: bytes) -> None:
    try:
        objects = load_objects(data)
    except ManifestError as refused:
        assert refused.message
        objects = None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        blocks = load_blocks(text)
    except ManifestError:
        blocks = None
    # The reader of templates' output and the reader of programs' output agree where both accept a text.
    if objects is not None and "\r" not in text:
        assert blocks == objects


# Quantities

_EXACT = re.compile(r"([-+]?)([0-9.]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?")
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
QUANTITIES = [b"1", b"0.5", b"500m", b"1.5Gi", b"1e3", b"2E-3", b"100G", b"64Ki", b"9P", b"1n", b".5", b"5.", b"+3", b"-1",
              b"8Ei", b"1h30m", b"24h", b"90m", b"7d"]  # fmt: skip
QUANTITY_WORDS = [
    *map(str.encode, [*_POWERS, *"KMGTPE", "Ki", "Mi", "Gi", "Ei", "e", "E", ".", "-", "+", "_", ",", " GB"])
]


def exact(text: str) -> Fraction:
    """Return the exact amount of a quantity, without any rounding."""
    match = _EXACT.fullmatch(text)
    assert match, text
    sign, number, suffix = match.groups(default="")
    amount = Fraction("0" + number.rstrip(".")) if not number.startswith(".") else Fraction("0" + number)
    if suffix.endswith("i"):
        amount *= 1024 ** ("KMGTPE".index(suffix[0]) + 1)
    elif suffix[:1] in ("e", "E") and len(suffix) > 1:
        amount *= Fraction(10) ** int(suffix[1:])
    elif suffix:
        amount *= Fraction(10) ** _POWERS[suffix]
    return -amount if sign == "-" else amount


def quantity_law(data: bytes) -> None:
    """Check that a quantity is exact, rounded away from zero to billionths, and read from its own text."""
    text = data.decode("utf-8", "replace")
    for reader in (parse_cpu, parse_memory_quantity):
        try:
            assert isinstance(reader(text), Quantity)
        except QuantityError as refused:
            assert refused.message
            if refused.help.startswith("Did"):
                for proposed in re.findall(r"(?:mean|or) ([^ ?]+)", refused.help):
                    assert reader(proposed), refused.help
    try:
        seconds = parse_duration_to_seconds(text)
        assert parse_duration_to_seconds(format_duration(seconds)) == seconds
    except DurationError as refused:
        assert refused.message
        assert refused.help
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    if re.search(r"[eE][-+]?[0-9]{4}", text):
        return  # written out, it would have thousands of digits
    amount = exact(text) * 10**9
    assert quantity.nano == (ceil(amount) if amount >= 0 else -ceil(-amount)), text
    assert parse_quantity(quantity.canonical()) == quantity
    assert parse_quantity(quantity.canonical()).canonical() == quantity.canonical()


# CEL


@cache
def _runner() -> Runner:
    return Runner(json.loads((TESTS / "cel/conformance.json").read_text(encoding="utf-8")))


def _cel_corpus() -> list[bytes]:
    cases = json.loads((TESTS / "cel/conformance.json").read_text(encoding="utf-8"))["cases"]
    return [*(case["expr"].encode() for case in cases), *map(str.encode, expressions(7, 500))]


CEL_WORDS = [
    *(b"object", b"params", b".spec", b".?", b"[?", b"(", b")", b"[", b"]", b"{", b"}", b"? ", b": ", b"&&", b"||", b"!"),
    *(b".all(x, ", b".map(x, ", b".exists_one(x, ", b"has(", b"size(", b".matches(", b"in ", b"dyn(", b"optional.of("),
    *(b"quantity(", b"url(", b"ip(", b"cidr(", b".format([", b"b'", b"r'", b"'''", b"1u", b"null", b"duration('1h')"),
]  # fmt: skip


def cel_law(data: bytes) -> None:
    """Check that an expression is refused, fails or has a value, and that both evaluators agree."""
    runner = _runner()
    try:
        program = runner.environment.compile(data.decode("utf-8", "replace"))
    except CompileError as refused:
        assert refused.issues
        return
    outcomes = []
    for evaluate in (
        lambda: program.evaluate(runner.variables),
        lambda: program.measure(runner.variables, budget=10_000_000)[0],
    ):
        try:
            outcomes.append(repr(evaluate()))
        except (EvalError, UnknownError) as failed:
            assert str(failed)
            outcomes.append(f"{type(failed).__name__}")
    if "BudgetError" not in outcomes:
        assert outcomes[0] == outcomes[1], outcomes


# Regular expressions

PATTERNS = [b"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", b"(a|b)*c", rb"\d+\.\d+", b"(?i)x{2,5}?y", b"[[:alpha:]]+", b"[^]a]", rb"\Q.*\E",
            rb"(?P<n>a)|b", rb"\pL+", rb"\x{1F600}", b"(?s:.)", b"a**", b"(a{0,30}){0,30}b", b"^(a+)+$", rb"[\d\-x]", b"",
            rb"\bfoo\B", b"(|a)+", b"(?U)a+", rb"[a-\n]", rb"\z\A", b"x{1001}"]  # fmt: skip
PATTERN_WORDS = [b"(", b")", b"(?:", b"(?i)", b"[", b"]", b"[^", b"*", b"+", b"?", b"{2}", b"{,3}", b"{0,200}", b"|", b"^", b"$",
                 rb"\b", rb"\w", rb"\S", b".", b"a", b"-", rb"\C", rb"\p{Greek}", rb"\101", b"[[:^digit:]]"]  # fmt: skip
# Where Go's syntax and Python's mean the same, so that Python can be the judge.
_SHARED = re.compile(r"(?:[abc.^|()-]|\[[abc]\]|[abc.)\]][*+?](?![*+?{]))*")
SEARCHED = ["", "a", "abc", "ccba", "aab\nbc", "x-y.z", "a" * 300 + "b", "foo Foo é東", "0.1\n", "bca" * 40]


def regex_law(data: bytes) -> None:
    """Check that a pattern is refused or searches quickly, and that the matchers (and Python) agree."""
    pattern = data.decode("utf-8", "replace")
    try:
        search = compile_search(pattern)
    except (PatternError, UnknownScriptError) as refused:
        assert str(refused)
        return
    node, _ = parse_re2_pattern(pattern)
    plain = estimate_re2_match_work(node).branches < 1_000_000
    quick, linear = re.compile(format_re2_pattern(node)), PatternMachine(node)
    for text, start in itertools.product(SEARCHED, (0, 2)):
        found = search(text, start)
        assert found is None or 0 <= found.span()[0] <= found.span()[1] <= len(text)
        if plain and len(text) < 50 and start <= len(text):
            _same(linear.search(text, start), quick.search(text, start), (text, start))
            if start == 0 and "\n" not in text and _SHARED.fullmatch(pattern):
                _same(found, re.search(pattern, text), text)


def _same(one: Any, other: Any, where: object) -> None:
    assert (one and one.span()) == (other and other.span()), where


YAML = Texts(yaml_law, _yaml_corpus, YAML_WORDS)
QUANTITY = Texts(quantity_law, lambda: QUANTITIES, QUANTITY_WORDS)
CEL = Texts(cel_law, _cel_corpus, CEL_WORDS)
REGEX = Texts(regex_law, lambda: PATTERNS, PATTERN_WORDS)
