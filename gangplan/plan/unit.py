"""A planned run: one run of a job on one cluster, ready for the generators."""

from __future__ import annotations

from dataclasses import field

from gangplan.findings import Finding, Location
from gangplan.model.job import EnvVar, Job
from gangplan.model.pods import origin_of
from gangplan.plan.command import Final, final_command
from gangplan.plan.environment import launcher_env, worker_env
from gangplan.plan.layout import Layout, layout_of
from gangplan.plan.names import DATED, HASH_LENGTH, PLACEHOLDER, name_budget
from gangplan.plan.problems import Path
from gangplan.plan.sources import Sources
from gangplan.records import dataclass
from gangplan.rules.core import NAME_TOO_LONG
from gangplan.waivers import Subject, Waivers, excuse
from gangplan.workspace import Spec


@dataclass(frozen=True, slots=True)
class Launch:
    """How the ranks start: the final argument vector and the environments of both roles.

    `places` names the spec field that each word comes from; it is empty for gangplan's own.
    """

    argv: tuple[str, ...]
    program: str
    is_wrapped: bool
    launcher_env: tuple[EnvVar, ...]
    worker_env: tuple[EnvVar, ...]
    places: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """One planned run on one cluster. `run_name` ends in a placeholder until the content's hash is known.

    `sources` are the files it comes from; None if it comes from another process.
    """

    job: Job
    layout: Layout
    launch: Launch
    sources: Sources | None = field(default=None, compare=False, repr=False)

    @property
    def run_name(self) -> str:
        """The run's name with the placeholder for its hash."""
        return f"{self.job.name}-{PLACEHOLDER}"


def plan_unit(
    job: Job, spec: Spec, waivers: Waivers = (), sources: Sources | None = None
) -> tuple[Unit | None, list[Finding]]:
    """Plan the run of a job; return None and the errors if its name is too long or its command would not
    start the planned ranks.

    The findings include warnings and errors that a waiver excuses. `sources` are kept for tracing what is
    rendered.
    """
    layout = layout_of(job)
    final = final_command(job)
    findings = [
        *_check_name(job, layout, spec),
        *_problems(final, job, spec),
        *_of_others(job, spec),
    ]
    if findings:
        findings = excuse(findings, waivers, Subject.of(job))
    if any(one.is_error for one in findings):
        return None, findings
    envs = launcher_env(job), worker_env(job)
    launch = Launch(final.argv, final.launcher, final.is_wrapped, *envs, final.places)
    return Unit(job, layout, launch, sources), findings


def _check_name(job: Job, layout: Layout, spec: Spec) -> list[Finding]:
    taken = len(DATED) if job.is_dated else HASH_LENGTH
    budget = name_budget(layout, job.others, job.backend) - taken - 1
    if len(job.name) <= budget:
        return []
    where = spec.document.where(("name",)) if spec.spec.name else Location(spec.source.file, 1, 1)
    what, name = "job", job.name
    if job.trial is not None:  # the trial's part of the name is fixed
        what, name, budget = "sweep", job.trial.sweep, budget - len(job.trial.name) - 1
    message = f"{what} name '{name}' has {len(name)} characters; with {layout.workers} workers at most {budget} fit, because Kubernetes limits pod names to 63"
    short = _shorter(name, budget)
    help = f"Shorten it, for example to '{short}'."
    if what == "job" and not spec.spec.name:
        file = spec.source.file
        help = f"Shorten it: git mv {file} {file.removesuffix(f'{name}.yaml')}{short}.yaml."
    return [Finding(NAME_TOO_LONG, where, message, help)]


def _shorter(name: str, budget: int) -> str:
    """Return as many whole words of a name as fit, or the beginning of its first word."""
    cut = name[:budget]
    if name[budget : budget + 1] not in ("-", "") and "-" in cut:
        cut = cut.rpartition("-")[0]
    return cut.rstrip("-")


def _problems(final: Final, job: Job, spec: Spec) -> list[Finding]:
    """Return the problems of the command and the MPI options as findings at the words of the spec."""
    return [one.found(_where(spec, one.path, job)) for one in final.problems]


def _of_others(job: Job, spec: Spec) -> list[Finding]:
    """Return findings about commands and variables of roles, steps and other containers."""
    if not (job.others or job.containers):
        return []
    from gangplan.plan.others import other_problems  # few runs have any

    problems = dict.fromkeys(other_problems(job))
    return [one.found(_where(spec, one.path)) for one in problems]


def _where(spec: Spec, path: Path, job: Job | None = None) -> Location:
    """Return the location of a word; all words of a command on one line share one.

    A variable of the job may come from the team's or the cluster's file.
    """
    if job is not None and path[:1] == ("env",) and path[1] not in spec.spec.env:
        origin = job.origins.get(origin_of(str(path[1])))
        return (origin.where if origin else None) or spec.document.where(path)
    if "command" not in path:
        return spec.document.where(path)
    end = path.index("command") + 1
    written = spec.document.value
    for part in path[:end]:
        written = written[part]
    return spec.document.where(path if isinstance(written, list) else path[:end])
