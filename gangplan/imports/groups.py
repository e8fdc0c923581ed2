"""Decide from their commands which groups of a source's pods train, which only start the ranks, and how."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import SourceNode
from gangplan.imports.command import convert_command
from gangplan.imports.pods import SourceContainer, SourcePod
from gangplan.imports.workload import PodRole, StartMethod
from gangplan.model.amounts import GPU_RESOURCES
from gangplan.model.frameworks import Framework
from gangplan.plan.launchers import UnreadableError, find_launchers
from gangplan.records import dataclass

_BY_MPI = ("mpi", "horovod", "deepspeed")
_BY_TORCH = ("torch", "accelerate")
_SERVER = "sshd"
# Variables of a pod that is one rank of torch, or one process of JAX, without a launcher.
_RANK = frozenset({"RANK", "WORLD_SIZE"})
_JAX = "JAX_COORDINATOR_ADDRESS"


@dataclass(frozen=True, slots=True)
class SourcePodGroup:
    """Pods of one name; `node` is the place of the whole group."""

    name: str
    count: int
    pod: SourcePod
    node: SourceNode


@dataclass(frozen=True, slots=True)
class Grouped:
    """How ranks start, the framework, the groups that train, and others `aside`.

    Of the groups that train, a launcher is first and the largest last.
    """

    start: StartMethod
    framework: Framework | None
    roles: tuple[PodRole, ...]
    aside: tuple[PodRole, ...] = ()


def group_imported_pods_into_roles(
    groups: Sequence[SourcePodGroup], lead: str = "", hosts: str = ""
) -> Grouped:
    """Group pods into roles.

    `lead` names the group that starts the MPI ranks, and `hosts` the one that has them, if the source says so.
    """
    starters = [one for one in groups if one.name == lead] or [
        one for one in groups if find_launcher_kind_of_container(one.pod.main) in _BY_MPI
    ]
    rest = [one for one in groups if one not in starters]
    servers = [one for one in rest if one.name == hosts] or [
        one for one in rest if any(_SERVER in word for word in one.pod.main.command)
    ]
    if starters and (servers or lead):
        workers = servers or rest[:1]
        aside = [one for one in rest if one not in workers]
        roles = [PodRole("launcher", 1, starters[0].pod, 0)] + [_build_training_role(one) for one in workers]
        return Grouped("mpi", None, tuple(roles), tuple(map(_build_non_training_role, aside)))
    main = max(groups, key=lambda one: (_count_container_gpus(one.pod.main) * one.count, one.count))
    alike = [one for one in groups if one is not main and _is_alike(one, main)]
    aside = [one for one in groups if one is not main and one not in alike]
    start, framework = _find_rank_start_of_source_container(main.pod.main)
    return Grouped(
        start,
        framework,
        (*map(_build_training_role, alike), _build_training_role(main)),
        tuple(map(_build_non_training_role, aside)),
    )


def find_launcher_kind_of_container(container: SourceContainer) -> str:
    """Return the kind of launcher that a container starts; empty without one or a readable script."""
    try:
        found = find_launchers(container.command, None)
    except UnreadableError:
        return ""
    return found[0].start.launcher.kind if found else ""


def _find_rank_start_of_source_container(container: SourceContainer) -> tuple[StartMethod, Framework | None]:
    kind = find_launcher_kind_of_container(container)
    if kind in _BY_TORCH:
        return "torch", "torch"
    if kind == "paddle":
        return "plain", "paddle"
    names = {one.name for one in container.env}
    is_ranked = "MASTER_ADDR" in names and names & _RANK
    if kind in _BY_MPI and not is_ranked:
        return "mpi", None
    if is_ranked:
        return "torch", "torch"
    if _JAX in names:
        return "plain", "jax"
    return "plain", "plain"


def _is_alike(one: SourcePodGroup, other: SourcePodGroup) -> bool:
    """Return whether two groups run the same program, and so are ranks of one."""
    return bool(one.pod.main.command) and _extract_container_program(
        one.pod.main
    ) == _extract_container_program(other.pod.main)


def _extract_container_program(container: SourceContainer) -> tuple[str, ...]:
    try:
        return convert_command(container.command, None, {}).command
    except UnreadableError:
        return container.command


def _count_container_gpus(container: SourceContainer) -> int:
    counts = (amount for name, amount in container.resources.items() if name in GPU_RESOURCES)
    return max((int(one) for one in counts if one.isdigit()), default=0)


def _build_training_role(group: SourcePodGroup) -> PodRole:
    return PodRole(
        group.name if group.name != "launcher" else "worker", group.count, group.pod, whole=group.node
    )


def _build_non_training_role(group: SourcePodGroup) -> PodRole:
    return PodRole(group.name, group.count, group.pod, whole=group.node)
