"""Rules about what a run is made of: TrainJobs and MPIJobs."""

from gangplan.rules.model import ERROR, Example, Rule

_BOTH = 'trainer: "2.3.0", kueue: "0.19.2"'
_WITH_OPERATOR = (("overlays/lab/cluster.yaml", _BOTH, f'{_BOTH}, mpiOperator: "0.8.2"'),)

BACKEND_MISSING = Rule(
    "backend-missing",
    ERROR,
    "The cluster has no controller for what the run is made of.",
    why=(
        "A TrainJob needs Kubeflow Trainer, an MPIJob the MPI operator. Without its controller, the API server "
        "does not know the kind, and the sync fails."
    ),
    fix="State the controller's version in cluster.yaml once it is installed, or choose the other backend.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="image: openmpi\nbackend: mpijob\n",
        after="image: openmpi\n",
        old="image: openmpi\n",
    ),
)

BACKEND_FRAMEWORK = Rule(
    "backend-framework",
    ERROR,
    "An MPIJob starts ranks by MPI, and the framework does not.",
    why=(
        "The MPI operator makes a launcher, workers with an SSH server and a hostfile. It tells workers nothing of "
        "each other, so torchrun and frameworks that start on every worker would never meet."
    ),
    fix="Run it as a TrainJob on a cluster with Trainer, or start it by MPI: framework mpi, horovod or deepspeed.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="image: openmpi\nframework: plain\nbackend: mpijob\n",
        after="image: openmpi\nframework: plain\n",
        old="image: openmpi\n",
        changes=_WITH_OPERATOR,
    ),
)

BACKEND_FIELD = Rule(
    "backend-field",
    ERROR,
    "The spec asks for something that an MPIJob cannot do.",
    why=(
        "The launcher of an MPIJob is a Job with a backoffLimit and no podFailurePolicy: it cannot tell exit codes "
        "apart. A field that nothing obeys would be a promise that is broken."
    ),
    fix="Remove the field, or run it as a TrainJob.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="image: openmpi\nbackend: mpijob\nretries: 1\nexitCodes: {fail: [42]}\n",
        after="image: openmpi\nbackend: mpijob\nretries: 1\n",
        old="image: openmpi\n",
        changes=_WITH_OPERATOR,
    ),
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
    example=Example(
        "specs/nlp/filings.yaml",
        before="image: openmpi\nbackend: mpijob\n",
        after="image: openmpi\n",
        old="image: openmpi\n",
        changes=(
            (
                "overlays/lab/cluster.yaml",
                f'{_BOTH}, gpuOperator: "25.10.0"}}\n',
                'trainer: "2.3.0", mpiOperator: "0.8.2", gpuOperator: "25.10.0"}\ngang: volcano\n',
            ),
        ),
    ),
)

MPIJOB_REFUSED = Rule(
    "mpijob-refused",
    ERROR,
    "The MPI operator refuses the MPIJob.",
    why=(
        "The API server takes the object, and the operator makes nothing of it: it writes an event of type "
        "ValidationError, and never looks again until the object changes."
    ),
    fix="Correct the patch of the cluster's overlay, or the spec.",
    is_verdict=True,
    example=Example(
        "patch",
        before="""\
- target: {kind: MPIJob}
  patch: |-
    - op: replace
      path: /spec/runPolicy/cleanPodPolicy
      value: Always
""",
        after="""\
- target: {kind: MPIJob}
  patch: |-
    - op: replace
      path: /spec/runPolicy/cleanPodPolicy
      value: All
""",
        changes=(
            *_WITH_OPERATOR,
            ("specs/nlp/filings.yaml", "image: openmpi\n", "image: openmpi\nbackend: mpijob\n"),
        ),
    ),
)
