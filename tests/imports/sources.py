"""Sources of all kinds as texts, in the shapes that people publish; written for these tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gangplan.imports.batch import Batch, judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.workspace import load_workspace
from tests.workspaces import STOCK, WIDE_CLUSTER, write

MPIJOB = """\
# Solves the heat equation; ask the physics group.
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: heat
  labels: {project: furnace, kueue.x-k8s.io/queue-name: training}
spec:
  slotsPerWorker: 2   # one per GPU
  sshAuthMountPath: /home/mpiuser/.ssh
  runPolicy: {cleanPodPolicy: Running, activeDeadlineSeconds: 7200, backoffLimit: 1}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: launcher
            image: registry.example.com/physics/heat:1.4
            command: [mpirun, --allow-run-as-root, -np, "8", -bind-to, core, -x, NCCL_DEBUG=WARN, -mca, pml, ob1]
            args: [/opt/heat/solve, --steps, "1000"]
            env:
            - {name: HEAT_CASE, value: oven-7}
            resources: {limits: {cpu: 2, memory: 4Gi}}
    Worker:
      replicas: 4   # a quarter of the furnace each
      template:
        spec:
          containers:
          - name: worker
            image: registry.example.com/physics/heat:1.4
            command: [/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config]
            env:
            - {name: HEAT_CASE, value: oven-7}
            - name: HEAT_KEY
              valueFrom: {secretKeyRef: {name: heat-license, key: key}}
            resources:
              limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}
              requests: {cpu: 4, memory: 64Gi}
            volumeMounts:
            - {name: cases, mountPath: /cases}
            - {name: shm, mountPath: /dev/shm}
          volumes:
          - {name: cases, persistentVolumeClaim: {claimName: furnace-cases}}
          - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
"""

# The shape of PyTorchJobs in awsome-distributed-training (FSDP on EKS) and of kubeflow/training-operator v1.9.3.
PYTORCHJOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: lens}
spec:
  nprocPerNode: "4"
  runPolicy:
    cleanPodPolicy: None
    activeDeadlineSeconds: 86400
    schedulingPolicy: {minAvailable: 3, queue: training}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template: &pod
        metadata: {annotations: {sidecar.istio.io/inject: "false"}}
        spec:
          containers:
          - name: pytorch
            image: registry.example.com/optics/lens:7
            command: [bash, -c]
            args:
            - |
              cd /opt/lens
              echo "node $RANK of $WORLD_SIZE"
              torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK --nproc_per_node=4 \\
                --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT train.py --epochs 3
            env:
            - {name: FI_PROVIDER, value: efa}
            resources: {limits: {cpu: 16, memory: 128Gi, nvidia.com/gpu: 4}}
            volumeMounts:
            - {name: images, mountPath: /images}
            - {name: shm, mountPath: /dev/shm}
          volumes:
          - {name: images, persistentVolumeClaim: {claimName: images}}
          - {name: shm, emptyDir: {medium: Memory}}
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template: *pod
"""
TFJOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: reader}
spec:
  tfReplicaSpecs:
    Chief:
      replicas: 1
      template:
        spec:
          containers:
          - {name: tensorflow, image: registry.example.com/text/reader:2, command: [python, read.py], resources: {limits: {cpu: 8}}}
    Worker:
      replicas: 3
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - {name: tensorflow, image: registry.example.com/text/reader:2, command: [python, read.py], resources: {limits: {cpu: 8}}}
    PS:
      replicas: 2
      template:
        spec:
          containers:
          - {name: tensorflow, image: registry.example.com/text/reader:2, command: [python, read.py], resources: {limits: {cpu: 2}}}
"""
JAXJOB = """\
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: waves}
spec:
  jaxReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: jax
            image: registry.example.com/sea/waves:1
            command: [sh, -c, 'python waves.py --at "$COORDINATOR_ADDRESS:$COORDINATOR_PORT" --of $NUM_PROCESSES --me $PROCESS_ID']
"""
XGBOOSTJOB = """\
apiVersion: kubeflow.org/v1
kind: XGBoostJob
metadata: {name: trees}
spec:
  xgbReplicaSpecs:
    Master:
      replicas: 1
      template: &pod
        spec:
          containers:
          - {name: xgboost, image: "registry.example.com/wood/trees:1", command: [python, grow.py]}
    Worker: {replicas: 2, template: *pod}
"""
PADDLEJOB = """\
apiVersion: kubeflow.org/v1
kind: PaddleJob
metadata: {name: oars}
spec:
  elasticPolicy: {minReplicas: 2, maxReplicas: 4, maxRestarts: 2}
  paddleReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: paddle, image: "registry.example.com/boat/oars:1", command: [python, -m, paddle.distributed.launch, row.py]}
