"""Programs that start a process on each GPU themselves, in commands that every rank runs."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest

from gangplan.model.job import EnvVar
from gangplan.plan.command import build_final_command
from gangplan.rules.commands import COMMAND_BEHIND, COMMAND_LAUNCHER, COMMAND_RENDEZVOUS
from gangplan.rules.model import Severity
from tests import workspaces
from tests.plan.asking import job_of, problems
from tests.workspaces import gangplan, stock, write


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock workspace, whose job has 4 workers with 2 GPUs each."""
    return stock(tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve M --tensor-parallel-size 8",
        "vllm run-batch -i in.jsonl -o out.jsonl --model M",
        "vllm bench throughput --model M",
        "python -m vllm.entrypoints.openai.api_server --model M",
        "sglang serve --model-path M",
        "python3 -u -m sglang.launch_server --model-path M --tp 8",
        "trl vllm-serve --model M",
        "nnUNetv2_train 4 3d_fullres 0 -num_gpus 8",
        "nnUNetv2_train 4 3d_fullres 0",
        "python -m monai.apps.auto3dseg AutoRunner run --input=task.yaml",
        "python3 -m verl.trainer.main_ppo trainer.nnodes=2",
        "python -m openrlhf.cli.train_ppo_ray --colocate_all_models",
        "env NPROC_PER_NODE=8 swift sft --model M",
        "bash -c 'cd /code && NPROC_PER_NODE=8 swift rlhf --model M'",
        "bash -c 'export NNODES=2; megatron sft --model M'",
        "python main.py -a resnet50 --dist-url tcp://h:1 --multiprocessing-distributed --world-size 2 /data",
        "python -m espnet2.bin.asr_train --multiprocessing_distributed true --ngpu 8",
        "python tools/train_net.py --config-file c.yaml --num-gpus 8",
        "./train_net.py --num-gpus=8 --num-machines 2",
        "lmf train c.yaml",
        "python -m trl.cli sft --model M",
        "python -m torchtune._cli.tune run --nproc_per_node 8 full_finetune_distributed",
        "xtuner train config.py",
        "bash -c 'NPROC_PER_NODE=8 xtuner train config.py --launcher pytorch'",
        "bash -c 'cd /code && vllm serve M & python client.py'",
    ],
)
@pytest.mark.parametrize("image", ["pytorch", "mpich"])
def test_a_program_with_its_own_processes_is_not_started_on_every_rank(
    image: str, line: str, root: Path
) -> None:
    rules = [one.rule for one in problems(root, image, shlex.split(line))]
    assert COMMAND_LAUNCHER in rules


@pytest.mark.parametrize(
    "line",
    [
        "vllm bench serve --base-url http://there",
        "vllm chat",
        "vllm serve M --distributed-executor-backend external_launcher",
        "python -m verl.trainer.fsdp_sft_trainer data.train_files=a",
        "python -m openrlhf.cli.train_sft --pretrain M",
        "swift sft --model M",
        "env NPROC=8 swift sft --model M",
        "env NPROC_PER_NODE=8 swift export --model M",
        "xtuner train config.py --launcher pytorch",
        "nnUNetv2_plan_and_preprocess -d 4",
        "python -m monai.bundle run --config_file c.yaml",
        "python main.py --multiprocessing_distributed false",
        "python main.py --no-multiprocessing-distributed",
        "python train_net.py --num-gpus 1",
        "python train.py --num-gpus 8",
        "python train.py --script train_net.py --num-gpus 8",
        "lmf version",
        "python -m torchtune._cli.tune run full_finetune_single_device",
        "python -m trl.scripts.sft --model M",
        "python train.py vllm serve",
        "bash -c 'if [ \"$LOCAL_RANK\" = 0 ]; then vllm serve M & fi; python train.py'",
        "bash train.sh dist_train.sh",
    ],
)
def test_a_program_that_joins_the_ranks_is_left_alone(line: str, root: Path) -> None:
    assert problems(root, "pytorch", shlex.split(line)) == ()


@pytest.mark.parametrize(("words", "slots"), [(["vllm", "serve", "M"], 1), (["nnUNetv2_train", "4"], 1)])
def test_one_rank_may_start_its_own_processes(words: list[str], slots: int, root: Path) -> None:
    assert problems(root, "pytorch", words, slots=slots, workers=1) == ()


