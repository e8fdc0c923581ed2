"""Laws of --fix on specs with seeded mistakes: what it changes, what it leaves, and the result."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from gangplan.emit import is_run_file
from gangplan.errors import InternalError
from gangplan.findings import Finding, Fix
from gangplan.fixes import fix_file
from gangplan.fixes.edits import apply_fixes, split_overlapping_fixes
from gangplan.fixes.images import find_name_fixes
from gangplan.objects import format_scalar
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.rulebook import Rulebook
from gangplan.rules.model import Severity
from gangplan.source import load_document
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.job import TrainingJob
from gangplan.spec.load import parse_spec_document
from tests import strategies, workspaces

FILE = "specs/nlp/filings.yaml"
TAGGED = workspaces.CATALOG.replace("\n    digest:", '\n    tag: "1.0"\n    digest:')
FIELDS = frozenset(field.alias or name for name, field in TrainingJob.model_fields.items())
relaxed = settings(
    max_examples=40,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # a failing case is short enough to read as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def catalog() -> ImageCatalog:
    """Return the catalog of the small workspace, with a tag for each image."""
    document, _ = load_document(TAGGED.encode(), "images/catalog.yaml")
    assert document is not None
    value, found = parse_spec_document(ImageCatalog, document)
    assert value is not None, found
    return value


BY_CATALOG = partial(find_name_fixes, catalog=catalog())


@dataclass(frozen=True)
class Line:
    """One line of a spec: the right key and value, the wrong ones, and the comment at the end."""

    key: str
    value: str
    tail: str
    wrong_key: str = ""
    wrong_value: str = ""
    mended_value: str = ""  # the value after --fix, where it differs from the right one

    @property
    def right(self) -> str:
        return f"{self.key}: {self.value}{self.tail}"

    @property
    def wrong(self) -> str:
        return f"{self.wrong_key or self.key}: {self.wrong_value or self.value}{self.tail}"


def flow(value: Any) -> str:
    """Return a value on one line, with quotes around every text that could be read as something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{format_scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        return yaml.dump(value, default_style='"', width=10**6, allow_unicode=False).rstrip("\n")
    return format_scalar(value)


def slips(word: str) -> Iterator[str]:
    """Yield every word with one letter more, less or changed, or with two neighbours swapped."""
    for at in range(len(word) + 1):
        yield from (word[:at] + letter + word[at:] for letter in string.ascii_letters)
        if at < len(word):
            yield word[:at] + word[at + 1 :]
            yield from (word[:at] + letter + word[at + 1 :] for letter in string.ascii_letters)
        if at < len(word) - 1:
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@cache
def near(name: str) -> frozenset[str]:
    """Return the words one slip away from a field."""
    return frozenset(slips(name))


def is_clear(slip: str, key: str) -> bool:
    """Return whether a slip is not a field itself, and is one slip away from this field only."""
    return (
        len(slip) > 2
        and slip.lower() not in {name.lower() for name in FIELDS}
        and not any(name != key and slip in near(name) for name in FIELDS)
    )


@cache
def clear_slips(key: str) -> tuple[str, ...]:
    """Return every slip that can mean only one field."""
    return tuple(slip for slip in sorted({*slips(key)}) if is_clear(slip, key))


tails = st.sampled_from(
    ["", "  ", " # why: 32GB", "\t# on", "   # comand: [x]  ", " # 'open \" quote", " #", " # é 🚀 – #"]
)


@st.composite
def mistaken(draw: st.DrawFn) -> list[Line]:
    """Draw the lines of a spec that the small workspace accepts, with some mistakes in it."""
    spec = draw(strategies.specs())
    lines = [Line(key, flow(value), draw(tails)) for key, value in spec.items()]
    return [draw(_mistake(line)) if draw(st.integers(0, 2)) else line for line in lines]


def _mistake(line: Line) -> st.SearchStrategy[Line]:
    """Draw the line with a slip in its key, or with a value in a wrong notation."""
    other = [line]
    if line.key not in ("apiVersion", "kind"):
        other.append(replace(line, wrong_key=line.key.swapcase()))
        other.append(replace(line, wrong_key=line.key[:2] + "_" + line.key[2:]))
    other += _values(line)
    clear = [slip for slip in sorted({*slips(line.key)}) if is_clear(slip, line.key)]
    slipped = (
        st.sampled_from(clear).map(lambda slip: replace(line, wrong_key=slip)) if clear else st.just(line)
    )
    return st.sampled_from(other) | slipped


def _values(line: Line) -> Iterator[Line]:
    if line.key in ("workers", "gpus", "slots", "retries", "run"):
        yield replace(line, wrong_value=f'"{line.value}"')
        yield replace(line, wrong_value=f"'{line.value}'")
    elif line.key == "memory":
        yield replace(line, value="32Gi", wrong_value="32GiB")
        yield replace(line, value="'512Mi'", wrong_value="'512MiB'")
        yield replace(line, value="0.5Gi", wrong_value="0.5Gi", mended_value="512Mi")
        yield replace(line, value='"2048Mi"', wrong_value='"2048Mi"', mended_value='"2Gi"')
    elif line.key == "cpu":
        yield replace(line, value="1", wrong_value="1000m")
        yield replace(line, value="8", wrong_value="8 cores")
        yield replace(line, value="0.5", wrong_value="0.5", mended_value="500m")
    elif line.key == "timeout":
        yield replace(line, value="4h", wrong_value="4 hours")
    elif line.key == "priority":
        yield replace(line, wrong_value=line.value.upper())
    elif line.key == "image":
        name = line.value.strip('"')
        place = {"intel": "hpc/intel-mpi", "mpich": "hpc/mpich"}.get(name, f"training/{name}")
        yield replace(line, value=name, wrong_value=f"registry.example.com/{place}:1.0")
        yield replace(line, wrong_value=f'"{name}:1.0"')
    elif line.key == "description":
        for word in ("on", "y", "08", "1e3", "0o10", "No", "12"):
            yield replace(line, value=f'"{word}"', wrong_value=word)


def text(lines: list[str], end: str, bom: bool, is_ended: bool) -> bytes:
    """Return lines as a file."""
    joined = end.join(["# on: 08, memory: 32GB", *lines]) + (end if is_ended else "")
    return (b"\xef\xbb\xbf" if bom else b"") + joined.encode()


PLAIN = [Line(key, value, "") for key, value in (one.split(": ", 1) for one in workspaces.SPEC.splitlines())]


ENV = Line("env", '{"on": "1", A: on}', " # {on: 1}", wrong_value='{on: "1", A: on}')


@relaxed
@given(
    lines=mistaken(),
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    ends=st.booleans(),
)
@example(lines=[*PLAIN, ENV], end="\n", bom=True, ends=True)
def test_only_mistakes_are_changed(lines: list[Line], end: str, bom: bool, ends: bool, root: Path) -> None:
    """The fixed file is the mistaken one with each mistake, and nothing else, corrected."""
    before = text([line.wrong for line in lines], end, bom, ends)
    fixed = fix_file(FILE, before, TrainingJob, BY_CATALOG)
    expected = [_mended(line) for line in lines]
    assert fixed.after.decode().split(end) == text(expected, end, bom, ends).decode().split(end)
    again = fix_file(FILE, fixed.after, TrainingJob, BY_CATALOG)
    assert (again.after, again.fixes, again.refused) == (fixed.after, (), ())
    assert not fixed.refused
    # Every change is named by a fix: its replacement is there now, and its line had the mistake.
    assert len(fixed.fixes) >= sum(line.wrong != line.right for line in lines)
    by_hand = text([line.right for line in lines], end, bom, ends)
    assert _rendered(root, fixed.after) == _rendered(root, by_hand)


def _mended(line: Line) -> str:
    """Return the corrected line; a right amount can still be one that Kubernetes writes differently."""
    canonical = {'"1.5Gi"': '"1536Mi"', '"0.5"': '"500m"'}
    return replace(line, value=line.mended_value or canonical.get(line.value, line.value)).right


def _rendered(root: Path, data: bytes) -> dict[str, str]:
    """Return what a spec renders, and check that it has no errors."""
    wide = workspaces.WIDE_CLUSTER
    workspaces.write(root, {FILE: data, "overlays/lab/cluster.yaml": wide, "images/catalog.yaml": TAGGED})
    result = preview_render(Request(root, engine="serial"))
    assert [one for one in result.findings if one.severity is Severity.ERROR] == []
    return {path: text for path, text in result.texts.items() if is_run_file(path)}


# Edits


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, list[Fix]]:
    """Draw a text of several lines, and ranges of it with replacements."""
    body = draw(st.text(st.sampled_from("ab:é\n\r"), max_size=40))
    fixes = []
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(body)))
        last = draw(st.integers(first, len(body)))
        fixes.append(_fix(body, first, last, draw(st.text("xy", max_size=3))))
    return body, fixes


