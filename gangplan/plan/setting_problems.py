"""Check settings against the plan: interfaces of pods, GPUs of a worker, numbers of ranks.

A row of `_TABLE` is a pattern of names and the check of their values; to add a variable, add it to a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gangplan.findings import Problem
from gangplan.model.frameworks import START_VARIABLES
from gangplan.model.job import Job
from gangplan.model.quantity import Quantity
from gangplan.plan.env_problems import build_meeting_name_problem
from gangplan.plan.environment import VISIBLE_GPUS_VARIABLE, list_meeting_names
from gangplan.plan.launchers import FoundLauncher, strip_prefixes
from gangplan.plan.launchers.shell import DECLARING, read_shell_commands
from gangplan.plan.operators import SoundnessCheck
from gangplan.plan.problems import format_flow_list, is_pasteable
from gangplan.plan.settings import VariableSetting, find_launch_variable_settings
from gangplan.plan.traffic import POD_INTERFACE
from gangplan.rules.commands import COMMAND_RENDEZVOUS, COMMAND_RESERVED
from gangplan.rules.model import Severity
from gangplan.rules.settings import GPUS_HIDDEN, GPUS_UNASKED, INTERFACE_UNKNOWN, RANK_CONSTANT
from gangplan.rules.workers import BINDING_SHARED

Judge = Callable[[Job, VariableSetting], Problem | None]


def check_launch_variable_settings(
    job: Job, found: Sequence[FoundLauncher], is_sound: SoundnessCheck | None = None
) -> Iterator[Problem]:
    """Yield the problems of a job's settings, each at the field that sets it."""
    settings = tuple(find_launch_variable_settings(job, found))
    if settings:
        from gangplan.plan.transports import check_fabric_is_used  # many runs set nothing themselves

        yield from check_fabric_is_used(job, settings)
    wrong = [(setting, problem) for setting in settings for problem in check_setting(job, setting)]
    set_there = [setting for setting, _ in wrong if setting.path[0] == "command"]
    right = without(job.command, set_there) if set_there else ()
    is_proposed = (
        is_sound is not None and is_pasteable(right) and right != job.command and is_sound(job, right)
    )
    for setting, problem in wrong:
        if setting.path[0] == "command" and is_proposed:
            problem = replace(problem, help=f"Remove it. Write command: {format_flow_list(right)}.")
        yield problem


def check_setting(job: Job, setting: VariableSetting) -> list[Problem]:
    """Return the problems of one setting, wherever it is set."""
    found = (judge(job, setting) for names, judge in _TABLE if names.fullmatch(setting.name))
    return [problem for problem in found if problem is not None]


def without(command: tuple[str, ...], settings: Sequence[VariableSetting]) -> tuple[str, ...]:
    """Return a command without these settings.

    It is empty if no program is left, or if an option of a launcher sets one, which has a proposal of its
    own.
    """
    words = list(command)
    for one in sorted(settings, key=lambda one: one.word or (0, 0), reverse=True):
        index = int(one.path[1])
        if one.word is not None:
            begin, end = one.word
            words[index] = _remove_assignment(words[index], begin, end)
        elif words[index] == f"{one.name}={one.value}":
            words[index] = ""
        else:
            return ()
    changed = [word.strip() if word != old else word for word, old in zip(words, command, strict=True)]
    if any(one.word and not changed[int(one.path[1])] for one in settings):
        return ()  # the script does nothing else
    kept = [word for word, old in zip(changed, command, strict=True) if word or not old]
    while len(kept) > 1 and kept[0] == "env" and "=" not in kept[1] and not kept[1].startswith("-"):
        kept = kept[1:]
    return tuple(kept) if strip_prefixes(kept).at < len(kept) else ()


def _remove_assignment(text: str, begin: int, end: int) -> str:
    """Return a script without an assignment, and without a command that does nothing else.

    What a branch or another command depends on stays, as `:`.
    """
    found = read_shell_commands(text)
    for index, one in enumerate(found):
        words = sorted((*one.sets, *one.words), key=lambda word: word.begin)
        if not any(word.begin == begin for word in words):
            continue
        others = [word.text for word in words if word.begin != begin]
        if any(word not in DECLARING and not word.startswith("-") for word in others):
            break
        before, rest = text[: words[0].begin], text[words[-1].end :]
        is_needed = one.block or one.after == "||" or (index and found[index - 1].after in ("&&", "||"))
        if is_needed:
            return f"{before}:{rest}"
        return before + rest.lstrip(" \t").removeprefix(one.after).lstrip()
    return text[:begin] + text[end:].removeprefix(" ")


def _check_transport(job: Job, setting: VariableSetting) -> Problem | None:
    from gangplan.plan.transports import check_transport  # few runs set one

    return check_transport(job, setting)


