"""What a script requests of its scheduler: nodes, tasks, devices and amounts, each with its option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from gangplan.imports.account import SourceNode
from gangplan.imports.scripted.idioms import AllocationCounts
from gangplan.imports.workload import SourceLoss, SourceSetting
from gangplan.records import dataclass

_TIME = re.compile(r"(?:(?P<days>[0-9]+)-)?(?P<rest>[0-9]+(?::[0-9]+){0,2})(?:\.[0-9]+)?")
_AMOUNT = re.compile(r"(?P<number>[0-9]+)(?P<unit>[kKmMgGtTpP]?)(?P<of>[bBwW]?)")
_AGAIN = "a later one says it again"
WHOLE_NODE_REASON = "a worker has its cores, memory and GPUs to itself"
# PBS also counts in words (OpenPBS, src/lib/Libattr/attr_fn_size.c), which have 8 bytes on 64-bit machines.
_WORD = 8
_MIB = 1 << 20
# Signs of GPUs; nodes that a job has to itself give it all of theirs (sbatch(1), Slurm 25.05, --exclusive).
_OF_CUDA = re.compile(r"^[^#\n]*?\b(NCCL_\w+|CUDA_\w+|nvidia-smi|deepspeed)\b", re.MULTILINE)
_OF_NODES = ("gpus_per_node", "gpus", "gpus_per_task", "tasks_per_gpu", "tasks")
_GPUS_OF_NODE = 8  # of most machines, where a script leaves the number of nodes open
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


@dataclass(frozen=True, slots=True)
class HostMount:
    """A folder of the machine that a container sees."""

    host: str
    target: str
    read_only: bool
    node: SourceNode | None


@dataclass(slots=True)
class WantedAllocation:
    """The allocation as its options state it.

    Memory is in bytes; `at` are the nodes of the source by field. A limit of addresses is one of
    memory, too, where nothing else is stated.
    """

    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    tasks_per_gpu: int | None = None
    cpus_per_task: int | None = None
    cpus_per_node: int | None = None
    cpus_per_gpu: int | None = None
    least_cpus: int | None = None
    gpus: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    gpus_per_socket: int | None = None
    sockets_per_node: int | None = None
    memory: int | None = None
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    memory_per_task: int | None = None
    memory_of_job: int | None = None
    addresses_per_task: int | None = None
    addresses_of_job: int | None = None
    scratch: int | None = None
    image: str = ""
    workdir: str = ""
    mounts: list[HostMount] = field(default_factory=list)
    env: dict[str, tuple[str, SourceNode]] = field(default_factory=dict)
    step_env: dict[str, tuple[str, SourceNode]] = field(default_factory=dict)  # of one launch
    settings: dict[str, SourceSetting] = field(default_factory=dict)
    models: list[tuple[str, SourceNode]] = field(default_factory=list)
    pools: list[tuple[str, SourceNode]] = field(default_factory=list)
    at: dict[str, SourceNode] = field(default_factory=dict)
    refusals: list[tuple[SourceNode, str, str]] = field(default_factory=list)
    questions: list[tuple[SourceNode, str, str]] = field(default_factory=list)
    lost: list[SourceLoss] = field(default_factory=list)
    array: list[int] = field(default_factory=list)
    at_once: int = 0

    def say(self, name: str, value: object, node: SourceNode, to: str) -> None:
        """Record a value and the option that states it."""
        setattr(self, name, value)
        self.at[name] = node.mapped(to)

    def setting(self, name: str, value: str | int, node: SourceNode) -> None:
        """Record a value of the whole job; a later option replaces an earlier one."""
        if name in self.settings:
            self.settings[name].node.dropped(_AGAIN)
        self.settings[name] = SourceSetting(value, node)

    def place(self, name: str, node: SourceNode) -> None:
        """Record the option for a folder, an image or an array."""
        if name in self.at:
            self.at[name].dropped(_AGAIN)
        self.at[name] = node

    def variable(self, name: str, value: str, node: SourceNode) -> None:
        """Record a variable."""
        if name in self.env and self.env[name][1] is not node:
            self.env[name][1].dropped(_AGAIN)
        self.env[name] = (value, node)

    def depend(self, value: str, node: SourceNode) -> None:
        """Ask about the jobs that this one waits for."""
        node.asked("after: says which runs come before this one")
        message = f"the job waits for others ({value}), and its run for none"
        self.questions.append((node, message, "Name the jobs that must be complete first: after: [JOB]."))

    @property
    def node_count(self) -> int:
        """The number of nodes: as stated, else as follows from tasks or GPUs per node, else one."""
        if self.nodes is not None:
            return max(1, self.nodes)
        if self.tasks and self.tasks_per_node:
            return -(-self.tasks // self.tasks_per_node)
        if self.gpus and self.gpus_per_node:
            return -(-self.gpus // self.gpus_per_node)
        return self._count_nodes_for_gpus()

    def _count_nodes_for_gpus(self) -> int:
        """Return the nodes that all GPUs of the job fill, where the scheduler chooses how many there are."""
        gpus = self.gpus or (self.gpus_per_task or 0) * (self.tasks or 1)
        if self.tasks_per_gpu and self.tasks and not gpus:
            gpus = -(-self.tasks // self.tasks_per_gpu)
        parts = gpus if self.tasks is None or gpus % self.tasks else self.tasks
        even = (one for one in range(1, parts + 1) if parts % one == 0 and gpus // one <= _GPUS_OF_NODE)
        return 1 if self.tasks_per_node or self.gpus_per_node is not None else next(even, max(parts, 1))

    @property
    def tasks_on_node(self) -> int | None:
        """Tasks per node; None if no option states them."""
        if self.tasks_per_node:
            return self.tasks_per_node
        if self.tasks:
            return -(-self.tasks // self.node_count)
        if self.tasks_per_gpu and (self.gpus_per_node is not None or self.gpus is not None):
            return self.tasks_per_gpu * (self.gpus_on_node or 0) or None
        return None

    @property
    def gpus_on_node(self) -> int | None:
        """GPUs per node; None if none are requested."""
        if self.gpus_per_node is not None:
            return self.gpus_per_node
        if self.gpus is not None:
            return -(-self.gpus // self.node_count)
        if self.gpus_per_task is not None:
            return self.gpus_per_task * (self.tasks_on_node or 1)
        if self.tasks_per_gpu and self.tasks_on_node:
            return -(-self.tasks_on_node // self.tasks_per_gpu)
        if self.gpus_per_socket and self.sockets_per_node:
            return self.gpus_per_socket * self.sockets_per_node
        return None

    @property
    def cpus_on_node(self) -> int | None:
        """Cores per node; None if no option states them, or the whole node is meant."""
        stated = self.cpus_per_node
        if stated is None and self.cpus_per_gpu is not None and self.gpus_on_node:
            stated = self.cpus_per_gpu * self.gpus_on_node
        if stated is None and self.cpus_per_task is not None:
            stated = self.cpus_per_task * (self.tasks_on_node or 1)
        if stated is None and not self.gpus_on_node and "exclusive" not in self.at:
            stated = self.tasks_on_node
        return max(stated or 0, self.least_cpus or 0) or None

    @property
    def memory_on_node(self) -> int | None:
        """Bytes per node; None if no option states them, or all memory of the node is meant."""
        if self.memory:
            return self.memory
        if self.memory_per_gpu and self.gpus_on_node:
            return self.memory_per_gpu * self.gpus_on_node
        if self.memory_per_cpu:
            cores = self.cpus_on_node or (None if self._has_open_cores() else self.tasks_on_node or 1)
            return self.memory_per_cpu * cores if cores else None
        if of_job := self.memory_of_job or (not self.memory_per_task and self.addresses_of_job):
            return -(-of_job // self.node_count // _MIB) * _MIB
        per_task = self.memory_per_task or self.addresses_per_task
        return per_task * (self.tasks_on_node or 1) if per_task else None

    def _has_open_cores(self) -> bool:
        """Return whether only the old cluster knows how many cores the job has on a node."""
        return self.cpus_on_node is None and bool(self.gpus_on_node or "exclusive" in self.at)

    def parts_of_whole_nodes(self) -> dict[str, SourceNode]:
        """Return what the job takes all of on its nodes, cpu or memory, with the option that says so.

        The options that no field of the spec needs are accounted for.
        """
        exclusive, memory = self.at.get("exclusive"), self.at.get("whole memory")
        found = {"cpu": exclusive, "memory": memory or exclusive}
        stated = {"cpu": self.cpus_on_node, "memory": self.memory_on_node}
        parts = {name: node for name, node in found.items() if node is not None and stated[name] is None}
        for node in (exclusive, memory):
            if node is not None and node not in parts.values():
                node.same(WHOLE_NODE_REASON)
        return parts

    def losses(self) -> Iterator[SourceLoss]:
        """Yield what a run does not have, and numbers that its workers cannot share evenly."""
        yield from self.lost
        ranks, gpus = (self.tasks_on_node or 0) * self.node_count, (self.gpus_on_node or 0) * self.node_count
        if self.tasks and ranks != self.tasks and "tasks" in self.at:
            why = f"the job has {self.tasks} ranks on {self.node_count} nodes, and a run as many on each worker: {ranks}"
            yield SourceLoss(
                "ranks",
                "ranks of the job",
                str(self.tasks),
                str(ranks),
                why,
                "Choose workers and slots, so that each worker has the same.",
                self.at["tasks"],
            )
        if self.gpus and self.gpus_per_node is None and gpus != self.gpus and "gpus" in self.at:
            why = f"the job has {self.gpus} GPUs on {self.node_count} nodes, and a run as many on each worker: {gpus}"
            yield SourceLoss(
                "devices",
                "GPUs of the job",
                str(self.gpus),
                str(gpus),
                why,
                "Choose workers and gpus, so that each worker has the same.",
                self.at["gpus"],
            )

    def list_open_amounts(self, text: str, place: SourceNode) -> Iterator[tuple[SourceNode, str, str]]:
        """Yield questions about amounts that only the old cluster knows; `text` is the script."""
        nodes, gpus = self.node_count, self.gpus_on_node
        is_open = self.nodes is None and not self.tasks_per_node and not (self.gpus and self.gpus_per_node)
        if is_open and gpus and (nodes > 1 or ((self.tasks or 1) > 1 and self.gpus_per_node)):
            node = next(self.at[one] for one in _OF_NODES if one in self.at)
            message = f"the scheduler chooses the number of nodes; the run has {nodes} with {gpus} GPUs each"
            yield node, message, "Write workers, and gpus of one worker."
        if self.memory_per_cpu and self.memory_on_node is None:
            node = self.at["memory_per_cpu"]
            message = "only the old cluster knows how many cores the job has on a node, each with this memory"
            node.account.remark(node.path, "asked", "", message)
            yield node, message, "Write memory of one worker."
        if self.gpus_per_socket and not gpus:
            node = self.at["gpus_per_socket"]
            message = "without --sockets-per-node it says no number of GPUs"
            node.account.remark(node.path, "asked", "", message)
            yield node, message, "Write gpus of one worker."
        elif not gpus and (found := _OF_CUDA.search(text)):
            message = (
                f"the script has {found[1]}, and asks for no GPUs; its nodes may have had some all the same"
            )
            yield self.at.get("exclusive", place), message, "Write gpus of one worker."

    def counts(self) -> AllocationCounts:
        """Return what a script can know about it."""
        return AllocationCounts(
            self.node_count, self.tasks, self.tasks_on_node, self.gpus_on_node, self.cpus_per_task
        )


def parse_batch_script_time_limit(text: str, starts_with_minutes: bool = True) -> int | None:
    """Parse a time limit into seconds; None if it is not one.

    Forms are `D-HH:MM:SS`, `HH:MM:SS`, `MM:SS`, `MM` (sbatch(1), Slurm 25.05), or `HH:MM:SS`, `MM:SS` and
    `SS` of PBS.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    parts = [int(one) for one in found["rest"].split(":")]
    if found["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0, 0)[:3]
        return int(found["days"]) * 86_400 + hours * 3600 + minutes * 60 + seconds
    if len(parts) == 1:
        return parts[0] * (60 if starts_with_minutes else 1)
    if len(parts) == 2:
        return parts[0] * 60 + parts[1]
    return parts[0] * 3600 + parts[1] * 60 + parts[2]


def parse_batch_script_memory(text: str, plain_unit: str) -> int | None:
    """Parse an amount of memory into bytes, with units of 1024; a bare number has the scheduler's unit."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        return None
    unit = (found["unit"] or plain_unit).lower()
    size = _WORD if found["of"].lower() == "w" else 1
    return (int(found["number"]) << (_UNITS[unit] if unit else 0)) * size


def format_spec_memory(count: int) -> str:
    """Write bytes as a spec does."""
    for shift, unit in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift}{unit}"
    return str(count)


def parse_job_array_numbers(text: str) -> list[int] | None:
    """Parse the numbers of an array (`0-3`, `1,5,9`, `0-10:2`, `1-9%4`); None if invalid or too many."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        span = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6})(?::([0-9]{1,6}))?)?", part.strip())
        if span is None:
            return None
        begin, end = int(span[1]), int(span[2] or span[1])
        found += range(begin, end + 1, max(1, int(span[3] or 1)))
        if len(found) > 100_000:
            return None
    return found


def parse_job_array_limit(text: str, count: int) -> int:
    """Return how many tasks of an array may run at once: as in `%4` after its numbers, else all of them."""
    found = re.search(r"%([1-9][0-9]{0,5})$", text.strip())
    return min(int(found[1]), count) if found else max(count, 1)


def parse_script_container_mounts(text: str, node: SourceNode | None) -> Iterator[HostMount]:
    """Yield the mounts of a container from `/a:/b:ro,/c`; a single folder keeps its path."""
    for part in text.split(","):
        host, _, rest = part.strip().partition(":")
        target, _, flags = rest.partition(":")
        if target in ("ro", "rw") or target.startswith(("ro+", "rw+", "x-", "bind", "nosuid")):
            target, flags = "", target
        if host:
            yield HostMount(host, target or host, "ro" in re.split(r"[+,:]", flags), node)
