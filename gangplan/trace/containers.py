"""Images of a run, and its containers before and beside the program: where each part stands."""

from __future__ import annotations

from gangplan.model.job import PodContainer
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext, constant
from gangplan.trace.files import own
from gangplan.trace.origins import causes_of


def of_job(context: TraceContext) -> list[Cause]:
    """The job's image."""
    return [*context.chosen("image"), *pulled(context, context.job.image.name)]


def pulled(context: TraceContext, name: str) -> list[Cause]:
    """How the cluster pulls an image."""
    return causes_of(context, context.job.pulled.get(name, ()))


def around(context: TraceContext, index: int) -> list[Cause]:
    """The entry of the spec that asks for a container, as a cause that does not show."""
    return asides([context.spec(*context.job.containers[index].place)])


def container(context: TraceContext, one: PodContainer, path: Path) -> list[Cause]:
    """A field of a container of the job."""
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
    """A word of the command; with the job's image a shell starts it, and names itself after the container."""
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
