"""Read a SageMaker job: a CreateTrainingJob request for boto3, or the output of describe-training-job."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.made import OriginValue
from gangplan.imports.managed.pod import ManagedPod, build_claim_name
from gangplan.imports.managed.sagemaker_data import map_sagemaker_data
from gangplan.imports.managed.sagemaker_policies import (
    account_for_unread_sagemaker_fields,
    map_sagemaker_policies,
)
from gangplan.imports.managed.sagemaker_tables import TOOLKIT_PARAMETERS
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import PodRole, SourceError, SourceJob, SourceSetting, StartMethod

CODE = "/opt/ml/code"
# Hyperparameters that select how ranks start (params.py of sagemaker-training 4.7).
_STARTS: dict[str, StartMethod] = {
    "sagemaker_mpi_enabled": "mpi",
    "sagemaker_torch_distributed_enabled": "torch",
    "sagemaker_pytorch_ddp_enabled": "torch",
    "sagemaker_distributed_dataparallel_enabled": "torch",
    "sagemaker_parameter_server_enabled": "plain",
    "sagemaker_multi_worker_mirrored_strategy_enabled": "plain",
    "sagemaker_pytorch_xla_multi_worker_enabled": "plain",
}


def is_training_job(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a request for a training job, or a description of one."""
    return "AlgorithmSpecification" in value and ("TrainingJobName" in value or "ResourceConfig" in value)


