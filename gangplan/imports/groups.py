"""Decide from their commands which groups of a source's pods train, which only start the ranks, and how."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import Node
from gangplan.imports.command import converted
from gangplan.imports.pods import ContainerOf, PodOf
from gangplan.imports.workload import Role, Start
from gangplan.model.amounts import GPUS
from gangplan.model.frameworks import Framework
from gangplan.plan.launchers import UnreadableError, find
from gangplan.records import dataclass

_BY_MPI = ("mpi", "horovod", "deepspeed")
_BY_TORCH = ("torch", "accelerate")
_SERVER = "sshd"
# Variables of a pod that is one rank of torch, or one process of JAX, without a launcher.
_RANK = frozenset({"RANK", "WORLD_SIZE"})
_JAX = "JAX_COORDINATOR_ADDRESS"


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one name; `node` is the place of the whole group."""

    name: str
    count: int
    pod: PodOf
    node: Node


@dataclass(frozen=True, slots=True)
class Grouped:
    """How ranks start, the framework, the groups that train, and others `aside`.

    Of the groups that train, a launcher is first and the largest last.
    """

    start: Start
    framework: Framework | None
    roles: tuple[Role, ...]
    aside: tuple[Role, ...] = ()


def grouped(groups: Sequence[Group], lead: str = "") -> Grouped:
    """Group pods into roles; `lead` names the group that starts the MPI ranks, if the source says so."""
    starters = [one for one in groups if one.name == lead] or [
        one for one in groups if launcher_of(one.pod.main) in _BY_MPI
    ]
    rest = [one for one in groups if one not in starters]
    servers = [one for one in rest if any(_SERVER in word for word in one.pod.main.command)]
    if starters and (servers or lead):
        workers = servers or rest[:1]
        aside = [one for one in rest if one not in workers]
        roles = [Role("launcher", 1, starters[0].pod, 0)] + [_role(one) for one in workers]
        return Grouped("mpi", None, tuple(roles), tuple(map(_aside, aside)))
    main = max(groups, key=lambda one: (_gpus(one.pod.main) * one.count, one.count))
    alike = [one for one in groups if one is not main and _is_alike(one, main)]
    aside = [one for one in groups if one is not main and one not in alike]
    start, framework = _start(main.pod.main)
    return Grouped(start, framework, (*map(_role, alike), _role(main)), tuple(map(_aside, aside)))


def launcher_of(container: ContainerOf) -> str:
    """Return the kind of launcher that a container starts; empty without one or a readable script."""
    try:
        found = find(container.command, None)
    except UnreadableError:
        return ""
    return found[0].start.launcher.kind if found else ""


def _start(container: ContainerOf) -> tuple[Start, Framework | None]:
    kind = launcher_of(container)
    if kind in _BY_TORCH:
        return "torch", "torch"
    names = {one.name for one in container.env}
    is_ranked = "MASTER_ADDR" in names and names & _RANK
    if kind in _BY_MPI and not is_ranked:
        return "mpi", None
    if is_ranked:
        return "torch", "torch"
    if _JAX in names:
        return "plain", "jax"
    return "plain", "plain"


def _is_alike(one: Group, other: Group) -> bool:
    """Return whether two groups run the same program, and so are ranks of one."""
    return bool(one.pod.main.command) and _program(one.pod.main) == _program(other.pod.main)


def _program(container: ContainerOf) -> tuple[str, ...]:
    try:
        return converted(container.command, None, {}).command
    except UnreadableError:
        return container.command


def _gpus(container: ContainerOf) -> int:
    counts = (amount for name, amount in container.resources.items() if name in GPUS)
    return max((int(one) for one in counts if one.isdigit()), default=0)


def _role(group: Group) -> Role:
    return Role(
        group.name if group.name != "launcher" else "worker", group.count, group.pod, whole=group.node
    )


def _aside(group: Group) -> Role:
    return Role(group.name, group.count, group.pod, whole=group.node)
