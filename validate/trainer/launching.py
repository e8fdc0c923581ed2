"""What Open MPI 5 needs to find its workers: Trainer's own variables are those of Open MPI 4.

Source: Kubeflow Trainer v2.3.0 (pkg/runtime/framework/plugins/mpi) and Open MPI 5.0.8 and 5.0.11, observed:
with Trainer's variables alone mpirun starts every rank in the launcher and ends with 0 (trainer#4028).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gangplan.findings import FieldPath
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.objects import Body
from gangplan.rules.lifecycle import MPI_HOSTS_UNKNOWN
from gangplan.validate.jobset import REPLICATED_JOBS_PATH, list_replicated_jobs
from gangplan.validate.problems import Problem
from gangplan.validate.trainer.runtimes import find_pod_spec
from gangplan.validate.world import BuiltRun, World, find_pod_templates

HOSTFILE = "PRTE_MCA_prte_default_hostfile"
WHOLE_NAMES = "PRTE_MCA_prte_keep_fqdn_hostnames"
OPTIONS = ("--hostfile", "-hostfile", "--machinefile", "-machinefile", "--host", "-host", "-H")


def check_trainer_hostfile_variable(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Check that the built objects give the launcher of an Open MPI 5 image the path of the hostfile."""
    mpi = run.unit.job.image.mpi
    if mpi is None or mpi.family != "OpenMPI" or mpi.major < 5:
        return
    own = [one for body in run.bodies if body["kind"] == TRAINJOB.kind for one in _read_trainer_env(body)]
    for index, body in enumerate(run.bodies):
        if find := _LAUNCHERS.get(body["kind"]):
            yield from ((index, problem) for problem in find(body, own, mpi.version))


def _check_training_runtime_launcher(body: Body, own: list[Body], version: str) -> Iterator[Problem]:
    if "mpi" not in (body["spec"].get("mlPolicy") or {}):
        return
    for place, entry in enumerate(list_replicated_jobs(body)):
        if entry["name"] == "launcher":
            at: FieldPath = (
                *REPLICATED_JOBS_PATH,
                place,
                "template",
                "spec",
                "template",
                "spec",
                "containers",
            )
            for number, one in enumerate(find_pod_spec(entry)["containers"]):
                if one["name"] == "node":
                    yield from _check_trainer_launcher_environment(
                        (*at, number, "env"), one, own, version, "Trainer"
                    )


def _check_mpijob_launcher(body: Body, _: list[Body], version: str) -> Iterator[Problem]:
    """Check the launcher of an MPIJob.

    The MPI operator sets the variables of Open MPI 4 too (v0.8.2, ompiEnvVars).
    """
    for at, template in find_pod_templates(body):
        boxes = (template.get("spec") or {}).get("containers") or ()
        if at[2] == "Launcher" and boxes:
            place = (*at, "spec", "containers", 0, "env")
            yield from _check_trainer_launcher_environment(place, boxes[0], [], version, "the MPI operator")


_LAUNCHERS: Mapping[str, Callable[[Body, list[Body], str], Iterator[Problem]]] = {
    RUNTIME_KIND: _check_training_runtime_launcher,
    MPIJOB.holder: _check_mpijob_launcher,
}


def _read_trainer_env(body: Body) -> list[Body]:
    env: list[Body] = (body["spec"].get("trainer") or {}).get("env") or []
    return env


def _check_trainer_launcher_environment(
    at: FieldPath, one: Body, own: list[Body], version: str, who: str
) -> Iterator[Problem]:
    env = {variable["name"]: variable.get("value", "") for variable in [*(one.get("env") or ()), *own]}
    words = [str(word) for word in [*(one.get("command") or ()), *(one.get("args") or ())]]
    is_told = any(word.partition("=")[0] in OPTIONS for word in words)
    if not env.get(HOSTFILE) and not is_told:
        yield Problem(
            at,
            f"Open MPI {version} does not read the variables that {who} sets: without {HOSTFILE} all ranks"
            " start in the launcher, and the run completes without its workers",
            f"Keep {HOSTFILE}=/etc/mpi/hostfile in the launcher's environment.",
            MPI_HOSTS_UNKNOWN,
            field="image",
        )
    if env.get(WHOLE_NAMES, "").lower() in ("1", "true"):
        yield Problem(
            at,
            f"with {WHOLE_NAMES}, Open MPI {version} opens an SSH session to its own launcher and fails",
            f"Remove {WHOLE_NAMES}.",
            MPI_HOSTS_UNKNOWN,
            field="image",
        )
