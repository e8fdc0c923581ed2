"""Map channels, outputs and checkpoints of SageMaker to claims of the team."""

from __future__ import annotations

from gangplan.imports.account import SourceNode
from gangplan.imports.managed.pod import ManagedPod, build_claim_name
from gangplan.imports.workload import SourceJob

_INPUT, _MODEL, _CHECKPOINTS = "/opt/ml/input/data", "/opt/ml/model", "/opt/ml/checkpoints"
_USUAL = ("S3Prefix", "FullyReplicated", "None", "")


def map_sagemaker_data(root: SourceNode, managed: ManagedPod, work: SourceJob) -> None:
    """Map everything that SageMaker copies into the container and out of it."""
    for channel in root["InputDataConfig"].items():
        _map_sagemaker_input_channel(channel, managed, work)
    _map_sagemaker_model_output(root["OutputDataConfig"], managed, work)
    _map_sagemaker_checkpoint_folder(root["CheckpointConfig"], work)


def bucket_of(uri: str) -> tuple[str, str]:
    """Split an S3 URI into bucket and key."""
    bucket, _, key = uri.partition("://")[2].partition("/")
    return bucket, key


def _map_sagemaker_input_channel(channel: SourceNode, managed: ManagedPod, work: SourceJob) -> None:
    name = channel["ChannelName"].text() or "training"
    folder = f"{_INPUT}/{name}"
    source = channel["DataSource"]
    s3, files, dataset = source["S3DataSource"], source["FileSystemDataSource"], source["DatasetSource"]
    if s3["S3Uri"]:
        bucket, _ = bucket_of(s3["S3Uri"].text())
        claim, node, reads = build_claim_name(bucket[:40], name), s3["S3Uri"], True
        why, help = (
            f"the channel {name} is a copy of {node.text()}",
            f"Put the files on the claim {claim}, or let a CSI driver show the bucket as a claim.",
        )
    elif files["FileSystemId"]:
        claim, node = build_claim_name(files["FileSystemId"].text()), files["FileSystemId"]
        reads = files["FileSystemAccessMode"].text() != "rw"
        why, help = (
            f"the channel {name} is the file system {node.text()}",
            f"The claim {claim} has to stand for it: a PersistentVolume of its CSI driver.",
        )
    else:
        node = dataset["DatasetArn"] or channel["ChannelName"] or channel
        claim, reads = build_claim_name(name), True
        why, help = (
            f"where the files of the channel {name} are is not known here",
            f"Put them on the claim {claim}.",
        )
    managed.mounts.append((claim, folder, reads, node))
    work.claims = {**work.claims, claim: ("ReadOnlyMany",) if reads else ("ReadWriteMany",)}
    work.questions.append((node, why, help))
    for one in (channel["ChannelName"], node):
        one.mapped(f"data.{claim}")
    managed.env.append((f"SM_CHANNEL_{name.upper().replace('-', '_')}", folder, channel["ChannelName"]))
    for one in (files["FileSystemAccessMode"], files["FileSystemType"]):
        one.mapped(f"claims.{claim}")
    for one in (
        s3["S3DataType"],
        s3["S3DataDistributionType"],
        channel["CompressionType"],
        channel["RecordWrapperType"],
    ):
        if one.text() in _USUAL:
            one.same("a claim holds files as they are, and every worker sees all of them")
    if files["DirectoryPath"].text() in ("", "/"):
        files["DirectoryPath"].same("a run mounts the whole file system")


def _map_sagemaker_model_output(output: SourceNode, managed: ManagedPod, work: SourceJob) -> None:
    """Map /opt/ml/model to a claim: SageMaker uploads what is written there, a run keeps it."""
    uri = output["S3OutputPath"]
    if not uri:
        return
    claim = build_claim_name(bucket_of(uri.text())[0][:50], "output")
    managed.mounts.append((claim, _MODEL, False, uri))
    work.claims = {**work.claims, claim: ("ReadWriteMany",)}
    work.questions.append(
        (
            uri,
            f"SageMaker uploads {_MODEL} to {uri.text()} at the end; a run writes to the claim {claim}",
            "Copy it from there, or let the program upload it.",
        )
    )


def _map_sagemaker_checkpoint_folder(checkpoint: SourceNode, work: SourceJob) -> None:
    uri = checkpoint["S3Uri"]
    if not uri:
        return
    claim = build_claim_name(bucket_of(uri.text())[0][:50], "checkpoints")
    folder = checkpoint["LocalPath"].text() or _CHECKPOINTS
    work.values["checkpoint.to"] = claim
    work.values["checkpoint.path"] = folder
    work.new_claims[claim] = ({"accessModes": ["ReadWriteMany"]}, uri)
    uri.mapped("checkpoint.to")
    checkpoint["LocalPath"].mapped("checkpoint.path")
    work.questions.append(
        (
            uri,
            f"SageMaker copies checkpoints to {uri.text()} and back; a run keeps them on the claim {claim}",
            "Copy the last one there, if the run goes on from it.",
        )
    )
