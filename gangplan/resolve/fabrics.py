"""The fabric of a node pool: what workers with RDMA get, and whether their namespace and node allow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan.model.amounts import format_with_unit
from gangplan.model.fabric import (
    NO_ACCESS,
    SECURITY_LEVELS,
    FabricAccess,
    FabricMount,
    FabricSideContainer,
    FabricVolume,
    GivenByFabrics,
)
from gangplan.model.job import EnvVar, Origin, ValueOrigin
from gangplan.model.pods import build_origin_key
from gangplan.model.quantity import Quantity, parse_cpu, parse_memory_quantity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.fabric_presets import complete_fabric
from gangplan.resolve.image import apply_mirrors, is_image_registry_trusted
from gangplan.resolve.misfit import WorkerShape
from gangplan.rules.fabrics import CAPABILITY_IDLE, FABRIC_NODE_SHARED, FABRIC_SCC, HOST_ACCESS_REFUSED
from gangplan.rules.specs import POOL_NO_FIT, REGISTRY_UNTRUSTED
from gangplan.spec.cluster import Cluster
from gangplan.spec.fabrics import Fabric
from gangplan.spec.fabrics import FabricContainer as ContainerSpec
from gangplan.spec.nodes import NodePool, key_by_resource

# The prefix of names of volumes, so that none is the name of a claim or secret.
PREFIX = "fabric-"
# The requests of a setup or sidecar container, unless its fabric states them.
CPU, MEMORY = parse_cpu("500m"), parse_memory_quantity("512Mi")


def resolve_fabric_access(cluster: Cluster, pool: NodePool) -> FabricAccess:
    """Return what workers with RDMA get on a pool; nothing if it names no fabric or an unknown one."""
    stated = cluster.fabrics.get(pool.fabric) if pool.fabric else None
    if stated is None or pool.fabric is None:
        return NO_ACCESS
    fabric = complete_fabric(stated)
    volumes = {
        name: FabricVolume(f"{PREFIX}{name}", folder.path, folder.type or "")
        for name, folder in sorted(fabric.host_paths.items())
    } | {name: FabricVolume(f"{PREFIX}{name}") for name in sorted(fabric.shared)}
    seen = {name: folder.mount for name, folder in fabric.host_paths.items() if folder.mount} | fabric.shared
    is_idle = fabric.memlock == "unlimited"
    return FabricAccess(
        name=pool.fabric,
        host_network=fabric.host_network,
        node_addresses=fabric.node_addresses if fabric.host_network else (),
        capabilities=tuple(
            name for name in dict.fromkeys(fabric.capabilities) if not (is_idle and name == "IPC_LOCK")
        ),
        is_privileged=fabric.privileged,
        env=tuple(sorted(fabric.env.items())),
        annotations=tuple(sorted(fabric.annotations.items())),
        volumes=tuple(volumes.values()),
        mounts=tuple(_resolve_fabric_mounts(fabric, seen)),
        containers=(
            *(
                _resolve_fabric_container(cluster, fabric, name, one, False)
                for name, one in fabric.setup.items()
            ),
            *(
                _resolve_fabric_container(cluster, fabric, name, one, True)
                for name, one in fabric.sidecars.items()
            ),
        ),
        scc=fabric.scc or "",
    )


def collect_access_of_pool_fabrics(cluster: Cluster) -> GivenByFabrics:
    """Return what the fabrics of all node pools give, without duplicates."""
    every = [resolve_fabric_access(cluster, pool) for pool in cluster.node_pools.values()]
    open_volumes = {
        (access.name, mount.volume)
        for access in every
        for mount in (*access.mounts, *(one for box in access.containers for one in box.mounts))
        if not mount.read_only
    }
    volumes = [(access.name, one) for access in every for one in access.volumes if one.path]
    return GivenByFabrics(
        tuple(dict.fromkeys(address for access in every for address in access.node_addresses)),
        tuple(sorted({name for access in every for name in access.added})),
        tuple(sorted({one.path for _, one in volumes})),
        tuple(sorted({one.path for name, one in volumes if (name, one.name) in open_volumes})),
    )


def _resolve_fabric_mounts(fabric: Fabric, places: Mapping[str, str]) -> Iterator[FabricMount]:
    """Yield mounts of the fabric's volumes, sorted by name; checks report volumes that do not exist."""
    for name, path in sorted(places.items()):
        folder = fabric.host_paths.get(name)
        if folder or name in fabric.shared:
            yield FabricMount(f"{PREFIX}{name}", path, bool(folder and folder.read_only))


