"""Map time, spot, network and tags of a SageMaker job, and account for the rest."""

from __future__ import annotations

import re

from gangplan.imports.account import Node
from gangplan.imports.managed.rest import mark
from gangplan.imports.managed.sagemaker_tables import ASKED, ASKED_BELOW, DROPPED, DROPPED_BELOW
from gangplan.imports.workload import Hint, Setting, Workload


def read_policies(root: Node, machine: str, place: Node, work: Workload) -> None:
    """Map the deadline, retries, spot, the network and labels."""
    limit = root["StoppingCondition"]["MaxRuntimeInSeconds"]
    if (seconds := limit.number()) is not None:
        work.settings["timeout"] = Setting(seconds, limit)
    tries = root["RetryStrategy"]["MaximumRetryAttempts"]
    if (count := tries.number()) is not None:
        work.settings["retries"] = Setting(count, tries)
    work.hints.append(
        Hint(
            "machine",
            machine,
            root.at("ResourceConfig", "InstanceType") or place,
        )
    )
    spot = root["EnableManagedSpotTraining"]
    if spot.value is True and "checkpoint.to" in work.values:
        work.values["placement.capacity"] = "spot"
        work.values.setdefault("retries", 3)
        spot.mapped("placement.capacity")
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
        _tag(tag, work)


def account_for_the_rest(root: Node) -> None:
    """Account for what nothing else has read."""
    root["TrainingJobName"].mapped("name")
    algorithm = root.at("AlgorithmSpecification", "AlgorithmName")
    if algorithm:
        algorithm.asked("an algorithm of SageMaker has an image of its own; --image names one of the catalog")
    for tables, how in (((DROPPED_BELOW, DROPPED), "dropped"), ((ASKED_BELOW, ASKED), "asked")):
        for table in tables:
            for path, why in table.items():
                mark(root, path.split("."), how, why)


def _tag(tag: Node, work: Workload) -> None:
    key, value = tag["Key"].text(), tag["Value"].text()
    name = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
    plain = re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value)
    if name and plain and len(name) < 64 and ":" not in key and "label count" not in work.values:
        work.values.setdefault(f"labels/{name}", value)
        tag.mapped(f"labels.{name}")
    else:
        tag.dropped("it is none that a label can have; labels: says what a run belongs to")