"""

# The shape of examples/yaml of kubeflow/trainer v2.3.0, with its own runtime and patches of both APIs.
TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bees}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: hive}
  suspend: true
  activeDeadlineSeconds: 7200
  trainer:
    numNodes: 3
    image: registry.example.com/hive/bees:3
    command: [torchrun]
    args: [fly.py, --far]
    env:
    - {name: WINGS, value: "4"}
    resourcesPerNode: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}}
  runtimePatches:
  - manager: example.com/hive
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template:
              spec:
                template:
                  spec:
                    nodeSelector: {pool: a100}
                    volumes:
                    - {name: nectar, persistentVolumeClaim: {claimName: nectar}}
                    containers:
                    - name: node
                      volumeMounts:
                      - {name: nectar, mountPath: /nectar}
  - manager: kueue.x-k8s.io/manager
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {schedulingGates: [{name: kueue}]}}}}}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: hive, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 100}}
  template:
    spec:
      failurePolicy: {maxRestarts: 2}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              spec:
                containers:
                - name: node
                  image: registry.example.com/hive/base:1
                  command: [sleep, infinity]
                  env:
                  - {name: WINGS, value: "2"}
                  - {name: STINGS, value: "1"}
                  resources: {requests: {cpu: 1}}
"""

# The shape of site/static/examples/pytorch of kubernetes-sigs/jobset v0.12.
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: tide
  annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: example.com/block}
spec:
  network: {enableDNSHostnames: true, subdomain: moon}
  failurePolicy: {maxRestarts: 1, rules: [{action: RestartJobSet}]}
  successPolicy: {operator: All, targetReplicatedJobs: [workers]}
  replicatedJobs:
  - name: workers
    replicas: 1
    template:
      spec:
        parallelism: 4   # one per node
        completions: 4
        completionMode: Indexed
        backoffLimit: 0
        podFailurePolicy:
          rules:
          - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}
        template:
          metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: topology.example.com/rack}}
          spec:
            restartPolicy: Never
            initContainers:
            - {name: fetch, image: "registry.example.com/sea/fetch:1", command: [fetch, /sea]}
            - {name: watch, image: "registry.example.com/sea/tide:1", command: [watch], restartPolicy: Always, resources: {limits: {cpu: 1, memory: 1Gi}}}
            containers:
            - name: torch
              image: registry.example.com/sea/tide:1
              env:
              - {name: MASTER_ADDR, value: tide-workers-0-0.moon}
              - {name: MASTER_PORT, value: "3389"}
              - name: RANK
                valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
              command:
              - bash
              - -xc
              - |
                torchrun --nproc_per_node=2 --nnodes=4 --node_rank=$RANK \\
                  --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT --rdzv_id=tide ebb.py --flood
              resources: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}}
"""
# The shape of example/integrations/mpi of volcano-sh/volcano.
VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: lava}
spec:
  minAvailable: 3
  schedulerName: volcano
  queue: default
  maxRetry: 2
  plugins: {ssh: [], svc: []}
  policies:
  - {event: PodEvicted, action: RestartJob}
  volumes:
  - {mountPath: /ash, volumeClaimName: ash}
  tasks:
  - replicas: 1
    name: mpimaster
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      spec:
        containers:
        - name: mpimaster
          image: registry.example.com/fire/lava:2
          command:
          - /bin/sh
          - -c
          - |
            MPI_HOST=`cat /etc/volcano/mpiworker.host | tr "\\n" ","`;
            mkdir -p /var/run/sshd; /usr/sbin/sshd;
            mpiexec --allow-run-as-root --host ${MPI_HOST} -np 4 erupt;
  - replicas: 2
    name: mpiworker
    template:
      spec:
        containers:
        - name: mpiworker
          image: registry.example.com/fire/lava:2
          command: [/bin/sh, -c, "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;"]
          resources: {limits: {cpu: 8, memory: 32Gi}}
"""


