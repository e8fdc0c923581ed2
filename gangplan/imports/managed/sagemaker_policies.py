"""Map time, spot, network and tags of a SageMaker job, and account for the rest."""

from __future__ import annotations

import re

from gangplan.imports.account import SourceNode
from gangplan.imports.managed.rest import mark_managed_job_fields_at_path
from gangplan.imports.managed.sagemaker_tables import (
    SAGEMAKER_ASKED,
    SAGEMAKER_ASKED_BELOW,
    SAGEMAKER_DROPPED,
    SAGEMAKER_DROPPED_BELOW,
)
from gangplan.imports.workload import Hint, SourceJob, SourceSetting


def map_sagemaker_policies(root: SourceNode, machine: str, place: SourceNode, work: SourceJob) -> None:
    """Map the deadline, retries, spot, the network and labels."""
    limit = root["StoppingCondition"]["MaxRuntimeInSeconds"]
    if (seconds := limit.number()) is not None:
        work.settings["timeout"] = SourceSetting(seconds, limit)
    tries = root["RetryStrategy"]["MaximumRetryAttempts"]
    if (count := tries.number()) is not None:
        work.settings["retries"] = SourceSetting(count, tries)
    work.hints.append(
        Hint(
            "machine",
            machine,
            root.at("ResourceConfig", "InstanceType") or place,
        )
    )
    spot = root["EnableManagedSpotTraining"]
    if spot.value is True and "checkpoint.to" in work.values:
        work.hints.append(Hint("capacity", "spot", spot))
        work.values.setdefault("retries", 3)
    elif spot.value is True:
        spot.asked(
            "machines that may go away need a checkpoint: placement.capacity: spot, checkpoint: and retries:"
        )
    else:
        spot.same("runs are on machines that stay, unless placement.capacity says otherwise")
    isolated = root["EnableNetworkIsolation"]
    if isolated.value is True:
        work.values["network.posture"] = "isolated"
        isolated.mapped("network.posture")
    else:
        isolated.same("a run's network is as open as its posture")
    encrypted = root["EnableInterContainerTrafficEncryption"]
    if encrypted.value is not True:
        encrypted.same("workers of a run talk in plain text")
    for tag in root["Tags"].items():
        _map_sagemaker_tag_to_label(tag, work)


def account_for_unread_sagemaker_fields(root: SourceNode) -> None:
    """Account for what nothing else has read."""
    root["TrainingJobName"].mapped("name")
    algorithm = root.at("AlgorithmSpecification", "AlgorithmName")
    if algorithm:
        algorithm.asked("an algorithm of SageMaker has an image of its own; --image names one of the catalog")
    for tables, how in (
        ((SAGEMAKER_DROPPED_BELOW, SAGEMAKER_DROPPED), "dropped"),
        ((SAGEMAKER_ASKED_BELOW, SAGEMAKER_ASKED), "asked"),
    ):
        for table in tables:
            for path, why in table.items():
                mark_managed_job_fields_at_path(root, path.split("."), how, why)


def _map_sagemaker_tag_to_label(tag: SourceNode, work: SourceJob) -> None:
    key, value = tag["Key"].text(), tag["Value"].text()
    name = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
    plain = re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value)
    if name and plain and len(name) < 64 and ":" not in key and "label count" not in work.values:
        work.values.setdefault(f"labels/{name}", value)
        tag.mapped(f"labels.{name}")
    else:
        tag.dropped("it is none that a label can have; labels: says what a run belongs to")
