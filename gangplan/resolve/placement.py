"""Where workers and launcher run: the node pool, its selector and tolerations, devices, topology."""

from __future__ import annotations

from gangplan.model.fabric import WorkerFabric
from gangplan.model.job import Origin, PulledImage, TargetPool, Toleration
from gangplan.records import dataclass
from gangplan.resolve.context import JobResolution
from gangplan.resolve.misfit import MISFIT_FIELDS, WorkerShape, explain_worker_misfit_on_pool
from gangplan.resolve.quota import list_team_pools
from gangplan.resolve.rdma import resolve_rdma
from gangplan.resolve.reach import PodDemand, can_pool_hold_run, resolve_launcher_demand
from gangplan.rules.model import Rule
from gangplan.rules.specs import (
    GPU_MODEL_UNKNOWN,
    POOL_NO_FIT,
    POOL_NOT_ALLOWED,
    POOL_UNKNOWN,
    TOPOLOGY_LEVEL_UNKNOWN,
    TOPOLOGY_MISSING,
)
from gangplan.spec.nodes import ARCH_LABEL, NodePool
from gangplan.spec.prices import PoolPrice

# Every node that gangplan uses runs Linux.
LINUX = ("kubernetes.io/os", "linux")


@dataclass(frozen=True, slots=True)
class ChosenPlacement:
    """The chosen placement: the pool by name, its facts, and what pods need to land there.

    `alike` are the pools of the same kind that a worker fits, in the order of preference.
    """

    name: str
    node_pool: NodePool
    worker: TargetPool
    launcher: TargetPool
    devices: tuple[tuple[str, int], ...]
    topology: tuple[str, str] | None
    fabric: WorkerFabric
    alike: tuple[str, ...] = ()


def resolve_placement(
    context: JobResolution, shape: WorkerShape, workers: int, has_launcher: bool
) -> ChosenPlacement | None:
    """Choose the pool for this shape: the named one, else the cluster's first that fits the whole run.

    If none fits the run, choose the first that fits one worker: the proofs report what is too much there.
    """
    everywhere = context.cluster.spec.node_pools
    pools = {name: everywhere[name] for name in list_team_pools(context.cluster.spec, context.team.name)}
    asked = context.spec.spec.placement
    if asked and asked.node_pool:
        alike = (
            [asked.node_pool]
            if _is_pool_named_by_spec_usable(context, shape, asked.node_pool, pools, workers)
            else []
        )
    else:
        alike = _find_pools_that_fit_worker(context, shape, pools, workers)
    if not alike:
        return None
    name = alike[0]
    if asked and asked.node_pool:
        context.origins["nodePool"] = Origin("spec", context.where("placement", "nodePool"))
    else:
        if len(alike) > 1:
            beside = resolve_launcher_demand(context, workers) if has_launcher else None
            name = _find_pool_with_room_for_job(context, shape, pools, alike, workers, beside)
        context.origins["nodePool"] = Origin(
            f"first pool of cluster {context.cluster.name} that fits the run",
            context.cluster.document.where(("nodePools", name), key=True),
        )
    pool = pools[name]
    launcher_name = _choose_launcher_pool(pools, name)
    rdma_devices, fabric = resolve_rdma(context, name, pool, shape.gpus)
    devices = (
        rdma_devices if not (pool.gpu and shape.gpus) else ((pool.gpu.resource, shape.gpus), *rdma_devices)
    )
    return ChosenPlacement(
        name,
        pool,
        _build_target_pool(name, pool),
        _build_target_pool(launcher_name, pools[launcher_name]),
        tuple(sorted(devices)),
        _resolve_topology_request(context, name, pool),
        fabric,
        tuple(alike),
    )


def resolve_gpu_model(context: JobResolution, gpus: int) -> str | None:
    """Return the GPU model asked for; a default model counts only for jobs with GPUs."""
    spec = context.spec.spec
    if spec.gpu and spec.gpu.model:
        return spec.gpu.model
    if not gpus:
        return None
    model: str | None = context.choose("gpu_model", None)
    return (
        model
        if model in {pool.gpu.model for pool in context.cluster.spec.node_pools.values() if pool.gpu}
        else None
    )


def _is_pool_named_by_spec_usable(
    context: JobResolution, shape: WorkerShape, name: str, pools: dict[str, NodePool], workers: int
) -> bool:
    """Return whether the pool that the spec names is the team's, and large enough for a worker."""
    if not _is_pool_allowed_for_team(context, name, pools):
        return False
    field, reason = explain_worker_misfit_on_pool(pools[name], shape)
    if reason:
        from gangplan.resolve.largest import suggest_worker_that_fits_pool  # few runs do not fit

        otherwise = suggest_worker_that_fits_pool({name: pools[name]}, shape, workers, "Name another pool.")
        rule, help = _choose_pool_misfit_rule(field, otherwise, pools, shape)
        context.report(
            rule,
            context.where("placement", "nodePool"),
            f"a worker does not fit on a node of pool '{name}' of cluster {context.cluster.name}: {reason}",
            help,
        )
    return not reason


