"""Words of the final command and variables of the environment: where each comes from."""

from __future__ import annotations

from gangplan.model.frameworks import ELASTIC
from gangplan.plan.command import HOSTFILE
from gangplan.plan.environment import GPUS_SHOWN
from gangplan.trace import preflight, rails
from gangplan.trace.cause import Cause, asides
from gangplan.trace.context import TraceContext
from gangplan.trace.files import own

BINDING = frozenset({"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"})
TRANSPORT = frozenset({"OMPI_MCA_btl", "OMPI_MCA_pml", "FI_PROVIDER", "UCX_TLS", "NCCL_IB_DISABLE"})
# Variables of the fabric, and the field of a pool's RDMA devices that is in them.
FABRIC = {
    "NCCL_IB_HCA": "hcas",
    "UCX_NET_DEVICES": "hcas",
    "NCCL_SOCKET_IFNAME": "interface",
    "OMPI_MCA_btl_tcp_if_include": "interface",
    "FI_TCP_IFACE": "interface",
}
DAEMONS = frozenset({"OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"})
# Options of torchrun, and the fields of `elastic` that are in them.
_ELASTIC = {"--nnodes": ("min", "max"), "--max-restarts": ("restarts",)}
PLACEHOLDERS = ("{ranks}", "{workers}", "{slots}")


def word(context: TraceContext, index: int) -> list[Cause]:
    """One word of the final command (plan/command.py)."""
    launch = context.unit.launch
    place = launch.places[index]
    if place[:1] == ("command",):
        return _command(context, int(place[1]))
    around = [*asides(context.framework()), *asides(context.mpi()), _first(context)]
    if place:
        return [context.spec(*place), *around]
    if context.job.elastic and index and (fields := _ELASTIC.get(launch.argv[index].partition("=")[0])):
        return [*(context.spec("elastic", field) for field in fields), *around]
    if index == 0 or not context.job.uses_mpi:
        return [
            own("gangplan starts the command on every rank"),
            *asides(context.framework()),
            _first(context),
        ]
    return _option(context, launch.argv[index - 1], launch.argv[index], index)


def _first(context: TraceContext) -> Cause:
    is_list = isinstance(context.value("spec", "command"), list)
    return context.spec(*(("command", 0) if is_list else ("command",))).aside()


def _command(context: TraceContext, index: int) -> list[Cause]:
    """A word as the spec has it; counts are filled in."""
    written = context.value("spec", "command")
    path = ("command", index) if isinstance(written, list) else ("command",)
    causes = [context.spec(*path)]
    for mark, of in zip(PLACEHOLDERS, (context.ranks, context.workers, context.slots), strict=True):
        if mark in context.job.command[index]:
            causes += of()
    return causes


def _option(context: TraceContext, before: str, here: str, index: int) -> list[Cause]:
    """A word that gangplan adds to an MPI launcher."""
    around = [*asides(context.framework()), *asides(context.mpi()), _first(context)]
    if before in ("-np", "-n"):
        return [*context.ranks(), *around]
    if before == "-ppn":
        return [*context.slots(), *around]
    if before in ("--bind-to", "-bind-to"):
        return [context.spec("mpi", "bindTo"), *around]
    if before == "--map-by":
        return [context.spec("mpi", "mapBy"), *around]
    if before == "--ssh-port":
        return [*context.of_image("ssh", "port"), *around]
    if before == "-x":
        return [*_forwarded(context, here), *around]
    if here == "-x":
        following = asides(_forwarded(context, context.unit.launch.argv[index + 1]))
        return [own("what follows is a variable for all ranks"), *following, *around]
    if here == "-bind-to":
        around.append(context.spec("mpi", "bindTo").aside())
    return [own("gangplan adds it, so that every rank starts where it belongs"), *around]


def _forwarded(context: TraceContext, name: str) -> list[Cause]:
    words = f"Open MPI hands {name} to the workers only on request"
    if name in ("PATH", "LD_LIBRARY_PATH"):
        return [own(words)]
    return [own(words), *asides(variable(context, name, "launcher"))]


def variable(context: TraceContext, name: str, role: str) -> list[Cause]:
    """One environment variable by name (plan/environment.py, then resolve/data.py)."""
    launch = context.unit.launch
    variables = launch.launcher_env if role == "launcher" else launch.worker_env
    value = next((one for one in variables if one.name == name), None)
    if value is not None and value not in context.job.env:
        return _of_launch(context, name)
    return job_variable(context, name)


