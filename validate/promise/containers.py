"""Checks of the setup containers and sidecars of a spec: each one as planned, in the order of the spec.

A site may add containers, variables and resources; other proofs judge their effects.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.model.job import SideContainer
from gangplan.model.quantity import parse_quantity
from gangplan.objects import Body
from gangplan.plan.environment import build_side_container_env
from gangplan.validate.jobset import LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.counts import DIGEST_SUFFIX
from gangplan.validate.promise.launch import unescape_kubelet_word
from gangplan.validate.promise.mounts import normalise_mount_path
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]


def check_promised_extra_containers(laid: ExpandedRun) -> Found:
    """Check the setup containers and sidecars of each role."""
    for role in laid.present:
        planned = laid.unit.job.containers_of(LAUNCHER if role.name == LAUNCHER else "worker")
        if not planned:
            continue
        at: FieldPath = (*role.pod, "initContainers")
        built = {one["name"]: index for index, one in enumerate(role.spec.get("initContainers") or ())}
        last = -1
        for one in planned:
            kind = one.place[0]
            index = built.get(one.name)
            if index is None:
                message = f"{role.title} would lack '{one.name}' of {kind}"
                yield (
                    laid.runtime,
                    report_broken_promise(at, message, f"Remove it from {kind} of the spec.", str(kind)),
                )
                continue
            if index < last:
                message = (
                    f"in {role.title}, '{one.name}' of {kind} would start before what the spec puts first"
                )
                yield (
                    laid.runtime,
                    report_broken_promise((*at, index), message, "Keep their order.", str(kind)),
                )
            last = max(last, index)
            yield from _check_promised_side_container(
                laid, role, (*at, index), role.spec["initContainers"][index], one
            )


def _check_promised_side_container(
    laid: ExpandedRun, role: ExpandedRole, at: FieldPath, box: Body, one: SideContainer
) -> Found:
    title, kind = f"'{one.name}' of {role.title}", str(one.place[0])
    where = f"Write it in {kind} of the spec."
    if not is_same_image(box.get("image", ""), one.image):
        message = f"{title} would run image {box.get('image')}; the plan has {one.image}"
        yield laid.runtime, report_broken_promise((*at, "image"), message, where, kind)
    words = [unescape_kubelet_word(str(word)) for name in ("command", "args") for word in box.get(name) or ()]
    if words[len(words) - len(one.argv) :] != list(one.argv) or (words and not one.argv):
        message = f"{title} would not start the command of its spec"
        yield laid.runtime, report_broken_promise((*at, "command"), message, where, kind)
    if (box.get("restartPolicy") == "Always") != one.is_sidecar:
        how = "have to end before the program starts" if one.is_sidecar else "never let the program start"
        help = "Keep its restartPolicy: only sidecars have one."
        yield laid.runtime, report_broken_promise((*at, "restartPolicy"), f"{title} would {how}", help, kind)
    yield from _check_promised_container_variables(laid, at, box, one, title, kind)
    seen = {normalise_mount_path(mount) for mount in box.get("volumeMounts") or ()}
    for mount in laid.unit.job.mounts_of(LAUNCHER if role.name == LAUNCHER else "worker"):
        if mount.path.rstrip("/") not in seen:
            message = f"{title} would have nothing at {mount.path}; the plan has '{mount.name}' there"
            yield laid.runtime, report_broken_promise((*at, "volumeMounts"), message, "Keep the mount.", kind)
    yield from _check_promised_container_amounts(laid, at, box, one, title)


def _check_promised_container_variables(
    laid: ExpandedRun, at: FieldPath, box: Body, one: SideContainer, title: str, kind: str
) -> Found:
    """Check the planned variables; values are never printed because they may contain anything."""
    built = {variable["name"]: variable for variable in box.get("env") or ()}
    for wanted in build_side_container_env(laid.unit.job, one):
        found = built.get(wanted.name)
        if found is None or (
            wanted.is_plain and unescape_kubelet_word(str(found.get("value"))) != wanted.value
        ):
            how = "no" if found is None else "another"
            message = f"{title} would have {how} {wanted.name}"
            help = f"Write {wanted.name} in its env in {kind} of the spec."
            yield laid.runtime, report_broken_promise((*at, "env"), message, help, kind)


def _check_promised_container_amounts(
    laid: ExpandedRun, at: FieldPath, box: Body, one: SideContainer, title: str
) -> Found:
    resources = box.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    for name, wanted in (("cpu", one.cpu), ("memory", one.memory)):
        if name in asked and parse_quantity(str(asked[name])) < wanted:
            message = f"{title} would get {name} {asked[name]}; the plan has {wanted.canonical()}"
            help = f"Write {name} at it in {one.place[0]} of the spec."
            yield laid.runtime, report_weakened_plan((*at, "resources", "requests", name), message, help)


def is_same_image(built: str, planned: str) -> bool:
    """Return whether two references name the same image: equal, or with the same digest (a mirror)."""
    mine, theirs = DIGEST_SUFFIX.search(planned), DIGEST_SUFFIX.search(built)
    return built == planned or bool(mine and theirs and mine[1] == theirs[1])
