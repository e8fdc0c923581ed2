"""Check a run's variables for values that break its start or that nothing expands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import EnvVar, Job
from gangplan.plan.flags import family_of, flags_of
from gangplan.plan.launchers import FAMILIES, FoundLauncher
from gangplan.plan.reach import broken_by, component_of
from gangplan.plan.words import TEMPLATE, VARIABLE
from gangplan.rules.pods import ENV_OWN_VALUE
from gangplan.rules.specs import ENV_LITERAL, ENV_RESERVED

# Every distribution has the shell's own tools (sleep, timeout, uname, tr) here; the launch scripts call them.
_TOOLS = ("/usr/bin", "/bin")


def env_problems(job: Job) -> Iterator[Problem]:
    """Yield problems of the values in `env`; reserved names are refused earlier (resolve/data.py)."""
    for variable in job.env:
        if not variable.is_plain:
            continue
        path = ("env", variable.name)
        if variable.name == "PATH" and not set(_TOOLS) & set(variable.value.split(":")):
            message = "PATH has neither /usr/bin nor /bin: the launch script would not find its own tools"
            help = f"Write the full PATH, such as {_path(variable.value)}; or leave it out to use the image's PATH."
            yield Problem(path, message, help, ENV_RESERVED)
        elif found := (VARIABLE.search(variable.value) or TEMPLATE.search(variable.value)):
            yield _literal(path, variable, found[0].rstrip(":"))
        if (what := _broken(job, variable)) != "":
            yield Problem(path, f"{variable.name} {what}", "Remove it.", ENV_RESERVED)


def own_problems(job: Job, found: Sequence[FoundLauncher]) -> Iterator[Problem]:
    """Yield a problem for each per-pod variable whose value on the launcher would reach all ranks.

    It gets there through the program that starts the ranks or through an option. MPICH's and Intel MPI's
    Hydra pass on the whole environment (tried with 5.0.2 and 2021.18.1), and so does horovodrun, as -x for
    each name (horovod 0.28, runner/mpi_run.py). A launcher without ranks can drop these variables.
    """
    own = {variable.name for variable in job.env if variable.is_own}
    if not own or not job.uses_mpi:
        return
    starters = {one.start.launcher.kind: one.start.name for one in found}
    starter = "Hydra" if flags_of(job).launcher.style == "hydra" else starters.get("horovod", "")
    for name in sorted(own) if starter and job.launcher_runs_ranks else ():
        message = f"{starter} hands the launcher's environment to all ranks, so {name} would be the launcher's in each"
        help = (
            "Remove runsRanks, so that the launcher can forget it; or let Open MPI's mpirun start the ranks."
        )
        yield Problem(("env", name), message, help, ENV_OWN_VALUE)
    readings = (*(one.reading for one in found), flags_of(job))
    told = {value.partition("=")[0] for one in readings for use in one.of("env") for value in use.values}
    for name in sorted(own & told):
        message = (
            f"an option hands {name} of the launcher to all ranks, which have the values of their own pods"
        )
        yield Problem(("env", name), message, f"Remove the option that names {name}.", ENV_OWN_VALUE)


def _literal(path: tuple[str, ...], variable: EnvVar, what: str) -> Problem:
    message = f"{variable.name} keeps {what} as written: no shell reads env, so nothing expands it"
    if "{{" in what:
        message = f"{variable.name} keeps {what} as written: nothing fills it in"
        help = (
            f"Write the value itself; one from a secret is secrets: {{env: {{{variable.name}: SECRET/KEY}}}}."
        )
        return Problem(path, message, help, ENV_LITERAL)
    help = f"Write the value itself, or set it in the command: [bash, -c, 'export {variable.name}=...; python train.py']."
    return Problem(path, message, help, ENV_LITERAL)


def _path(value: str) -> str:
    """Return a PATH that contains the shell's tools; the user's folders come first."""
    own = [part for part in value.split(":") if part.startswith("/")]
    return ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin"])


def _broken(job: Job, variable: EnvVar) -> str:
    """Return how an Open MPI parameter breaks the launch, or an empty text.

    As an option of mpirun it is refused too.
    """
    family = family_of(job)
    if family not in ("OpenMPI4", "OpenMPI5") or not variable.name.startswith(("OMPI_MCA_", "PRTE_MCA_")):
        return ""
    way = component_of(FAMILIES[family].style)
    return broken_by(variable.name, variable.value, job.image.ssh.port, way)
