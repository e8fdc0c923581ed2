"""`gangplan import slurm`: the result of each option and each line of a batch script.

The scripts have the shape of those of awsome-distributed-training, BigScience, torchtitan, NERSC and TACC,
written for these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SCRIPT, IMPORT_SOURCE
from tests import plain
from tests.imports.sources import SLURM, imported

MPI = """\
#!/bin/bash
#SBATCH -J heat -N 2 --ntasks-per-node=4
#SBATCH --mem=32G
#SBATCH -t 1:30:00
export OMP_NUM_THREADS=2
srun ./heat --steps 10
"""


def read(root: Path, text: str, **answers: object) -> Batch:
    return imported(root, "slurm", text, "job.sbatch", **answers)


def entries(batch: Batch) -> dict[str, tuple[str, str]]:
    """Return state and target or reason of each leaf of the first source, by name."""
    return {one.name: (one.state, one.to or one.why) for one in batch.imported[0].draft.work.entries()}


def refused(batch: Batch, rule: object = IMPORT_SCRIPT) -> list[tuple[int, int, str]]:
    return [(one.where.line, one.where.column, one.message) for one in batch.everything if one.rule == rule]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--gpus-per-node=h100:8", "--gpus-per-node: no pool of the team's clusters has h100"),
        ("--gres=gpu:mi300x:8", "--gres: no pool of the team's clusters has mi300x"),
        ("--gpus-per-node=a100:8", ""),
        ("--gpus-per-node=8", ""),
    ],
)
def test_models_that_no_pool_has_are_asked_about(tmp_path: Path, option: str, said: str) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 2 {option}\ntorchrun train.py\n", image="pytorch")
    asked = [message for _, _, message in refused(batch, IMPORT_ASKED)]
    assert [said in one for one in asked] == [True] * bool(said), asked


def test_a_training_of_torch_becomes_a_short_spec(tmp_path: Path) -> None:
    batch = read(tmp_path, SLURM, image="pytorch")
    (one,) = batch.imported
    assert one.draft.values == {
        "description": "Imported from Slurm finetune (job.sbatch)",
        "labels": {"migrated-from": "slurm"},
        "image": "pytorch",
        "command": ["python", "train.py", "--lr", "3e-4", "--world", "16"],
        "workers": 2,
        "gpus": 8,
        "cpu": 96,
        "memory": "1900Gi",
        "env": {"NCCL_DEBUG": "INFO"},
        "timeout": "2d",
        "extendedTimeout": True,
        "placement": {"nodePool": "a100"},
    }
    assert one.runs["lab"].percent == 100, one.runs["lab"].differences
    assert one.is_right, one.findings


def test_every_line_has_its_reason(tmp_path: Path) -> None:
    found = entries(read(tmp_path, SLURM, image="pytorch"))
    assert found["--nodes"] == ("mapped", "workers")
    assert found["--mem"] == ("mapped", "memory")
    assert found["--output"] == ("dropped", "the log of a run is what its pods print (gangplan logs)")
    assert found["export MASTER_ADDR"][0] == "dropped"
    assert found["module"] == ("dropped", "the image brings its software")
    assert found["export NCCL_DEBUG"] == ("mapped", "env.NCCL_DEBUG")
    assert found["program"] == ("mapped", "command")
    assert found["output"][0] == "dropped"


def test_comments_are_kept(tmp_path: Path) -> None:
    (one,) = read(tmp_path, SLURM, image="pytorch").imported
    assert "# Tunes the model; ask the speech group.\napiVersion:" in one.text
    assert "# one task starts torchrun on each node\n" in one.text


def test_ranks_that_srun_starts_become_mpi_ranks(tmp_path: Path) -> None:
    (one,) = read(tmp_path, MPI, image="openmpi").imported
    values = one.draft.values
    assert (values["workers"], values["slots"], values["memory"]) == (2, 4, "32Gi")
    assert values["command"] == ["./heat", "--steps", "10"]
    assert one.runs["lab"].percent == 100, one.runs["lab"].differences


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("--nodes=3", "workers", 3),
        ("-N3", "workers", 3),
        ("--nodes=2-4", "workers", 2),
        ("--ntasks=6 --ntasks-per-node=2", "workers", 3),
        ("--gpus-per-node=a100:4", "gpus", 4),
        ("--gres=gpu:a100:4", "gpus", 4),
        ("--gres=gpu:2,nvme:1", "gpus", 2),
        ("-N 2 --gpus=8", "gpus", 4),
        ("-G 1", "gpus", 1),
        ("--ntasks-per-node=4 --gpus-per-task=1", "gpus", 4),
        ("--ntasks=8 -N 2 --ntasks-per-gpu=2", "gpus", 2),
        ("--cpus-per-task=7 --ntasks-per-node=2", "cpu", 14),
        ("--gpus-per-node=2 --cpus-per-gpu=12", "cpu", 24),
        ("--mem=64000", "memory", "62.5Gi"),
        ("--mem=64000M", "memory", "62.5Gi"),
        ("--mem-per-cpu=4G -c 8", "memory", "32Gi"),
        ("--gpus-per-node=2 --mem-per-gpu=40G", "memory", "80Gi"),
        ("-t 90", "timeout", "1h30m"),
        ("--time=1-12", "timeout", "1d12h"),
        ("--time=1-00:00:30", "timeout", "24h30s"),
        ("--tmp=200G", "scratch", "200Gi"),
        ("--signal=TERM@120", "gracePeriod", "2m"),
        ("--qos=high", "priority", "high"),
        ("-D /work/model", "workdir", "/work/model"),
        ("--export=ALL,CASE=7", "env", {"CASE": "7"}),
        ("-p a100 -G 1", "placement", {"nodePool": "a100"}),
        ("-C a100 -G 1", "gpu", {"model": "a100-80gb"}),
    ],
)  # fmt: skip
def test_options_become_fields_of_the_spec(tmp_path: Path, line: str, field: str, value: object) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH {line}\npython train.py\n", image="pytorch")
    found = batch.imported[0].draft.values
    if field in ("memory", "timeout") and found[field] != value:  # amounts may be written in other units
        assert _amount(str(found[field])) == _amount(str(value))
    else:
        assert found[field] == value


def _amount(text: str) -> object:
    from gangplan.model.duration import parse_duration_to_seconds
    from gangplan.model.quantity import QuantityError, parse_quantity

    try:
        return parse_quantity(text.replace("62.5Gi", "64000Mi"))
    except QuantityError:
        return parse_duration_to_seconds(text)


@pytest.mark.parametrize(
    "option",
    [
        "--account=a",
        "--reservation=r",
        "--mail-type=ALL",
        "--mail-user=x",
        "--output=o",
        "-e",
        "e",
        "--open-mode=append",
        "--exclusive=user",
        "--requeue",
        "--no-requeue",
        "--nodelist=n",
        "--exclude=n",
        "--hint=nomultithread",
        "--distribution=block",
        "--cpu-bind=cores",
        "--nice",
        "--comment=c",
        "--wckey=w",
        "--overcommit",
        "--begin=now",
        "--deadline=now",
        "--dependency=afterok:1",
        "--licenses=l",
        "--switches=1",
        "--time=0",
        "--unheard-of=3",
        "--gres=license:1",
        "--array=x",
    ],
)
def test_every_option_has_a_reason(tmp_path: Path, option: str) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH {option}\npython train.py\n", image="pytorch")
    (entry,) = [one for one in batch.imported[0].draft.work.entries() if one.where.line == 2]
    assert entry.where.column == 9
    assert entry.state in ("dropped", "defaulted", "asked")
    assert entry.why != "gangplan has no place for it"


def test_options_after_the_first_command_are_dropped(tmp_path: Path) -> None:
    batch = read(tmp_path, "#!/bin/bash\n#SBATCH -N 2\nhostname\n#SBATCH -N 4\nsrun ./a\n", image="openmpi")
    assert batch.imported[0].draft.values["workers"] == 2
    assert entries(batch)["--nodes#2"] == ("dropped", "Slurm reads no options behind the first command")


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("A=1\nB=$((A * SLURM_NNODES))\nsrun ./x -b $B", ["./x", "-b", "2"]),
        ('ARGS=(--a "b c")\nARGS+=(--d $SLURM_NTASKS)\nsrun ./x "${ARGS[@]}"', ["./x", "--a", "b c", "--d", "2"]),
        ("srun ./x ${MODE:-fast} ${EXTRA:+--extra}", ["./x", "fast"]),
        ("F=/a/b.tar.gz\nsrun ./x ${F##*/} ${F%.gz}", ["./x", "b.tar.gz", "/a/b.tar"]),
        ('CMD="./x --y 1"\nsrun $CMD', ["./x", "--y", "1"]),
        ('CMD="srun ./x --y 1"\neval $CMD', ["./x", "--y", "1"]),
        ('if [ "$SLURM_NNODES" -gt 1 ]; then\n  srun ./many\nelse\n  srun ./one\nfi', ["./many"]),
        ('if [[ -z "${DEBUG:-}" ]]; then\n  FLAG=--fast\nfi\nsrun ./x $FLAG', ["./x", "--fast"]),
        ("for seed in 42; do\n  srun ./x --seed $seed\ndone", ["./x", "--seed", "42"]),
        ("while [[ $# -gt 0 ]]; do shift; done\nsrun ./x", ["./x"]),
        ("{\n  srun ./x\n} > log", ["./x"]),
        ("srun ./x \\\n  --y \\\n  1 2>&1 | tee log", ["./x", "--y", "1"]),
        ("srun --mpi=pmix -l --cpu-bind=none ./x", ["./x"]),
        ("srun singularity exec --nv -B /fsx:/data docker://a/b:1 ./x", ["./x"]),
        ("srun ./x; exit\nsrun ./y", ["./x"]),
        ("N=$(expr $SLURM_NNODES \\* 8)\nsrun ./x $N", ["./x", "16"]),
        ("S=${E:+--seed $E}; E=7; srun ./x ${E:+--seed $E}", ["./x", "--seed", "7"]),
    ],
)  # fmt: skip
def test_values_known_in_advance_are_filled_in(tmp_path: Path, body: str, command: list[str]) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 2\n{body}\n", image="openmpi")
    assert batch.imported[0].draft.values["command"] == command


@pytest.mark.parametrize(
    ("body", "script"),
    [
        ("mkdir -p out\nsrun ./x", "mkdir -p out\nmpirun ./x"),
        ("D=$(date +%s)\nsrun ./x --at $D", "D=$(date +%s)\nmpirun ./x --at $D"),
        ('srun ./x --at "$$(date)"', 'mpirun ./x --at "$$(date)"'),
        ('srun ./x --home "$HOME/a b"', './x --home "$HOME/a b"'),
        ("srun bash -c './x --rank $SLURM_PROCID'", "./x --rank $OMPI_COMM_WORLD_RANK"),
        ("f() {\n  echo $1\n}\nsrun ./x $(f 3)", "f() {\n  echo $1\n}\nmpirun ./x $(f 3)"),
        ("srun -N1 mkdir -p out\nsrun ./x", "mkdir -p out\nmpirun ./x"),
        ("srun apptainer exec a.sif pip install b\nsrun apptainer exec a.sif ./x", "pip install b\nmpirun ./x"),
        ("srun apptainer exec a.sif nvidia-smi\nmkdir out\nsrun ./x", "mkdir out\nmpirun ./x"),
        ("srun ./a\nsrun ./b", "mpirun ./a\nmpirun ./b"),
        ("cat > in.txt <<EOF\nsteps 10\nEOF\nsrun ./x in.txt", "cat > in.txt <<EOF\nsteps 10\nEOF\nmpirun ./x in.txt"),
    ],
)  # fmt: skip
def test_lines_that_need_a_shell_stay_a_script(tmp_path: Path, body: str, script: str) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 2\n{body}\n", image="openmpi")
    assert batch.imported[0].draft.values["command"] == ["bash", "-c", script]


def test_each_task_of_an_array_becomes_a_spec(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -J grid\n#SBATCH --array=1,4-6:2%2\nsrun ./x --case $SLURM_ARRAY_TASK_ID\n"
    batch = read(tmp_path, text, image="openmpi")
    assert [one.draft.name for one in batch.imported] == [
        "migrated-grid-1",
        "migrated-grid-4",
        "migrated-grid-6",
    ]
    assert [one.draft.values["command"][-1] for one in batch.imported] == ["1", "4", "6"]
    (asked,) = [one for one in batch.imported[2].findings if "at a time" in one.message]
    assert (asked.rule, asked.where.line) == ("import-asked", 3)
    assert asked.message == "2 of the 3 tasks may run at a time; their specs may all run at once"
    batch = read(tmp_path, text.replace("%2", ""), image="openmpi")
    assert not [one for one in batch.everything if "at a time" in one.message]


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("slurm", "#SBATCH --dependency=afterok:123"),
        ("slurm", "#SBATCH -d afterok:123"),
        ("pbs", "#PBS -W depend=afterok:123"),
    ],
)
def test_jobs_that_come_before_are_asked_about(tmp_path: Path, kind: str, option: str) -> None:
    text = f"#!/bin/bash\n{option}\nmpirun ./heat\n"
    batch = imported(tmp_path, kind, text, "job.sh", image="openmpi")
    (asked,) = [one for one in batch.everything if "waits for others" in one.message]
    assert (asked.rule, asked.where.line) == ("import-asked", 2)
    assert asked.message == "the job waits for others (afterok:123), and its run for none"


def test_a_large_array_becomes_a_sweep(tmp_path: Path) -> None:
    """Each task is a trial, the array's limit is the number at once, and the run has the task's number."""
    text = "#!/bin/bash\n#SBATCH -J grid\n#SBATCH --array=0-99%4\nfiles=($(ls /data))\nsrun ./x ${files[$SLURM_ARRAY_TASK_ID]}\n"
    (one,) = read(tmp_path, text, image="openmpi").imported
    spec = plain.load(one.text)
    assert (spec["kind"], spec["maxConcurrent"]) == ("Sweep", 4)
    assert spec["parameters"] == {"grid": {"task": list(range(100))}}
    assert spec["template"]["env"]["SLURM_ARRAY_TASK_ID"] == "${{ parameters.task }}"
    assert "SLURM_ARRAY_TASK_ID" in spec["template"]["command"][-1]
    assert one.is_right, one.findings
    assert not [
        entry for entry in one.draft.work.entries() if "array" in entry.name and entry.state == "asked"
    ]


def test_a_huge_array_is_refused(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH --array=0-10000\nsrun ./x $SLURM_ARRAY_TASK_ID\n"
    (finding,) = read(tmp_path, text, image="openmpi").everything
    assert "10001 tasks" in finding.message


@pytest.mark.parametrize("wrapped", ["/usr/bin/time -v python a.py", "time python a.py", "/usr/bin/time -f %e -o t nohup python a.py"])  # fmt: skip
def test_programs_that_only_measure_are_removed(tmp_path: Path, wrapped: str) -> None:
    (one,) = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 1\n{wrapped}\n", image="pytorch").imported
    assert one.draft.values["command"] == ["python", "a.py"]
    assert one.is_right, one.findings


def test_the_job_id_becomes_the_name_of_the_run(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\nsrun ./x --out out-$SLURM_JOB_ID\n"
    values = read(tmp_path, text, image="openmpi").imported[0].draft.values
    assert values["env"]["SLURM_JOB_ID"] == {"field": "metadata.labels['gangplan.dev/run']"}


def test_the_old_name_of_the_job_id_is_replaced_because_it_ends_open_mpi(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\nmpirun ./x --out out-$SLURM_JOBID/${SLURM_JOBID:-0}\n"
    (one,) = read(tmp_path, text, image="openmpi").imported
    assert one.draft.values["env"] == {"SLURM_JOB_ID": {"field": "metadata.labels['gangplan.dev/run']"}}
    assert "out-$SLURM_JOB_ID/$SLURM_JOB_ID" in one.draft.values["command"][-1]
    assert one.is_right, one.findings


def test_a_question_about_the_job_id_names_what_the_script_reads(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH -N 2\nsrun ./x --seed $SLURM_JOBID\n"
    found = [one.help for one in read(tmp_path, script, image="openmpi").everything]
    assert "Give a number: --set SLURM_JOBID=1." in found


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("--seed $SLURM_JOB_ID", True),
        ("--base-seed=${SLURM_JOB_ID}", True),
        ('--port "$SLURM_JOB_ID"', True),
        ("--port $((10000 + SLURM_JOB_ID % 5000)) --out $SLURM_JOB_ID", True),
        ("--seed 1 --out out-$SLURM_JOB_ID", False),
        ("--seeded-by $SLURM_JOB_ID", False),
        ("--port $((29500 + 1)) --out $SLURM_JOB_ID", False),
    ],
)
def test_a_job_id_that_is_used_as_a_number_is_asked_about(words: str, asks: bool, tmp_path: Path) -> None:
    script = f"#!/bin/bash\n#SBATCH -N 2\nsrun ./x {words}\n"
    found = [one.help for one in read(tmp_path, script, image="openmpi").everything]
    assert ("Give a number: --set SLURM_JOB_ID=1." in found) is asks


def test_the_name_of_the_user_is_asked_about(tmp_path: Path) -> None:
    """No runtime sets USER in a container."""
    script = "#!/bin/bash\n#SBATCH -N 2\nsrun ./x --out out/$USER\n"
    (found,) = read(tmp_path, script, image="openmpi").everything
    assert found.help == "Give its value: --set USER=VALUE; or set it under env:."


def test_containers_give_image_and_claims(tmp_path: Path) -> None:
    text = (
        "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gpus-per-node=8\nsrun --container-image=nvcr.io#nvidia/pytorch:24.07-py3 "
        "--container-mounts=/fsx/data:/data:ro,/dev/infiniband torchrun --nnodes 2 --nproc_per_node 8 train.py\n"
    )
    batch = read(tmp_path, text)
    values = batch.imported[0].draft.values
    assert values["data"] == {"fsx-data": "/data"}
    assert ("images/catalog.yaml", ("images", "pytorch-24-07-py3")) in [
        (one.file, one.path) for one in batch.suggestions
    ]
    assert ("specs/nlp/team.yaml", ("claims", "fsx-data")) in [
        (one.file, one.path) for one in batch.suggestions
    ]


def test_a_launcher_in_a_variable_is_replaced(tmp_path: Path) -> None:
    """As BigScience and others write it: the launcher in a variable, its rank for the shell of each node."""
    text = (
        "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gpus-per-node=4\nMASTER_ADDR=$(scontrol show hostnames | head -n 1)\n"
        'export LAUNCHER="python -m torch.distributed.run --nproc_per_node 4 --nnodes $SLURM_NNODES --node_rank \\$SLURM_PROCID '
        '--master_addr $MASTER_ADDR --master_port 6000"\nexport CMD="train.py --lr 1"\n'
        'srun --jobid $SLURM_JOBID bash -c "$LAUNCHER $CMD" 2>&1 | tee log\n'
    )
    (one,) = read(tmp_path, text, image="pytorch").imported
    assert one.draft.values["command"] == ["python", "train.py", "--lr", "1"]
    assert (one.draft.values["workers"], one.draft.values["gpus"]) == (2, 4)
    assert one.runs["lab"].percent == 100


def test_a_secret_is_not_copied(tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\nexport WANDB_API_KEY=0123456789abcdef\nsrun ./x\n"
    batch = read(tmp_path, text, image="openmpi")
    assert "0123456789abcdef" not in batch.imported[0].text
    assert any("looks like a secret" in one.message for one in batch.everything if one.rule == IMPORT_ASKED)


@pytest.mark.parametrize(
    ("body", "place", "what"),
    [
        ("for s in 1 2; do\n  srun ./x $s\ndone", (4, 3), "a loop starts it several times"),
        ("if [ -f done ]; then srun ./x; fi", (3, 22), "a condition decides what starts"),
        ("case $MODE in\n a) srun ./x;;\nesac", (4, 5), "a case decides what starts"),
        ("run() { srun ./x; }\nrun", (4, 1), "the function run starts the ranks"),
        ("f() {\n scontrol show hostnames\n}\nsrun bash -c 'f; torchrun a.py'", (3, 1), "the function f, which the command calls"),
        ("srun ./a &\nsrun ./b &\nwait", (4, 1), "several steps run at the same time"),
        ("cat <<EOF\nno end", (3, 5), "the here-document up to EOF is not closed"),
        ("srun ./x \\\n  'a", (4, 3), "a ' quote is not closed"),
        ('cp a b\nsrun ./x "a\ndone', (4, 10), 'a " quote is not closed'),
        ("cp a b\nN=$(wc -l < q\nsrun ./x", (4, 4), "a ( is not closed"),
        ("cp a b\nN=`date\nsrun ./x", (4, 3), "a ` is not closed"),
        ("A=(1 2\nsrun ./x", (3, 1), "an array is not closed"),
        ("cp a b\nif [[ -f x; then", (4, 4), "a [[ is not closed"),
        ("cp a b\nif [ -f x ]; then\nsrun ./x", (4, 1), "the if is not closed"),
        ("echo hello", (1, 1), "nothing in the script starts a program"),
        ("#SBATCH hetjob\nsrun ./x", (3, 9), "groups of nodes of different shape"),
    ],
)  # fmt: skip
def test_scripts_that_only_running_would_explain_are_refused_at_their_line(
    tmp_path: Path, body: str, place: tuple[int, int], what: str
) -> None:
    batch = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 2\n{body}\n")
    (found,) = refused(batch)
    assert found[:2] == place
    assert what in found[2]
    assert batch.imported == []


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"#!/bin/bash\n#SBATCH -N 1\n" + b"x" * (2 << 20), "larger than 1 MiB"),
        (b"#SBATCH -N 1\n\0\0", "bytes of zero"),
        (b"#SBATCH -N 1\n\xff\xfe", "not text in UTF-8"),
    ],
)
def test_files_that_are_not_scripts_are_refused(tmp_path: Path, data: bytes, what: str) -> None:
    from gangplan.imports.kinds import SOURCE_KINDS

    (tmp_path / "job.sh").write_bytes(data)
    sources, findings = SOURCE_KINDS["slurm"].find([tmp_path / "job.sh"], {})
    assert sources == []
    assert what in findings[0].message
    assert findings[0].rule == IMPORT_SOURCE


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    first = read(tmp_path, SLURM, image="pytorch").imported[0].draft.values
    (tmp_path / "second").mkdir()
    second = imported(
        tmp_path / "second", "slurm", SLURM.replace("\n", "\r\n"), "job.sbatch", image="pytorch"
    )
    assert second.imported[0].draft.values == first


def test_nothing_in_a_script_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = f"#!/bin/bash\n#SBATCH -N $(touch {mark})\ntouch {mark}\nA=`touch {mark}`\nsrun ./x $(touch {mark}) $A\n"
    read(tmp_path, text, image="openmpi")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("option", "given", "gpus", "models"),
    [
        ("--gpus-per-node=$SBATCH_GPUS_PER_NODE", {}, 4, []),
        ("--gpus-per-node=$N", {}, 4, []),
        ("--gpus-per-node=$N", {"N": "2"}, 2, []),
        ("--gres=gpu:a100:$N", {}, 4, ["a100"]),
        ("--gpus-per-node=a100:$N", {"N": "2"}, 2, ["a100"]),
    ],
)
def test_an_open_number_of_gpus_is_asked_and_not_read_as_a_model(
    option: str, given: dict[str, str], gpus: int, models: list[str], tmp_path: Path
) -> None:
    script = (
        f"#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=4 --time=1:00:00\nsrun {option} python train.py\n"
    )
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="pytorch", filled=given).imported
    assert one.draft.values["gpus"] == gpus
    asked = [ask.message for ask in one.draft.questions if "is not a number of GPUs" in ask.message]
    assert len(asked) == (not given)
    assert [hint.text for hint in one.draft.work.hints if hint.kind == "model"] == models
