"""Parsing: precedence, macros, constants, positions and limits, as in cel-go's parser."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gangplan.cel import ast
from gangplan.cel.environment import Environment
from gangplan.cel.errors import CompileError
from gangplan.cel.parser import parse_cel_expression
from gangplan.cel.types import DYN
from gangplan.cel.values import Uint


def written(node: ast.AstNode) -> str:
    """Return a tree as one line, calls with their functions first."""
    match node:
        case ast.Literal(value=value):
            return f"{int(value)}u" if isinstance(value, Uint) else repr(value)
        case ast.Ident(name=name):
            return name
        case ast.Select(operand=operand, field=field, test=test):
            return f"{written(operand)}.{field}{'?' if test else ''}"
        case ast.Call(function=function, target=target, arguments=arguments):
            on = "" if target is None else f"{written(target)} . "
            return f"{function}({on}{', '.join(map(written, arguments))})"
        case ast.ListNode(elements=elements, optional=optional):
            return f"[{', '.join('?' * (i in optional) + written(e) for i, e in enumerate(elements))}]"
        case ast.MapNode(entries=entries):
            pairs = (f"{'?' * e.optional}{written(e.key)}: {written(e.value)}" for e in entries)
            return f"{{{', '.join(pairs)}}}"
        case ast.Comprehension() as loop:
            names = f"{loop.variable}{',' * bool(loop.variable2)}{loop.variable2}"
            parts = map(written, (loop.range, loop.initial, loop.condition, loop.step, loop.result))
            return f"loop({names}; {'; '.join(parts)})"
        case ast.Struct(name=name, fields=fields):
            return f"{name}{{{', '.join(f'{field}: {written(value)}' for field, value, _ in fields)}}}"
    raise TypeError(type(node))


TREES = [
    ("1 + 2 * 3 - 4", "_-_(_+_(1, _*_(2, 3)), 4)"),
    ("a < b == c", "_==_(_<_(a, b), c)"),
    ("a || b && !c", "_||_(a, _&&_(b, !_(c)))"),
    ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
    ("a || b || c", "_||_(_||_(a, b), c)"),
    ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
    ("--1", "1"),
    ("- 1", "-1"),
    ("-(1)", "-_(1)"),
    ("!!!a", "!_(a)"),
    ("-a.b", "-_(a.b)"),
    ("1 - -1", "_-_(1, -1)"),
    ("a -1", "_-_(a, 1)"),
    ("a in b", "@in(a, b)"),
    (".a.b", ".a.b"),
    ("a.if.namespace", "a.if.namespace"),
    ("a.b(c).d(e, f)", "d(b(a . c) . e, f)"),
    ("f()", "f()"),
    ("a.?b.c[?0]", "_[?_](_?._(a, 'b').c, 0)"),
    ("[1, ?a, b,]", "[1, ?a, b]"),
    ("[,]", "[]"),
    ("{'a': 1, ?b: c}", "{'a': 1, ?b: c}"),
    ("{,}", "{}"),
    ("a.B{c: 1}", "a.B{c: 1}"),
    ("has(a.b)", "a.b?"),
    ("a.has(b)", "has(a . b)"),
    ("l.all(x, p)", "loop(x; l; True; @not_strictly_false(@result); _&&_(@result, p); @result)"),
    ("l.exists(x, p)", "loop(x; l; False; @not_strictly_false(!_(@result)); _||_(@result, p); @result)"),
    ("l.exists_one(x, p)", "loop(x; l; 0; True; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))"),
    ("l.map(x, t)", "loop(x; l; []; True; _+_(@result, [t]); @result)"),
    ("l.map(x, p, t)", "loop(x; l; []; True; _?_:_(p, _+_(@result, [t]), @result); @result)"),
    ("l.filter(x, p)", "loop(x; l; []; True; _?_:_(p, _+_(@result, [x]), @result); @result)"),
    ("l.all(i, v, p)", "loop(i,v; l; True; @not_strictly_false(@result); _&&_(@result, p); @result)"),
    ("m.transformList(k, v, t)", "loop(k,v; m; []; True; _+_(@result, [t]); @result)"),
    ("m.transformMap(k, v, t)", "loop(k,v; m; {}; True; cel.@mapInsert(@result, k, t); @result)"),
    ("m.transformMapEntry(k, v, t)", "loop(k,v; m; {}; True; cel.@mapInsert(@result, t); @result)"),
    (
        "o.optMap(x, t)",
        "_?_:_(hasValue(o . ), optional.of(loop(#unused; []; value(o . ); False; x; t)), optional.none())",
    ),
    (
        "o.optFlatMap(x, t)",
        "_?_:_(hasValue(o . ), loop(#unused; []; value(o . ); False; x; t), optional.none())",
    ),
    (
        "l.sortBy(x, k)",
        (
            "loop(#unused; []; l; False; @__sortBy_input__; @sortByAssociatedKeys(@__sortBy_input__ . "
            "loop(x; @__sortBy_input__; []; True; _+_(@result, [k]); @result)))"
        ),
    ),
    ("l.map(x)", "map(l . x)"),
    ("1 // the rest\n+ 2", "_+_(1, 2)"),
]


@pytest.mark.parametrize(("text", "tree"), TREES, ids=[text for text, _ in TREES])
def test_a_text_is_parsed_as_the_api_server_parses_it(text: str, tree: str) -> None:
    assert written(parse_cel_expression(text, 34)) == tree


CONSTANTS = [
    ("0x1F", 31),
    ("-0x10", -16),
    ("7u", Uint(7)),
    ("0xFFU", Uint(255)),
    ("-9223372036854775808", -(2**63)),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("'\\a\\x41\\u00e9\\U0001F600\\101\\?\\`'", "\aAé😀A?`"),
    ("r'\\n'", "\\n"),
    ("'''a'b\r\nc'''", "a'b\nc"),
    ('"""a""b"""', 'a""b'),
    ("b'\\xffé\\377'", b"\xff\xc3\xa9\xff"),
    ("bR'\\x'", b"\\x"),
    ("null", None),
    ("true", True),
]


@pytest.mark.parametrize(("text", "value"), CONSTANTS, ids=[text for text, _ in CONSTANTS])
def test_constants_are_parsed(text: str, value: object) -> None:
    node = parse_cel_expression(text, 34)
    assert isinstance(node, ast.Literal)
    assert (node.value, type(node.value)) == (value, type(value))


ERRORS = [
    ("1 +", 3, "Syntax error: mismatched input '<EOF>' expecting an expression"),
    ("(1", 2, "Syntax error: mismatched input '<EOF>' expecting ')'"),
    ("1 2", 2, "Syntax error: mismatched input '2' expecting the end"),
    ("'abc", 0, "Syntax error: token recognition error at: ''abc'"),
    ("1 $ 2", 2, "Syntax error: token recognition error at: '$'"),
    ("a.in", 2, "Syntax error: mismatched input 'in' expecting IDENTIFIER"),
    ("a ? b", 5, "Syntax error: mismatched input '<EOF>' expecting ':'"),
    ("f(1,)", 4, "Syntax error: mismatched input ')' expecting an expression"),
    ("[1,,]", 3, "Syntax error: mismatched input ',' expecting ']'"),
    ("x + if", 4, "reserved identifier: if"),
    ("namespace", 0, "reserved identifier: namespace"),
    ("9223372036854775808", 0, "invalid int literal"),
    ("18446744073709551616u", 0, "invalid uint literal"),
    ("1e999", 0, "invalid double literal"),
    ("'\\ud800'", 0, "invalid unicode code point"),
    ("b'\\u0041'", 0, "unable to unescape string"),
    ("has(a)", 4, "invalid argument to has() macro"),
    ("l.all(1, true)", 6, "argument must be a simple name"),
    ("l.map(a.b, 1)", 7, "argument is not an identifier"),
    ("l.all(x, x, true)", 9, "duplicate variable name: x"),
    ("l.map(__result__, 1)", 6, "iteration variable overwrites accumulator variable"),
    ("o.optMap(1, 2)", 9, "optMap() variable name must be a simple identifier"),
    ("{}.sortBy(x, x)", 0, "sortBy can only be applied to a list, identifier, comprehension, call or select"),
    ("a.`b`", 2, "unsupported syntax: '`'"),
]


@pytest.mark.parametrize(("text", "offset", "message"), ERRORS, ids=[text for text, _, _ in ERRORS])
def test_errors_are_reported_at_their_offset(text: str, offset: int, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_cel_expression(text, 34)
    (issue,) = caught.value.issues
    assert (issue.offset, issue.message[: len(message)]) == (offset, message)


# The deepest nesting that the API server accepts (k8s.io/apiserver v0.34.4), and how to write it.
DEPTHS = {
    "parentheses": (249, lambda n: "(" * n + "1" + ")" * n),
    "sum": (250, lambda n: "1" + "+1" * n),
    "fields": (250, lambda n: "object" + ".a" * n),
    "loops": (249, lambda n: "object.x" + ".map(x, x)" * n),
    "choices": (249, lambda n: "true?1:" * n + "2"),
    "lists": (249, lambda n: "[" * n + "1" + "]" * n),
    "sums in parentheses": (124, lambda n: "1+(" * n + "1" + ")" * n),
    "all in one": (83, lambda n: "(1+object.a.b[" * n + "1" + "])" * n),
}


@pytest.mark.parametrize("name", DEPTHS)
def test_nesting_is_limited_as_in_the_api_server(name: str) -> None:
    deepest, text = DEPTHS[name]
    environment = Environment(minor=34, variables={"object": DYN})
    environment.check(text(deepest))
    with pytest.raises(CompileError, match="recursion"):
        environment.check(text(deepest + 1))


def test_a_text_may_have_100_000_code_points() -> None:
    parse_cel_expression("'" + "é" * 99_998 + "'", 34)
    with pytest.raises(CompileError, match="size exceeds limit: size: 100001, limit 100000"):
        parse_cel_expression("'" + "é" * 99_999 + "'", 34)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("a.?b", 28),
        ("a[?0]", 28),
        ("[?a]", 28),
        ("a.optMap(x, x)", 28),
        ("a.all(i, v, true)", 32),
        ("a.transformMap(i, v, v)", 32),
        ("a.sortBy(x, x)", 34),
        ("a.`b-c/d.e`", 37),
    ],
)
def test_syntax_and_macros_come_with_their_version(text: str, since: int) -> None:
    def shape(minor: int) -> str:
        try:
            return written(parse_cel_expression(text, minor))
        except CompileError:
            return "refused"

    assert shape(since - 1) != shape(since) == shape(37)


@pytest.mark.parametrize(
    "text", ["a.b[0].c(d, has(e.f)) ? {g: h, ?i: j} : [k, ?l]", "m.all(n, n > o)", "p.map(q, r, s)"]
)
def test_a_walk_reaches_every_node_once(text: str) -> None:
    def numbers(value: object) -> list[int]:
        """Return the ids of all nodes in the fields of a value, for every kind of node."""
        if isinstance(value, tuple):
            return [number for one in value for number in numbers(one)]
        if not isinstance(value, ast.AstNode | ast.MapEntry):
            return []
        below = [number for name in fields(value) for number in numbers(getattr(value, name.name))]
        return [value.id, *below] if isinstance(value, ast.AstNode) else below

    node = parse_cel_expression(text, 37)
    assert [one.id for one in ast.walk_nodes(node)] == numbers(node)
