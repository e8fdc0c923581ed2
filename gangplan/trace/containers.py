"""Images of a run, and its containers before and beside the program: where each part stands."""

from __future__ import annotations

from gangplan.model.job import PodContainer
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext, constant
from gangplan.trace.files import own


def of_job(context: TraceContext) -> list[Cause]:
    """The job's image."""
    return [*context.chosen("image"), *pulled(context, context.job.image.name)]


def pulled(context: TraceContext, name: str) -> list[Cause]:
    """How the cluster pulls an image: its own entry for it, else the mirror with the longest source."""
    cluster = context.job.platform.cluster
    fields = ("repository", "digest")
    entry = [context.image(field, name=name) for field in fields]
    here = [context.image("clusters", cluster, field, name=name) for field in fields]
    stated = [one for one in here if one.is_written]
    mirrors = context.value("cluster", "mirrors") or []
    repository = context.value("catalog", "images", name, "repository") or ""
    fitting = [
        (len(one["source"]), number)
        for number, one in enumerate(mirrors)
        if repository == one["source"] or repository.startswith(f"{one['source']}/")
    ]
    used = max(fitting)[1] if fitting else None
    others = [
        cause if number == used else cause.aside()
        for number in range(len(mirrors))
        for cause in (
            context.cluster("mirrors", number, "mirror"),
            context.cluster("mirrors", number, "source").aside(),
        )
    ]
    shadowed = {one.field[-1] for one in stated}
    entry = [one.aside() if one.field[-1] in shadowed else one for one in entry]
    if "repository" in shadowed:
        others = asides(others)
    return [*stated, *entry, *others, *asides(here)]


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
