"""Fields set in a text: the law that nothing else changes, and each form in which a field can be written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gangplan.edits import edit_field, parse_changes, read_value
from gangplan.errors import UserError
from gangplan.objects import format_scalar
from gangplan.source import load_document

FILE = "specs/nlp/a.yaml"
SPEC = """\
# A job.

kind: TrainingJob   # its kind
env:            # variables
  A: 1  # one
  # two
  B: "2"

command: [a, b, 'c d']  # words
clusters:   # where
  # first
  - lab
  - far  # far away
# steps
steps:
- name: s
  command: [q]
- name: t
note: |
  two
  lines

empty:
flow: {}  # nothing
lists:
- a: 1

  # about b
  b: 2
last: 'one'
"""


def value_of(text: str) -> Any:
    document, findings = load_document(text.encode(), FILE)
    assert document is not None, findings
    return document.value


def difference(path: str, new: str | None) -> tuple[list[str], list[str]]:
    """Return the lines that a change removes, and those that it adds."""
    flags = ([], [path]) if new is None else ([f"{path}={new}"], [])
    (change,) = parse_changes(*flags)
    after = edit_field(SPEC, FILE, change.path, change.text).splitlines()
    before = SPEC.splitlines()
    pairs = enumerate(zip(before, after, strict=False))
    start = next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


@pytest.mark.parametrize(
    ("path", "new", "gone", "come"),
    [
        ("kind", "Sweep", ["kind: TrainingJob   # its kind"], ["kind: Sweep   # its kind"]),
        ("env.A", "7", ["  A: 1  # one"], ["  A: 7  # one"]),
        ("env.B", "seven", ['  B: "2"'], ['  B: "seven"']),
        ("env.C", "7", [], ["  C: 7"]),
        ("env", "{A: 1, C: 9}", ['  B: "2"'], ["  C: 9"]),
        ("env.B", None, ['  B: "2"'], []),
        ("command[1]", "x", ["command: [a, b, 'c d']  # words"], ["command: [a, x, 'c d']  # words"]),
        ("command", "[a, b]", ["command: [a, b, 'c d']  # words"], ["command: [a, b]  # words"]),
        ("command", "[b, c d]", ["command: [a, b, 'c d']  # words"], ["command: [b, 'c d']  # words"]),
        ("command[3]", "x", ["command: [a, b, 'c d']  # words"], ["command: [a, b, 'c d', x]  # words"]),
        ("command", "q", ["command: [a, b, 'c d']  # words"], ["command: q  # words"]),
        ("clusters", "[far]", ["  - lab"], []),
        ("clusters", "[lab, far, new]", [], ["  - new"]),
        ("clusters", "lab", SPEC.splitlines()[9:13], ["clusters: lab # where"]),
        ("steps[0].name", None, ["- name: s", "  command: [q]"], ["- command: [q]"]),
        ("lists[0].a", None, ["- a: 1", "", "  # about b", "  b: 2"], ["", "  # about b", "- b: 2"]),
        ("steps[0]", None, ["- name: s", "  command: [q]"], []),
        ("steps[1].name", None, ["- name: t"], ["- {}"]),
        ("note", "one", ["note: |", "  two", "  lines"], ["note: one"]),
        ("empty", "4", ["empty:"], ["empty: 4"]),
        ("empty.a.b", "4", ["empty:"], ["empty: {a: {b: 4}}"]),
        ("flow.a", "4", ["flow: {}  # nothing"], ["flow: {a: 4}  # nothing"]),
        ("new.a", "4", [], ["new: {a: 4}"]),
        (r"new\.a", "4", [], ["new.a: 4"]),
        ("last", "two", ["last: 'one'"], ["last: 'two'"]),
        ("last", "it's", ["last: 'one'"], ["last: it's"]),
        ("last", "one", [], []),
        ("env", None, SPEC.splitlines()[3:7], []),
    ],
)  # fmt: skip
def test_a_change_is_as_small_as_it_can_be(
    path: str, new: str | None, gone: list[str], come: list[str]
) -> None:
    assert difference(path, new) == (gone, come)


@pytest.mark.parametrize(
    ("text", "path", "new", "message", "help"),
    [
        ("a: 1\n", "a.b", "2", "a has no a.b", "--set a=... sets all of it"),
        ("a: [1]\n", "a.b", "2", "a has no a.b", "--set a=[a, b]"),
        ("a: [1]\n", "a[3]", "2", "a has 1 entries", "The next one is [1]."),
        ("workers: 1\n", "worker", None, "there is no worker to remove", "Did you mean 'workers'?"),
        ("a: &x 1\nb: *x\n", "a", "2", ":1:4: a cannot be set as the file is written", "by hand"),
        ("a: &x {c: 1}\nb: *x\n", "b.c", "2", "b.c cannot be set as the file is written", "by hand"),
        ("a: [1\n", "a", "2", "the file cannot be read", "gangplan validate"),
    ],
)
def test_impossible_changes_are_refused_with_a_help(
    text: str, path: str, new: str | None, message: str, help: str
) -> None:
    flags = ([], [path]) if new is None else ([f"{path}={new}"], [])
    (change,) = parse_changes(*flags)
    with pytest.raises(UserError) as stop:
        edit_field(text, FILE, change.path, change.text)
    assert message in stop.value.message
    assert help in (stop.value.help or "")


@pytest.mark.parametrize("flag", ["=1", "a..b=1", "a[b]=1", "[0]=1", "a.=1", "workers"])
def test_a_flag_that_names_no_field_is_refused(flag: str) -> None:
    with pytest.raises(UserError, match=r"does not name a field|has no value"):
        parse_changes([flag], [])


@pytest.mark.parametrize(("first", "second"), [("a=1", "a=2"), ("a={}", "a.b=1"), ("a.b-", "a.b=1")])
def test_two_changes_of_one_field_are_refused(first: str, second: str) -> None:
    with pytest.raises(UserError, match="change the same field"):
        parse_changes([first, second], [])


def test_an_alias_is_replaced_in_its_place() -> None:
    assert edit_field("a: &x 1\nb: *x # c\n", FILE, ("b",), "2") == "a: &x 1\nb: 2 # c\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_line_ends_and_a_byte_order_mark_stay(end: str) -> None:
    text = f"\ufeffa: 1{end}"
    line = end or "\n"
    assert edit_field(text, FILE, ("b",), "2") == f"\ufeffa: 1{line}b: 2{line}"
    assert edit_field(text, FILE, ("a",), "2") == f"\ufeffa: 2{end}"


# The law

words = st.text("abcxyz019 '#:-é", min_size=1, max_size=6).map(str.strip).filter(bool)
leaves = st.one_of(words, st.integers(-9, 99), st.booleans())
names = st.sampled_from(["a", "b", "env", "x-y", "k1", "on_", "ä"])
comments = st.sampled_from(["", "", "  # c", " # [x]: {y", "   "])


@st.composite
def leaf(draw: Any) -> str:
    """Draw a scalar in one of the notations that people use."""
    value = draw(leaves)
    if not isinstance(value, str):
        return json.dumps(value)
    return draw(
        st.sampled_from(
            [
                format_scalar(value),
                json.dumps(value, ensure_ascii=False),
                "'" + value.replace("'", "''") + "'",
            ]
        )
    )


@st.composite
def flow(draw: Any, depth: int = 2) -> str:
    """Draw a flow collection or a scalar."""
    kind = draw(st.sampled_from(["leaf", "leaf", "list", "map"])) if depth else "leaf"
    if kind == "list":
        return f"[{', '.join(draw(st.lists(flow(depth - 1), max_size=3)))}]"
    if kind == "map":
        pairs = draw(st.dictionaries(names, flow(depth - 1), max_size=3))
        return "{" + ", ".join(f"{format_scalar(name)}: {item}" for name, item in pairs.items()) + "}"
    return str(draw(leaf()))


@st.composite
def block(draw: Any, indent: str = "", depth: int = 3) -> str:
    """Draw a block mapping, with comments anywhere."""
    lines = ""
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        if draw(st.booleans()):
            lines += draw(st.sampled_from(["\n", f"{indent}# above\n", "# far left\n"]))
        kind = (
            draw(st.sampled_from(["flow", "flow", "block", "list", "blocks", "literal", "empty"]))
            if depth
            else "flow"
        )
        comment = draw(comments)
        head = f"{indent}{format_scalar(name)}:"
        if kind == "flow":
            lines += f"{head} {draw(flow())}{comment}\n"
        elif kind == "empty":
            lines += f"{head}{comment}\n"
        elif kind == "literal":
            lines += f"{head} |\n{indent}  one\n{indent}  # two\n"
        elif kind == "block":
            lines += f"{head}{comment}\n{draw(block(indent + '  ', depth - 1))}"
        elif kind == "list":
            items = draw(st.lists(flow(1), min_size=1, max_size=3))
            lines += f"{head}{comment}\n" + "".join(f"{indent}- {item}{draw(comments)}\n" for item in items)
        else:
            inner = draw(block(indent + "    ", 0))
            while not inner.startswith(indent + "    ") or inner.lstrip().startswith("#"):
                inner = inner.split("\n", 1)[1]
            lines += f"{head}{comment}\n{indent}  - {inner.removeprefix(indent + '    ')}"
    return lines


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all fields and entries."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for name, item in inner for one in ((*path, name), *paths(item, (*path, name)))]


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> None:
    """Make the same change in the value."""
    for step in path[:-1]:
        value = value[step]
    if new is ...:
        del value[path[-1]]
    elif isinstance(value, list) and path[-1] == len(value):
        value.append(new)
    else:
        value[path[-1]] = new


@settings(max_examples=120, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_the_set_field_is_read_back_and_every_other_line_stays(data: st.DataObject) -> None:
    text = "kind: Job\n" + data.draw(block())
    if load_document(text.encode(), FILE)[0] is None:
        return  # for example, a word that YAML reads otherwise
    value = value_of(text)
    path = data.draw(st.sampled_from(paths(value)))
    if data.draw(st.booleans()) and isinstance(parent := at(value, path[:-1]), dict):
        path = (*path[:-1], data.draw(st.sampled_from(["new", *map(str, parent)])))
    new = data.draw(st.one_of(st.none(), flow()))
    if new is None and path not in paths(value):
        return
    try:
        after = edit_field(text, FILE, path, new)
    except UserError:
        assert new is None  # only a removal may be refused, when it would take a comment with it
        assert "#" in text
        return
    changed(value, path, ... if new is None else read_value(new))
    assert json.dumps(value_of(after), sort_keys=True) == json.dumps(value, sort_keys=True)
    # All lines except those of the field are there, in order, and so are comments above and below it.
    old = lines_of(text, path)
    rest = [line for number, line in enumerate(text.splitlines(), 1) if number not in old]
    found = after.splitlines()
    head = [line for number, line in enumerate(text.splitlines(), 1) if number < min(old, default=0)]
    assert found[: len(head)] == head
    tail = rest[len(head) :]
    last = found[len(found) - len(tail) :]
    # After the first field of an entry is removed, the next one follows the dash.
    assert [one.lstrip(" -") for one in last] == [one.lstrip(" -") for one in tail]
    assert sum(one != other for one, other in zip(last, tail, strict=True)) <= 1


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def lines_of(text: str, path: tuple[str | int, ...]) -> range:
    """Return the lines of a field with its last word, or, if there is no such field, those of its holder."""
    document, _ = load_document(text.encode(), FILE)
    assert document is not None
    while path and path not in paths(document.value):
        path = path[:-1]
    if not path:
        return range(1, len(text.splitlines()) + 1)
    holder = at(document.value, path[:-1])
    if len(holder) == 1 and len(path) > 1:  # its holder becomes {} without it
        return lines_of(text, path[:-1])
    below = [one for one in paths(document.value) if one[: len(path)] == path]
    first = document.where(path, key=isinstance(path[-1], str)).line
    ends = [document.where(one).line for one in below]
    last = max(ends)
    lines = text.splitlines()
    while (last < len(lines) and lines[last - 1].endswith("|")) or lines[last - 1].strip() == "one":
        last += 1  # a text of several lines
    return range(first, last + 1)
