"""Checks of additional roles and of steps: their pods, image, command, variables, resources and order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.job import ResolvedRole
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.plan.environment import build_role_env, build_step_env
from gangplan.validate.jobset import LAUNCHER, REPLICATED_JOBS_PATH
from gangplan.validate.problems import Problem
from gangplan.validate.promise.containers import is_same_image
from gangplan.validate.promise.launch import unescape_kubelet_word
from gangplan.validate.promise.roles import PROGRAM_CONTAINER, ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import format_counted_noun, report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]


def check_promised_roles(laid: ExpandedRun) -> Found:
    """Check each additional role and each step against the plan, and that steps come first."""
    for planned in laid.unit.job.others:
        role, block = laid.roles.get(planned.name), str(planned.place[0])
        if role is None:
            message = f"the run would have no {planned.name}: the replicated job is missing"
            at: FieldPath = REPLICATED_JOBS_PATH
            yield (
                laid.runtime,
                report_broken_promise(at, message, f"Remove it from {block} of the spec.", block),
            )
            continue
        if role.pods != planned.workers:
            pods = format_counted_noun(role.pods, f"{planned.name} pod")
            message = f"the run would have {pods}; the plan has {planned.workers}"
            at = (*role.at, "template", "spec", "parallelism")
            help = f"Write workers: {role.pods} at roles.{planned.name} in the spec."
            help = "A step has one pod." if planned.step else help
            yield laid.runtime, report_broken_promise(at, message, help, block)
        if role.container is None:
            message = f"{role.title} would have no container '{PROGRAM_CONTAINER}', which runs the program"
            yield (
                laid.runtime,
                report_broken_promise(
                    (*role.pod, "containers"), message, f"Keep the name '{PROGRAM_CONTAINER}'."
                ),
            )
            continue
        yield from _check_promised_role_program(laid, role, planned)
    if laid.unit.job.steps:
        yield from _check_promised_step_order(laid)


def _check_promised_step_order(laid: ExpandedRun) -> Found:
    """Check that steps run one after another within their deadlines, and all other roles after the last."""
    names = [one.name for one in laid.unit.job.steps]
    before = dict(zip(names[1:], names, strict=False))
    before |= {name: names[-1] for name in laid.roles if name not in (*names, LAUNCHER)}
    for name, wanted in before.items():
        role = laid.roles.get(name)
        waits = {
            one["name"]: one.get("status") for one in (role.entry.get("dependsOn") if role else ()) or ()
        }
        if role is not None and wanted in laid.roles and waits.get(wanted) != "Complete":
            message = f"{role.title} would not wait until the step '{wanted}' is complete"
            help = f"Keep dependsOn: [{{name: {wanted}, status: Complete}}]."
            yield laid.runtime, report_broken_promise((*role.at, "dependsOn"), message, help, "steps")
    for planned in laid.unit.job.steps:
        role = laid.roles.get(planned.name)
        if role is None or planned.step is None:
            continue
        built = role.job.get("activeDeadlineSeconds")
        if built is None or built > planned.step.timeout_s:
            message = (
                f"the step '{planned.name}' could take longer than {planned.step.timeout_s} s, as planned"
            )
            at: FieldPath = (*role.at, "template", "spec", "activeDeadlineSeconds")
            yield laid.runtime, report_weakened_plan(at, message, "Write timeout of the step in the spec.")


def _check_promised_role_program(laid: ExpandedRun, role: ExpandedRole, planned: ResolvedRole) -> Found:
    box = role.container or {}
    block = str(planned.place[0])
    where = f"Write it at {block}.{planned.name} in the spec."
    if not is_same_image(str(box.get("image", "")), planned.image):
        message = f"{role.title} would run image {box.get('image')}; the plan has {planned.image}"
        yield laid.runtime, report_broken_promise((*role.box, "image"), message, where, block)
    argv = list(_build_promised_role_argv(laid, planned))
    if [unescape_kubelet_word(str(word)) for word in box.get("args") or ()] != argv:
        message = f"{role.title} would not start the command of the spec"
        yield laid.runtime, report_broken_promise((*role.box, "args"), message, where, block)
    built = {one["name"]: one for one in box.get("env") or ()}
    for wanted in (build_step_env if planned.step else build_role_env)(laid.unit.job, planned):
        found = built.get(wanted.name)
        is_other = wanted.is_plain and not wanted.is_expanded and found is not None
        if found is None or (is_other and unescape_kubelet_word(str(found.get("value"))) != wanted.value):
            message = f"{role.title} would have {'no' if found is None else 'another'} {wanted.name}"
            yield (
                laid.runtime,
                report_broken_promise((*role.box, "env"), message, "Keep the variable.", block),
            )
    resources = box.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    amounts = {"cpu": planned.resources.cpu, "memory": planned.resources.memory, **planned.resources.amounts}
    for name, amount in amounts.items():
        if _parse_amount_or_zero(asked.get(name, 0)) < amount.nano:
            message = f"{role.title} would get {name} {asked.get(name, 0)}; the plan has {amount.canonical()}"
            at: FieldPath = (*role.box, "resources", "requests", name)
            yield laid.runtime, report_weakened_plan(at, message, where)


def _build_promised_role_argv(laid: ExpandedRun, planned: ResolvedRole) -> tuple[str, ...]:
    if planned.step is None:
        return planned.argv or laid.unit.launch.argv
    from gangplan.plan.steps import build_step_argv  # few runs have one

    return build_step_argv(planned)


def _parse_amount_or_zero(amount: Any) -> int:
    try:
        return parse_quantity(str(amount)).nano
    except QuantityError:
        return 0