def _choose_pool_misfit_rule(
    field: str, help: str, pools: dict[str, NodePool], shape: WorkerShape
) -> tuple[Rule, str]:
    """Return the rule that reports what keeps a worker off its pools, and its help."""
    if field == "mig":
        slices = sorted({one.gpu.mig for one in pools.values() if one.gpu and one.gpu.mig})
        if not slices:
            return POOL_NO_FIT, "Remove gpu.mig: no pool there offers MIG slices."
        if shape.mig in slices:  # those of another model, or of another pool than the named one
            offers = {
                name: one.gpu.model for name, one in pools.items() if one.gpu and one.gpu.mig == shape.mig
            }
            if shape.model in (None, *offers.values()):
                return POOL_NO_FIT, f"Name another pool: {' or '.join(sorted(offers))}."
            return POOL_NO_FIT, f"Write model: {' or '.join(sorted({one or '' for one in offers.values()}))}."
        return (
            POOL_NO_FIT,
            f"Write {'' if shape.mig else 'gpu: {'}mig: {' or '.join(slices)}{'' if shape.mig else '}'}.",
        )
    if field not in ("architecture", "driver"):
        return POOL_NO_FIT, help
    from gangplan.resolve.image_fit import IMAGE_FIT_HELPS, IMAGE_FIT_RULES  # few images do not fit

    return IMAGE_FIT_RULES[field], IMAGE_FIT_HELPS[field]


def check_catalog_image_on_pool(
    context: JobResolution, image: PulledImage, chosen: ChosenPlacement, gpus: int
) -> None:
    """Check the image on the chosen pool, if the catalog or the cluster states anything to compare."""
    pool, wanted = chosen.node_pool, context.catalog.requirements
    is_stated = pool.processor != "amd64" or (pool.gpu and pool.gpu.driver) or (wanted and wanted.tier)
    if is_stated or any(one.architectures != ("amd64",) for one in context.catalog.images.values()):
        from gangplan.resolve.image_fit import check_image_limitations_on_pool

        check_image_limitations_on_pool(context, image, chosen.name, pool, gpus)


def _is_pool_allowed_for_team(context: JobResolution, name: str, pools: dict[str, NodePool]) -> bool:
    """Return whether a named pool exists and the team has quota there."""
    if name in pools:
        return True
    where = context.where("placement", "nodePool")
    if name not in context.cluster.spec.node_pools:
        context.unknown(POOL_UNKNOWN, where, "node pool", name, pools)
        return False
    context.report(
        POOL_NOT_ALLOWED,
        where,
        f"team {context.team.name} has no quota in pool '{name}' on cluster {context.cluster.name}: the run would never be admitted",
        f"Use {' or '.join(pools)}, or ask the cluster's owner for quota.",
    )
    return False


def _find_pools_that_fit_worker(
    context: JobResolution, shape: WorkerShape, pools: dict[str, NodePool], workers: int
) -> list[str]:
    """Return the pools where a worker fits, in the order of preference.

    Jobs without GPUs prefer pools without them, and never leave those for lack of room; spot is only by
    request.
    """
    names = sorted(pools, key=lambda name: (pools[name].gpu is not None) if not shape.gpus else False)
    offered = [name for name in names if shape.capacity or pools[name].capacity == "on-demand"]
    fitting = [name for name in offered if not explain_worker_misfit_on_pool(pools[name], shape)[1]]
    if fitting:
        return [name for name in fitting if (pools[name].gpu is None) == (pools[fitting[0]].gpu is None)]
    models = {pool.gpu.model for pool in pools.values() if pool.gpu}
    if shape.gpus and shape.model and shape.model not in models:
        message = f"no pool that team {context.team.name} may use on cluster {context.cluster.name} has GPUs called '{shape.model}'"
        from gangplan.resolve.advice import suggest_resolvable_gpu_models

        help = suggest_resolvable_gpu_models(shape.model, filter(None, models), context.cluster.document.file)
        context.report(GPU_MODEL_UNKNOWN, context.where("gpu", "model"), message, help)
        return []
    reasons = "; ".join(
        f"{name}: {explain_worker_misfit_on_pool(pools[name], shape)[1] or 'spot nodes, which a run must ask for'}"
        for name in names
    )
    # The cause is what keeps the worker off the pool that comes nearest.
    fields = [explain_worker_misfit_on_pool(pools[name], shape)[0] for name in names]
    blamed = max(fields, key=lambda field: MISFIT_FIELDS.index(field) if field else -1) or "gpus"
    room = {name: pools[name] for name in offered}
    elsewhere = "Run it on another cluster."
    if blamed in ("disk", "scratch", "hugePages", "devices"):
        elsewhere = f"Remove {blamed}, or run it on another cluster."
    from gangplan.resolve.largest import suggest_worker_that_fits_pool

    otherwise = suggest_worker_that_fits_pool(room, shape, workers, elsewhere)
    offers_gpus = any((gpu := one.gpu) and shape.model in (None, gpu.model) for one in room.values())
    if shape.gpus and "" in fields and not offers_gpus:  # only spot nodes have such GPUs
        from gangplan.resolve.losses import suggest_spot_nodes

        otherwise = suggest_spot_nodes(context)
    rule, help = _choose_pool_misfit_rule(blamed, otherwise, pools, shape)
    blamed = blamed if rule is POOL_NO_FIT else "image"
    where = context.where("gpu", "mig") if blamed == "mig" and shape.mig else None
    context.report(
        rule,
        where or context.origin_of(blamed.replace("mig", "gpus"), (blamed.replace("mig", "gpus"),)),
        f"a worker does not fit on any node that team {context.team.name} may use on cluster {context.cluster.name} ({reasons})",
        help,
    )
    return []


