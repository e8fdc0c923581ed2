"""Causes of the fields of pods of other roles, of steps, and of setup containers and sidecars."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.job import ResolvedRole, SideContainer
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext, trace_template_causes
from gangplan.trace.files import build_own_cause
from gangplan.trace.launch import trace_command_word_causes
from gangplan.trace.origins import trace_origins_to_causes


def trace_job_image_causes(context: TraceContext) -> list[Cause]:
    """Return the causes of the job's image."""
    return [*context.chosen("image"), *trace_pull_causes(context, context.job.image.name)]


def trace_pull_causes(context: TraceContext, name: str) -> list[Cause]:
    """Return the causes of how the cluster pulls an image."""
    return trace_origins_to_causes(context, context.job.pulled.get(name, ()))


def trace_container_entry_causes(context: TraceContext, index: int) -> list[Cause]:
    """Return the spec entry that asks for a container, as an indirect cause."""
    return mark_indirect([context.spec(*context.job.containers[index].place)])


def trace_job_container_causes(context: TraceContext, one: SideContainer, path: FieldPath) -> list[Cause]:
    """Return the causes of a field of one of the job's containers."""
    asked = [context.spec(*one.place).aside()]
    field = path[0]
    if field == "name":
        named = context.spec(*one.place, "name")
        return (
            [named, *asked]
            if named.is_written
            else [build_own_cause("containers are numbered"), named.aside(), *asked]
        )
    if field == "image":
        return _trace_container_image_causes(context, one)
    if field in ("command", "args"):
        return [
            *_trace_container_word_causes(context, one, str(field), int(path[1])),
            *mark_indirect(_trace_container_image_causes(context, one)),
            *asked,
        ]
    if field == "resources":
        return [*_trace_container_amount_causes(context, one, str(path[-1])), *asked]
    if field == "workingDir":
        return [context.spec("workdir"), *asked]
    return [*trace_template_causes("pod.yaml.j2"), *asked]


def _trace_container_image_causes(context: TraceContext, one: SideContainer) -> list[Cause]:
    asked = context.spec(*one.place, "image")
    if not asked.is_written:
        return [*trace_job_image_causes(context), asked.aside()]
    return [asked, *trace_pull_causes(context, str(context.value("spec", *one.place, "image")))]


def _trace_container_word_causes(
    context: TraceContext, one: SideContainer, field: str, index: int
) -> list[Cause]:
    """Return the causes of a word of the command.

    In the job's image, a shell named after the container starts the command.
    """
    written = context.value("spec", *one.place, "command")
    if one.is_own and field == "command":
        named = [context.spec(*one.place, "name")] if index == 3 else []
        return [build_own_cause("a shell hands SIGTERM on to the command"), *named]
    return [context.spec(*one.place, "command", *((index,) if isinstance(written, list) else ()))]


def _trace_container_amount_causes(context: TraceContext, one: SideContainer, resource: str) -> list[Cause]:
    asked = context.spec(*one.place, resource)
    if asked.is_written:
        return [asked]
    if one.is_sidecar:
        return [build_own_cause("what a sidecar has unless the spec says otherwise"), asked.aside()]
    return [*context.chosen(resource), asked.aside()]


def trace_role_field_cause(context: TraceContext, role: ResolvedRole, *path: str | int) -> Cause:
    """Return a field of the role or step in the spec."""
    return context.spec(*role.place, *path)


def trace_role_name_causes(context: TraceContext, role: ResolvedRole) -> list[Cause]:
    """Return the causes of its name: the key of a role; for a step, its stated name or its number."""
    if role.step is None:
        return [trace_role_field_cause(context, role)]
    stated = trace_role_field_cause(context, role, "name")
    return (
        [stated]
        if stated.is_written
        else [
            build_own_cause("steps are numbered"),
            stated.aside(),
            trace_role_field_cause(context, role).aside(),
        ]
    )


def trace_role_image_causes(context: TraceContext, role: ResolvedRole) -> list[Cause]:
    """Return the causes of a role's image: its own, otherwise the job's."""
    named = trace_role_field_cause(context, role, "image")
    if not named.is_written:
        return [*trace_job_image_causes(context), named.aside()]
    return [named, *trace_pull_causes(context, str(context.value("spec", *role.place, "image")))]


def trace_role_argument_causes(context: TraceContext, role: ResolvedRole, index: int) -> list[Cause]:
    """Return the causes of a word of its command: its own, otherwise the job's.

    For a step that fetches, they are the source and the folder to fetch to.
    """
    command = trace_role_field_cause(context, role, "command")
    if role.step is not None and role.step.source:
        return _trace_fetch_word_causes(context, role, index)
    if not command.is_written:
        return [*trace_command_word_causes(context, index), command.aside()]
    written = context.value("spec", *role.place, "command")
    return [
        trace_role_field_cause(context, role, "command", *((index,) if isinstance(written, list) else ()))
    ]


def trace_role_amount_causes(context: TraceContext, role: ResolvedRole, resource: str) -> list[Cause]:
    """Return the causes of CPU, memory or GPUs of its pods."""
    field = resource if resource in ("cpu", "memory") else "gpus"
    stated = trace_role_field_cause(context, role, field)
    if stated.is_written or field == "gpus":
        device = context.cluster("nodePools", role.pool.name, "gpu", "resource").aside()
        return [stated, device, *context.pool(role.pool.name)]
    if role.step is not None and role.step.source:
        return [
            build_own_cause("what a pod that only fetches needs"),
            stated.aside(),
            trace_role_field_cause(context, role, "fetch").aside(),
        ]
    return [*context.chosen(field), stated.aside()]


def trace_step_deadline_causes(context: TraceContext, step: ResolvedRole) -> list[Cause]:
    """Return the causes of a step's deadline: its timeout, or a share of the time for pods to be ready."""
    stated = trace_role_field_cause(context, step, "timeout")
    if stated.is_written:
        return [stated]
    why = build_own_cause("what is left until the run's pods must be ready is divided among the steps")
    around = [context.spec("steps"), context.cluster("podsReadyTimeout"), context.cluster("gang"), stated]
    return [why, *mark_indirect([*around, *context.chosen("timeout")])]


def _trace_fetch_word_causes(context: TraceContext, step: ResolvedRole, index: int) -> list[Cause]:
    """Return the causes of a word of the fetching program: python3, -c, program, source, folder."""
    source = trace_role_field_cause(context, step, "fetch")
    if index == 4:
        return [trace_role_field_cause(context, step, "to")]
    if index < 3:
        return [build_own_cause("a program that fetches once"), source.aside()]
    name = str(context.value("spec", *step.place, "fetch")).partition("/")[0]
    if not context.files.has("team", "connections", name):
        return [source]
    return [source, *(context.team("connections", name, field) for field in ("bucket", "prefix"))]


def trace_role_count_causes(context: TraceContext, role: ResolvedRole) -> list[Cause]:
    """Return the causes of the number of its pods."""
    if role.step is not None:
        return [build_own_cause("a step is done once"), trace_role_field_cause(context, role).aside()]
    return [trace_role_field_cause(context, role, "workers"), trace_role_field_cause(context, role).aside()]