def _of_launch(context: TraceContext, name: str) -> list[Cause]:
    around = asides([*context.framework(), *context.mpi()])
    if name in TRANSPORT:
        asked = context.spec("network", "transport")
        return [
            own(f"{asked.because} keeps traffic on TCP"),
            asked.aside(),
            *around,
            *asides(context.chosen("gpus")),
        ]
    if name in FABRIC or name in DAEMONS:
        return [*_of_fabric(context, name), *around, *context.pool(context.job.worker_pool.name)]
    if name == "I_MPI_PERHOST":
        return [*context.slots(), *around]
    if name == "I_MPI_PIN":
        return [own("ranks are not bound to cores"), context.spec("mpi", "bindTo").aside(), *around]
    if name in BINDING:
        why = own(
            "an mpirun of your own binds its ranks so; by default, pods of a node would share its first cores"
        )
        return [why, context.spec("mpi", "bindTo"), *around]
    if name == GPUS_SHOWN:
        why = own("the launcher asks for no GPU, so it must not see those of its node")
        return [why, context.spec("env", name, because=f"env in the spec could set {name}").aside(), *around]
    if name.endswith("no_tree_spawn") or name == "I_MPI_HYDRA_BRANCH_COUNT":
        why = own("only the launcher may open SSH sessions in this network posture")
        return [why, *asides(context.chosen("posture")), *around]
    if name in ELASTIC:
        why = own("where the workers of an elastic run meet")
        return [why, context.spec("elastic").aside(), context.cluster("podsReadyTimeout").aside(), *around]
    if not context.job.uses_mpi:
        why = own(f"what tells the workers of {context.job.image.framework} of each other")
        return [why, *asides(context.workers()), context.spec("roles").aside(), *around]
    return [own("what this MPI needs to find its hosts, beyond what Trainer sets"), *around]


def _of_fabric(context: TraceContext, name: str) -> list[Cause]:
    """Cards and interfaces (plan/traffic.py); where a pool names no interface, sockets use the pod's own."""
    networks = asides(rails.stated(context, "network"))
    could = context.spec("env", name, because=f"env in the spec could set {name}").aside()
    others = [*networks, could, context.spec("mpi", "flags").aside(), *asides(context.chosen("gpus"))]
    if name in DAEMONS:
        why = own("daemons stay on the network that the launcher is on, too")
        return [why, *asides(rails.stated(context, "interface")), *others]
    found = rails.stated(context, FABRIC[name])
    if found[0].is_written:
        return [*found, *others]
    return [
        own("sockets stay on the pod's own network unless the pool names an interface"),
        *asides(found),
        *others,
    ]


def job_variable(context: TraceContext, name: str) -> list[Cause]:
    """A variable of the job by name: where it was decided; a missing one could be set in the spec."""
    found = next((one for one in context.job.env if one.name == name), None)
    if found is not None and found.origins:
        return context.causes(found.origins)
    return [context.spec("env", name, because=f"env in the spec could set {name}")]


def argument(context: TraceContext, role: str, index: int) -> list[Cause]:
    """One word of a container's args: the final command, or for workers of MPI the SSH server's."""
    if role == "launcher" or not context.job.uses_mpi:
        return word(context, index)
    if index == 0:
        return [*context.of_image("ssh", "server"), *asides(context.framework())]
    if index == 3:
        return [*context.of_image("ssh", "config"), *asides(context.framework())]
    if index > 3:
        return [own("its sessions begin with what this pod alone knows"), *_own_values(context)]
    return [
        own("workers run an SSH server, which the launcher starts ranks through"),
        *asides(context.framework()),
    ]


def program(context: TraceContext, role: str, index: int) -> list[Cause]:
    """One word of a container's command."""
    if role == "worker":
        starts = "its SSH server" if context.job.uses_mpi else "the command"
        why = own(f"a worker starts {starts}, and passes SIGTERM on to its ranks")
        ends = [*context.chosen("gracePeriod"), *_held(context)] if index == 2 else []
        ends += _own_values(context) if index == 2 and context.job.uses_mpi else []
        return [why, *asides(context.framework()), *ends]
    script = own(f"the launch script: it waits until all hosts of {HOSTFILE} answer")
    if index != 2:
        return [own("the launcher waits for its workers, then hands over to the command")]
    wait = [context.cluster("podsReadyTimeout")] * context.job.platform.has_pod_group
    names = [cause for one in context.job.env for cause in job_variable(context, one.name)]
    carried = asides(names if context.unit.launch.program == "deepspeed" else ())
    around = asides([*context.mpi(), *context.framework(), context.gang(), _first(context)])
    setup = [context.image("mpi", "setup")] if context.job.image.mpi else []
    grace = [*context.chosen("gracePeriod"), context.spec("launcher", "runsRanks").aside(), *_held(context)]
    rest = [*carried, *grace, *preflight.looked(context, names), *around, *_own_values(context)]
    return [script, *context.workers(), *setup, *wait, *rest]


def _own_values(context: TraceContext) -> list[Cause]:
    """Variables whose values each pod has for itself, and those of an identity in a cloud."""
    found = [cause for one in context.job.env if one.is_own for cause in job_variable(context, one.name)]
    return asides([*found, context.spec("serviceAccount"), context.cluster("workloadIdentity")])


def _held(context: TraceContext) -> list[Cause]:
    """Whether a pod that has failed waits, so that a try that the platform ended is told from it."""
    return asides([*context.chosen("retries"), context.cluster("versions", "trainer"), context.spec("debug")])
