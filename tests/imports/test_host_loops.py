"""Loops of scripts over the hosts of their job: each worker of a run starts by itself what they start by ssh."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.scripted.hosts import find_remote_start, is_own_host
from tests.imports.sources import imported

SLURM = "#!/bin/bash\n#SBATCH --nodes=3 --ntasks-per-node=1 --gpus-per-node=4 --time=1:00:00\n"
PBS = "#!/bin/bash\n#PBS -l select=3:ncpus=8:ngpus=4\n#PBS -l walltime=0:10:00\n"
HOSTS = "nodes=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )\n"
COUNTED = """i=0
for node in %s; do
  ssh %s "cd /work && python -m torch.distributed.run --nproc_per_node=4 --node_rank=$i train.py --host $node --at $i \\$EXTRA" &
  %s
done
wait
"""
LOCAL = """RUN="torchrun --nproc_per_node=4 --node_rank=$RANK"
R=0
for NODE in $(sort -u $PBS_NODEFILE); do
  DO="cd /work && $RUN --nnodes=3 train.py --seed 1"
  if [[ "$NODE" == "$HOSTNAME" ]]; then
    eval $DO &
  else
    ssh -n "$NODE" "$DO" &
  fi
  R=$((R + 1))
done
wait
"""
STARTED = "cd /work && python -m torch.distributed.run train.py --host $HOSTNAME --at $PET_NODE_RANK $EXTRA"
# Kind, script; the script of each worker.
CASES = {
    "hosts of Slurm": (
        "slurm",
        SLURM + COUNTED % ("$(scontrol show hostnames $SLURM_JOB_NODELIST)", "$node", "i=$((i+1))"),
        STARTED,
    ),
    "hosts in an array": (
        "slurm",
        SLURM + HOSTS + COUNTED % ('"${nodes[@]}"', "-o BatchMode=yes me@$node", "((i++))"),
        STARTED,
    ),
    "hosts of PBS": ("pbs", PBS + COUNTED % ("`uniq $PBS_NODEFILE`", "-p 22 $node", "let i+=1"), STARTED),
    "the own host without ssh": ("pbs", PBS + LOCAL, "cd /work && torchrun train.py --seed 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_worker_starts_what_a_loop_over_hosts_starts(name: str, tmp_path: Path) -> None:
    kind, script, wanted = CASES[name]
    (one,) = imported(tmp_path, kind, script, "job.sh", image="pytorch").imported
    text = " ".join(one.draft.values["command"])
    assert "ssh" not in text
    assert wanted in text
    assert one.draft.values["workers"] == 3
    assert one.is_right, one.findings


@pytest.mark.parametrize(("first", "wanted"), [("1", "--at $((1+$PET_NODE_RANK)) $EXTRA"), ("$(date)", "")])
def test_a_counter_begins_anywhere_that_is_known(first: str, wanted: str, tmp_path: Path) -> None:
    loop = COUNTED.replace("i=0", f"i={first}") % ("$(scontrol show hostnames)", "$node", "i=$((i+1))")
    batch = imported(tmp_path, "slurm", SLURM + loop, "job.sh", image="pytorch")
    assert [wanted in " ".join(one.draft.values["command"]) for one in batch.imported] == [True] * bool(
        wanted
    )
    assert any("a loop starts it several times" in one.message for one in batch.everything) is not bool(
        wanted
    )


# Bodies whose counters no worker could know from its own number.
OPEN_ROUNDS = {
    "counted before it is read": "i=$((i+1)); ssh $node torchrun train.py --at $i &",
    "counted before it is read, as a command": "((i++)); ssh $node torchrun train.py --at $i &",
    "counted by two": "ssh $node torchrun train.py --at $i & i=$((i+2))",
    "counted down": "ssh $node torchrun train.py --at $i & ((i--))",
    "counted in some rounds": "ssh $node torchrun train.py --at $i & if [ $node != x ]; then i=$((i+1)); fi",
    "counted if something holds": "ssh $node torchrun train.py --at $i & [ $node = x ] && ((i++))",
    "counted twice": "ssh $node torchrun train.py --at $i & ((i++)); ((i++))",
    "calculated with": "ssh $node torchrun train.py --at $((i*4)) & ((i++))",
    "a text that grows": 'ssh $node torchrun train.py --at $all & all+=" $node"',
}


@pytest.mark.parametrize("name", OPEN_ROUNDS)
def test_rounds_that_differ_in_more_than_their_number_are_refused(name: str, tmp_path: Path) -> None:
    """Every worker would have had the same number, or that of another one."""
    script = f"{SLURM}i=0\nfor node in $(scontrol show hostnames); do\n  {OPEN_ROUNDS[name]}\ndone\nwait\n"
    batch = imported(tmp_path, "slurm", script, "job.sh", image="pytorch")
    assert not batch.imported
    assert any("a loop starts it several times" in one.message for one in batch.everything)


def test_a_counter_has_its_last_value_after_the_loop(tmp_path: Path) -> None:
    loop = "i=0\nfor node in $(scontrol show hostnames); do\n  echo $node\n  ((i++))\ndone\n"
    script = f"{SLURM}{loop}srun python train.py --hosts $i\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="pytorch").imported
    assert " ".join(one.draft.values["command"]).endswith("train.py --hosts 3")


@pytest.mark.parametrize("host", ["node17", "${nodes[1]}", "$(head -1 $PBS_NODEFILE)"])
def test_a_part_on_one_host_is_refused(host: str, tmp_path: Path) -> None:
    """It was the command of every worker before, and each would have asked the first one to start it."""
    script = SLURM + HOSTS + f"ssh {host} python train.py --role server\n"
    batch = imported(tmp_path, "slurm", script, "job.sh", image="pytorch")
    assert not batch.imported
    (found,) = batch.everything
    assert (found.where.line, found.message) == (4, "it starts a part of the job on a host by ssh")
    assert "every worker of a run starts it itself" in (found.help or "")


def test_the_first_and_the_number_of_hosts_in_an_array(tmp_path: Path) -> None:
    script = SLURM + HOSTS + "srun ./x --first ${nodes[0]} --count ${#nodes[@]}\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="openmpi").imported
    assert "--first $MASTER_ADDR --count 3" in " ".join(one.draft.values["command"])


def test_eval_of_several_commands_keeps_them_apart(tmp_path: Path) -> None:
    script = SLURM + "DO='cd /work && torchrun train.py; echo \"a && b\"'\neval $DO\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="pytorch").imported
    assert one.draft.values["command"][-1] == 'cd /work && torchrun train.py; echo "a && b"'


def test_a_round_for_each_rank_is_not_a_round_for_each_worker(tmp_path: Path) -> None:
    script = (
        PBS.replace("ngpus=4", "mpiprocs=4") + "for n in $(cat $PBS_NODEFILE); do\n  ssh $n ./x &\ndone\n"
    )
    assert not imported(tmp_path, "pbs", script, "job.sh", image="openmpi").imported


def test_words_of_ssh_and_of_the_own_host() -> None:
    assert find_remote_start(["ssh", "-p", "22", "-q", "-oBatchMode=yes", "me@a", "x", "y"]) == ("a", 6)
    assert find_remote_start(["/usr/bin/ssh", "a", "x"]) == ("a", 2)
    assert find_remote_start(["ssh", "a"]) is None
    assert find_remote_start(["srun", "x"]) is None
    own = (
        "$HOSTNAME",
        '"${HOSTNAME}"',
        "$(hostname)",
        "`hostname -s`",
        "${HOSTNAME%%.*}",
        "$SLURMD_NODENAME",
    )
    assert all(map(is_own_host, own))
    assert not any(map(is_own_host, ("$MASTER", "$(hostname | sed x)", "node1")))


TORCH = "torchrun --nnodes 3 --nproc_per_node 4 train.py"
# The launch; variables in env.
PER_HOST = {
    f"mpirun -np 3 --map-by node -x NCCL_DEBUG=INFO -x PATH {TORCH}": {"NCCL_DEBUG": "INFO"},
    f"mpirun -npernode 1 {TORCH}": {},
    "mpirun -np 3 bash -c 'accelerate launch --machine_rank $OMPI_COMM_WORLD_RANK --num_machines 3 train.py'": {},
}  # fmt: skip


@pytest.mark.parametrize("launch", PER_HOST)
def test_workers_start_themselves_what_mpirun_starts_on_each_host(launch: str, tmp_path: Path) -> None:
    env = PER_HOST[launch]
    (one,) = imported(tmp_path, "slurm", SLURM + launch + "\n", "job.sh", image="pytorch").imported
    text = " ".join(one.draft.values["command"])
    assert "mpirun" not in text
    assert "train.py" in text
    assert one.draft.work.start == "torch"
    assert (one.draft.values["workers"], one.draft.values.get("slots")) == (3, None)
    assert one.draft.values.get("env", {}) == env
    assert one.is_right, one.findings


def test_each_line_of_an_mpirun_on_each_host_is_in_the_account(tmp_path: Path) -> None:
    script = SLURM + f"mpirun -np 3 \\\n  -machinefile hosts \\\n  --map-by node \\\n  {TORCH}\n"
    (one,) = imported(tmp_path, "slurm", script, "job.sh", image="pytorch").imported
    assert {3, 4, 5, 6} <= {entry.where.line for entry in one.draft.work.entries()}


def test_an_mpirun_with_several_ranks_on_a_host_stays(tmp_path: Path) -> None:
    (one,) = imported(
        tmp_path, "slurm", SLURM + f"mpirun -np 6 {TORCH}\n", "job.sh", image="openmpi"
    ).imported
    assert one.draft.work.start == "mpi"


def test_a_loop_over_hosts_that_starts_nothing_is_asked_about(tmp_path: Path) -> None:
    loop = 'for h in $(scontrol show hostnames $SLURM_JOB_NODELIST); do echo "$h slots=4" >> hf; done\n'
    text = f"#!/bin/bash\n#SBATCH -N 2 -n 8\nmkdir -p out\n{loop}mpirun --hostfile hf ./a\n"
    (one,) = imported(tmp_path, "slurm", text, "job.sbatch", image="openmpi").imported
    assert one.draft.values["command"] == ["bash", "-c", "mkdir -p out\nmpirun ./a"]
    assert [(found.where.line, found.message) for found in one.findings] == [
        (4, "it asks the scheduler for hosts, and a run knows its own")
    ]
