"""`gangplan import sagemaker`: requests as boto3 takes them.

They are compared with the service's own model where botocore is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.imports.batch import Batch
from gangplan.rules.imports import IMPORT_ENTRYPOINT, IMPORT_SOURCE
from tests.imports.sources import SAGEMAKER, imported
from tests.workspaces import REPOSITORY

UNKNOWN = "gangplan has no place for it"


def read(root: Path, body: dict[str, Any] | str, **answers: object) -> Batch:
    text = body if isinstance(body, str) else json.dumps(body, indent=1)
    return imported(root, "sagemaker", text, "job.json", **answers)


def changed(**fields: Any) -> dict[str, Any]:
    body = json.loads(SAGEMAKER)
    for name, value in fields.items():
        if isinstance(value, dict) and isinstance(body.get(name), dict):
            body[name] |= value
        else:
            body[name] = value
    return {key: value for key, value in body.items() if value is not None}


def entries(batch: Batch) -> dict[str, tuple[str, str]]:
    return {one.name: (one.state, one.to or one.why) for one in batch.imported[0].draft.work.entries()}


def test_a_training_job_becomes_a_spec(tmp_path: Path) -> None:
    batch = read(tmp_path, SAGEMAKER)
    (one,) = batch.imported
    assert one.draft.values == {
        "description": "Imported from SageMaker speech-tune (job.json)",
        "labels": {"migrated-from": "sagemaker", "project": "speech"},
        "image": "speech",
        "command": ["python", "train.py", "--epochs", "3", "--lr", "0.0003"],
        "workdir": "/opt/ml/code",
        "workers": 2,
        "gpus": 8,
        "gpu": {"model": "a100-80gb"},
        "data": {"speech-data-train": "/opt/ml/input/data/train", "speech-models-output": "/opt/ml/model"},
        "env": {
            "NCCL_DEBUG": "INFO",
            "SM_MODEL_DIR": "/opt/ml/model",
            "SM_OUTPUT_DATA_DIR": "/opt/ml/output/data",
            "SM_NUM_GPUS": "8",
            "SM_CHANNEL_TRAIN": "/opt/ml/input/data/train",
            "HF_HOME": "/tmp/hf",
        },
        "checkpoint": {"to": "speech-models-checkpoints", "path": "/opt/ml/checkpoints"},
        "mpi": {"flags": ["--mca", "btl", "^openib"]},
        "timeout": "24h",
    }
    assert one.runs["lab"].percent == 100, one.runs["lab"].differences
    assert one.is_right, one.findings


def test_the_team_gains_the_claims(tmp_path: Path) -> None:
    found = {
        one.path[1]: one.value for one in read(tmp_path, SAGEMAKER).suggestions if one.path[0] == "claims"
    }
    assert found == {
        "speech-data-train": {"accessModes": ["ReadOnlyMany"], "readOnly": True},
        "speech-models-output": {"accessModes": ["ReadWriteMany"]},
        "speech-models-checkpoints": {"accessModes": ["ReadWriteMany"]},
    }


@pytest.mark.parametrize("saved", [True, False])
def test_where_the_program_saves_is_said_once(tmp_path: Path, saved: bool) -> None:
    fields = {"Environment": {"CHECKPOINT_DIR": "/opt/ml/checkpoints"}}
    batch = read(tmp_path, changed(**fields, **({} if saved else {"CheckpointConfig": None})))
    found = entries(batch)["Environment.CHECKPOINT_DIR"]
    assert found == (("dropped", "checkpoint sets it") if saved else ("mapped", "env.CHECKPOINT_DIR"))
    assert batch.imported[0].is_right, batch.imported[0].findings


def test_the_output_of_describe_is_the_same_job(tmp_path: Path) -> None:
    body = changed(
        TrainingJobStatus="Completed", TrainingJobArn="arn:x", ModelArtifacts={"S3ModelArtifacts": "s3://a"}
    )
    batch = read(tmp_path, body)
    assert batch.imported[0].draft.values["workers"] == 2
    assert entries(batch)["TrainingJobStatus"] == ("dropped", "it is of a job that ran")


@pytest.mark.parametrize(
    ("fields", "field", "value"),
    [
        ({"HyperParameters": {"sagemaker_mpi_enabled": "false", "sagemaker_torch_distributed_enabled": "true"}}, "command", ["python", "train.py", "--epochs", "3", "--lr", "0.0003"]),
        ({"HyperParameters": {"sagemaker_program": "run.sh"}}, "command", ["bash", "./run.sh", "--epochs", "3", "--lr", "0.0003"]),
        ({"AlgorithmSpecification": {"ContainerEntrypoint": ["python", "/app/a.py"], "ContainerArguments": ["--x"]}}, "command", ["python", "/app/a.py", "--x"]),
        ({"ResourceConfig": {"InstanceType": "ml.m5.4xlarge"}}, "cpu", 14),
        ({"ResourceConfig": {"InstanceType": "ml.m5.4xlarge"}}, "memory", "54Gi"),
        ({"ResourceConfig": {"InstanceType": None, "InstanceCount": None, "InstanceGroups": [{"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 3, "InstanceGroupName": "a"}]}}, "workers", 3),
        ({"EnableManagedSpotTraining": True}, "placement", {"capacity": "spot"}),
        ({"EnableNetworkIsolation": True}, "network", {"posture": "isolated"}),
        ({"RetryStrategy": {"MaximumRetryAttempts": 2}}, "retries", 2),
    ],
)  # fmt: skip
def test_fields_become_those_of_the_spec(
    tmp_path: Path, fields: dict[str, Any], field: str, value: object
) -> None:
    body = changed(**fields)
    body["ResourceConfig"] = {key: one for key, one in body["ResourceConfig"].items() if one is not None}
    assert read(tmp_path, body).imported[0].draft.values[field] == value


@pytest.mark.parametrize(
    ("fields", "rule", "what"),
    [
        ({"ResourceConfig": None}, IMPORT_SOURCE, "it names no machines"),
        ({"ResourceConfig": {"InstanceGroups": [{"InstanceType": "ml.m5.large", "InstanceCount": 1}]}}, IMPORT_SOURCE, "machines of several types"),
        ({"HyperParameters": None}, IMPORT_ENTRYPOINT, "the image's own entrypoint starts the program"),
    ],
)  # fmt: skip
def test_jobs_that_cannot_be_imported_are_refused(
    tmp_path: Path, fields: dict[str, Any], rule: object, what: str
) -> None:
    batch = read(tmp_path, changed(**fields))
    assert batch.imported == []
    assert any(one.rule == rule and what in one.message for one in batch.everything), batch.everything


@pytest.mark.parametrize("key", ["ContainerEntrypoint", "ContainerArguments"])
def test_variables_of_a_shell_in_the_command_are_the_shell_s(tmp_path: Path, key: str) -> None:
    """The shell in the container fills them in, and no template has to."""
    script = "cd $HOME && python t.py --out $OUT_DIR/x --hosts ${SM_HOSTS}"
    parts: dict[str, Any] = {"ContainerEntrypoint": ["bash", "-c"], "ContainerArguments": []}
    parts[key] = [*parts[key], script]
    batch = read(tmp_path, changed(AlgorithmSpecification=parts, Environment={"OUT_DIR": "/tmp/o"}))
    (one,) = batch.imported
    assert script in one.draft.values["command"][2]
    assert one.draft.values["env"]["OUT_DIR"] == "/tmp/o"


def test_hyperparameters_read_from_a_file_are_asked_about(tmp_path: Path) -> None:
    body = changed(HyperParameters=None)
    body["HyperParameters"] = {"depth": "4"}
    body["AlgorithmSpecification"] |= {"ContainerEntrypoint": ["train"]}
    batch = read(tmp_path, body)
    assert entries(batch)["HyperParameters.depth"][0] == "asked"
    assert any("hyperparameters.json" in one.message for one in batch.everything)


def test_the_first_preferred_machine_is_taken(tmp_path: Path) -> None:
    body = json.loads(SAGEMAKER)
    body["ResourceConfig"] = {
        "InstanceCount": 3,
        "InstancePreferences": [{"InstanceType": "ml.p4d.24xlarge"}, {"InstanceType": "ml.g5.48xlarge"}],
    }
    batch = read(tmp_path, body)
    (one,) = batch.imported
    assert (one.draft.values["workers"], one.draft.values["gpus"]) == (3, 8)
    assert entries(batch)["ResourceConfig.InstancePreferences[1].InstanceType"][0] == "asked"


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("ml.p4d.24xlarge", "ml.p4d.24xlarge has a100-40gb; the closest that a pool has is a100-80gb"),
        ("ml.p5.48xlarge", "no pool of the team's clusters has h100-80gb"),
        ("ml.trn1.32xlarge", "gangplan does not know the machine type ml.trn1.32xlarge"),
        ("ml.zz9.big", "gangplan does not know the machine type ml.zz9.big"),
        ("ml.p4de.24xlarge", ""),
        ("ml.m5.large", ""),
    ],
)
def test_machines_that_no_pool_equals_are_asked_about(tmp_path: Path, machine: str, said: str) -> None:
    batch = read(tmp_path, changed(ResourceConfig={"InstanceType": machine}))
    asked = [
        one.message for one in batch.everything if any(w in one.message for w in ("pool", "machine type"))
    ]
    assert [said in one for one in asked] == [True] * bool(said), asked


# The service's own model. These tests are skipped where botocore is absent: pip install botocore.


def model() -> Any:
    loaders = pytest.importorskip(
        "botocore.loaders", reason="botocore is not installed: the model of SageMaker is not there"
    )
    from botocore.model import ServiceModel

    return ServiceModel(loaders.Loader().load_service_model("sagemaker", "service-2"))


def sample(shape: Any, depth: int = 0) -> Any:
    """Return a value of a shape with every member of it."""
    kind = shape.type_name
    if kind == "structure":
        return {name: sample(one, depth + 1) for name, one in shape.members.items()} if depth < 8 else {}
    if kind == "list":
        return [sample(shape.member, depth + 1)]
    if kind == "map":
        return {"key": sample(shape.value, depth + 1)}
    if kind == "timestamp":
        return "2026-01-01T00:00:00Z"
    if kind in ("integer", "long"):
        return max(1, int(shape.metadata.get("min", 1)))
    return (
        {"boolean": True, "float": 0.5, "double": 0.5}.get(kind)
        if kind != "string"
        else (shape.enum or ["value"])[0]
    )


def test_the_source_is_a_valid_request_of_the_service() -> None:
    service = model()
    from botocore.validate import ParamValidator

    report = ParamValidator().validate(
        json.loads(SAGEMAKER), service.operation_model("CreateTrainingJob").input_shape
    )
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize("shape", ["CreateTrainingJobRequest", "DescribeTrainingJobResponse"])
def test_every_field_of_the_service_has_its_reason(tmp_path: Path, shape: str) -> None:
    body = sample(model().shape_for(shape))
    body["ResourceConfig"]["InstanceGroups"][0]["InstanceType"] = body["ResourceConfig"]["InstanceType"]
    body["ResourceConfig"]["InstancePreferences"][0]["InstanceType"] = body["ResourceConfig"]["InstanceType"]
    body["HyperParameters"] = {"sagemaker_program": "train.py", "key": "1"}
    batch = read(tmp_path, body)
    assert [name for name, (_, why) in entries(batch).items() if why == UNKNOWN] == []


def test_the_page_names_every_field_of_a_request() -> None:
    page = (REPOSITORY / "docs/import-sagemaker.md").read_text(encoding="utf-8")
    assert [
        name for name in model().shape_for("CreateTrainingJobRequest").members if f"`{name}" not in page
    ] == []


# Machine types without NVIDIA GPUs, and those with other names on EC2.
OTHER_DEVICES = ("ml.p2.", "ml.trn", "ml.inf", "ml.p6e-gb200.")


def test_the_machine_types_of_the_service_are_known() -> None:
    from gangplan.spec.machines import INSTANCES

    types = model().shape_for("TrainingInstanceType").enum
    assert [one for one in types if one not in INSTANCES and not one.startswith(OTHER_DEVICES)] == []
