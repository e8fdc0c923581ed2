"""How a run of each framework starts, and how its workers find each other."""

from __future__ import annotations

from typing import Literal

Framework = Literal["mpi", "torch", "horovod", "deepspeed", "jax", "tensorflow", "xgboost", "paddle", "plain"]

# On a launcher, mpirun, horovodrun or deepspeed starts the ranks over SSH.
MPI_FRAMEWORKS = ("mpi", "horovod", "deepspeed")
# Every worker starts the command once, as one rank; torch has torchrun for several, paddle its own launcher.
ONE_RANK_FRAMEWORKS = ("jax", "tensorflow", "xgboost", "plain")

# Frameworks with other roles than workers, and the roles of TensorFlow (TFConfig of tf.distribute).
FRAMEWORKS_WITH_ROLES = ("tensorflow", "plain")
TF_ROLES = ("chief", "ps", "evaluator")

# The policy of a TrainingRuntime that makes the workers known to each other; Trainer has none for the others
# (plugins of v2.1.0 to v2.3.0; jax and xgboost came with 2.2.0).
ML_POLICIES = {**dict.fromkeys(MPI_FRAMEWORKS, "mpi"), "torch": "torch", "jax": "jax", "xgboost": "xgboost"}
FRAMEWORK_SINCE_TRAINER = {"jax": (2, 2), "xgboost": (2, 2)}

# The port of the first worker, where all workers meet (constants.ContainerTrainerPort, Trainer v2.3.0).
RENDEZVOUS_PORT = 29500
# Where the Job controller writes the index of a pod (batchv1.JobCompletionIndexAnnotation).
COMPLETION_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

# Variables that the start sets: Trainer's for jax and xgboost, gangplan's for tensorflow.
START_VARIABLES = {
    "jax": ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
    "tensorflow": ("TF_CONFIG",),
    "xgboost": ("DMLC_NUM_WORKER", "DMLC_TASK_ID", "DMLC_TRACKER_PORT", "DMLC_TRACKER_URI"),
}

# What Paddle's launcher reads as its options, whatever the command says (paddlepaddle 3.3.1,
# distributed/launch/context/args_envs.py, env_args_mapping): those that gangplan sets, and others by which
# ranks would start in another way than planned.
PADDLE_VARIABLES = ("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_NPROC_PER_NODE", "PADDLE_RANK")
PADDLE_MODES = (
    *("PADDLE_TRAINER_ID", "PADDLE_DEVICES", "PADDLE_IPS", "PADDLE_RUN_MODE", "PADDLE_ELASTIC_LEVEL"),
    *("PADDLE_SERVER_NUM", "PADDLE_TRAINER_NUM", "PADDLE_SERVERS_ENDPOINTS", "PADDLE_TRAINERS_ENDPOINTS"),
    *("PADDLE_SORT_IP", "PADDLE_AUTO_PARALLEL_CONFIG", "PADDLE_AUTO_CLUSTER"),
)
# Where its launcher writes what ranks print: in the current folder by default, which may not be writable.
PADDLE_LOGS = "/tmp/paddle-log"

# Options of torchrun that set where the workers of an elastic run meet, as environment variables (torch 2.6,
# torch/distributed/argparse_util.py, env).
ELASTIC_VARIABLES = ("PET_RDZV_BACKEND", "PET_RDZV_CONF", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