def test_a_server_may_run_on_each_worker_but_a_training_may_not(root: Path) -> None:
    assert problems(root, "pytorch", ["vllm", "serve", "M"], slots=1) == ()
    assert problems(root, "pytorch", ["nnUNetv2_train", "4", "2d", "0"], slots=1) != ()


def test_variables_of_the_spec_make_swift_start_torchrun(root: Path) -> None:
    env = (EnvVar("NPROC_PER_NODE", "8"),)
    assert [one.rule for one in problems(root, "pytorch", ["swift", "sft"], env=env)] == [COMMAND_LAUNCHER]


def test_command_line_tools_that_start_torchrun_get_a_field_that_lets_them(root: Path) -> None:
    (found,) = problems(root, "pytorch", ["axolotl", "train", "c.yml"])
    assert found.help.startswith("Write framework: plain, with which each worker starts axolotl once;")


# A command of two workers with framework: plain | what starts a training on each of them, apart from the other
ALONE = [
    ("torchrun --nproc-per-node 8 t.py", "torchrun"),
    ("python -m torch.distributed.run t.py", "torch.distributed.run"),
    ("accelerate launch t.py", "accelerate"),
    ("bash -c 'cd /data && accelerate launch --num_processes 8 t.py'", "accelerate"),
    ("trl sft --config c.yaml", "trl"),
    ("axolotl train c.yml", "axolotl"),
    ("tune run --nproc_per_node 8 full_finetune_distributed", "tune"),
    ("torchrun --standalone t.py", "torchrun"),
    ("bash -c 'torchrun --nnodes=$NNODES --node-rank=$NODE_RANK --master-addr=$MASTER_ADDR t.py'", ""),
    ("accelerate launch --config_file c.yaml t.py", ""),
    ("bash -c 'accelerate launch --num_machines $NNODES --machine_rank $NODE_RANK t.py'", ""),
    ("bash -c 'torchrun t.py --seed $NODE_RANK'", ""),
    ("torchrun --help", ""),
    ("llamafactory-cli train c.yaml", ""),  # it reads NNODES and NODE_RANK itself
    ("python t.py", ""),
]


@pytest.mark.parametrize(("line", "name"), ALONE, ids=[line for line, _ in ALONE])
def test_workers_of_a_plain_run_may_train_apart(line: str, name: str, root: Path) -> None:
    job = job_of(root, "pytorch")
    plain = dataclasses.replace(
        job, command=tuple(shlex.split(line)), image=dataclasses.replace(job.image, framework="plain")
    )
    found = build_final_command(dataclasses.replace(plain, slots=1)).problems
    said = [one for one in found if one.rule == COMMAND_RENDEZVOUS]
    assert [one.message.partition(" knows nothing")[0] for one in said] == [name] * bool(name)
    assert all(one.severity is Severity.WARNING for one in said)
    alone = build_final_command(dataclasses.replace(plain, workers=1)).problems
    assert not [one for one in alone if one.rule == COMMAND_RENDEZVOUS]


@pytest.mark.parametrize("line", ["./distributed_train.sh 8 /data", "bash tools/dist_train.sh cfg.py 8"])
def test_a_script_known_for_torchrun_is_a_warning(line: str, root: Path) -> None:
    assert [one.rule for one in problems(root, "pytorch", shlex.split(line))] == [COMMAND_BEHIND]


def test_the_proposed_fields_work(tmp_path: Path) -> None:
    """The help names framework: plain, with which each worker starts the command once."""
    spec = workspaces.SPEC.replace("image: openmpi", "image: pytorch").replace(
        "[python, train.py]", "[nnUNetv2_train, '4', 3d_fullres, '0', -num_gpus, '2']"
    )
    root = write(stock(tmp_path), {"specs/nlp/filings.yaml": spec})
    (found,) = gangplan("render", "-C", root, "-o", "-").findings
    assert (found.rule, found.place) == ("command-launcher", "specs/nlp/filings.yaml:4:11")
    assert "framework: plain and workers: 1" in found.help
    spec = spec.replace("workers: 4", "workers: 1") + "framework: plain\n"
    write(root, {"specs/nlp/filings.yaml": spec})
    assert gangplan("render", "-C", root, "-o", "-").code == 0
