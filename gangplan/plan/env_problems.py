"""Check a run's variables for values that break its start or that nothing expands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gangplan.findings import FieldPath, Problem
from gangplan.model.frameworks import COMPLETION_INDEX_FIELD, PADDLE_MODES
from gangplan.model.job import EnvVar, Job
from gangplan.plan.environment import list_meeting_names
from gangplan.plan.flags import mpi_family_of, read_mpi_flags
from gangplan.plan.launchers import MPI_LAUNCHERS, FoundLauncher
from gangplan.plan.launchers.training import TORCHRUN
from gangplan.plan.reach import explain_broken_mpi_launch, explain_variable_of_scheduler, ssh_component_of
from gangplan.plan.words import TEMPLATE_EXPRESSION, VARIABLE_REFERENCE
from gangplan.rules.model import Rule, Severity
from gangplan.rules.pods import ENV_AMOUNT_UNSTATED, ENV_OWN_VALUE
from gangplan.rules.specs import ENV_LITERAL, ENV_RESERVED
from gangplan.spec.nodes import find_spec_field_of_resource

# A variable for which pods may agree on another value.
_PORT = "MASTER_PORT"
# Every distribution has the shell's own tools (sleep, timeout, uname, tr) here; the launch scripts call them.
_TOOLS = ("/usr/bin", "/bin")


def check_env_values(job: Job) -> Iterator[Problem]:
    """Yield problems of the values in `env`; reserved names are refused earlier (resolve/data.py)."""
    yield from _find_scheduler_variables_in_env(job)
    for variable in job.env:
        if not variable.is_plain:
            continue
        path = ("env", variable.name)
        if variable.name == "PATH" and not set(_TOOLS) & set(variable.value.split(":")):
            message = "PATH has neither /usr/bin nor /bin: the launch script would not find its own tools"
            help = f"Write the full PATH, such as {_add_shell_tools_to_path(variable.value)}; or leave it out to use the image's PATH."
            yield Problem(path, message, help, ENV_RESERVED)
        elif not variable.is_expanded and (
            found := (VARIABLE_REFERENCE.search(variable.value) or TEMPLATE_EXPRESSION.search(variable.value))
        ):
            yield _build_literal_env_problem(path, variable, found[0].rstrip(":"))
        if (what := _explain_broken_mca_parameter(job, variable)) != "":
            yield Problem(path, f"{variable.name} {what}", "Remove it.", ENV_RESERVED)


def check_meeting_names_in_env(job: Job) -> Iterator[Problem]:
    """Yield a problem for each variable of the job, or of a role, that would replace what tells its pods of the
    others.

    Another port is not one, as long as all pods have the same, nor a pod's own index by its field.
    """
    names = list_meeting_names(job)
    for one in job.env:
        if one.name in names and (one.name != _PORT or one.is_own) and not _is_index_of_pod(one):
            yield build_meeting_name_problem(_find_env_path(one), one.name, "worker", ENV_RESERVED)
    for role in job.roles:
        names = list_meeting_names(job, role.name)
        for one in role.env:
            if one.name in names and not _is_index_of_pod(one):
                path = (*role.place, "env", one.name)
                yield build_meeting_name_problem(path, one.name, role.name, ENV_RESERVED)


def _find_scheduler_variables_in_env(job: Job) -> Iterator[Problem]:
    """Yield a problem for each variable that makes the MPI look for the hosts of a batch scheduler."""
    names = {one.name for one in job.env} if job.uses_mpi else set()
    for one in job.env:
        if what := explain_variable_of_scheduler(mpi_family_of(job), one.name, names):
            help = "Remove it, or choose another name."
            yield Problem(_find_env_path(one), f"{one.name}{what}", help, ENV_RESERVED)


def _find_env_path(variable: EnvVar) -> FieldPath:
    """Return the field with a variable of the job."""
    own = next((origin.path for origin in variable.origins if origin.role == "spec"), ())
    return own[:3] if own[:2] == ("secrets", "env") else ("env", variable.name)


def _is_index_of_pod(variable: EnvVar) -> bool:
    """Return whether a variable says what it says in each run: the index that the Job controller gives the pod."""
    return variable.name in ("NODE_RANK", "JOB_COMPLETION_INDEX") and variable.field == COMPLETION_INDEX_FIELD


def check_torchrun_options_in_env(job: Job, found: Sequence[FoundLauncher]) -> Iterator[Problem]:
    """Yield a problem for each variable that is an option of torchrun which the run decides.

    torchrun takes every option from the environment, too, as PET_<NAME>; a flag counts unless it is 0 (torch 2.9,
    torch/distributed/argparse_util.py). Those that Trainer sets are reserved in all runs.
    """
    names = list_meeting_names(job)  # have a finding already
    for one in job.env if job.image.framework == "torch" else ():
        said = explain_torchrun_variable(job, one.name, one.value, bool(found)) if one.is_plain else ""
        if said and one.name not in names:
            yield Problem(("env", one.name), f"{one.name} {said}", "Remove it.", ENV_RESERVED)


def explain_torchrun_variable(job: Job, name: str, value: str, is_started_by_user: bool) -> str:
    """Return how a variable that is an option of torchrun starts other ranks than planned; mostly an empty text."""
    option = TORCHRUN.options.get(name.removeprefix(_TORCHRUN).lower())
    if option is None or not name.startswith(_TORCHRUN):
        return ""
    if option.role == "standalone" and value != "0" and job.workers > 1:
        return f"lets every worker train alone, but the run has {job.workers} workers"
    if option.role in _PROGRAM and value != "0" and not is_started_by_user:
        return "changes how torchrun starts the program, and gangplan tells it that by options"
    if option.role == "rendezvous" and job.workers > 1 and value not in ("", "static"):
        return "tells all workers the same about where they meet; Trainer tells each its own"
    return ""


def check_paddle_options_in_env(job: Job) -> Iterator[Problem]:
    """Yield a problem for each variable that is an option of Paddle's launcher which the run decides.

    The launcher prefers a variable to an option, so one in `env` would also win against the plan's.
    """
    for one in job.env if job.image.framework == "paddle" else ():
        if one.name in PADDLE_MODES:
            message = f"{one.name} makes Paddle's launcher start ranks in another way than the plan"
            yield Problem(("env", one.name), message, "Remove it.", ENV_RESERVED)


_TORCHRUN = "PET_"
_PROGRAM = ("module", "no-python", "nothing")


def check_unstated_amounts_in_env(job: Job) -> Iterator[Problem]:
    """Yield a note for each variable with an amount that its container states nothing about.

    For a missing limit of CPU, memory or ephemeral storage the kubelet gives what the node has for pods; huge pages
    and requests are 0 (Kubernetes v1.34, pkg/api/v1/resource/helpers.go, MergeContainerResourceLimits). Every
    container states CPU and memory, a worker's also what the spec asks for.
    """
    places: list[tuple[FieldPath, Iterable[EnvVar], str]] = [((), job.env, "a worker")]
    places += [(one.place, one.env, f"'{one.name}'") for one in job.others]
    places += [(one.place, one.env, f"'{one.name}'") for one in job.containers]
    for at, env, what in places:
        stated = {"cpu", "memory", *(() if at else (name for name, _ in job.resources.others))}
        for one in env:
            kind, _, resource = one.resource.partition(".")
            if not one.resource or resource in stated:
                continue
            field = find_spec_field_of_resource(resource)[0]
            value = "0"
            if kind == "limits" and resource == "ephemeral-storage":
                value = "what its node has for all pods"
            message = f"{one.name} is {value}: {what} states no {field}"
            help = "Read another amount, or write the number itself."
            if not at:
                help = f"Write {field} at the top level, or read another amount."
            yield Problem((*at, "env", one.name), message, help, ENV_AMOUNT_UNSTATED)


def build_meeting_name_problem(
    path: FieldPath, name: str, role: str, rule: Rule, level: Severity | None = None
) -> Problem:
    """Return the problem of a variable that would replace what tells the pods of a role of the others."""
    message = f"'{name}' is set in every {role}, so that the pods of the run find each other; a value of your own would win"
    return Problem(path, message, "Remove it, or choose another name.", rule, level=level)


def check_per_pod_variables_on_launcher(job: Job, found: Sequence[FoundLauncher]) -> Iterator[Problem]:
    """Yield a problem for each per-pod variable whose value on the launcher would reach all ranks.

    It gets there through the program that starts the ranks or through an option. MPICH's and Intel MPI's
    Hydra pass on the whole environment (tried with 5.0.2 and 2021.18.1), and so does horovodrun, as -x for
    each name (horovod 0.28, runner/mpi_run.py). A launcher without ranks can drop these variables.
    """
    own = {variable.name for variable in job.env if variable.is_own}
    if not own or not job.uses_mpi:
        return
    starters = {one.start.launcher.kind: one.start.name for one in found}
    starter = "Hydra" if read_mpi_flags(job).launcher.style == "hydra" else starters.get("horovod", "")
    for name in sorted(own) if starter and job.launcher_runs_ranks else ():
        message = f"{starter} hands the launcher's environment to all ranks, so each would have the launcher's {name}"
        help = (
            "Remove runsRanks, so that the launcher can forget it; or let Open MPI's mpirun start the ranks."
        )
        yield Problem(("env", name), message, help, ENV_OWN_VALUE)
    readings = (*(one.reading for one in found), read_mpi_flags(job))
    told = {value.partition("=")[0] for one in readings for use in one.of("env") for value in use.values}
    for name in sorted(own & told):
        message = (
            f"an option hands {name} of the launcher to all ranks, which have the values of their own pods"
        )
        yield Problem(("env", name), message, f"Remove the option that names {name}.", ENV_OWN_VALUE)


def _build_literal_env_problem(path: tuple[str, ...], variable: EnvVar, what: str) -> Problem:
    message = f"{variable.name} keeps {what} as written: no shell reads env, so nothing expands it"
    if "{{" in what:
        message = f"{variable.name} keeps {what} as written: nothing fills it in"
        help = f"Write the value itself; a secret goes in secrets: {{env: {{{variable.name}: SECRET/KEY}}}}."
        return Problem(path, message, help, ENV_LITERAL)
    help = f"Write the value itself, or set it in the command: [bash, -c, 'export {variable.name}=...; python train.py']."
    return Problem(path, message, help, ENV_LITERAL)


def _add_shell_tools_to_path(value: str) -> str:
    """Return a PATH that contains the shell's tools; the user's folders come first."""
    own = [part for part in value.split(":") if part.startswith("/")]
    return ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin"])


def _explain_broken_mca_parameter(job: Job, variable: EnvVar) -> str:
    """Return how an Open MPI parameter breaks the launch, or an empty text.

    As an option of mpirun it is refused too.
    """
    family = mpi_family_of(job)
    if family not in ("OpenMPI4", "OpenMPI5") or not variable.name.startswith(("OMPI_MCA_", "PRTE_MCA_")):
        return ""
    way = ssh_component_of(MPI_LAUNCHERS[family].style)
    return explain_broken_mpi_launch(variable.name, variable.value, job.image.ssh.port, way)