def read_sagemaker(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a training job.

    Raises SourceError for one without machines, or with machines of two types.
    """
    return _Job(account).workload()


class _Job:
    def __init__(self, account: Account) -> None:
        self.root = account.root()
        self.managed = ManagedPod(account)
        self.account = account
        self.parameters = {
            name: decode_hyperparameter(node.text()) for name, node in self.root["HyperParameters"].fields()
        }
        self.work: SourceJob | None = None

    def workload(self) -> SourceJob:
        """Return the workload, with every field in its account."""
        count = self._machines()
        start, is_open = self._start()
        program = self.parameters.get("sagemaker_program")
        specification = self.root["AlgorithmSpecification"]
        image = specification["TrainingImage"]
        self.managed.image = OriginValue(image.text(), image) if image else None
        settings = {"workers": SourceSetting(count, self._count_node())}
        work = SourceJob("SageMaker", self.root["TrainingJobName"].text(), start, self.account, (), settings)
        self._command(work, program, specification)
        has_toolkit = bool(program) and not specification["ContainerEntrypoint"]
        self._parameters(work, has_toolkit)
        map_sagemaker_data(self.root, self.managed, work)
        for name, node in self.root["Environment"].fields():
            self.managed.env.append((name, node.text(), node))
        work.roles = (PodRole("worker", count, self.managed.pod()),)
        map_sagemaker_policies(self.root, self.managed.machine, self._count_node(), work)
        account_for_unread_sagemaker_fields(self.root)
        if is_open:
            work.again = partial(_set_start_method, work)
        return work

    def _machines(self) -> int:
        """Read the machine type, and return the number of machines.

        Raises SourceError without machines, or if groups of machines have several types.
        """
        config = self.root["ResourceConfig"]
        groups = [config, *config["InstanceGroups"].items()]
        if config["InstancePreferences"]:  # the first that has capacity is taken
            groups.append(config["InstancePreferences"][0])
        named = [one for one in groups if one["InstanceType"]]
        if not named:
            raise SourceError(
                "it names no machines (ResourceConfig.InstanceType)",
                "A serverless job has none: write the spec yourself.",
            )
        types = {one["InstanceType"].text() for one in named}
        if len(types) > 1:
            raise SourceError(
                f"its groups have machines of several types ({', '.join(sorted(types))}), and a run has workers of one shape",
                "Import each group as a job of its own.",
            )
        self.managed.machine, self.managed.machine_node = types.pop(), named[0]["InstanceType"]
        for one in named:
            one["InstanceCount"].mapped("workers")
            one["InstanceGroupName"].dropped("a run has workers of one shape")
            if one is not named[0]:
                one["InstanceType"].mapped("workers")
        config["InstanceCount"].mapped("workers")
        stated = sum(one["InstanceCount"].count() or 0 for one in named)
        return max(1, stated or config["InstanceCount"].count() or 1)

    def _count_node(self) -> SourceNode:
        config = self.root["ResourceConfig"]
        lists = (config["InstanceGroups"][0], config["InstancePreferences"][0])
        return next(
            (one for one in (config["InstanceCount"], *(one["InstanceCount"] for one in lists)) if one),
            config,
        )

    def _start(self) -> tuple[StartMethod, bool]:
        """Return how ranks start, and whether that is left open."""
        for name, start in _STARTS.items():
            if str(self.parameters.get(name, "")).lower() == "true":
                return start, False
        return "plain", True

    def _command(self, work: SourceJob, program: Any, specification: SourceNode) -> None:
        """Set the container's own command, or what the training toolkit builds from hyperparameters."""
        entry, arguments = specification["ContainerEntrypoint"], specification["ContainerArguments"]
        hyper = self.root["HyperParameters"]
        if entry:
            self.managed.command, self.managed.command_node = (*entry.texts(), *arguments.texts()), entry
            entry.mapped("command")
            arguments.mapped("command")
            return
        if not isinstance(program, str) or not program:
            self.managed.command_node = arguments or specification["TrainingImage"] or specification
            self.managed.command = arguments.texts()
            return
        self.managed.command_node = hyper["sagemaker_program"]
        self.managed.workdir = OriginValue(CODE, hyper["sagemaker_program"])
        words = self._arguments()
        for one in hyper.fields():
            if one[0] in self._plain():
                one[1].mapped("command")
        bare = (
            ("python", program)
            if program.endswith(".py")
            else ("bash", f"./{program}")
            if program.endswith(".sh")
            else ("python", "-m", program)
        )
        command = (*bare, *words)
        if work.start == "mpi":
            options = str(self.parameters.get("sagemaker_mpi_custom_mpi_options") or "")
            command = ("mpirun", *_split_mpi_options(options), *command)
        self.managed.command = command

    def _plain(self) -> list[str]:
        """Return the names of hyperparameters that the program gets."""
        return sorted(
            name
            for name in self.parameters
            if not name.startswith(("sagemaker_", "_tuning")) and name != "mp_parameters"
        )

    def _arguments(self) -> list[str]:
        """Return hyperparameters as sorted arguments (mapping.to_cmd_args of sagemaker-training)."""
        words: list[str] = []
        for name in self._plain():
            value = self.parameters[name]
            words += [f"--{name}" if len(name) > 1 else f"-{name}", _format_toolkit_argument(value)]
        return words

    def _parameters(self, work: SourceJob, has_toolkit: bool) -> None:
        """Map hyperparameters of the toolkit; all of them if the image reads them from a file."""
        hyper = self.root["HyperParameters"]
        for name, node in hyper.fields():
            if name in TOOLKIT_PARAMETERS:
                node.dropped(TOOLKIT_PARAMETERS[name])
            elif name in _STARTS:
                node.mapped("framework")
            elif name in ("sagemaker_program", "sagemaker_mpi_custom_mpi_options"):
                node.mapped("command")
            elif name == "sagemaker_mpi_num_of_processes_per_host":
                work.settings["slots"] = SourceSetting(node.count() or 1, node.mapped("slots"))
            elif name == "sagemaker_submit_directory":
                why = f"the code is at {self.parameters[name]}, and SageMaker unpacks it to {CODE}"
                node.asked(why)
                work.questions.append(
                    (node, why, f"Put it into the image at {CODE}, or on a claim: data: {{CLAIM: {CODE}}}.")
                )
            elif name.startswith("sagemaker_") or name == "mp_parameters":
                node.asked("a library of SageMaker reads it, which the image of a run may not have")
            elif not has_toolkit:
                node.asked(
                    "the image reads it of /opt/ml/input/config/hyperparameters.json, which a run does not have"
                )
        unread = [node for name, node in hyper.fields() if not has_toolkit and name in self._plain()]
        if unread:
            work.questions.append(
                (
                    unread[0],
                    "the image reads its hyperparameters from a file of SageMaker, /opt/ml/input/config/hyperparameters.json",
                    "Give them as arguments: --command; or as a file: files:.",
                )
            )
        self._slots(work, hyper)
        if has_toolkit:
            self._told(hyper["sagemaker_program"])

    def _slots(self, work: SourceJob, hyper: SourceNode) -> None:
        """Set the ranks per machine if no hyperparameter states them."""
        if "slots" not in work.settings and work.start == "mpi":
            work.settings["slots"] = SourceSetting(1, hyper)
        elif "slots" not in work.settings and work.start == "torch":
            gpus = self.managed.gpu_count
            is_ddp = str(self.parameters.get("sagemaker_torch_distributed_enabled", "")).lower() != "true"
            work.settings["slots"] = SourceSetting(gpus if gpus else 1, hyper)
            if is_ddp:
                work.questions.append(
                    (
                        hyper,
                        "SageMaker's own library of collectives starts the ranks; a run starts them by torchrun",
                        "Use NCCL in the program: backend nccl.",
                    )
                )

    def _told(self, node: SourceNode) -> None:
        """Set variables of the training toolkit for programs (environment.py, sagemaker-training 4.7)."""
        self.managed.env += [
            ("SM_MODEL_DIR", "/opt/ml/model", node),
            ("SM_OUTPUT_DATA_DIR", "/opt/ml/output/data", node),
        ]
        if self.managed.gpu_count:
            self.managed.env.append(("SM_NUM_GPUS", str(self.managed.gpu_count), node))


def decode_hyperparameter(text: str) -> Any:
    """Decode a hyperparameter: the SDK writes its value as JSON, people write it as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _format_toolkit_argument(value: Any) -> str:
    """Format a value as the toolkit does: a mapping as `a=1,b=2`, others as Python shows them."""
    if isinstance(value, dict):
        return ",".join(f"{key}={value[key]}" for key in sorted(value))
    return str(value)


def _split_mpi_options(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _set_start_method(work: SourceJob, start: StartMethod) -> None:
    work.start = start


__all__ = ["build_claim_name", "is_training_job", "read_sagemaker"]
