"""Check programs that start a process on each GPU of their host themselves: ranks would each do it again.

Read in vLLM 0.11 to 0.18 (entrypoints/cli), SGLang 0.5 (launch_server), TRL 0.16 (scripts/vllm_serve.py), nnU-Net
2.6 (run/run_training.py: mp.spawn on localhost), MONAI 1.3 (apps/auto3dseg/bundle_gen.py: torchrun), verl 0.7 and
OpenRLHF 0.8 (ray.init), ms-swift 3 (cli/main.py: torchrun if a variable asks for it), XTuner 0.2 (entry_point.py), Detectron2 0.6
(engine/launch.py) and PyTorch's examples (imagenet/main.py), which call mp.spawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.frameworks import ONE_RANK_FRAMEWORKS
from gangplan.model.job import Job
from gangplan.plan.launchers import SHELL_NAMES, FoundLauncher, program_name_of, read_script_commands
from gangplan.plan.launchers.prefixes import strip_prefixes
from gangplan.plan.launchers.programs import read_started_program
from gangplan.plan.settings import find_launch_variable_settings
from gangplan.records import dataclass
from gangplan.rules.commands import COMMAND_BEHIND, COMMAND_LAUNCHER, COMMAND_RENDEZVOUS
from gangplan.rules.model import WARNING


@dataclass(frozen=True, slots=True)
class _Starter:
    """Programs that start processes: how their command reads, and what to do.

    Some do so only if a variable of `_COUNTS` is set: those that say so, and others with a word of `joins`, which
    makes them use the ranks that there are. Servers may run once on each worker.
    """

    command: re.Pattern[str]
    help: str
    by_variable: bool = False
    joins: frozenset[str] = frozenset()
    is_server: bool = False


_COUNTS = frozenset({"NPROC_PER_NODE", "NNODES"})
_STARTERS = (
    _Starter(
        re.compile(
            r"vllm (?:serve|run-batch|bench (?:latency|throughput))\b|sglang serve\b|sglang\.launch_server\b|"
            r"trl vllm-serve\b|vllm\.entrypoints\.(?:api_server|openai\.(?:api_server|run_batch))\b"
        ),
        "Write framework: plain, with which each worker starts it once.",
        joins=frozenset({"external_launcher", "--distributed-executor-backend=external_launcher"}),
        is_server=True,
    ),
    _Starter(
        re.compile(
            r"nnUNetv2_train\b|nnunetv2\.run\.run_training\b|monai\.apps\.auto3dseg(?:\.\w+)? AutoRunner\b"
        ),
        "Write framework: plain and workers: 1; it uses the GPUs of one host.",
    ),
    _Starter(
        re.compile(r"verl\.trainer\.(?:main_\w+|sft_trainer_ray)\b|openrlhf\.cli\.train_\w+_ray\b"),
        "Write framework: plain. With several workers, start it in a script, after `ray start --head` where"
        " $NODE_RANK is 0; the others run `ray start --block --address=$MASTER_ADDR:6379 || true`, which ends with the first.",
    ),
    _Starter(
        re.compile(r"(?:swift (?:pt|sft|rlhf|dpo|orpo|simpo|infer)|megatron (?:pt|sft|rlhf|export))\b"),
        "Remove NPROC_PER_NODE and NNODES, without which it joins the ranks that gangplan starts.",
        by_variable=True,
    ),
    _Starter(
        # The examples of PyTorch and what follows them, such as ESPnet; Detectron2's launch().
        re.compile(
            r".* --multiprocessing[-_]distributed(?![ =]false)\b|"
            r"(?:\S*/)?(?:plain_|lazyconfig_)?train_net\.py .*--num-gpus[ =](?!1\b)\d"
        ),
        "Write framework: plain. With several workers, give it the number of its worker in a script, as $NODE_RANK,"
        " and tcp://$MASTER_ADDR:$MASTER_PORT to meet.",
    ),
    _Starter(
        re.compile(r"xtuner train\b"),
        "Add --launcher pytorch, and set neither NPROC_PER_NODE nor NNODES: it then joins the ranks.",
        joins=frozenset({"--launcher", "--launcher=pytorch"}),
    ),
)
# Scripts that start torchrun in timm 1.0 and in the projects of OpenMMLab (MMDetection 3.3, tools/). A user's
# own may do something else.
_SCRIPTS = frozenset({"distributed_train.sh", "dist_train.sh"})
# A script that asks for a rank may start such a program only on one of them.
_ASKS_FOR_RANK = re.compile(r"\$\{?\w*RANK\b")

# What starts ranks of torch on one host unless its options name the others, with those options.
_OF_TORCHRUN = "--nnodes=$NNODES --node-rank=$NODE_RANK --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT"
_OF_ACCELERATE = (
    "--num_machines $NNODES --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR"
    " --main_process_port $MASTER_PORT"
)
_STARTS_ALONE = {
    **dict.fromkeys(("torchrun", "torch.distributed.run", "torch.distributed.launch", "tune"), _OF_TORCHRUN),
    **dict.fromkeys(("accelerate launch", "accelerate", "trl", "axolotl"), _OF_ACCELERATE),
}
_NAMES_OTHERS = re.compile(
    r"nnodes|num[-_]machines|node[-_]rank|machine[-_]rank|config_file|config-file|accelerate_config|COMPLETION_INDEX"
    r"|MASTER_ADDR|HOSTNAME",
    re.IGNORECASE,
)


def check_workers_training_alone(job: Job, found: Sequence[FoundLauncher]) -> Iterator[Problem]:
    """Yield a problem of the first launcher of torch that each worker starts for itself (framework: plain)."""
    if job.image.framework != "plain" or job.workers == 1:
        return
    if any(_NAMES_OTHERS.search(text) for text in (*job.command, *(one.name for one in job.env))):
        return
    for one in found:
        options = _STARTS_ALONE.get(one.start.name) or _STARTS_ALONE.get(one.start.launcher.label)
        if options is None or any(one.reading.of("nothing")):
            continue
        message = (
            f"{one.start.name} knows nothing of other workers: each of the {job.workers} would start a training"
            " of its own"
        )
        meets = one.start.launcher.kind in ("torch", "accelerate")
        help = "Write framework: torch, with which the workers meet; or s" if meets else "S"
        help += f"tart it in a script of bash -c, with {options}."
        at = one.script.at if one.script is not None else one.start.begin
        yield Problem(("command", at), message, help, COMMAND_RENDEZVOUS, level=WARNING)
        return


def check_programs_with_own_processes(job: Job) -> Iterator[Problem]:
    """Yield a problem of a program that starts its own processes, in a command that every rank would run."""
    if job.ranks == 1 or job.image.framework in ONE_RANK_FRAMEWORKS:
        return
    at, found = read_script_commands(job.command)
    if found and _ASKS_FOR_RANK.search(job.command[at]):
        return
    commands = [(at, one.texts) for one in found] or [(0, job.command)]
    for begin, words in commands:
        index = strip_prefixes(words).at
        if index >= len(words):
            continue
        path = ("command", begin if found else index)
        name = read_started_program(words, index)
        starter = next((one for one in _STARTERS if one.command.match(name)), None)
        if starter is not None and _starts_on_every_rank(job, starter, words):
            message = (
                f"{name.split()[0]} starts its own processes on the GPUs of a worker, so each of the"
                f" {job.ranks} ranks would start them all again"
            )
            yield Problem(path, message, starter.help, COMMAND_LAUNCHER)
        script = next((word for word in words[index : index + 2] if program_name_of(word) in _SCRIPTS), "")
        if script and (script == words[index] or program_name_of(words[index]) in SHELL_NAMES):
            message = (
                f"{program_name_of(script)} of timm or OpenMMLab starts torchrun, so each of the"
                f" {job.ranks} ranks would start all ranks again"
            )
            help = "Write the program that the script starts; gangplan starts it on every rank."
            yield Problem(path, message, help, COMMAND_BEHIND)


def _starts_on_every_rank(job: Job, starter: _Starter, words: Sequence[str]) -> bool:
    if starter.is_server and (job.slots == 1 or starter.joins & {*words}):
        return False
    if not (starter.by_variable or starter.joins & {*words}):
        return True
    return any(one.name in _COUNTS for one in find_launch_variable_settings(job, ()))
