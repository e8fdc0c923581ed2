"""Laws of batch scripts: the account has every line and option, no text raises, and nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.imports.account import LEAF_STATES
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.imports.mapping import draft_spec_of_imported_job
from gangplan.imports.refused import RefusedSourceError
from gangplan.imports.scripted.arithmetic import evaluate_shell_arithmetic
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.statements import parse_shell_statements
from gangplan.plan.launchers import UnreadableError
from gangplan.workspace import load_workspace
from tests.imports.sources import PBS, SLURM
from tests.workspaces import STOCK, write

MARKS = {"slurm": "#SBATCH", "pbs": "#PBS"}
OPTIONS = st.sampled_from(
    ("-N 2", "--nodes=x", "-n 4", "--gres=gpu:a100:2", "--mem", "-t 1-2:3", "--unheard", "-l select=1:ncpus=2", "-J 1-2", "-G", "--array=1-2")
)  # fmt: skip
STATEMENTS = st.sampled_from(
    (
        "module load cuda", "export A=$B", "export SECRET_KEY=abc", "A=(1 '2 3' $C)", "A+=(4)", "cd $HOME/x", "cd /a", "mkdir -p /b",
        "srun ./x $A", 'srun --ntasks=2 torchrun --nnodes $SLURM_NNODES train.py "${A[@]}"', "mpirun -np 2 ./y > log", "echo hi | tee log",
        "if [ -z \"$A\" ]; then echo a; else echo b; fi", "for i in 1 2; do echo $i; done", "f() { echo $1; }", "cat <<EOF\n$A\nEOF",
        "python train.py --x $((2*3))", "source env.sh", "wait", "exit 0", "(cd x && ls)", "case $A in a) echo;; esac", "eval \"$A\"",
        "unset A", "ulimit -s unlimited", "srun hostname", "srun ./z &", "singularity exec --nv x.sif python a.py", "B=`date`", "# note",
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("home"), STOCK)


def accounted(kind: str, text: str, root: Path, folder: Path) -> None:
    """Read and map a script; check that each line has an entry, and each entry a reason."""
    file = folder / "job.sh"
    file.write_text(text, encoding="utf-8", newline="")
    sources, _ = SOURCE_KINDS[kind].find([file], {})
    for source in sources:
        try:
            work = SOURCE_KINDS[kind].read(source.account, ())
        except (RefusedSourceError, ValueError):
            continue
        draft_spec_of_imported_job(work, ImportTarget(load_workspace(root), "nlp", ImportAnswers()))
        covered = set()
        for entry in work.entries():
            assert entry.state in LEAF_STATES
            assert entry.to if entry.state == "mapped" else entry.why, entry
            assert entry.why != "gangplan has no place for it", entry
            covered.add(entry.where.line)
        for number, line in enumerate(source.account.root().value.text.split("\n"), 1):
            bare = line.strip()
            if bare and (not bare.startswith("#") or line.startswith(f"{MARKS[kind]} ")):
                assert number in covered, (number, line)


@pytest.mark.parametrize(("kind", "text"), [("slurm", SLURM), ("pbs", PBS)])
def test_every_line_has_an_entry(kind: str, text: str, workspace: Path, tmp_path: Path) -> None:
    accounted(kind, text, workspace, tmp_path)


@pytest.mark.parametrize("kind", MARKS)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(options=st.lists(OPTIONS, max_size=4), body=st.lists(STATEMENTS, max_size=8))
def test_no_line_of_a_random_script_is_lost(
    kind: str, workspace: Path, tmp_path: Path, options: list[str], body: list[str]
) -> None:
    lines = ["#!/bin/bash", f"{MARKS[kind]} -N 1", *(f"{MARKS[kind]} {one}" for one in options), *body, ""]
    accounted(kind, "\n".join(lines), workspace, tmp_path)


@pytest.mark.parametrize("kind", MARKS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_script_gives_findings_and_no_traceback(
    kind: str, workspace: Path, tmp_path: Path, data: st.DataObject
) -> None:
    text = SLURM if kind == "slurm" else PBS
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        what = data.draw(st.text("'\"`$(){}[]<>|&;\\\n #=*éλ\t\r", max_size=5))
        text = text[:at] + what + text[at + cut :]
    file = tmp_path / "job.sh"
    file.write_text(text, encoding="utf-8", newline="")
    sources, _ = SOURCE_KINDS[kind].find([file], {})
    for source in sources:
        try:
            draft_spec_of_imported_job(
                SOURCE_KINDS[kind].read(source.account, ()),
                ImportTarget(load_workspace(workspace), "nlp", ImportAnswers()),
            )
        except ValueError:
            continue  # it becomes a finding


@settings(max_examples=200, deadline=None)
@given(st.text("ab $(){}[]'\"`\\;&|<>=\n#!-*", max_size=60))
def test_statements_cover_the_text_in_order(text: str) -> None:
    try:
        found = parse_shell_statements(text)
    except UnreadableError:
        return
    at = 0
    for one in found:
        assert at <= one.begin <= one.end <= len(text)
        at = one.end
        for part in one.parts:
            assert one.begin <= part.begin <= part.end


@settings(max_examples=200, deadline=None)
@given(st.text("ab$(){}[]'\"`\\%#/:+-0123 ", max_size=40))
def test_words_are_expanded_or_refused(raw: str) -> None:
    scope = ScriptScope({"a": "x", "b": None})
    try:
        for one in scope.fields(raw):
            assert isinstance(one.written(), str)
    except UnreadableError:
        pass


@given(st.text("0123456789+-*/%() aN<>=!", max_size=30))
def test_arithmetic_never_raises(text: str) -> None:
    evaluate_shell_arithmetic(text, {"a": "3", "N": "x"})


@pytest.mark.parametrize("depth", [10, 2000])
def test_deep_nesting_is_read_or_refused(depth: int, workspace: Path, tmp_path: Path) -> None:
    for text in (
        "$(" * depth + ")" * depth,
        "{ " * depth + "; }" * depth,
        "if true; then " * depth,
        "${A:-" * depth + "}" * depth,
    ):
        accounted("slurm", f"#!/bin/bash\n#SBATCH -N 1\n{text}\nsrun ./x {text}\n", workspace, tmp_path)


def test_a_long_script_is_read(workspace: Path, tmp_path: Path) -> None:
    body = "".join(f"export A{number}=$A{number - 1}x\n" for number in range(3000))
    accounted("slurm", f"#!/bin/bash\n#SBATCH -N 1\n{body}srun ./x\n", workspace, tmp_path)
