"""No part of a source is lost silently: an independent reader compares its text with the printed account.

The reader is tests/wild/leaves.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.imports.batch import Batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.imports.report import build_import_document
from gangplan.objects import dump_all
from gangplan.workspace import load_workspace
from tests import plain
from tests.imports.sources import PBS, SLURM, SOURCES, TFJOB
from tests.wild.corpus import Source
from tests.wild.leaves import lost
from tests.wild.trial import tried
from tests.workspaces import STOCK, write

PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
display_name: two
experiment_name: lines
settings: {default_compute: azureml:cpu, continue_on_step_failure: false}
inputs: {epochs: 3, unused: 4}
outputs: {model: {type: uri_folder}}
jobs:
  train:
    type: command
    command: python train.py --epochs ${{inputs.epochs}}
    environment: {image: registry.example.com/vision/train:1}
    inputs: {epochs: "${{parent.inputs.epochs}}"}
  label: {type: automl, task: text_classification, limits: {max_trials: 3}}
"""
EMPTY = """\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2
#SBATCH --array=0-199
DEBUG=""
HOSTS=
export OMP_NUM_THREADS=4
srun \\
  ${DEBUG} \\
  ${HOSTS} \\
  ./solve --fast --case $SLURM_ARRAY_TASK_ID
"""
TEXTS = {**SOURCES, "slurm": SLURM, "pbs": PBS}
CASES = [*TEXTS.items(), ("azureml", PIPELINE), ("slurm", EMPTY)]
WORDS = st.text("abcxyz", min_size=1, max_size=6)
MORE = st.recursive(
    st.one_of(WORDS, st.integers(0, 99), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3), st.dictionaries(WORDS, inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
LINES = st.sampled_from(
    [
        "module load cuda",
        "export RATE=0.1",
        "echo starting $RATE",
        "mkdir -p /data/out",
        'if [ -n "$RATE" ]; then\n  export KIND=a\nelse\n  export KIND=b\nfi',
        "for i in 1 2 3; do\n  echo $i\ndone",
        "cat > hosts <<END\none\ntwo\nEND",
        "ulimit -s unlimited; set -x",
        "files=(a b\n  c)",
        "nvidia-smi |\n  grep A100",
    ]
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("home"), STOCK)


def read(root: Path, kind: str, text: str, folder: Path) -> Batch:
    name = "job.sh" if kind in ("slurm", "pbs") else "job.yaml"
    (folder / name).write_text(text, encoding="utf-8")
    home = ImportTarget(load_workspace(root), "nlp", ImportAnswers("openmpi", "", {}, True))
    return read_import_batch(SOURCE_KINDS[kind], [folder / name], home, {})


def said_nothing_of(root: Path, kind: str, text: str, folder: Path) -> list[str]:
    batch = read(root, kind, text, folder)
    file = str(next(folder.glob("job.*")))
    return lost(kind, file, text, build_import_document(batch)["imported"])


@pytest.mark.parametrize(("kind", "text"), CASES)
def test_every_line_of_a_source_is_in_the_account(
    kind: str, text: str, workspace: Path, tmp_path: Path
) -> None:
    assert read(workspace, kind, text, tmp_path).imported
    assert said_nothing_of(workspace, kind, text, tmp_path) == []


def test_a_line_without_an_entry_is_found(workspace: Path, tmp_path: Path) -> None:
    """Check the reader itself: when an entry is missing, it names the line."""
    for kind, text in (("mpijob", SOURCES["mpijob"]), ("slurm", EMPTY)):
        (one, *_) = build_import_document(read(workspace, kind, text, tmp_path))["imported"]
        gone = one["account"].pop(len(one["account"]) // 2)
        rest = (
            [each for each in one["account"] if each["line"] != gone["line"]]
            if kind == "slurm"
            else one["account"]
        )
        found = lost(kind, gone["file"], text, [{**one, "account": rest}])
        assert [each.split(":")[1] for each in found] == [str(gone["line"])]
        for each in tmp_path.glob("job.*"):
            each.unlink()


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_unknown_fields_are_in_the_account(
    kind: str, workspace: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """Any mapping of a source gets more fields of any shape."""
    bodies: list[Any] = list(plain.load_all(SOURCES[kind]))
    for _ in range(data.draw(st.integers(1, 4))):
        holder = data.draw(st.sampled_from(bodies))
        while True:
            inner = [
                one
                for one in (holder.values() if isinstance(holder, dict) else holder)
                if isinstance(one, dict | list) and one
            ]
            if not inner or (isinstance(holder, dict) and data.draw(st.booleans())):
                break
            holder = data.draw(st.sampled_from(inner))
        if isinstance(holder, dict):
            holder[f"more{data.draw(st.integers(0, 9))}"] = data.draw(MORE)
    assert said_nothing_of(workspace, kind, dump_all(bodies), tmp_path) == []


@pytest.mark.parametrize("kind", ["slurm", "pbs"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_line_of_a_script_is_lost(kind: str, workspace: Path, tmp_path: Path, data: st.DataObject) -> None:
    head, launch = TEXTS[kind].rstrip("\n").rpartition("\n")[::2]
    options = [line for line in head.split("\n") if line.startswith("#")]
    rest = data.draw(st.lists(LINES, max_size=6))
    text = "\n".join([*options, *rest, "srun ./x" if kind == "slurm" else "mpiexec -n 4 ./x", ""])
    assert launch
    assert said_nothing_of(workspace, kind, text, tmp_path) == []


def test_flags_of_a_trial_can_be_pasted(tmp_path: Path) -> None:
    """A blank may be of several words, which a shell would take apart."""
    place = tmp_path / "job.yaml"
    place.write_text(TFJOB.replace("registry.example.com/text/reader:2", "<CHANGE ME>"), encoding="utf-8")
    trial = tried(Source("tfjob", "made up", "job.yaml", place), str(tmp_path))
    assert trial.flags[0].startswith("--set 'CHANGE ME=")
    assert trial.state == "whole"
