"""MPIJob: a run of the MPI operator, including its pods, in one object.

Sources: mpi-operator v0.7.0 to v0.8.2, pkg/controller/mpi_job_controller.go and pkg/apis/kubeflow/v2beta1.
"""

from __future__ import annotations

from gangplan.generators.common import TemplateRenderer, escape_kubelet_variable_references, render_to_objects
from gangplan.generators.launch import generate_worker_command
from gangplan.generators.runtime import generate_pod_template_values
from gangplan.generators.trainjob import generate_run_object_values
from gangplan.model.job import Job
from gangplan.objects import Body
from gangplan.plan import RunPlan

# The operator writes the hostfile in the form that the family reads (newConfigMap).
IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "MPICH": "MPICH"}


def generate_mpi_job(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the MPIJob of a run."""
    job, launch = unit.job, unit.launch
    assert job.image.mpi is not None  # resolve/mpijobs.py refuses jobs that do not start with MPI
    argv = [escape_kubelet_variable_references(word) for word in launch.argv]
    worker_command, worker_args = generate_worker_command(job, argv)
    return write(
        "mpijob.yaml.j2",
        {
            **generate_pod_template_values(unit),
            **generate_run_object_values(unit),
            "implementation": IMPLEMENTATIONS[job.image.mpi.family],
            "creation": choose_launcher_creation_policy(job),
            "worker_restart": worker_restart(job),
            "launcher_env": launch.launcher_env,
            "worker_env": launch.worker_env,
            "worker_command": worker_command,
            "worker_args": worker_args,
            "argv": argv,
        },
    )


def choose_launcher_creation_policy(job: Job) -> str:
    """Return the policy that decides whether the operator creates the launcher before the workers are Ready.

    Under Kueue the operator does so under either policy, because the job is suspended when first seen and
    has no workers to wait for (syncHandler); the launch script waits in any case.
    """
    return "AtStartup" if job.platform.gang == "kueue" else "WaitForWorkersReady"


def worker_restart(job: Job) -> str:
    """Return the restart policy of workers.

    The operator never recreates a failed worker, so with retries it must restart in place.
    """
    return "OnFailure" if job.retries else "Never"
