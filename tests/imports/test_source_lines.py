"""Questions about a script inside a manifest have the line of the script that they are about."""

from __future__ import annotations

from pathlib import Path

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.sources import MPIJOB, imported

WORDS = """\
            command: [mpirun, --allow-run-as-root, -np, "8", -bind-to, core, -x, NCCL_DEBUG=WARN, -mca, pml, ob1]
            args: [/opt/heat/solve, --steps, "1000"]
"""


def source_of(script: str, style: str = "|") -> str:
    """Return the MPIJob with a script as its command."""
    lines = "".join(f"              {line}\n" if line else "\n" for line in script.splitlines())
    assert WORDS in MPIJOB
    return MPIJOB.replace(
        WORDS, f"            command: [bash, -c]\n            args:\n            - {style}\n{lines}"
    )


def read(root: Path, script: str, style: str = "|") -> Batch:
    return imported(root, "mpijob", source_of(script, style))


def asked(batch: Batch, script: str, style: str = "|") -> list[tuple[str, str]]:
    """Return the questions inside the script: the line that each is at, and its message."""
    lines = source_of(script, style).splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip() == f"- {style}")
    last = first + len(script.splitlines()) + 1
    return [
        (lines[one.where.line - 1].strip(), one.message)
        for one in batch.everything
        if one.rule == IMPORT_ASKED and first < one.where.line <= last
    ]


def test_each_launch_with_another_count_is_asked_about_at_its_line(tmp_path: Path) -> None:
    script = "set -e\nmpirun -np 1 ./mesh\nmpirun -np 8 ./flow\n\nmpirun -np 1 ./mesh\nmpirun -np 4 -x A=1 \\\n  ./post"
    for style in ("|", ">-"):
        body = script if style == "|" else script.replace("\n", "\n\n").replace("\\\n\n  ", "")
        batch = read(tmp_path / str(len(style)), body, style)
        (one,) = batch.imported
        assert (one.draft.values["workers"], one.draft.values["gpus"]) == (4, 2)
        end = "in the run it starts all 8, as each of them does"
        last = "mpirun -np 4 -x A=1 \\" if style == "|" else "mpirun -np 4 -x A=1 ./post"
        assert asked(batch, body, style) == [
            ("mpirun -np 1 ./mesh", f"this launch starts 1 rank, others of the command 4 and 8; {end}"),
            ("mpirun -np 1 ./mesh", f"this launch starts 1 rank, others of the command 4 and 8; {end}"),
            (last, f"this launch starts 4 ranks, others of the command 1 and 8; {end}"),
        ]


def test_launches_with_one_count_are_not_asked_about(tmp_path: Path) -> None:
    script = "mpirun -np 8 ./mesh\nmpirun -n 8 ./flow\nmpirun ./post"
    assert asked(read(tmp_path, script), script) == []


def test_variables_that_nothing_sets_are_asked_about_at_their_lines(tmp_path: Path) -> None:
    script = (
        "set -e\nOUT=$HOME/out\nread N < n\nfor x in a b; do cp $x $OUT; done\necho '$QUOTED' \\$ESCAPED\n"
        'if [ -n "$MODE" ]; then echo $MODE; fi\ncd ${FOLDER:-/tmp}\n'
        "mpirun -np 8 ./flow --data ${DATA_DIR}/x --lr $LR \\\n"
        "  --key $HEAT_CASE --cuda $CUDA_VERSION --n $N --again $LR"
    )
    assert asked(read(tmp_path, script), script) == [
        (
            "mpirun -np 8 ./flow --data ${DATA_DIR}/x --lr $LR \\",
            "the command reads $DATA_DIR, which nothing sets",
        ),
        ("mpirun -np 8 ./flow --data ${DATA_DIR}/x --lr $LR \\", "the command reads $LR, which nothing sets"),
    ]


def test_a_script_that_loads_others_may_have_any_variable(tmp_path: Path) -> None:
    script = ". ./env.sh\nmpirun ./flow $DATA_DIR"
    assert asked(read(tmp_path, script), script) == []


def test_each_line_that_ran_once_is_asked_about(tmp_path: Path) -> None:
    script = (
        "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:4\npip install x\nmkdir o\ncp a b\nsrun torchrun train.py\n"
    )
    batch = imported(tmp_path, "slurm", script, "job.sbatch", image="pytorch")
    found = [(one.where.line, one.message) for one in batch.everything if one.rule == IMPORT_ASKED]
    start = "what ran once, on the first node, runs on each worker of a run:"
    assert found == [(3, f"{start} pip install x"), (5, f"{start} cp a b")]


def test_each_launch_of_one_rank_is_asked_about_where_each_worker_would_start_it(tmp_path: Path) -> None:
    """With an MPI, the launcher of the run starts it, once."""
    script = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gres=gpu:4\nsrun -N 1 -n 1 python get.py\n"
    batch = imported(tmp_path, "slurm", f"{script}srun torchrun train.py\n", "job.sbatch", image="pytorch")
    found = [(one.where.line, one.message) for one in batch.everything if one.rule == IMPORT_ASKED]
    what = "what ran once, on the first node, runs on each worker of a run: srun -N 1 -n 1 python get.py"
    assert found == [(3, what)]
    batch = imported(tmp_path / "mpi", "slurm", f"{script}srun ./train\n", "job.sbatch", image="openmpi")
    assert [one for one in batch.everything if "ran once" in one.message] == []
