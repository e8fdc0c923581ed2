"""Checks of patches that name a job of a run by its number, where steps before the workers shift the numbers.

JSON6902 addresses entries of lists by number alone (RFC 6902, RFC 6901), and JobSet wants a job after those
that it depends on, so steps come first.
"""

from __future__ import annotations

import re

from gangplan.component import Component, Patch
from gangplan.component.target import RUN_LABEL
from gangplan.findings import Finding
from gangplan.model.backend import RUNTIME_KIND, role_of, title_of
from gangplan.model.job import HASH_PLACEHOLDER
from gangplan.objects import Body, ref_of
from gangplan.rules.steps import PATCH_MEETS_STEP
from gangplan.validate.problems import format_path
from gangplan.validate.world import BuiltRun

JOB_LABEL = "gangplan.dev/job"
_JOBS = "/spec/template/spec/replicatedJobs/"
_NUMBERED = re.compile(rf"{_JOBS}(\d+)(?:/|$)")


def check_moved_patches(component: Component, run: BuiltRun) -> list[Finding]:
    """Report patches that change one job in a run with steps and another one in runs without.

    A patch that targets one job by its label or name is written for that job, and one that tests the name of
    its entry stops by itself.
    """
    found = []
    for body in run.generated:
        if body["kind"] != RUNTIME_KIND:
            continue
        names = [str(one["name"]) for one in body["spec"]["template"]["spec"]["replicatedJobs"]]
        for patch in component.patches:
            if patch.target.matches(body) and not _is_aimed(patch):
                found += _check_patch_meets_step(patch, run, names, body)
    return found


def _is_aimed(patch: Patch) -> bool:
    return bool(patch.target.name) or any(
        label in (JOB_LABEL, RUN_LABEL) and how == "in" for label, how, _ in patch.target.labels
    )


def _check_patch_meets_step(patch: Patch, run: BuiltRun, names: list[str], body: Body) -> list[Finding]:
    job = run.unit.job
    found: dict[int, Finding] = {}
    for one in patch.operations:
        numbered = _NUMBERED.match(one.path)
        number = int(numbered[1]) if numbered else len(names)
        later = number + len(job.steps)
        is_tested = any(
            other.op == "test" and other.path == f"{_JOBS}{number}/name" for other in patch.operations
        )
        if number in found or is_tested or later >= len(names):
            continue
        meets = (
            f"the step '{names[number]}'"
            if number < len(job.steps)
            else _describe_replicated_job(names[number])
        )
        usual = _describe_replicated_job(names[later])
        message = (
            f"the patch changes {meets} of job '{job.name}'; in runs without steps,"
            f" replicatedJobs/{number} is {usual}"
        )
        help = (
            f"Write labelSelector: {JOB_LABEL} notin ({job.name}) in its target, and for {usual} of this job"
            f" a patch of replicatedJobs/{later} with {JOB_LABEL}={job.name}."
        )
        path = ("spec", "template", "spec", "replicatedJobs", number)
        about = str(ref_of(body)).replace(f"-{HASH_PLACEHOLDER}", "")  # the hash is not known yet
        found[number] = Finding(PATCH_MEETS_STEP, one.where(), message, help, about, format_path(path))
    return list(found.values())


def _describe_replicated_job(name: str) -> str:
    return f"the {title_of(name)}" if role_of(name) else f"'{name}'"
