"""Causes of the fields of pods of other roles, of steps, and of setup containers and sidecars."""

from __future__ import annotations

from gangplan.model.job import PodContainer, Role
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext, constant
from gangplan.trace.files import own
from gangplan.trace.launch import word
from gangplan.trace.origins import causes_of


def of_job(context: TraceContext) -> list[Cause]:
    """Return the causes of the job's image."""
    return [*context.chosen("image"), *pulled(context, context.job.image.name)]


def pulled(context: TraceContext, name: str) -> list[Cause]:
    """Return the causes of how the cluster pulls an image."""
    return causes_of(context, context.job.pulled.get(name, ()))


def around(context: TraceContext, index: int) -> list[Cause]:
    """Return the spec entry that asks for a container, as an indirect cause."""
    return asides([context.spec(*context.job.containers[index].place)])


def container(context: TraceContext, one: PodContainer, path: Path) -> list[Cause]:
    """Return the causes of a field of one of the job's containers."""
    asked = [context.spec(*one.place).aside()]
    field = path[0]
    if field == "name":
        named = context.spec(*one.place, "name")
        return (
            [named, *asked] if named.is_written else [own("containers are numbered"), named.aside(), *asked]
        )
    if field == "image":
        return _image(context, one)
    if field in ("command", "args"):
        return [*_word(context, one, str(field), int(path[1])), *asides(_image(context, one)), *asked]
    if field == "resources":
        return [*_amount(context, one, str(path[-1])), *asked]
    if field == "workingDir":
        return [context.spec("workdir"), *asked]
    return [*constant("pod.yaml.j2"), *asked]


def _image(context: TraceContext, one: PodContainer) -> list[Cause]:
    asked = context.spec(*one.place, "image")
    if not asked.is_written:
        return [*of_job(context), asked.aside()]
    return [asked, *pulled(context, str(context.value("spec", *one.place, "image")))]


def _word(context: TraceContext, one: PodContainer, field: str, index: int) -> list[Cause]:
    """Return the causes of a word of the command.

    In the job's image, a shell named after the container starts the command.
    """
    written = context.value("spec", *one.place, "command")
    if one.is_own and field == "command":
        named = [context.spec(*one.place, "name")] if index == 3 else []
        return [own("a shell hands SIGTERM on to the command"), *named]
    return [context.spec(*one.place, "command", *((index,) if isinstance(written, list) else ()))]


def _amount(context: TraceContext, one: PodContainer, resource: str) -> list[Cause]:
    asked = context.spec(*one.place, resource)
    if asked.is_written:
        return [asked]
    if one.is_sidecar:
        return [own("what a sidecar has unless the spec says otherwise"), asked.aside()]
    return [*context.chosen(resource), asked.aside()]


def asked(context: TraceContext, role: Role, *path: str | int) -> Cause:
    """Return a field of the role or step in the spec."""
    return context.spec(*role.place, *path)


def named(context: TraceContext, role: Role) -> list[Cause]:
    """Return the causes of its name: the key of a role; for a step, its stated name or its number."""
    if role.step is None:
        return [asked(context, role)]
    stated = asked(context, role, "name")
    return (
        [stated]
        if stated.is_written
        else [own("steps are numbered"), stated.aside(), asked(context, role).aside()]
    )


def image(context: TraceContext, role: Role) -> list[Cause]:
    """Return the causes of a role's image: its own, otherwise the job's."""
    named = asked(context, role, "image")
    if not named.is_written:
        return [*of_job(context), named.aside()]
    return [named, *pulled(context, str(context.value("spec", *role.place, "image")))]


def argument(context: TraceContext, role: Role, index: int) -> list[Cause]:
    """Return the causes of a word of its command: its own, otherwise the job's.

    For a step that fetches, they are the source and the folder to fetch to.
    """
    command = asked(context, role, "command")
    if role.step is not None and role.step.source:
        return _fetched(context, role, index)
    if not command.is_written:
        return [*word(context, index), command.aside()]
    written = context.value("spec", *role.place, "command")
    return [asked(context, role, "command", *((index,) if isinstance(written, list) else ()))]


def amount(context: TraceContext, role: Role, resource: str) -> list[Cause]:
    """Return the causes of CPU, memory or GPUs of its pods."""
    field = resource if resource in ("cpu", "memory") else "gpus"
    stated = asked(context, role, field)
    if stated.is_written or field == "gpus":
        device = context.cluster("nodePools", role.pool.name, "gpu", "resource").aside()
        return [stated, device, *context.pool(role.pool.name)]
    if role.step is not None and role.step.source:
        return [
            own("what a pod that only fetches needs"),
            stated.aside(),
            asked(context, role, "fetch").aside(),
        ]
    return [*context.chosen(field), stated.aside()]


def step_deadline(context: TraceContext, step: Role) -> list[Cause]:
    """Return the causes of a step's deadline: its timeout, or a share of the time for pods to be ready."""
    stated = asked(context, step, "timeout")
    if stated.is_written:
        return [stated]
    why = own("what is left until the run's pods must be ready is divided among the steps")
    around = [context.spec("steps"), context.cluster("podsReadyTimeout"), context.cluster("gang"), stated]
    return [why, *asides([*around, *context.chosen("timeout")])]


def _fetched(context: TraceContext, step: Role, index: int) -> list[Cause]:
    """Return the causes of a word of the fetching program: python3, -c, program, source, folder."""
    source = asked(context, step, "fetch")
    if index == 4:
        return [asked(context, step, "to")]
    if index < 3:
        return [own("a program that fetches once"), source.aside()]
    name = str(context.value("spec", *step.place, "fetch")).partition("/")[0]
    if not context.files.has("team", "connections", name):
        return [source]
    return [source, *(context.team("connections", name, field) for field in ("bucket", "prefix"))]


def count(context: TraceContext, role: Role) -> list[Cause]:
    """Return the causes of the number of its pods."""
    if role.step is not None:
        return [own("a step is done once"), asked(context, role).aside()]
    return [asked(context, role, "workers"), asked(context, role).aside()]