# Interfaces

# An interface name as Linux gives it to cards of a node; anything else in UCX_NET_DEVICES may be a card.
_CARD_NAME = re.compile(r"(?:eth|en[opsx]|em|ib|bond|team|wl|br|p\d+p)[\w.]*")
_NUMBERS = re.compile(
    r"[\d.]+(?:/\d+)?|[\da-fA-F:]*::[\da-fA-F:]*(?:/\d+)?"
)  # CIDRs, which Open MPI takes too


def _list_pod_interfaces(job: Job) -> frozenset[str] | None:
    """Return the interfaces of a worker's pod; None if it uses the node's own.

    Further networks are net1, net2 and so on unless they are named (Multus v4, NetworkSelectionElement).
    """
    if job.fabric.access.host_network:
        return None
    attached = (f"net{number}" for number in range(1, len(job.fabric.networks) + 1))
    return frozenset({"lo", POD_INTERFACE, *attached, *job.fabric.interfaces})


def _find_unknown_interface(
    job: Job, setting: VariableSetting, names: Sequence[str], what: str = ""
) -> Problem | None:
    known = _list_pod_interfaces(job)
    missing = [] if known is None else [name for name in names if name and name not in known]
    if known is None or not missing:
        return None
    have = " and ".join(sorted(known - {"lo"}))
    message = f"{setting.called} {what or f'names {missing[0]}'}, but pods of this run have {have}"
    if not what:
        message += f"; {missing[0]} is a name on the node"
    return Problem(setting.path, message, "Remove it.", INTERFACE_UNKNOWN)


def _check_interface_list(job: Job, setting: VariableSetting) -> Problem | None:
    """Check a list of interfaces, or of networks by their addresses."""
    names = [name.strip() for name in setting.value.split(",")]
    return _find_unknown_interface(job, setting, [name for name in names if not _NUMBERS.fullmatch(name)])


def _check_interfaces_to_meet(job: Job, setting: VariableSetting) -> Problem | None:
    """Check a list of interfaces by which workers meet: by its loopback, each reaches only itself."""
    if job.workers > 1 and setting.value.strip() == "lo":
        message = f"{setting.called} names lo, by which none of the {job.workers} workers reaches another"
        return Problem(setting.path, message, "Remove it.", INTERFACE_UNKNOWN)
    return _check_interface_list(job, setting)


def _check_excluded_interfaces(job: Job, setting: VariableSetting) -> Problem | None:
    """Check that excluding these interfaces leaves at least one."""
    known, without = _list_pod_interfaces(job), {name.strip() for name in setting.value.split(",")}
    if known is None or not known - {"lo"} <= without:
        return None
    message = f"{setting.called} excludes {', '.join(sorted(known - {'lo'}))}, and pods of this run have no other interface"
    return Problem(setting.path, message, "Remove it.", INTERFACE_UNKNOWN)


def _check_nccl_interfaces(job: Job, setting: VariableSetting) -> Problem | None:
    """Check a list of name prefixes: `=` makes the names exact, `^` excludes them (NCCL 2.28)."""
    known, value = _list_pod_interfaces(job), setting.value.strip()
    if known is None or not value:
        return None
    names = [name.strip() for name in value.lstrip("^=").split(",") if name.strip()]
    is_exact = value.lstrip("^").startswith("=")
    hit = {one for one in known for name in names if one == name or (not is_exact and one.startswith(name))}
    if value.startswith("^"):
        left = known - hit - {"lo"}
        return (
            None
            if left
            else _check_excluded_interfaces(job, VariableSetting(setting.name, ",".join(known), setting.path))
        )
    if hit == {"lo"} == {*names}:
        return _check_interfaces_to_meet(job, replace(setting, value="lo"))
    return None if hit else _find_unknown_interface(job, setting, names)


def _check_ucx_devices(job: Job, setting: VariableSetting) -> Problem | None:
    """Check a list of cards with their ports (mlx5_0:1), of interfaces, or `all`."""
    names = [name.strip() for name in setting.value.split(",")]
    return _find_unknown_interface(job, setting, [name for name in names if _CARD_NAME.fullmatch(name)])


# GPUs


def _check_runtime_visible_gpus(job: Job, setting: VariableSetting) -> Problem | None:
    """Check which GPUs the runtime shows a container; the kubelet and the runtime decide that, not the user.

    A container's own value wins over that of the device plugin (Kubernetes v1.34,
    GenerateRunContainerOptions).
    """
    if not setting.is_env:
        return None  # a program that sets it does so too late to change anything
    if setting.value in ("void", "none", ""):
        return _build_hidden_gpus_problem(job, setting, 0) if job.gpus else None
    own = f"the {job.gpus} GPUs that it asks for" if job.gpus else "none, for it asks for none"
    message = f"{setting.called} would show each container GPUs of other runs; a {setting.pod} sees {own}"
    return Problem(setting.path, message, "Remove it.", GPUS_UNASKED)