SLURM = """\
#!/bin/bash
# Tunes the model; ask the speech group.
#SBATCH --job-name=finetune
# one task starts torchrun on each node
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task 96   # all of them
#SBATCH --mem=0
#SBATCH -t 2-00:00:00 -p a100 -A speech
#SBATCH --output=logs/%x_%j.out

module load cuda/12.4
source ~/miniconda3/bin/activate speech
set -ex
export NCCL_DEBUG=INFO
export LD_LIBRARY_PATH=/opt/nccl/lib:$LD_LIBRARY_PATH
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
GPUS=8
ARGS=(
    --lr 3e-4      # don't raise it
    --world $((GPUS * SLURM_NNODES))
)
declare -a LAUNCH=(
    --nproc_per_node=$SLURM_GPUS_ON_NODE
    --nnodes=$SLURM_JOB_NUM_NODES
    --rdzv_id=$SLURM_JOB_ID
    --rdzv_backend=c10d
    --rdzv_endpoint=$head_node_ip:29500
)
srun -l torchrun "${LAUNCH[@]}" \\
    train.py "${ARGS[@]}" \\
    2>&1 | tee train.log
echo "done after $SECONDS s"
"""
PBS = """\
#!/bin/bash
#PBS -N ocean
#PBS -A climate
#PBS -q main
#PBS -l select=2:ncpus=16:mpiprocs=8:ngpus=4:mem=128gb
#PBS -l walltime=12:00:00
#PBS -j oe

module purge
module load openmpi
cd $PBS_O_WORKDIR
export OMP_NUM_THREADS=2
NODES=$(sort -u $PBS_NODEFILE | wc -l)
mpiexec -n 16 --hostfile $PBS_NODEFILE ./ocean --nodes $NODES
"""


SAGEMAKER = """\
{
  "TrainingJobName": "speech-tune",
  "RoleArn": "arn:aws:iam::111122223333:role/training",
  "AlgorithmSpecification": {
    "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/speech:2.1-openmpi-4.1.5",
    "TrainingInputMode": "File",
    "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
  },
  "HyperParameters": {
    "sagemaker_program": "\\"train.py\\"",
    "sagemaker_submit_directory": "\\"s3://speech-code/src.tar.gz\\"",
    "sagemaker_region": "\\"us-east-1\\"",
    "sagemaker_mpi_enabled": "true",
    "sagemaker_mpi_num_of_processes_per_host": "8",
    "sagemaker_mpi_custom_mpi_options": "\\"-x NCCL_DEBUG=INFO --mca btl ^openib\\"",
    "epochs": "3",
    "lr": "3e-4"
  },
  "InputDataConfig": [
    {
      "ChannelName": "train",
      "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://speech-data/train"}}
    }
  ],
  "OutputDataConfig": {"S3OutputPath": "s3://speech-models/out"},
  "CheckpointConfig": {"S3Uri": "s3://speech-models/checkpoints"},
  "ResourceConfig": {"InstanceType": "ml.p4de.24xlarge", "InstanceCount": 2, "VolumeSizeInGB": 200},
  "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
  "Environment": {"HF_HOME": "/tmp/hf"},
  "Tags": [{"Key": "project", "Value": "speech"}]
}
"""
AZUREML = """\
# Trains the model; ask the vision group.
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
name: vision-train
experiment_name: vision
description: A classifier of images.
command: >-
  python train.py --data ${{inputs.images}} --epochs ${{inputs.epochs}} --out ${{outputs.model}}
code: src
environment: azureml://registries/azureml/environments/acpt-pytorch-2.2-cuda12.1/versions/22
inputs:
  images:
    type: uri_folder
    path: azureml://datastores/vision/paths/images
    mode: ro_mount
  epochs: 10
outputs:
  model: {type: uri_folder, mode: upload}
environment_variables: {NCCL_DEBUG: INFO}
compute: azureml:a100
resources: {instance_count: 2, instance_type: Standard_ND96amsr_A100_v4, shm_size: 64g}   # two machines
distribution: {type: pytorch, process_count_per_instance: 8}
limits: {timeout: 7200}
tags: {project: vision}
"""


def home(root: Path, **answers: object) -> ImportTarget:
    """Create a workspace with room for any run, with the answers that flags would give."""
    write(root, {**STOCK, "overlays/lab/cluster.yaml": WIDE_CLUSTER})
    return ImportTarget(load_workspace(root), "nlp", ImportAnswers(**answers))  # type: ignore[arg-type]


def imported(
    root: Path,
    kind: str,
    text: str,
    name: str = "job.yaml",
    filled: Mapping[str, str] | None = None,
    **answers: object,
) -> Batch:
    """Import a source into a workspace at `root`, with values for what it leaves open, and check it there."""
    workspace = home(root / "workspace", **answers)
    folder = root / "sources"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    batch = read_import_batch(SOURCE_KINDS[kind], [folder / name], workspace, filled or {})
    judge_import_batch(batch, root / "workspace")
    return batch


# One source of each kind that is an object, for laws.
SOURCES = {
    "mpijob": MPIJOB,
    "pytorchjob": PYTORCHJOB,
    "tfjob": TFJOB,
    "xgboostjob": XGBOOSTJOB,
    "jaxjob": JAXJOB,
    "paddlejob": PADDLEJOB,
    "trainjob": TRAINJOB,
    "jobset": JOBSET,
    "volcano": VOLCANO,
    "sagemaker": SAGEMAKER,
    "azureml": AZUREML,
}