def _resolve_fabric_container(
    cluster: Cluster, fabric: Fabric, name: str, stated: ContainerSpec, is_sidecar: bool
) -> FabricSideContainer:
    repository, at, digest = (stated.image or "").partition("@")
    return FabricSideContainer(
        name=name,
        image=f"{apply_mirrors(repository, cluster)}{at}{digest}",
        command=stated.command,
        env=tuple(sorted(stated.env.items())),
        mounts=tuple(_resolve_fabric_mounts(fabric, stated.mounts)),
        capabilities=tuple(dict.fromkeys(stated.capabilities)),
        is_root=stated.root,
        is_privileged=stated.privileged,
        cpu=stated.cpu or CPU,
        memory=stated.memory or MEMORY,
        is_sidecar=is_sidecar,
    )


def check_fabric_access(
    context: JobResolution, access: FabricAccess, pool: NodePool, shape: WorkerShape, uid: int
) -> None:
    """Check a run that uses a fabric: its namespace's Pod Security level, other pods on the node, images.

    `uid` is the user that its program runs as.
    """
    if not access.name:
        return
    _check_pod_security_level_for_fabric(context, access)
    _check_fabric_worker_has_own_node(context, access, pool, shape)
    _check_room_for_fabric_sidecars(context, access, pool, shape)
    _check_openshift_scc_of_fabric(context, access)
    _check_idle_fabric_capabilities(context, access, uid)
    registries = context.cluster.spec.registries
    for one in access.containers:
        if not is_image_registry_trusted(one.image, registries):
            context.report(
                REGISTRY_UNTRUSTED,
                context.where("network", "rdma"),
                f"cluster {context.cluster.name} pulls container '{one.name}' of fabric '{access.name}' from"
                f" {one.image.partition('@')[0]}, which is not one of its registries",
                f"Mirror it to {' or '.join(registries)}, and name it in {context.cluster.document.file}.",
            )


def _check_pod_security_level_for_fabric(context: JobResolution, access: FabricAccess) -> None:
    stated = context.cluster.spec.teams[context.team.name].pod_security
    level = stated.level if stated else SECURITY_LEVELS[0]
    refused = [
        what
        for what, least in access.needs.items()
        if SECURITY_LEVELS.index(least) > SECURITY_LEVELS.index(level)
    ]
    if not refused:
        return
    file, team = context.cluster.document.file, context.team.name
    lock = " If the nodes give pods unlimited memlock, memlock: unlimited at the fabric leaves IPC_LOCK out."
    context.report(
        HOST_ACCESS_REFUSED,
        context.where("network", "rdma"),
        f"fabric '{access.name}' of cluster {context.cluster.name} gives workers {_join_with_and(refused)}, which the"
        f" namespace of team {team} refuses (Pod Security level {level})",
        f"Ask the platform for podSecurity: {{level: {access.level}, reason: ..., until: ...}} at teams.{team} in"
        f' {file}, or write rdma: "off" where TCP is enough.'
        + (lock if "the capability IPC_LOCK" in refused else ""),
    )


def _join_with_and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _check_fabric_worker_has_own_node(
    context: JobResolution, access: FabricAccess, pool: NodePool, shape: WorkerShape
) -> None:
    """Check that a worker has its node to itself if the fabric needs that.

    Workers in the node's network share its ports, and a daemon that serves all cards is one per node.
    """
    stated = context.cluster.spec.fabrics[access.name]
    fabric = complete_fabric(stated)
    if not (fabric.host_network or fabric.whole_node):
        return
    all_gpus = pool.gpu.count if pool.gpu else 0
    is_alone = shape.gpus == all_gpus if all_gpus else shape.cpu.nano * 2 > pool.cpu.nano
    if is_alone:
        return
    why = (
        "workers would share the ports of the node: a second SSH server or torchrun could not open its own"
        if fabric.host_network
        else "its cards and daemon are for one worker per node"
    )
    wanted = f"gpus: {all_gpus}" if all_gpus else f"more than half of a node's {pool.cpu} CPU"
    context.report(
        FABRIC_NODE_SHARED,
        context.origin_of("gpus" if all_gpus else "cpu", ("gpus",) if all_gpus else ("cpu",)),
        f"a worker does not take a whole node of a pool with fabric '{access.name}': {why}",
        f'Write {wanted}, or rdma: "off" where TCP is enough.',
    )