def _check_visible_gpu_numbers(job: Job, setting: VariableSetting) -> Problem | None:
    """Check GPU numbers; the list ends at the first other entry (CUDA, ROCm: environment variables)."""
    if not job.gpus:
        return None
    numbers: list[int] = []
    for text in setting.value.split(","):
        text = text.strip()
        if not re.fullmatch(r"\d+", text):
            if re.match(r"(?:GPU|MIG)-", text):
                return None  # it names a GPU of one node, and which node is unknown
            break
        numbers.append(int(text))
    seen = len({number for number in numbers if number < job.gpus})
    if beyond := next((number for number in numbers if number >= job.gpus), None):
        message = f"{setting.called} names GPU {beyond}, but a {setting.pod}'s {job.gpus} GPUs are numbered 0 to {job.gpus - 1}"
        return Problem(setting.path, message, "Remove it.", GPUS_HIDDEN)
    return _build_hidden_gpus_problem(job, setting, seen) if seen < job.gpus else None


def _build_hidden_gpus_problem(job: Job, setting: VariableSetting, seen: int) -> Problem:
    whose = "ranks" if setting.pod == "worker" else "processes"
    message = f"{setting.called} leaves its {whose} {seen or 'none'} of the {setting.pod}'s {job.gpus} GPUs"
    return Problem(setting.path, message, "Remove it.", GPUS_HIDDEN)


# Cores

# Options, variables and programs that bind each rank of a worker by itself.
_BINDS_RANKS = re.compile(
    r"bind-to[ =](?!none)|\bpe(?:-list)?=|cpu-(?:set|list)|\brankfile|I_MPI_PIN|bind_cores|numa|taskset|hwloc-bind",
    re.IGNORECASE,
)
# Values, and words of KMP_AFFINITY, that bind nothing.
_UNBOUND = re.compile(
    r"|false|none|disabled|(?:no)?(?:verbose|respect|warnings)|granularity=\w+", re.IGNORECASE
)


def _check_thread_binding(job: Job, setting: VariableSetting) -> Problem | None:
    """Check that threads are not bound where ranks are not: each rank would take the first cores that it sees.

    OMP_PLACES alone binds, too (OpenMP 5.2, 21.1.6; libgomp and Intel's runtime).
    """
    words = (*job.command, *job.mpi_flags, *(f"{one.name}={one.value}" for one in job.env))
    is_bound = job.bind_to != "none" or _BINDS_RANKS.search(" ".join(words))
    if job.slots == 1 or is_bound or all(_UNBOUND.fullmatch(one) for one in setting.value.split(",")):
        return None
    if setting.name == "OMP_PLACES" and any("OMP_PROC_BIND=" in word for word in words):
        return None  # reported there, or switched off there
    message = (
        f"{setting.called} binds the threads of each rank to the first cores of the worker, which are the same"
        f" for its {job.slots} ranks"
    )
    help = "Remove it."
    cores = job.resources.cpu.nano // Quantity.of(1).nano // job.slots
    if job.image.mpi is not None and job.image.mpi.family == "OpenMPI" and job.uses_mpi and cores:
        help += f" To bind ranks first, give mpirun --map-by slot:PE={cores} --bind-to core, if a CPU is a core here."
    return Problem(setting.path, message, help, BINDING_SHARED)


# Ranks

_HERE = ("localhost", "127.0.0.1", "0.0.0.0", "::1")


def _check_rank_number(job: Job, setting: VariableSetting) -> Problem | None:
    """Check a number that differs by rank; one that no rank can have is something else, such as LoRA's."""
    if (
        job.ranks == 1
        or not _is_setting_seen_by_ranks(job, setting)
        or not re.fullmatch(r"\d{1,9}", setting.value)
    ):
        return None
    if int(setting.value) >= job.ranks or setting.is_maybe:
        return None
    message = f"{setting.called} is {setting.value} in each of the run's {job.ranks} ranks"
    return Problem(setting.path, message, "Remove it.", RANK_CONSTANT)


def _check_world_size(job: Job, setting: VariableSetting) -> Problem | None:
    """Check that the number of ranks is the planned one."""
    if setting.value == str(job.ranks) or job.ranks == 1 or not _is_setting_seen_by_ranks(job, setting):
        return None
    if setting.is_maybe or not re.fullmatch(r"\d+", setting.value):
        return None
    message = f"{setting.called} is {setting.value}, but the run has {job.workers} workers x {job.slots} slots = {job.ranks} ranks"
    return Problem(setting.path, message, "Remove it.", RANK_CONSTANT)


