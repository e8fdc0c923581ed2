"""`gangplan new template`: a job becomes a template that makes the same run, and keeps its comments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.starter.sweeps import list_blocks_of_job_to_copy
from gangplan.starter.templates import render_job_of_new_template, render_new_template_text
from tests.schedules import worlds
from tests.sweeps.files import SWEEP
from tests.workspaces import gangplan, stock, write

ROOT = Path(__file__).parents[2]
JOB = """\
# The model of the filings.
apiVersion: gangplan.dev/v1
# Ends with the quarter.
kind: TrainingJob
description: Nightly filings
# Has the filings inside.
image: openmpi
# What each rank runs.
command: [python, train.py, --lr=3e-4, --batch, 64, --fp16]
workers: 2   # one node each
gpus: 2
env: {WARMUP: 1e-3}
timeout: 4h
run: 3
"""
NEW = ("new", "template", "filer", "--from", "specs/nlp/tune.yaml")
MADE = """\
apiVersion: gangplan.dev/v1
kind: JobTemplate
description: Nightly filings
parameters:
  workers: {type: integer, default: 2}
  lr: {type: number, default: 3e-4}
  batch: {type: integer, default: 32}
  dropout: {type: string, default: "low"}
  cpu: {type: integer, default: 4}
job:
  # Has the filings inside.
  image: openmpi
  # What each rank runs.
  command:
    - python
    - train.py
    - "--lr=${{ parameters.lr }}"
    - --batch
    - "${{ parameters.batch }}"
    - --fp16
    - "--dropout=${{ parameters.dropout }}"
  workers: "${{ parameters.workers }}"   # one node each
  gpus: 2
  env: {WARMUP: 1e-3}
  timeout: 4h
  cpu: "${{ parameters.cpu }}"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write the small workspace with a job."""
    return write(stock(tmp_path), {"specs/nlp/tune.yaml": JOB})


def test_a_job_becomes_a_template_of_its_team(root: Path) -> None:
    flags = ("-p", "workers", "-p", "lr", "-p", "batch=32", "-p", 'dropout="low"', "-p", "cpu=4")
    outcome = gangplan(*NEW, *flags, "-C", root)
    assert outcome.code == 0, outcome.err
    assert (root / "specs/nlp/templates/filer.yaml").read_text() == MADE
    lines = outcome.out.splitlines()
    assert lines[0] == "wrote specs/nlp/templates/filer.yaml"
    assert lines[1].startswith("  on lab: 4 ranks on 2 workers, ")
    made = gangplan("new", "job", "other", "--template", "filer", "--param", "workers=1", "-n", "-C", root)
    assert made.code == 0, made.err
    assert "template: filer\nparameters: {workers: 1}\n" in made.out


def test_blocks_of_fields_are_the_whole_file_from_its_first_field_on() -> None:
    many = "# a\n" * 100_000  # in time that grows with the file
    text = f"# top\nimage: a\n\n# b \u2028 c\r\n# d\ngpus: 1  # e\n{many}\n# f\nenv:\n  # g\n  A: b\n{many}"
    blocks = list_blocks_of_job_to_copy(text)
    assert "".join(block for _, block in blocks) == text.removeprefix("# top\n")
    assert [name for name, _ in blocks] == ["image", "gpus", "env"]
    assert blocks[1][1].startswith("# b \u2028 c\r\n# d\ngpus: 1")
    assert blocks[2][1].startswith("# f\nenv:")


def test_all_teams_get_it_in_jobtemplates(root: Path) -> None:
    outcome = gangplan(*NEW, "--all-teams", "-q", "-C", root)
    assert (outcome.code, outcome.out) == (0, "")
    assert "  image: openmpi\n" in (root / "jobtemplates/filer.yaml").read_text()


@pytest.mark.parametrize("where", [(), ("--all-teams",)])
def test_a_job_that_names_others_becomes_a_template(where: tuple[str, ...], tmp_path: Path) -> None:
    """The jobs that it names are there, also when only the template names them."""
    worlds.stock(
        tmp_path, **{"specs/nlp/late.yaml": worlds.SPEC.replace(worlds.NIGHTLY, "after: [filings]\n")}
    )
    outcome = gangplan("new", "template", "lates", "--from", "specs/nlp/late.yaml", "-C", tmp_path, *where)
    assert outcome.code == 0, outcome.err
    made = gangplan("new", "job", "other", "--template", "lates", "-n", "-C", tmp_path)
    assert made.code == 0, made.err


def test_all_teams_get_none_that_the_team_of_the_job_would_not_use(root: Path) -> None:
    write(root, {"specs/nlp/templates/filer.yaml": MADE})
    outcome = gangplan(*NEW, "--all-teams", "-C", root)
    assert outcome.code == 2
    assert "specs/nlp/templates/filer.yaml exists" in outcome.err
    assert "would use its own template" in outcome.err
    assert not (root / "jobtemplates/filer.yaml").exists()


def test_a_one_line_command_keeps_its_words(root: Path) -> None:
    line = "command: [python, train.py, --lr=3e-4, --batch, 64, --fp16]"
    write(root, {"specs/nlp/tune.yaml": JOB.replace(line, "command: python train.py --lr 3e-4 --fp16")})
    outcome = gangplan(*NEW, "-p", "lr", "-p", "seed=1", "--dry-run", "-C", root)
    assert outcome.code == 0, outcome.err
    command = "python train.py --lr=${{ parameters.lr }} --fp16 --seed=${{ parameters.seed }}"
    assert f'  command: "{command}"\n' in outcome.out
    assert "  lr: {type: number, default: 3e-4}\n  seed: {type: integer, default: 1}\n" in outcome.out
    assert not (root / "specs/nlp/templates").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-p", "lr="), "--parameter lr= names no parameter"),
        (("-p", "2lr"), "--parameter 2lr names no parameter"),
        (("-p", "lr", "-p", "lr=1"), "--parameter lr is there twice"),
        (("-p", "seed"), "has neither a field seed nor --seed in its command"),
        (("-p", "fp16"), "has neither a field fp16 nor --fp16 in its command"),
        (("-p", "env"), "--parameter env is not a parameter of a template"),
        (("-p", "run"), "each spec counts its own runs"),
        (("-p", "description=a"), "--parameter description is not a parameter of a template"),
        (("-p", "workers=0"), "workers is 0, but must be at least 1"),
        (("-p", "workers=many"), "'many'"),
    ],
)
def test_invalid_parameters_are_refused_and_nothing_is_written(
    flags: tuple[str, ...], words: str, root: Path
) -> None:
    outcome = gangplan(*NEW, *flags, "-C", root)
    assert outcome.code in (1, 2), outcome.err
    assert words in outcome.err
    assert not (root / "specs/nlp/templates").exists()


def test_what_is_not_a_plain_job_is_refused(root: Path) -> None:
    (root / "jobtemplates").mkdir()
    (root / "jobtemplates/filer.yaml").write_text(MADE)
    write(root, {"specs/nlp/made.yaml": "apiVersion: gangplan.dev/v1\nkind: TrainingJob\ntemplate: filer\n"})
    of_template = gangplan("new", "template", "other", "--from", "specs/nlp/made.yaml", "-C", root)
    assert (of_template.code, "is made from a template" in of_template.err) == (2, True)
    assert gangplan("new", "template", "other", "--from", "specs/nlp/team.yaml", "-C", root).code == 2
    write(root, {"specs/nlp/rates.yaml": SWEEP})
    of_sweep = gangplan("new", "template", "other", "--from", "specs/nlp/rates.yaml", "-C", root)
    assert (of_sweep.code, "rates.yaml is not a job" in of_sweep.err) == (2, True)
    again = gangplan(*NEW, "--all-teams", "-C", root)
    assert (again.code, "jobtemplates/filer.yaml exists" in again.err) == (2, True)


def test_each_job_of_the_sample_and_its_template_are_the_same_run(tmp_path: Path) -> None:
    for folder in ("specs", "overlays", "images", "policies", "jobtemplates"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    before = preview_render(Request(tmp_path, engine="serial"))
    names = sorted((run.cluster, run.unit.job.source, run.name) for run in before.runs)
    assert len(names) > 12
    for path in sorted({run.unit.job.source for run in before.runs}):
        file, name = tmp_path / path, Path(path).stem
        data = file.read_bytes()
        template = render_new_template_text(data, path, {}, "")
        write(tmp_path, {f"{Path(path).parent}/templates/{name}.yaml": template})
        file.write_text(render_job_of_new_template(data, name))
    after = preview_render(Request(tmp_path, engine="serial"))
    assert sorted((run.cluster, run.unit.job.source, run.name) for run in after.runs) == names
