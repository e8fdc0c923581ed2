"""What only the scheduler knows stays open where a script names a default for it, as bash under the scheduler sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.scripted.pieces import fill_script_variables
from tests.imports.sources import imported

SLURM = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --time=1:00:00\n"
PBS = "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs=8\n#PBS -l walltime=0:10:00\n"

# Kind, script; the command of the run, and what the environment has.
CASES: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "a default for the rank": (
        "slurm", SLURM + "srun ./x --rank ${SLURM_PROCID:-0} --other ${SLURM_PROCID:-${PMI_RANK:-0}}\n",
        "./x --rank 0 --other 0", {},  # the first task reads the line
    ),
    "a default in the shell of a rank": (
        "slurm", SLURM + "srun bash -c './x --rank ${SLURM_PROCID:-${PMI_RANK:-0}}'\n", "./x --rank $OMPI_COMM_WORLD_RANK", {}
    ),
    "a default for the job's number": (
        "slurm", SLURM + "OUT=out/${SLURM_JOB_ID:-local}\nsrun ./x $OUT\n", "./x out/${SLURM_JOB_ID}",
        {"SLURM_JOB_ID": {"field": "metadata.labels['gangplan.dev/run']"}},
    ),
    "a variable with the job's number": (
        "slurm", SLURM + "export CACHE=/tmp/cache-$SLURM_JOB_ID\nsrun ./x\n", "export CACHE=/tmp/cache-$SLURM_JOB_ID", {}
    ),
    "no number of an array": ("slurm", SLURM + "srun ./x ${SLURM_ARRAY_TASK_ID:-7}\n", "./x 7", {}),
    "a script that submits itself": (
        "slurm", SLURM + 'if [[ -z "${SLURM_JOB_ID:-}" ]]; then\n  exec sbatch "$0"\nfi\nsrun ./x\n', "./x", {}
    ),
    "a branch of the scheduler": (
        "slurm", SLURM + 'if [ -n "$SLURM_JOB_ID" ]; then\n  MODE=all\nelse\n  MODE=one\nfi\nsrun ./x $MODE\n', "./x all", {}
    ),
    "a branch of PBS": ("pbs", PBS + 'if [ "$PBS_JOBID" ]; then\n  mpirun ./x\nelse\n  ./x\nfi\n', "./x", {}),
    "a job's number that is taken away": (
        "slurm", SLURM + 'unset SLURM_JOB_ID\nsrun ./x ${SLURM_JOB_ID:-none}\n', "./x none", {}
    ),
    "a text around an unknown value": (
        "slurm", SLURM + 'if [ -z "a$OUTSIDE" ]; then\n  srun ./y\nelse\n  srun ./x\nfi\n', "./x", {}
    ),
    "defaults that : sets": (
        "slurm", SLURM + ': ${DIR:="/work/my p"}\n: "${N:=4}" ${FREE:=1}\nsrun ./x $DIR/a "$DIR/b" ${N:-9}\n',
        "./x /work/my p/a /work/my p/b 4", {},
    ),
    "an own default for a path": (
        "slurm", SLURM + ': ${DIR:=$HOME/run}\n: ${FREE:=1}\nsrun ./x $DIR\n', "./x $HOME/run", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_the_scheduler_sets_is_not_taken_for_unset(name: str, tmp_path: Path) -> None:
    kind, script, command, env = CASES[name]
    (one,) = imported(tmp_path, kind, script, "job.sbatch", image="openmpi").imported
    words = one.draft.values["command"]
    assert command in " ".join(words)
    assert "sbatch" not in " ".join(words)
    assert {key: one.draft.values.get("env", {}).get(key) for key in env} == env


def test_a_condition_that_stays_open_says_what_to_give(tmp_path: Path) -> None:
    script = SLURM + 'if [ -n "${MODE}" ] && [ "$1" = x ]; then\n  srun ./x\nelse\n  srun ./y\nfi\n'
    (found,) = imported(tmp_path, "slurm", script, "job.sbatch", image="openmpi").everything
    assert found.message == "a condition decides what starts, and only running the script tells how"
    assert found.help == (
        "Give what decides it: --set MODE=VALUE --set 1=VALUE; or write the launch of one run without it."
    )


# Values that only running the script would tell; the command of the run with MODE=full.
OPEN = {
    "what a program prints": "MODE=$(hostname | tail -c 3)\n",
    "a part of it": 'MODE="x-`date +%s`"\n',
    "a branch": "if [ -f /etc/fast ]; then MODE=fast; else MODE=slow; fi\n",
    "a line of a file": "read -r MODE < mode.txt\n",
}


@pytest.mark.parametrize("name", OPEN)
def test_a_value_that_is_given_takes_the_place_of_one_that_only_a_run_tells(
    name: str, tmp_path: Path
) -> None:
    ends = 'if [ "$MODE" = fast ] || [ "$MODE" = full ]; then\n  srun ./x $MODE\nelse\n  srun ./y\nfi\n'
    (found,) = imported(
        tmp_path, "slurm", SLURM + OPEN[name] + ends, "job.sbatch", image="openmpi"
    ).everything
    assert found.help == "Give what decides it: --set MODE=VALUE; or write the launch of one run without it."
    (one,) = imported(
        tmp_path / "given",
        "slurm",
        SLURM + OPEN[name] + ends,
        "job.sbatch",
        image="openmpi",
        filled={"MODE": "full"},
    ).imported
    assert "./x full" in " ".join(one.draft.values["command"])
    assert "./y" not in " ".join(one.draft.values["command"])


def test_what_the_script_itself_sets_is_not_replaced(tmp_path: Path) -> None:
    script = SLURM + "MODE=fast\nsrun ./x $MODE\n"
    (one,) = imported(
        tmp_path, "slurm", script, "job.sbatch", image="openmpi", filled={"MODE": "full"}
    ).imported
    assert "./x fast" in " ".join(one.draft.values["command"])


@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        ('[ $A = 1 ] || [ "$B" = 2 ]', "x"),
        ("[ $A = 2 ] || [[ $B == 3 ]]", "y"),
        ("[ $A = 1 ] && [ $B = 3 ]", "y"),
        ("[ $A = 1 ] && ! [ $B = 3 ]", "x"),
        ("[ $A = 1 ] || [ $B = 2 ] && [ $B = 3 ]", "y"),  # && and || bind alike, from the left
        ("[ $A = 2 ] && [ -f there ]", "y"),
        ("[ -f there ] || true", "x"),
        ("[[ $A == 2 || $B == 2 ]] && [ $A = 1 ]", "x"),
        ("[ -f there ] && [ $A = 1 ]", ""),
        ("grep -q x there || [ $A = 2 ]", ""),
    ],
)
def test_tests_that_a_list_joins_decide_a_branch(condition: str, runs: str, tmp_path: Path) -> None:
    script = SLURM + f"A=1\nB=2\nif {condition}; then\n  srun ./x\nelse\n  srun ./y\nfi\n"
    found = imported(tmp_path, "slurm", script, "job.sbatch", image="openmpi").imported
    assert [one.draft.values["command"][-1] for one in found] == ([f"./{runs}"] if runs else [])


# Scripts whose only program is inside a compound command; the command of the run.
INSIDE = {
    "a loop": 'seeds=(1 2 3)\nOUT=out\nfor seed in "${seeds[@]}"; do\n  ./x --seed $seed --out $OUT\ndone\n',
    "a branch": "if [ -f last ]; then\n  ./x --resume\nelse\n  ./x\nfi\n",
    "lines of a file": "while read -r one; do\n  ./x $one\ndone < seeds.txt\n",
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_program_inside_a_loop_or_branch_is_the_run_as_a_whole(name: str, tmp_path: Path) -> None:
    head = "#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=1\nmodule load x\n"
    (one,) = imported(tmp_path, "slurm", head + INSIDE[name], "job.sbatch", image="openmpi").imported
    assert one.draft.values["command"] == ["bash", "-c", INSIDE[name].strip()]
    assert one.is_right, one.findings
    told = {entry.where.line: entry.state for entry in one.draft.work.entries() if entry.where.line > 3}
    assert told == dict.fromkeys(range(4, 4 + INSIDE[name].count("\n")), "mapped")


def test_what_all_of_an_array_is_stays_in_a_script(tmp_path: Path) -> None:
    script = SLURM + 'more=(a b)\npip install "${more[@]}"\nsrun ./x\n'
    (one,) = imported(tmp_path, "slurm", script, "job.sbatch", image="openmpi").imported
    assert 'pip install "${more[@]}"' in one.draft.values["command"][-1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("${A:-${B:-0}}", "1"),
        ("${A-x} ${A:-} $A ${A:-$B}", "1 1 1 1"),
        ("${A:-${B:-${C:-0}}}", "1"),
        ("${A:-${B:-${C:-${D}}}}", "${A:-${B:-${C:-${D}}}}"),
        ("$AB ${A%x}", "$AB ${A%x}"),
    ],
)
def test_defaults_inside_defaults_go_with_them(text: str, wanted: str) -> None:
    assert fill_script_variables(text, {"A": "1"}) == wanted


def test_a_default_that_nothing_uses_is_dropped(tmp_path: Path) -> None:
    script = SLURM + ": ${A:=1} ${B:=2}\n: ${C:=3}\nsrun ./x $A\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="openmpi").imported
    told = [(entry.state, entry.why or entry.to) for entry in one.draft.work.entries() if ":=" in entry.value]
    assert told == [("mapped", "command"), ("dropped", "nothing uses it")]


# A variable and its value; whether the run has it.
INTERFACES = [
    ("NCCL_SOCKET_IFNAME", "hsn0", False),
    ("NCCL_SOCKET_IFNAME", "=ib0,ib1", False),
    ("NCCL_SOCKET_IFNAME", "^lo,docker0", True),
    ("NCCL_SOCKET_IFNAME", "^docker,lo,veth,eth", False),
    ("NCCL_SOCKET_IFNAME", "^eth0", False),
    ("NCCL_SOCKET_IFNAME", "^=docker0,eth", True),
    ("NCCL_SOCKET_IFNAME", "^=eth0,lo", False),
    ("NCCL_SOCKET_IFNAME", "eth", True),
    ("GLOO_SOCKET_IFNAME", "eno1", False),
    ("GLOO_SOCKET_IFNAME", "eth0", True),
    ("FI_TCP_IFACE", "bond0", False),
    ("OMPI_MCA_btl_tcp_if_include", "10.0.0.0/8", True),
    ("UCX_NET_DEVICES", "ens7", False),
    ("UCX_NET_DEVICES", "mlx5_0:1", True),
    ("NCCL_IB_HCA", "mlx5", True),
]


@pytest.mark.parametrize(("name", "value", "is_kept"), INTERFACES)
def test_interfaces_of_the_old_nodes_do_not_come_along(
    name: str, value: str, is_kept: bool, tmp_path: Path
) -> None:
    script = SLURM + f"export {name}={value}\nsrun python train.py\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="pytorch").imported
    assert one.draft.values.get("env", {}) == ({name: value} if is_kept else {})
    assert one.is_right, one.findings
    (entry,) = [entry for entry in one.draft.work.entries() if entry.name == f"export {name}"]
    assert (entry.state, "interfaces" in entry.why) == (("mapped", False) if is_kept else ("dropped", True))


@pytest.mark.parametrize(
    "name", ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"]
)
@pytest.mark.parametrize("asked", [SLURM, SLURM.replace(" --gpus-per-node=4", "")])
def test_which_gpus_of_a_node_a_script_shows_is_up_to_the_run(name: str, asked: str, tmp_path: Path) -> None:
    script = asked + f"export {name}=all\nsrun python train.py\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="pytorch").imported
    assert "env" not in one.draft.values
    assert one.is_right, one.findings
    (entry,) = [entry for entry in one.draft.work.entries() if entry.name == f"export {name}"]
    assert (entry.state, entry.why) == ("dropped", "the GPUs of a worker are its own")
