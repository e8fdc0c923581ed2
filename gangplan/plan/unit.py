"""A planned run: one run of a job on one cluster, ready for the generators."""

from __future__ import annotations

from dataclasses import field

from gangplan.findings import FieldPath, Finding, Location
from gangplan.model.folders import ROOT_HOME
from gangplan.model.job import EnvVar, Job
from gangplan.model.pods import build_origin_key
from gangplan.plan.command import FinalCommand, build_final_command
from gangplan.plan.environment import build_launcher_env, build_worker_env, list_meeting_names
from gangplan.plan.launchers import find_script_index
from gangplan.plan.layout import RunLayout, build_run_layout
from gangplan.plan.names import DATED_SUFFIX, HASH_LENGTH, HASH_PLACEHOLDER, compute_run_name_budget
from gangplan.plan.sources import RunSources
from gangplan.records import dataclass
from gangplan.rules.core import NAME_TOO_LONG
from gangplan.rules.model import Severity
from gangplan.waivers import Subject, Waivers, apply_waivers_to_findings
from gangplan.workspace import Spec


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How the ranks start: the final argument vector and the environments of both roles.

    `places` names the spec field that each word comes from; it is empty for gangplan's own.
    """

    argv: tuple[str, ...]
    program: str
    is_wrapped: bool
    launcher_env: tuple[EnvVar, ...]
    worker_env: tuple[EnvVar, ...]
    places: tuple[FieldPath, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One planned run on one cluster. `run_name` ends in a placeholder until the content's hash is known.

    `sources` are the files it comes from; None if it comes from another process.
    """

    job: Job
    layout: RunLayout
    launch: LaunchPlan
    sources: RunSources | None = field(default=None, compare=False, repr=False)

    @property
    def run_name(self) -> str:
        """The run's name with the placeholder for its hash."""
        return f"{self.job.name}-{HASH_PLACEHOLDER}"


def plan_run(
    job: Job, spec: Spec, waivers: Waivers = (), sources: RunSources | None = None
) -> tuple[RunPlan | None, list[Finding]]:
    """Plan the run of a job; return None and the errors if its name is too long or its command would not
    start the planned ranks.

    The findings include warnings and errors that a waiver excuses. `sources` are kept for tracing what is
    rendered.
    """
    layout = build_run_layout(job)
    final = build_final_command(job)
    findings = [
        *_check_job_name_length(job, layout, spec),
        *_locate_command_problems(final, job, spec),
        *_check_variables_that_command_reads(job, spec, final),
        *_check_home_of_root(job, spec),
        *_check_started_files(job, spec),
        *_check_role_and_step_commands(job, spec),
    ]
    if findings:
        findings = apply_waivers_to_findings(findings, waivers, Subject.of(job))
    if any(one.is_error for one in findings):
        return None, findings
    envs = build_launcher_env(job), build_worker_env(job)
    launch = LaunchPlan(final.argv, final.launcher, final.is_wrapped, *envs, final.places)
    return RunPlan(job, layout, launch, sources), findings


def _check_job_name_length(job: Job, layout: RunLayout, spec: Spec) -> list[Finding]:
    taken = len(DATED_SUFFIX) if job.is_dated else HASH_LENGTH
    budget = compute_run_name_budget(layout, job.others, job.backend) - taken - 1
    if len(job.name) <= budget:
        return []
    where = spec.document.where(("name",)) if spec.spec.name else Location(spec.source.file, 1, 1)
    what, name = "job", job.name
    if job.trial is not None:  # the trial's part of the name is fixed
        what, name, budget = "sweep", job.trial.sweep, budget - len(job.trial.name) - 1
    message = f"{what} name '{name}' has {len(name)} characters; with {layout.workers} workers at most {budget} fit, because Kubernetes limits pod names to 63"
    short = _shorten_run_name(name, budget)
    help = f"Shorten it, for example to '{short}'."
    if what == "job" and not spec.spec.name:
        file = spec.source.file
        help = f"Shorten it: mv {file} {file.removesuffix(f'{name}.yaml')}{short}.yaml."
    return [Finding(NAME_TOO_LONG, where, message, help)]


def _shorten_run_name(name: str, budget: int) -> str:
    """Return as many whole words of a name as fit, or the beginning of its first word."""
    cut = name[:budget]
    if name[budget : budget + 1] not in ("-", "") and "-" in cut:
        cut = cut.rpartition("-")[0]
    return cut.rstrip("-")


def _locate_command_problems(final: FinalCommand, job: Job, spec: Spec) -> list[Finding]:
    """Return the problems of the command and the MPI options as findings at the words of the spec."""
    return [one.found(_locate_command_word_in_spec(spec, one.path, job)) for one in final.problems]


def _check_variables_that_command_reads(job: Job, spec: Spec, final: FinalCommand) -> list[Finding]:
    """Return findings about variables that the script of the command reads, and that nothing sets."""
    if find_script_index(job.command, 0) < 0:
        return []
    from gangplan.plan import unset  # few commands are scripts

    problems = list(unset.check_command_needs_no_field(job.command, job.env))
    if not any(one.rule.severity is Severity.ERROR for one in final.problems):
        known = {one.name for one in job.env} | list_meeting_names(job)
        others = unset.describe_absent_rank_variables(job, final.is_wrapped)
        problems += unset.check_variables_of_other_systems(job.command, known, others)
    return [one.found(_locate_command_word_in_spec(spec, one.path)) for one in problems]


def _check_home_of_root(job: Job, spec: Spec) -> list[Finding]:
    """Return findings about paths that only root may enter, in the command and its variables."""
    if not any(ROOT_HOME in one for one in (*job.command, *(variable.value for variable in job.env))):
        return []
    from gangplan.plan.root_home import check_paths_in_home_of_root  # few runs name it

    problems = check_paths_in_home_of_root(job.command, job.env)
    return [one.found(_locate_command_word_in_spec(spec, one.path, job)) for one in problems]


def _check_started_files(job: Job, spec: Spec) -> list[Finding]:
    """Return findings about files of ConfigMaps that the command starts as programs."""
    if not any(one.config_map for one in job.mounts):
        return []
    from gangplan.plan.started_files import check_files_started_as_programs  # few runs have files

    problems = check_files_started_as_programs(job)
    return [one.found(_locate_command_word_in_spec(spec, one.path)) for one in problems]


def _check_role_and_step_commands(job: Job, spec: Spec) -> list[Finding]:
    """Return findings about commands and variables of roles, steps and other containers."""
    if not (job.others or job.containers):
        return []
    from gangplan.plan.others import check_role_and_step_commands  # few runs have any

    problems = dict.fromkeys(check_role_and_step_commands(job))
    return [one.found(_locate_command_word_in_spec(spec, one.path)) for one in problems]


def _locate_command_word_in_spec(spec: Spec, path: FieldPath, job: Job | None = None) -> Location:
    """Return the location of a word; all words of a command on one line share one.

    A variable of the job may come from the team's or the cluster's file.
    """
    if job is not None and path[:1] == ("env",) and path[1] not in spec.spec.env:
        origin = job.origins.get(build_origin_key(str(path[1])))
        return (origin.where if origin else None) or spec.document.where(path)
    if "command" not in path:
        return spec.document.where(path)
    end = path.index("command") + 1
    written = spec.document.value
    for part in path[:end]:
        written = written[part]
    return spec.document.where(path if isinstance(written, list) else path[:end])
