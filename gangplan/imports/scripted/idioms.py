"""What people write in batch scripts around the launch, and what a run has instead.

Read from scripts of NERSC, TACC, NCAR, BigScience, Megatron-LM, awsome-distributed-training and others (2021
to 2026).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.scripted.arithmetic import evaluate_shell_arithmetic
from gangplan.imports.scripted.pieces import ShellValue
from gangplan.records import dataclass

# Placeholders for the first of the run's hosts, for all of them, and for that of a round in a loop over all.
FIRST_HOST, ALL_HOSTS, THIS_HOST = "@@first-host@@", "@@hosts@@", "@@this-host@@"

_PRINTS = "what it prints would be in the log of the run; it changes nothing"
_SOFTWARE = "the image brings its software"
_SHELL = "it is about the shell of the batch script"
_WATCHES = "it asks the machine or the scheduler; gangplan status and the dashboards show runs"
# Programs that start no training, and why their commands are dropped.
DROPPED_COMMANDS: dict[str, str] = {
    **dict.fromkeys(
        str.split(
            "echo printf date hostname uptime who whoami env printenv pwd ls tree df du free lscpu lstopo "
            "lsb_release cat head tail grep which type uname id groups ldd md5sum numastat ompi_info "
            "timedatectl nproc figlet jq clear reset tput stty"
        ),
        _PRINTS,
    ),
    **dict.fromkeys(
        str.split(
            "nvidia-smi rocm-smi nvcc nvidia-debugdump ibstat ibv_devinfo ibdev2netdev ifconfig ip fi_info "
            "dcgmi squeue sinfo scontrol sacct sstat seff sprio sbcast scancel qstat jobstats reportseff "
            "myquota quota pbsnodes tracejob qdel checkjob showq mybalance lfs sacctmgr neuron-ls "
            "efa-versions"
        ),
        _WATCHES,
    ),
    **dict.fromkeys(
        str.split(
            "module ml spack conda mamba micromamba source . deactivate activate pyenv virtualenv load "
            "unload workon setpkgs use alias unalias"
        ),
        _SOFTWARE,
    ),
    **dict.fromkeys(
        str.split(
            "set shopt trap exit return wait true : umask shift hash disown setopt enable bind times getopts unset "
            "[[ [ test read let eval local break continue"
        ),
        _SHELL,
    ),
    "ulimit": "limits of memory and files belong to the nodes and the fabric of a cluster",
    "sleep": "a run starts once all of its workers are there",
    "time": _PRINTS,
    "sync": "claims are shared file systems",
    "clush": "the workers of a run have one image",
    **dict.fromkeys(
        ["mail", "mailx", "mutt", "sendmail"], "alerts are the platform's (docs/observability.md)"
    ),
    "nvidia-cuda-mps-control": "sharing of GPUs is the platform's to set up",
    "dcgmproftester": _WATCHES,
}
# Those whose output matters if it goes to a file.
PRINTING_COMMANDS = frozenset(
    ["echo", "printf", "cat", "date", "env", "printenv", "hostname", "head", "tail", "grep", "ls", "jq", "id"]
)
# Those that change in a pipe what others print.
FILTER_COMMANDS = frozenset(
    str.split(
        "grep egrep fgrep sed awk gawk sort uniq cut tr head tail wc cat nl fold column paste ts cronolog rotatelogs stdbuf"
    )
)
SOFTWARE_COMMANDS = frozenset(name for name, why in DROPPED_COMMANDS.items() if why == _SOFTWARE)
# Commands that only look, no matter what starts them: `srun hostname`, `mpirun -np 2 nvidia-smi`.
INSPECTION_COMMANDS = frozenset(
    name for name, why in DROPPED_COMMANDS.items() if why in (_PRINTS, _WATCHES)
) | {"sleep", "true"}
SCRIPT_ENDED_REASON = "the script has ended before"
# Commands that prepare files or packages before the launch; they stay, and run where the launch runs.
PREPARATION_COMMANDS = frozenset(
    str.split(
        "mkdir cp mv rm ln tar unzip gunzip gzip rsync scp chmod chown touch wget curl git pip pip3 uv "
        "poetry aws gsutil s5cmd dd sed awk find xargs ssh-keygen make cmake apt apt-get yum npm jupyter "
        "tensorboard wandb huggingface-cli hf split sort tee module-info pushd popd dvc gcloud az docker "
        "podman enroot apptainer singularity shifterimg ray redis-server nsys rclone zip unlink truncate "
        "mktemp fallocate dirname basename realpath sha256sum"
    )
)
_CONTAINER_WORK = ("pull", "build", "import", "create", "images", "load", "rmi", "rm", "stop", "kill", "tag")
CONTAINERS = frozenset(
    ["docker", "podman", "podman-hpc", "enroot", "apptainer", "singularity", "shifterimg", "sudo", "nerdctl"]
)


def is_image_work(words: Sequence[str]) -> bool:
    """Return whether a command fetches or builds an image: the catalog names the image of a run."""
    bare = [word for word in words if not word.startswith("-") and word != "sudo"]
    return bool(bare) and bare[0] in CONTAINERS and len(bare) > 1 and bare[1] in _CONTAINER_WORK


@dataclass(frozen=True, slots=True)
class AllocationCounts:
    """What is known about the allocation before a script runs; None if its options do not state it."""

    nodes: int = 1
    tasks: int | None = None
    tasks_per_node: int | None = None
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None


_HOSTS = re.compile(
    r"scontrol\s+show\s+-?-?host(?:names?|list)?s?\b|SLURM_(?:JOB_)?NODELIST|SLURM_STEP_NODELIST|getent\s+hosts|\bnodeset\b|\bhostlist\b"
    r"|PBS_NODEFILE|PE_HOSTFILE|hostname(?:\s+(?:-[a-zA-Z]+|--\w[\w-]*))*\s*$|hostname\s+--?[iIf]|nslookup|\bdig\b|PALS_NODEID"
)
_ONE_HOST = re.compile(
    r"head\s+(?:-n\s*1|-1|--lines=?\s*1)\b|sed\s+-n\s+['\"]?1p|(?<!show )\bhostname\b|getent|nslookup|NR==1|\[0\]|dig\b|cut -d' ' -f1|tail\s+(?:-n\s*1|-1)\b"
)
_COUNTS_LINES = re.compile(r"\bwc\s+(?:-l|--lines)|\buniq\s*\|.*wc|grep\s+-c")
_COUNTS_GPUS = re.compile(
    r"nvidia-smi\b.*(?:-L|--list-gpus|--query-gpu).*\bwc|device_count\(\)|rocm-smi.*\bwc|nvidia-smi\s+(?:-L|--list-gpus)\s*\|\s*grep"
)


def determine_command_substitution_output(command: str, counts: AllocationCounts) -> ShellValue:
    """Return what a command in `$(...)` prints if the allocation decides it; None if it has to run."""
    text = command.strip()
    words = text.split()
    if not words:
        return ""
    if _COUNTS_GPUS.search(text):
        return str(counts.gpus_per_node) if counts.gpus_per_node is not None else None
    if _HOSTS.search(text):
        if _COUNTS_LINES.search(text):
            is_unique = "uniq" in text or "sort -u" in text or "scontrol" in text
            count = (
                counts.nodes
                if is_unique or not counts.tasks_per_node
                else counts.nodes * counts.tasks_per_node
            )
            return str(count)
        return FIRST_HOST if _ONE_HOST.search(text) else ALL_HOSTS
    if words[0] == "echo" and not re.search(r"[|$`<>;&*?#\n]", text):
        return " ".join(words[1:]).replace('"', "").replace("'", "")
    if re.fullmatch(r"(?:which|command -v|type -p)\s+([\w.+-]+)", text):
        return words[-1]
    if found := re.fullmatch(r"expr\s+([0-9+\-*/%()\s\\]+)", text):
        number = evaluate_shell_arithmetic(found[1].replace("\\", ""), {})
        return str(number) if number is not None else None
    if found := re.fullmatch(r"seq\s+([0-9]+)(?:\s+([0-9]+))?", text):
        begin, end = (1, int(found[1])) if found[2] is None else (int(found[1]), int(found[2]))
        return " ".join(map(str, range(begin, end + 1))) if end - begin < 1000 else None
    if found := re.fullmatch(r"(?:basename|dirname)\s+[\"']?([^$`\"'\s|]+)[\"']?", text):
        head, _, tail = found[1].rpartition("/")
        return tail if words[0] == "basename" else head or "."
    return None