def _check_local_rank(job: Job, setting: VariableSetting) -> Problem | None:
    """Check the number of a rank among those of its worker."""
    return _check_rank_number(job, setting) if job.slots > 1 else None


def _check_master_address(job: Job, setting: VariableSetting) -> Problem | None:
    """Check that the first rank's address is not each worker's own host."""
    if job.workers == 1 or setting.value not in _HERE or setting.is_maybe:
        return None
    if not (setting.in_rank or setting.path[0] == "env"):
        return None
    message = f"{setting.called} is {setting.value}, so each of the {job.workers} workers would look for the first rank on itself"
    help = "Remove it; let the program take the address from rank 0, or from PET_MASTER_ADDR in an image of torch."
    return Problem(setting.path, message, help, COMMAND_RENDEZVOUS)


def _check_number_of_mpi(job: Job, setting: VariableSetting) -> Problem | None:
    """Check a number that an MPI gives each rank, whatever its launcher's environment says."""
    if not setting.in_rank or not job.uses_mpi:
        return None
    judge = _check_local_rank if "LOCAL_RANK" in setting.name else _check_rank_number
    return (_check_world_size if setting.name.endswith("_SIZE") else judge)(job, setting)


def _check_meeting_variable(job: Job, setting: VariableSetting) -> Problem | None:
    """Check what tells a worker of the others where its own script sets it; in env it is refused earlier."""
    name, framework = setting.name, job.image.framework
    own = START_VARIABLES.get(framework, ())
    if (
        not setting.in_rank
        or job.workers == 1
        or setting.is_maybe
        or name not in {*own, *list_meeting_names(job)}
    ):
        return None
    is_planned = setting.value == str(job.workers) and name in _COUNTS_OF_WORKERS
    if is_planned or (name == "MASTER_ADDR" and setting.value in _HERE):
        return None
    level = None if name in own else Severity.WARNING
    return build_meeting_name_problem(setting.path, name, setting.pod, COMMAND_RESERVED, level)


_COUNTS_OF_WORKERS = ("JAX_NUM_PROCESSES", "DMLC_NUM_WORKER", "NNODES")


def _is_setting_seen_by_ranks(job: Job, setting: VariableSetting) -> bool:
    """Return whether ranks see a setting; the numbers of torchrun and Paddle override those of env."""
    return setting.in_rank or (
        job.image.framework not in ("torch", "paddle") and setting.path[0] in ("env", "mpi")
    )


_TABLE: tuple[tuple[re.Pattern[str], Judge], ...] = (
    (re.compile("NCCL_SOCKET_IFNAME|RCCL_SOCKET_IFNAME"), _check_nccl_interfaces),
    (
        re.compile(r"(?:GLOO|TP)_SOCKET_IFNAME|HOROVOD_GLOO_IFACE|(?:I_MPI_)?HYDRA_IFACE"),
        _check_interfaces_to_meet,
    ),
    (re.compile(r"FI_(?:TCP|SOCKETS|UDP)_IFACE"), _check_interface_list),
    (
        re.compile(r"(?:OMPI|PRTE|PMIX)_MCA_(?:btl_tcp|oob_tcp|prte|ptl_tcp)_if_include"),
        _check_interface_list,
    ),
    (
        re.compile(r"(?:OMPI|PRTE|PMIX)_MCA_(?:btl_tcp|oob_tcp|prte|ptl_tcp)_if_exclude"),
        _check_excluded_interfaces,
    ),
    (re.compile("UCX_NET_DEVICES"), _check_ucx_devices),
    (re.compile("OMPI_MCA_(?:btl|mtl|pml)|I_MPI_FABRICS|FI_PROVIDER|UCX_TLS|NCCL_NET"), _check_transport),
    (re.compile(VISIBLE_GPUS_VARIABLE), _check_runtime_visible_gpus),
    (
        re.compile("CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL"),
        _check_visible_gpu_numbers,
    ),
    (re.compile("OMP_PROC_BIND|OMP_PLACES|GOMP_CPU_AFFINITY|KMP_AFFINITY"), _check_thread_binding),
    (re.compile("RANK|PADDLE_TRAINER_ID|PADDLE_GLOBAL_RANK"), _check_rank_number),
    (re.compile("LOCAL_RANK"), _check_local_rank),
    (
        re.compile("(?:OMPI_COMM_WORLD|PMI)_(?:RANK|SIZE)|OMPI_COMM_WORLD_LOCAL_RANK|MPI_LOCALRANKID"),
        _check_number_of_mpi,
    ),
    (re.compile("MASTER_ADDR"), _check_master_address),
    (re.compile(r"JAX_\w+|TF_CONFIG|DMLC_\w+|NNODES|NODE_RANK|MASTER_ADDR"), _check_meeting_variable),
    (re.compile("WORLD_SIZE"), _check_world_size),
)
