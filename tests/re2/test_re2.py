"""Go's regular expressions: matches are those of Go, and no pattern takes forever."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.re2 import PatternError, UnknownScriptError, compile_search
from gangplan.re2.linear import PatternMachine
from gangplan.re2.syntax import parse_re2_pattern
from gangplan.re2.tree import Work, estimate_re2_match_work, format_re2_pattern

# On each of these, a backtracking matcher takes longer than anyone would wait.
EXPLOSIVE = [
    ("^(a+)+$", "a" * 40 + "b", None),
    ("(a*)*b", "a" * 3000, None),
    ("^(a|aa)+$", "a" * 3000 + "b", None),
    ("^(a|a)*$", "a" * 3000 + "b", None),
    ("^([a-z]+)*[0-9]", "a" * 3000, None),
    ("(x+x+)+y", "x" * 3000, None),
    ("^" + "a?" * 60 + "a" * 60 + "$", "a" * 60, (0, 60)),
    (r"\s+$", " " * 30_000 + "x", None),
    (".*.*.*=.*", "x" * 3000, None),
    ("(.*)*(.*)*(.*)*!", "x" * 1000, None),
    ("(a{0,30}){0,30}b", "a" * 1000, None),
]

# What Go 1.24 finds; Python's `re` finds something else in loops whose body can be empty.
FOUND_BY_GO = [
    (r"(?:(?:(\B|[ab]))?)*", "a\nba", 2, (2, 4)),
    (r"(?:(?:(([^a]|\B)|.)){1,}){2}", "Aacbc", 0, (0, 5)),
    ("(|a)*", "aa", 0, (0, 0)),
    ("(|a)+", "aa", 0, (0, 0)),
    ("(a|ab)(c|bcd)", "abcd", 0, (0, 4)),
    ("(a+?)+?b", "aab", 0, (0, 3)),
    ("(a*?)*?", "aa", 0, (0, 0)),
    (r"\b(a+|b+)+\b", "xx abab y", 0, (3, 7)),
]


# Which of these characters Go 1.26.8 finds: negated classes that are empty, or whose letters are folded.
CHARACTERS = "aAk\u212a\u017f1 _\n"
NEGATED = [
    (r"[^\P{Any}]", CHARACTERS),
    (r"[\P{Any}]", ""),
    (r"[^\P{Any}a]", "Ak\u212a\u017f1 _\n"),
    (r"[^[:^ascii:][:ascii:]]", ""),
    (r"(?i)\P{Lu}", "1 _\n"),
    (r"(?i)[^\P{Lu}]", "aAk\u212a\u017f"),
    (r"(?i)\W", " \n"),
    (r"(?i)[^\W_]", "aAk\u212a\u017f1"),
    (r"(?i)[^k-m\W]", "aA\u017f1_"),
    (r"(?i)[[:^lower:]]", "1 _\n"),
]


@pytest.mark.parametrize(("pattern", "expected"), NEGATED)
def test_negated_classes_hold_what_go_says(pattern: str, expected: str) -> None:
    search, machine = compile_search(pattern), PatternMachine(parse_re2_pattern(pattern)[0])
    assert "".join(one for one in CHARACTERS if search(one)) == expected
    assert "".join(one for one in CHARACTERS if machine.search(one)) == expected


@pytest.mark.parametrize(("pattern", "text", "expected"), EXPLOSIVE)
def test_no_pattern_takes_forever(pattern: str, text: str, expected: tuple[int, int] | None) -> None:
    found = compile_search(pattern)(text)
    assert (found and found.span()) == expected


@pytest.mark.parametrize(("pattern", "text", "start", "expected"), FOUND_BY_GO)
def test_matches_are_those_of_go(pattern: str, text: str, start: int, expected: tuple[int, int]) -> None:
    found = compile_search(pattern)(text, start)
    assert found is not None
    assert found.span() == expected
    assert found.group() == text[slice(*expected)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^[a-z0-9.-]+/team$", Work(1, 1)),
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", Work(2, 1)),
        ("@sha256:[0-9a-f]{64}$", Work(1, 0)),
        ("a|b|c", Work(3, 0)),
        ("(?:a|b){0}", Work(1, 0)),
    ],
)
def test_ordinary_patterns_are_left_to_python(pattern: str, expected: Work) -> None:
    assert estimate_re2_match_work(parse_re2_pattern(pattern)[0]) == expected


_ATOMS = st.sampled_from([*"abc.", "[ab]", "[^a]", r"\b", "^", "$", "(?m:^)", "(?i:A)", r"\w"])
_SIMPLE = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["?", "??", "{0}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
        st.tuples(_ATOMS, st.sampled_from(["*", "+?", "{2}", "{1,3}", "{2,}?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@given(_SIMPLE, st.text("aabcA \n", max_size=8), st.integers(0, 3))
def test_both_matchers_find_the_same(pattern: str, text: str, start: int) -> None:
    """Patterns with repeated bodies that can be empty are left out: they never go to Python."""
    node, _ = parse_re2_pattern(pattern)
    quick = re.compile(format_re2_pattern(node)).search(text, start) if start <= len(text) else None
    found = PatternMachine(node).search(text, start)
    assert (found and found.span()) == (quick and quick.span())


@pytest.mark.parametrize(("pattern", "says"), [("a(?=b)", "invalid or unsupported Perl"), ("(a", "missing")])
def test_patterns_that_go_refuses_are_refused(pattern: str, says: str) -> None:
    with pytest.raises(PatternError, match=says):
        compile_search(pattern)


def test_a_unicode_script_is_reported_as_unknown() -> None:
    with pytest.raises(UnknownScriptError, match="Greek"):
        compile_search(r"\p{Greek}+")
