"""Fields of a SageMaker training job that a run does not need, or that a person has to decide.

The fields are those of CreateTrainingJob and DescribeTrainingJob in the service's model in botocore 1.44.5
(data/sagemaker/2017-07-24/service-2.json); a test compares the tables with it. Hyperparameters are those of
sagemaker-training 4.7 (params.py) and of the SageMaker Python SDK 2.
"""

from __future__ import annotations

_PAST = "it is of a job that ran"
_WATCH = "the platform's dashboards and the log of a run show it"
_KEY = "encryption of volumes belongs to the storage class"
_WARM = "Kueue keeps quota, not machines"

# The reason for everything at or below a top-level field that nothing else has read.
SAGEMAKER_DROPPED: dict[str, str] = {
    **dict.fromkeys(
        str.split(
            "TrainingJobArn TuningJobArn LabelingJobArn AutoMLJobArn ModelArtifacts TrainingJobStatus SecondaryStatus "
            "FailureReason WarmPoolStatus CreationTime TrainingStartTime TrainingEndTime LastModifiedTime "
            "SecondaryStatusTransitions FinalMetricDataList TrainingTimeInSeconds BillableTimeInSeconds BillableTokenCount "
            "DebugRuleEvaluationStatuses ProfilerRuleEvaluationStatuses ProfilingStatus MlflowDetails ProgressInfo "
            "OutputModelPackageArn ResponseMetadata"
        ),
        _PAST,
    ),
    **dict.fromkeys(
        str.split(
            "DebugHookConfig DebugRuleConfigurations ProfilerConfig ProfilerRuleConfigurations TensorBoardOutputConfig"
        ),
        _WATCH,
    ),
    "ExperimentConfig": "description and labels say what a run belongs to",
    "VpcConfig": "network policies of the cluster say who may talk to whom",
    "RemoteDebugConfig": "debuggers of the team may open a shell in pods",
    "InfraCheckConfig": "the platform checks its nodes",
    "SessionChainingConfig": "runs have no tags of a session",
}
SAGEMAKER_ASKED: dict[str, str] = {
    "RoleArn": "a run has no rights at the cloud by itself; keys come from secrets, or the platform gives an identity",
    "MlflowConfig": "a program that logs to MLflow needs its address: env: MLFLOW_TRACKING_URI",
    "ServerlessJobConfig": "a run has workers; write the fine-tuning as a program",
    "ModelPackageConfig": "a run registers no model; the program does, or a step behind it",
    "EnableInterContainerTrafficEncryption": "workers of a run talk in plain text, inside of what network policies allow",
}
# By path, with dots and without indices.
SAGEMAKER_DROPPED_BELOW: dict[str, str] = {
    "AlgorithmSpecification.TrainingInputMode": "data are on claims, where the program reads files",
    "AlgorithmSpecification.MetricDefinitions": _WATCH,
    "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries": _WATCH,
    "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAccessMode": "the cluster pulls images by its own way",
    "OutputDataConfig.KmsKeyId": _KEY,
    "OutputDataConfig.CompressionType": "what the program writes stays as it is",
    "ResourceConfig.VolumeSizeInGB": "data are on claims; scratch: asks for temporary space",
    "ResourceConfig.VolumeKmsKeyId": _KEY,
    "ResourceConfig.KeepAlivePeriodInSeconds": _WARM,
    "ResourceConfig.TrainingPlanArn": _WARM,
    "ResourceConfig.InstancePreferences.TrainingPlanArns": _WARM,
    "ResourceConfig.SelectedInstanceType": _PAST,
    "ResourceConfig.SelectedInstanceCount": _PAST,
    "StoppingCondition.MaxWaitTimeInSeconds": "a run waits in its queue until it is admitted",
    "StoppingCondition.MaxPendingTimeInSeconds": "a run waits in its queue until it is admitted",
    "InputDataConfig.ContentType": "the program knows its own files",
    "InputDataConfig.InputMode": "data are on claims, where the program reads files",
}
SAGEMAKER_ASKED_BELOW: dict[str, str] = {
    "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAuthConfig": "pullSecrets of the team: a Secret with the registry's password",
    "ResourceConfig.InstancePreferences": "a run goes to one pool, and the first of these types is meant",
    "ResourceConfig.InstancePlacementConfig": "placement.topology keeps workers close together",
    "InputDataConfig.RecordWrapperType": "files are not wrapped into records",
    "InputDataConfig.CompressionType": "files are not unpacked; unpack them on the claim",
    "InputDataConfig.ShuffleConfig": "files are not shuffled; let the program do it",
    "InputDataConfig.DataSource.S3DataSource.S3DataType": "a claim holds files, not a list of them",
    "InputDataConfig.DataSource.S3DataSource.S3DataDistributionType": "every worker sees all files; let the program take its share",
    "InputDataConfig.DataSource.S3DataSource": "gangplan has no place for it; put the files on the claim",
    "InputDataConfig.DataSource.FileSystemDataSource.DirectoryPath": "a run mounts the whole file system; use the path below the folder",
    "InputDataConfig.DataSource.FileSystemDataSource": "a channel has one source",
    "InputDataConfig.DataSource.DatasetSource": "put the files on the claim",
}
# Hyperparameters that the SDK writes for the toolkit, and that are useless to a run.
TOOLKIT_PARAMETERS: dict[str, str] = {
    "sagemaker_container_log_level": "the program says how much it logs",
    "sagemaker_job_name": "a run is named by what it is",
    "sagemaker_region": "a run is where its cluster is",
    "sagemaker_enable_cloudwatch_metrics": _WATCH,
    "sagemaker_s3_output": "outputs go to a claim",
    "sagemaker_instance_type": "gpus, cpu and memory say what a worker gets",
    "sagemaker_network_interface_name": "gangplan names the interface to MPI",
    "sagemaker_estimator_class_name": "it is about the SDK",
    "sagemaker_estimator_module": "it is about the SDK",
    "sagemaker_job_type": "it is about the SDK",
    "sagemaker_mpi_num_processes": "workers and slots say it",
    "_tuning_objective_metric": "a run is not part of a search",
}
