"""What a batch script says about ranks, numbers of ranks, time and variables keeps its meaning in the spec."""

from __future__ import annotations

from pathlib import Path

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_SCRIPT
from tests.imports.sources import imported


def read(root: Path, text: str, image: str = "pytorch") -> Batch:
    return imported(root, "slurm", text, "job.sbatch", image=image)


def values(root: Path, text: str, image: str = "pytorch") -> dict[str, object]:
    batch = read(root, text, image)
    (one,) = batch.imported
    return one.draft.values


def command(root: Path, text: str, image: str = "pytorch") -> str:
    written = values(root, text, image)["command"]
    assert isinstance(written, list | tuple)
    return str(written[-1])


def test_the_rank_of_an_inner_shell_is_not_that_of_the_shell_around_it(tmp_path: Path) -> None:
    script = (
        "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gres=gpu:4\nmkdir -p $OUT\n"
        'srun bash -c "export LOCAL_RANK=\\${SLURM_LOCALID} ME=\\$SLURM_PROCID ALL=\\$SLURM_NTASKS; python train.py --out $OUT"\n'
    )
    text = command(tmp_path, script)
    assert "LOCAL_RANK=\\$LOCAL_RANK ME=\\$RANK ALL=8;" in text


def test_the_least_time_is_not_the_limit(tmp_path: Path) -> None:
    options = ("--time=10:00:00 --time-min=2:00:00", "--time-min=2:00:00 --time=10:00:00")
    for number, some in enumerate(options):
        script = f"#!/bin/bash\n#SBATCH {some}\npython train.py\n"
        assert values(tmp_path / str(number), script)["timeout"] == "10h"
