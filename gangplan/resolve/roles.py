"""Roles in addition to the workers: parameter servers, a chief, an evaluator, data loaders."""

from __future__ import annotations

from gangplan.model.frameworks import FRAMEWORKS_WITH_ROLES, TF_ROLES
from gangplan.model.job import Origin, PulledImage, ResolvedRole, Resources
from gangplan.resolve.context import JobResolution
from gangplan.resolve.image import resolve_catalog_image, resolve_image_needs_of_worker
from gangplan.resolve.misfit import WorkerShape, explain_worker_misfit_on_pool
from gangplan.resolve.placement import ChosenPlacement
from gangplan.resolve.variables import resolve_env_block
from gangplan.rules.roles import ROLE_UNUSABLE
from gangplan.rules.specs import IMAGE_UNKNOWN, POOL_NO_FIT
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.job import Role as Asked
from gangplan.spec.job import Step

# Replicated jobs that Trainer finds by their names (v2.3.0, pkg/constants).
TAKEN_ROLE_NAMES = ("node", "launcher", "worker", "workers", "dataset-initializer", "model-initializer")


def resolve_roles(
    context: JobResolution, image: PulledImage, placement: ChosenPlacement, shape: WorkerShape
) -> tuple[ResolvedRole, ...]:
    """Return each role, by name, with its image, its resources and its pool."""
    asked = context.spec.spec.roles
    if not asked:
        return ()
    context.origins["roles"] = Origin("spec", context.where("roles"))
    if image.framework not in FRAMEWORKS_WITH_ROLES:
        context.report(
            ROLE_UNUSABLE,
            context.where("roles"),
            f"framework {image.framework} has only workers; its programs would not know about other roles",
            "Remove roles; or write framework: tensorflow or plain.",
        )
        return ()
    return tuple(
        role
        for name, one in sorted(asked.items())
        if _can_resolve_requested_role(context, image, name, one)
        and (role := resolve_role_or_step_pods(context, image, placement, shape, name, one, ("roles", name)))
        is not None
    )


def _can_resolve_requested_role(context: JobResolution, image: PulledImage, name: str, one: Asked) -> bool:
    where = context.where("roles", name, key=True)
    if name in TAKEN_ROLE_NAMES:
        message = f"a role cannot be called '{name}': workers, launcher and initializers have these names"
        context.report(ROLE_UNUSABLE, where, message, "Choose another name.")
    elif image.framework == "tensorflow" and name not in TF_ROLES:
        message = f"TensorFlow knows no role '{name}'"
        context.report(ROLE_UNUSABLE, where, message, f"Write {', '.join(TF_ROLES)}, or framework: plain.")
    elif image.framework == "tensorflow" and name != "ps" and one.workers > 1:
        message = f"TensorFlow has one {name}, and roles.{name}.workers is {one.workers}"
        context.report(ROLE_UNUSABLE, context.where("roles", name, "workers"), message, "Write workers: 1.")
    elif context.spec.spec.elastic is not None:
        message = "a run with other roles has a fixed number of workers"
        context.report(ROLE_UNUSABLE, where, message, "Remove elastic.")
    else:
        return True
    return False


def resolve_role_or_step_pods(
    context: JobResolution,
    image: PulledImage,
    placement: ChosenPlacement,
    shape: WorkerShape,
    name: str,
    one: Asked | Step,
    at: tuple[str | int, ...],
) -> ResolvedRole | None:
    """Return the pods of a role or step at a path of the spec, or None and report why not."""
    reference = image.reference
    what = f"{'step' if isinstance(one, Step) else 'role'} '{name}'"
    if one.image is not None:
        where = context.where(*at, "image")
        entry = context.catalog.images.get(one.image)
        if entry is None:
            message = f"image '{one.image}' is not in images/catalog.yaml"
            context.report(
                IMAGE_UNKNOWN,
                where,
                message,
                suggest_known_or_new("image", one.image, context.catalog.images),
            )
            return None
        found = resolve_catalog_image(context, one.image, entry, where)
        if found is None:
            return None
        reference = found
    pool = placement.worker if one.gpus else placement.launcher
    offered = context.cluster.spec.node_pools[pool.name]
    cpu, memory = one.cpu or shape.cpu, one.memory or shape.memory
    wanted = WorkerShape(one.gpus or 0, shape.model, shape.mig, cpu, memory, None)
    wanted = resolve_image_needs_of_worker(context, wanted, one.image or image.name)
    field, reason = explain_worker_misfit_on_pool(offered, wanted)
    if reason:
        field = "gpus" if field == "mig" else field
        stated = field in one.model_fields_set
        help = f"Lower {field} there." if stated else f"Write {field} there; omitted, it is that of a worker."
        context.report(
            POOL_NO_FIT,
            context.where(*at, *((field,) if stated else ())),
            f"a pod of {what} does not fit on a node of pool '{pool.name}' of cluster"
            f" {context.cluster.name}: {reason.replace('a worker needs', 'it needs')}",
            help,
        )
        return None
    devices = ((offered.gpu.resource, one.gpus),) if offered.gpu and one.gpus else ()
    env = tuple(resolve_env_block(context, one.env, (*at, "env")).values())
    argv = one.command or ()
    workers = 1 if isinstance(one, Step) else one.workers
    return ResolvedRole(name, workers, reference, argv, env, Resources(cpu, memory, devices), pool)
