"""Rules about the backends of a run: TrainJob and MPIJob."""

from gangplan.rules.model import ERROR, Rule

BACKEND_MISSING = Rule(
    "backend-missing",
    ERROR,
    "The cluster has no controller for what the run is made of.",
    why=(
        "A TrainJob needs Kubeflow Trainer, an MPIJob the MPI operator. Without its controller, the API server "
        "does not know the kind, and the sync fails."
    ),
    fix="State the controller's version in cluster.yaml once it is installed, or choose the other backend.",
)

BACKEND_FRAMEWORK = Rule(
    "backend-framework",
    ERROR,
    "An MPIJob starts ranks by MPI, and the framework does not.",
    why=(
        "The MPI operator creates a launcher, a hostfile, and workers with an SSH server. It tells workers nothing about "
        "each other, so torchrun and frameworks that start on every worker would never meet."
    ),
    fix="Run it as a TrainJob on a cluster with Trainer, or start it by MPI: framework mpi, horovod or deepspeed.",
)

BACKEND_FIELD = Rule(
    "backend-field",
    ERROR,
    "The spec asks for something that an MPIJob cannot do.",
    why=(
        "The launcher of an MPIJob is a Job with a backoffLimit and no podFailurePolicy: it cannot tell exit codes "
        "apart. A field that nothing obeys would be a broken promise."
    ),
    fix="Remove the field, or run it as a TrainJob.",
)

BACKEND_GANG = Rule(
    "backend-gang",
    ERROR,
    "MPIJobs in pod groups are not rendered.",
    why=(
        "Trainer makes the PodGroup of a TrainJob. The MPI operator makes one only when it is started with "
        "--gang-scheduling, which no object shows, so that gangplan could not promise that the pods start together."
    ),
    fix="Use gang: kueue, which admits MPIJobs as a whole, or run it as a TrainJob.",
)

MPIJOB_REFUSED = Rule(
    "mpijob-refused",
    ERROR,
    "The MPI operator refuses the MPIJob.",
    why=(
        "The API server accepts the object, but the operator creates nothing for it: it writes an event of type "
        "ValidationError, and does not look again until the object changes."
    ),
    fix="Correct the patch of the cluster's overlay, or the spec.",
    is_verdict=True,
)