def _fix(body: str, first: int, last: int, replacement: str) -> Fix:
    (line, column), (end_line, end_column) = _place(body, first), _place(body, last)
    return Fix("a.yaml", line, column, end_line, end_column, replacement, "why")


def _place(body: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, counted character by character."""
    line, column, at = 1, 1, 0
    while at < offset:
        if body[at] == "\r" and body[at + 1 : at + 2] == "\n" and at + 2 > offset:
            return line, column + 1  # between the two halves of a line end
        step = 2 if body[at : at + 2] == "\r\n" else 1
        if body[at] in "\r\n":
            line, column = line + 1, 1
        else:
            column += 1
        at += step
    return line, column


@given(edits())
def test_edits_that_do_not_overlap_are_applied(case: tuple[str, list[Fix]]) -> None:
    body, fixes = case
    kept, refused = split_overlapping_fixes(body, fixes)
    once = {(fix.line, fix.column, fix.end_line, fix.end_column, fix.replacement) for fix in fixes}
    assert len(kept) + len(refused) == len(once)
    after = apply_fixes(body, kept)
    removed = sum(len(_stretch(body, fix)) for fix in kept)
    assert len(after) == len(body) - removed + sum(len(fix.replacement) for fix in kept)
    # The kept fixes can be applied one by one from the end, with the same result.
    single = body
    for fix in reversed(kept):
        single = apply_fixes(single, [fix])
    assert single == after
    for fix in refused:
        with pytest.raises(InternalError):
            apply_fixes(body, [*kept, *refused])
        assert any(_overlap(body, fix, other) for other in fixes if other != fix)


def _stretch(body: str, fix: Fix) -> str:
    return body[slice(*_span(body, fix))]


def _span(body: str, fix: Fix) -> tuple[int, int]:
    places = {_place(body, offset): offset for offset in range(len(body) + 1)}
    return places[fix.line, fix.column], places[fix.end_line, fix.end_column]


def _overlap(body: str, one: Fix, other: Fix) -> bool:
    (a, b), (c, d) = _span(body, one), _span(body, other)
    return max(a, c) < min(b, d) or a < c < b or c < a < d


def test_a_harmful_fix_is_refused_and_the_others_are_applied() -> None:
    good = Fix(FILE, 5, 10, 5, 11, "8", "more")
    harm = Fix(FILE, 7, 6, 7, 7, "many", "harm")

    def more(document: Any) -> list[Fix]:
        return [harm] if document.value["workers"] == "4" else []

    data = workspaces.SPEC.replace("workers: 4", 'workers: "4"').encode()
    fixed = fix_file(FILE, data, TrainingJob, more)
    assert fixed.after == workspaces.SPEC.encode()
    assert fixed.refused == (harm,)
    # A valid file must keep its meaning: another number of workers is not a spelling.
    fixed = fix_file(FILE, workspaces.SPEC.encode(), TrainingJob, lambda _: [good])
    assert (fixed.after, fixed.refused) == (workspaces.SPEC.encode(), (good,))


def test_findings_are_equal_whatever_their_fix() -> None:
    where = Fix(FILE, 1, 1, 1, 2, "x", "why")
    plain = Finding(Rulebook().policy("spec-value"), location(), "no")
    fixable = replace(plain, fix=where)
    assert plain == fixable
    assert hash(plain) == hash(fixable)
    assert plain.sort_key == fixable.sort_key


def location() -> Any:
    """Return a location."""
    from gangplan.findings import Location

    return Location(FILE, 1, 1)
