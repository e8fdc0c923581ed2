"""Values of a source that say how many of something there are, and are not counts: no spec is guessed from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gangplan.rules.imports import IMPORT_SOURCE
from tests.imports.sources import AZUREML, JOBSET, MPIJOB, PYTORCHJOB, SAGEMAKER, TRAINJOB, VOLCANO, imported

# Case -> kind, its source, what is replaced there, the start of each message.
WRONG: dict[str, tuple[str, str, Mapping[str, str], list[str]]] = {
    "two of an MPIJob at once": (
        "mpijob",
        MPIJOB,
        {"slotsPerWorker: 2": "slotsPerWorker: two", "replicas: 4": "replicas: 4.5"},
        ["spec.slotsPerWorker: 'two'", "spec.mpiReplicaSpecs.Worker.replicas: 4.5"],
    ),
    "a negative count, which leaves no pods": (
        "mpijob",
        MPIJOB,
        {"replicas: 4": "replicas: -4"},
        ["spec.mpiReplicaSpecs.Worker.replicas: -4"],
    ),
    "a list": ("trainjob", TRAINJOB, {"numNodes: 3": "numNodes: [3]"}, ["spec.trainer.numNodes: [3]"]),
    "a JobSet": (
        "jobset",
        JOBSET,
        {"parallelism: 4": "parallelism: all"},
        ["spec.replicatedJobs[0].template.spec.parallelism: 'all'"],
    ),
    "a boolean": ("volcano", VOLCANO, {"replicas: 2": "replicas: true"}, ["spec.tasks[1].replicas: True"]),
    "SageMaker": (
        "sagemaker",
        SAGEMAKER,
        {'"InstanceCount": 2': '"InstanceCount": "a few"'},
        ["ResourceConfig.InstanceCount: 'a few'"],
    ),
    "Azure ML": (
        "azureml",
        AZUREML,
        {"instance_count: 2": "instance_count: 2.5"},
        ["resources.instance_count: 2.5"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_count_that_is_none_is_refused_at_its_place(case: str, tmp_path: Path) -> None:
    kind, text, changes, wanted = WRONG[case]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    batch = imported(tmp_path, kind, text)
    assert not batch.imported
    assert [(one.rule, one.message) for one in batch.findings] == [
        (IMPORT_SOURCE, f"{start} is not a whole number of at least 0") for start in wanted
    ]
    assert all(one.where.line for one in batch.findings)


@pytest.mark.parametrize("new", ['slotsPerWorker: "2"', "slotsPerWorker: null"])
def test_a_count_may_be_text_or_absent(new: str, tmp_path: Path) -> None:
    assert "slotsPerWorker: 2 " in MPIJOB
    (one,) = imported(tmp_path, "mpijob", MPIJOB.replace("slotsPerWorker: 2 ", f"{new} ")).imported
    assert one.is_right, one.findings


@pytest.mark.parametrize("word", ["auto", "gpu"])
def test_processes_in_the_words_of_torchrun_are_not_miscounts(word: str, tmp_path: Path) -> None:
    assert 'nprocPerNode: "4"' in PYTORCHJOB
    assert imported(
        tmp_path, "pytorchjob", PYTORCHJOB.replace('nprocPerNode: "4"', f"nprocPerNode: {word}")
    ).imported
