"""A unit: one run of a job on one cluster, ready for the generators."""

from __future__ import annotations

from dataclasses import dataclass, field

from gangplan.findings import Finding, Location, error
from gangplan.model.job import EnvVar, Job
from gangplan.plan.command import MPI_LAUNCHERS, OTHER_LAUNCHERS, Final, final_command
from gangplan.plan.environment import launcher_env, worker_env
from gangplan.plan.layout import Layout, layout_of
from gangplan.plan.names import HASH_LENGTH, PLACEHOLDER, name_budget
from gangplan.plan.sources import Sources
from gangplan.workspace import Spec

SHELLS = frozenset({"sh", "bash", "dash", "zsh"})


@dataclass(frozen=True, slots=True)
class Launch:
    """How the ranks start: the final argument vector and the environments of both roles."""

    argv: tuple[str, ...]
    program: str
    is_wrapped: bool
    launcher_env: tuple[EnvVar, ...]
    worker_env: tuple[EnvVar, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """One run on one cluster. `run_name` ends in a placeholder until the content's hash is known.

    `sources` are the files behind it; None for a unit from another process.
    """

    job: Job
    layout: Layout
    launch: Launch
    sources: Sources | None = field(default=None, compare=False, repr=False)

    @property
    def run_name(self) -> str:
        """The run's name with the placeholder for its hash."""
        return f"{self.job.name}-{PLACEHOLDER}"


def plan_unit(job: Job, spec: Spec, sources: Sources | None = None) -> tuple[Unit | None, list[Finding]]:
    """The unit of a job, or why it cannot be: name too long, rank counts that disagree.

    `sources` are kept for tracing what is rendered.
    """
    layout = layout_of(job)
    final = final_command(job)
    findings = [
        *_check_name(job, layout, spec),
        *_check_counts(job, final, spec),
        *_check_nested(final, spec),
    ]
    if findings:
        return None, findings
    launch = Launch(final.argv, final.launcher, final.is_wrapped, launcher_env(job), worker_env(job))
    return Unit(job, layout, launch, sources), []


def _check_name(job: Job, layout: Layout, spec: Spec) -> list[Finding]:
    budget = name_budget(layout, job.uses_mpi) - HASH_LENGTH - 1
    if len(job.name) <= budget:
        return []
    where = spec.document.where(("name",)) if spec.spec.name else Location(spec.source.file, 1, 1)
    message = f"job name '{job.name}' has {len(job.name)} characters; with {layout.workers} workers at most {budget} fit, because Kubernetes limits pod names to 63"
    return [
        error(
            "name-too-long", where, message, f"Shorten it, for example to '{job.name[:budget].rstrip('-')}'."
        )
    ]


def _check_counts(job: Job, final: Final, spec: Spec) -> list[Finding]:
    findings = []
    for count in final.wrong:
        is_list = isinstance(spec.document.value["command"], list)
        where = spec.document.where(("command", count.word) if is_list else ("command",))
        what = {job.ranks: f"{job.workers} workers x {job.slots} slots = {job.ranks} ranks"}.get(
            count.expected, f"{count.expected}"
        )
        message = f"the command says {count.option} {count.written}, but the run has {what}"
        findings.append(
            error(
                "ranks-mismatch",
                where,
                message,
                f"Write {count.option} {count.expected}, or {{ranks}} to have it filled in."
                if count.expected == job.ranks
                else f"Write {count.option} {count.expected}.",
            )
        )
    return findings


def _check_nested(final: Final, spec: Spec) -> list[Finding]:
    """A shell that starts mpirun itself, wrapped so that every rank would start all ranks again."""
    command = spec.spec.command
    if not final.is_wrapped or command[0].rpartition("/")[2] not in SHELLS or "-c" not in command:
        return []
    index = command.index("-c") + 1
    words = command[index].split() if index < len(command) else []
    nested = next((word for word in words if word.rpartition("/")[2] in MPI_LAUNCHERS | OTHER_LAUNCHERS), "")
    if not nested:
        return []
    where = spec.document.where(("command", index))
    message = (
        f"the script starts {nested} itself, but it runs once on every rank: each would start all ranks again"
    )
    return [
        error(
            "command-nested",
            where,
            message,
            f"Remove {nested} from the script, or write command: [{nested}, ...] without a shell.",
        )
    ]
