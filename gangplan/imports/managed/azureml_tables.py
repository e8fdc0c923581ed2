"""Fields of an Azure ML command job that a run does not need, or that a person has to decide.

The fields are those of the schemas of azure-ai-ml (sdk/ml/azure-ai-ml/azure/ai/ml/_schema/job of
azure-sdk-for-python, 2024 to 2026: command_job.py, parameterized_command.py, base_job.py, distribution.py,
job_resource_configuration.py); a test compares the tables with the package if it is installed.
"""

from __future__ import annotations

_PAST = "it is of a job that was submitted"
_WHERE = "the team's clusters say where its runs go"

AZUREML_DROPPED: dict[str, str] = {
    "$schema": "the spec has its own",
    "type": "the spec has its own",
    **dict.fromkeys(
        str.split("creation_context id status log_files parameters parent_job_name resourceGroup serialized"),
        _PAST,
    ),
    "properties": "they are for the service",
    "experiment_name": "labels: say what a run belongs to",
    "component": "the step has its command",
    "is_deterministic": "runs keep no results of others",
    "version": "Git has the versions of a spec",
}
AZUREML_ASKED: dict[str, str] = {
    "services": "a run has no doors to the outside; debuggers of the team may open a shell",
    "identity": "a run has no rights at the cloud by itself; keys come from secrets, or the platform gives an identity",
}
AZUREML_DROPPED_BELOW: dict[str, str] = {
    "resources.shm_size": "every run has shared memory of half of its memory at /dev/shm",
    "resources.properties": _WHERE,
    "resources.locations": _WHERE,
    "resources.max_instance_count": "the number of workers stays",
    "environment.name": "the catalog names images",
    "environment.version": "the catalog names images",
    "environment.description": "the catalog names images",
    "environment.tags": "the catalog names images",
    "environment.os_type": "runs go to Linux nodes",
    "environment.inference_config": "a run serves nothing",
    "inputs.type": "a claim holds files and folders alike",
    "inputs.mode": "claims are mounted",
    "inputs.description": "it is about the input",
    "inputs.version": "a claim has the files as they are",
    "outputs.type": "a claim holds files and folders alike",
    "outputs.mode": "claims are mounted",
    "outputs.description": "it is about the output",
    "outputs.name": "a run registers no data",
    "outputs.version": "a run registers no data",
}
AZUREML_ASKED_BELOW: dict[str, str] = {
    "resources.docker_args": "how containers start belongs to the platform; shared memory is there already",
    "environment.conda_file": "packages of a conda file have to be in the image",
    "environment.build": "build the image before, and list it in the catalog",
    "environment.inputs": "build the image before, and list it in the catalog",
    "queue_settings.job_tier": "placement.capacity says on which kind of nodes a run goes: spot needs a checkpoint",
}