def _find_pool_with_room_for_job(
    context: JobResolution,
    shape: WorkerShape,
    pools: dict[str, NodePool],
    names: list[str],
    workers: int,
    launcher: PodDemand | None,
) -> str:
    """Return the first of these pools that fits the whole run; the first of all if none does."""
    for name in names:
        wanted = PodDemand(
            workers, shape.gpus, shape.whole("cpu"), shape.whole("memory"), shape.others_on(pools[name])
        )
        beside = launcher if _choose_launcher_pool(pools, name) == name else None
        if can_pool_hold_run(context, name, wanted, beside):
            return name
    return names[0]


def _choose_launcher_pool(pools: dict[str, NodePool], worker_pool: str) -> str:
    """Return the pool of a dedicated launcher: the first on-demand one without GPUs, else the workers'.

    Its nodes have the same processors as the workers' even if the image is built for several: mpirun starts
    daemons there and passes them its own paths (open-mpi/ompi#11781); MPICH requires it (pmodels/mpich#6008).
    """
    return next(
        (
            name
            for name, pool in pools.items()
            if pool.gpu is None
            and pool.capacity == "on-demand"
            and pool.processor == pools[worker_pool].processor
        ),
        worker_pool,
    )


def _build_target_pool(name: str, pool: NodePool) -> TargetPool:
    arch = {ARCH_LABEL: pool.arch} if pool.arch else {}
    selector = tuple(sorted({**pool.labels, **arch, LINUX[0]: LINUX[1]}.items()))
    tolerations = tuple(Toleration(taint.key, taint.effect, taint.value or "") for taint in pool.taints)
    price = pool.price or PoolPrice()
    return TargetPool(
        name,
        selector,
        tolerations,
        gpu=pool.gpu.resource if pool.gpu else "",
        per_gpu_hour=price.net(price.per_gpu_hour),
        per_cpu_hour=price.net(price.per_cpu_hour),
        gbps=pool.network_gbps,
    )


def _resolve_topology_request(context: JobResolution, name: str, pool: NodePool) -> tuple[str, str] | None:
    """Return Kueue's topology annotation for the workers, as its kind and the node label, or None."""
    asked = context.spec.spec.placement.topology if context.spec.spec.placement else None
    levels = {level.name: level.label for level in context.cluster.spec.topology}
    for kind in ("required", "preferred"):
        level = getattr(asked, kind) if asked else None
        if level is None:
            continue
        where = context.where("placement", "topology", kind)
        if context.cluster.spec.gang != "kueue":
            context.report(
                TOPOLOGY_MISSING,
                where,
                f"cluster {context.cluster.name} starts runs with {context.cluster.spec.gang}: only Kueue places them by topology",
                "Remove the request, or run it on a cluster with gang: kueue.",
            )
        elif level not in levels:
            context.unknown(TOPOLOGY_LEVEL_UNKNOWN, where, "topology level", level, levels)
        elif not pool.topology:
            context.report(
                TOPOLOGY_MISSING,
                where,
                f"pool '{name}' of cluster {context.cluster.name} does not support placement by topology",
                "Remove the request, or name a pool with topology: true.",
            )
        else:
            return (f"podset-{kind}-topology", levels[level])
    # A pod set without a request is never placed on a flavor with topology (Kueue: "supports only
    # TopologyAwareScheduling"), so pods in pools with topology always have one.
    is_placed = pool.topology and context.cluster.spec.gang == "kueue"
    return ("podset-unconstrained-topology", "true") if is_placed else None