def _check_room_for_fabric_sidecars(
    context: JobResolution, access: FabricAccess, pool: NodePool, shape: WorkerShape
) -> None:
    """Check that a worker fits on its node together with the sidecars of the fabric."""
    beside = [one for one in access.containers if one.is_sidecar]
    for field, asked, has, added in (
        ("cpu", shape.whole("cpu"), pool.cpu, [one.cpu for one in beside]),
        ("memory", shape.whole("memory"), pool.memory, [one.memory for one in beside]),
    ):
        taken = Quantity(sum(amount.nano for amount in added), has.format)
        if asked <= has < asked + taken:
            context.report(
                POOL_NO_FIT,
                context.origin_of(field, (field,)),
                f"next to the containers of fabric '{access.name}', which take {format_with_unit(field, taken)}, a worker with"
                f" {format_with_unit(field, asked)} does not fit on a node with {format_with_unit(field, has)}",
                f"Write {field}: {(has - taken).canonical()} or less.",
            )


def _check_openshift_scc_of_fabric(context: JobResolution, access: FabricAccess) -> None:
    """Check that the fabric names SecurityContextConstraints that admit its pods on OpenShift.

    OpenShift admits pods by them, and nonroot-v2 allows no access to the node.
    """
    if context.cluster.spec.versions.openshift and access.needs and not access.scc:
        context.report(
            FABRIC_SCC,
            context.where("network", "rdma"),
            f"fabric '{access.name}' gives workers {_join_with_and(list(access.needs))}, and names no"
            f" SecurityContextConstraints that admit this on OpenShift cluster {context.cluster.name}",
            f"Ask the owner of {context.cluster.document.file} for scc at fabrics.{access.name}.",
        )


def _check_idle_fabric_capabilities(context: JobResolution, access: FabricAccess, uid: int) -> None:
    """Report capabilities that have no effect: programs of non-root users do not get them.

    Kubernetes has no ambient capabilities (KEP-2763).
    """
    if access.capabilities and uid and not access.is_privileged:
        context.report(
            CAPABILITY_IDLE,
            context.where("network", "rdma"),
            f"{_join_with_and(list(access.capabilities))} of fabric '{access.name}' does not reach the program, which runs"
            f" as user {uid}",
            "Raise the memlock limit on the nodes (LimitMEMLOCK=infinity for containerd, default_ulimits for CRI-O)"
            f" and write memlock: unlimited at fabrics.{access.name} in {context.cluster.document.file}.",
        )


def add_fabric_env(context: JobResolution, env: dict[str, EnvVar], access: FabricAccess) -> None:
    """Add the fabric's variables, which all others override."""
    for name, value in access.env:
        if name in env:
            continue
        where = context.cluster.document.where(("fabrics", access.name, "env", name))
        context.origins[build_origin_key(name)] = Origin("cluster", where)
        why = f"env in the spec would win over {name} of the fabric"
        nearer = ValueOrigin("spec", ("env", name), why, is_direct=False)
        origins = (ValueOrigin("fabric", ("env", name)), nearer)
        env[name] = EnvVar(name, value, origins=origins)


def add_fabric_huge_pages(
    others: tuple[tuple[str, Quantity], ...], cluster: Cluster, pool: NodePool
) -> tuple[tuple[str, Quantity], ...]:
    """Return a worker's requests with the fabric's huge pages, if the pool has them and the spec none."""
    stated = cluster.fabrics.get(pool.fabric) if pool.fabric else None
    if stated is None:
        return others
    asked = dict(others)
    pages = {
        size: amount for size, amount in complete_fabric(stated).huge_pages.items() if size in pool.huge_pages
    }
    added = {name: amount for name, amount in key_by_resource(None, pages, {}).items() if name not in asked}
    if not added:
        return others
    return tuple(sorted((asked | added).items(), key=lambda one: _build_resource_sort_key(one[0])))


def _build_resource_sort_key(resource: str) -> tuple[bool, bool, str]:
    """Return the sort key for the order of `key_by_resource`: disk, huge pages, devices."""
    return resource != "ephemeral-storage", not resource.startswith("hugepages-"), resource
