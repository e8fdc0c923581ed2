"""Mistakes from habits of other tools, or made in a hurry: the finding, and what its help leads to.

A case of the tables changes a file (`drop` lines of these fields, `change` a text, `add` lines) and states
what is found: `finds` as `LINE:COLUMN rule`, what the first finding `says`, and its whole `help`. If the
help can be pasted, `proposals.py` pastes it: then the finding must be gone, and no new one may be there
except for the rules in `then`, each with its reason. `pastes: false` is for helps that only a person can
follow.

All cases of a table of specs are in one workspace, which is read and rendered in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.spec.job import TrainingJob
from gangplan.spec.words import ABSENT_FIELDS, RESERVED_FIELDS, SYNONYMS, fold_name
from tests import plain
from tests.mistakes.proposals import UnreadError, added, pasted
from tests.workspaces import STOCK, TEAM, WIDE_CLUSTER, write

SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: pytorch
command: [python, train.py]
workers: 4
gpus: 8
cpu: 32
memory: 256Gi
timeout: 4h
"""
CLUSTER, CATALOG = "overlays/lab/cluster.yaml", "images/catalog.yaml"
WORLD = {**STOCK, CLUSTER: WIDE_CLUSTER}
# Tables of other files than specs.
FILES = {
    "team": ("specs/nlp/team.yaml", TEAM),
    "cluster": (CLUSTER, WIDE_CLUSTER),
    "catalog": (CATALOG, STOCK[CATALOG]),
}
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    path.stem: plain.load(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).parent.glob("*.yaml"))
}
CASES = [(table, name) for table, cases in TABLES.items() for name in cases]
Found = list[list[Finding]]


def mistaken(case: Mapping[str, Any], text: str) -> str:
    """Return the file of a case."""
    for field in case.get("drop", ()):
        text, count = re.subn(rf"^{field}:.*\n", "", text, flags=re.MULTILINE)
        assert count == 1, field
    if "change" in case:
        old, new = case["change"]
        assert old in text, old
        text = text.replace(old, new, 1)
    return f"{text}{case['add']}\n" if "add" in case else text


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, list[str]], Found]:
    """Return a function for the findings about each file of a table: specs all at once, others one by one."""

    def found(files: Mapping[str, str]) -> list[Finding]:
        return preview_render(Request(write(tmp_path_factory.mktemp("w"), files), engine="serial")).findings

    def judged(table: str, texts: list[str]) -> Found:
        if table in FILES:
            return [found({**WORLD, FILES[table][0]: text}) for text in texts]
        specs = {f"specs/nlp/c{at:03}.yaml": text for at, text in enumerate(texts)}
        every = found({**{file: text for file, text in WORLD.items() if "filings" not in file}, **specs})
        return [
            [one for one in every if f"c{at:03}" in f"{one.where.file} {one.object_ref}"]
            for at in range(len(texts))
        ]

    return judged


@pytest.fixture(scope="module")
def before(judge: Callable[[str, list[str]], Found]) -> Callable[[str], Found]:
    """Return a function for the findings about the cases of a table."""

    @cache
    def of(table: str) -> Found:
        return judge(table, texts_of(table))

    return of


def texts_of(table: str) -> list[str]:
    """Return the files of the cases of a table."""
    text = FILES[table][1] if table in FILES else SPEC
    return [mistaken(case, text) for case in TABLES[table].values()]


def test_files_without_mistakes_have_no_findings(judge: Callable[[str, list[str]], Found]) -> None:
    assert judge("hurried", [SPEC]) == [[]]
    for table, (_, text) in FILES.items():
        assert judge(table, [text]) == [[]]


@pytest.mark.parametrize(("table", "name"), CASES, ids=[": ".join(case) for case in CASES])
def test_each_mistake_has_its_finding_and_help(table: str, name: str, before: Callable[[str], Found]) -> None:
    case = TABLES[table][name]
    found = before(table)[list(TABLES[table]).index(name)]
    assert [f"{one.where.line}:{one.where.column} {one.rule}" for one in found] == case["finds"]
    assert (found[0].message, found[0].help) == (case["says"], case["help"])


def key(finding: Finding) -> tuple[str, str]:
    """Return what identifies a finding, wherever it is."""
    return finding.rule, finding.message


def test_no_table_of_words_hides_another() -> None:
    fields = {fold_name(one.alias or name) for name, one in TrainingJob.model_fields.items()}
    tables = [fields, {*SYNONYMS}, {*ABSENT_FIELDS}, {fold_name(one) for one in RESERVED_FIELDS}]
    assert [one & other for one, other in combinations(tables, 2)] == [set()] * 6


@pytest.mark.parametrize("table", TABLES)
def test_pasting_the_help_removes_the_finding(
    table: str, judge: Callable[[str, list[str]], Found], before: Callable[[str], Found]
) -> None:
    cases, texts = TABLES[table], texts_of(table)
    followed = dict[str, str]()
    for (name, case), text, found in zip(cases.items(), texts, before(table), strict=True):
        try:
            followed[name] = pasted(text, found[0])
            assert case.get("pastes", True), f"{name}: it can be pasted"
        except UnreadError:
            assert not case.get("pastes", True), f"{name}: {found[0].help}"
    wrong = []
    for name, after in zip(followed, judge(table, list(followed.values())), strict=True):
        old = before(table)[list(cases).index(name)]
        more = sorted({rule for rule, _ in Counter(map(key, after)) - Counter(map(key, old))})
        if key(old[0]) in set(map(key, after)) or more != sorted(cases[name].get("then", ())):
            wrong.append((name, old[0].help, [key(one) for one in after]))
    assert wrong == []


@pytest.mark.parametrize("table", [table for table in TABLES if table not in FILES])
def test_declaring_a_name_as_the_help_says_removes_the_finding(
    table: str, before: Callable[[str], Found], tmp_path: Path
) -> None:
    """The lines that the help shows are added to the file that it names."""
    world = {file: plain.load(text) for file, text in WORLD.items()}
    specs = dict[str, str]()
    for at, (text, found) in enumerate(zip(texts_of(table), before(table), strict=True)):
        if found and (more := added(found[0])):
            file, field, what = more
            specs[f"specs/nlp/c{at:03}.yaml"] = text
            world[file][field] = (
                [*world[file][field], *what] if isinstance(what, list) else world[file][field] | what
            )
    if table == "hurried":
        assert len(specs) >= 4
    files = {file: yaml.safe_dump(value, sort_keys=False) for file, value in world.items()}
    found = preview_render(Request(write(tmp_path, {**files, **specs}), engine="serial")).findings
    assert [one for one in found if one.rule.endswith("-unknown")] == []


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 350
    assert sum(case.get("pastes", True) for cases in TABLES.values() for case in cases.values()) >= 280
