"""A small workspace that uses nearly every field, so that each can be changed."""

from __future__ import annotations

from pathlib import Path

from tests import workspaces
from tests.workspaces import write

CLUSTER = """\
apiVersion: gangplan.dev/v1
kind: Cluster
description: Everything at once
versions: {kubernetes: "1.34.4", trainer: "2.3.0", jobset: "0.12.0", kueue: "0.19.2", gpuOperator: "25.10.0", externalSecrets: "2.3.0", mpiOperator: "0.6.0"}
region: eu-central
location: on-prem
policies: {packs: [residency], params: {data-residency: {nodeRegions: false}}}
nodePools:
  cpu: {count: 4, cpu: 60, memory: 240Gi, labels: {pool: cpu}, daemons: {cpu: 2, memory: 8Gi}}
  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}, taints: [{key: gpu, value: "yes", effect: NoSchedule}], rdma: [{resource: rdma/ib-0, count: 8, network: default/ib-0, interface: net1, hcas: [mlx5_0]}, {resource: rdma/ib-1, count: 63, shared: true, network: [default/ib-1, default/ib-2], interface: net2, hcas: ["mlx5_1:2"]}], hugePages: {2Mi: 64Gi}, fabric: quick}
  h100: {count: 8, cpu: 184, memory: 1900Gi, gpu: {model: h100-80gb, count: 8}, labels: {pool: h100}, taints: [{key: gpu, effect: NoSchedule}], topology: true, disk: 3Ti, localDisk: {storageClass: nvme, size: 7Ti}}
  burst: {count: 1, cpu: 60, memory: 240Gi, labels: {pool: burst}, autoscale: {most: 8, provisioningClass: best-effort-atomic-scale-up.autoscaling.x-k8s.io, parameters: {zone: a}}}
fabrics:
  quick:
    preset: sriov
    memlock: limited
    capabilities: [IPC_LOCK]
    hostPaths:
      cards: {path: /dev/infiniband, mount: /dev/infiniband, readOnly: false, type: Directory}
      sys: {path: /sys}
    shared: {sockets: /run/fabric}
    hugePages: {2Mi: 4Gi}
    env: {NCCL_IB_TC: "41"}
    annotations: {example.com/nics: "8"}
    setup:
      prepare: {image: registry.example.com/fabric/prepare:1, mounts: {sockets: /run/fabric}, memory: 1Gi}
    sidecars:
      daemon: {image: registry.example.com/fabric/daemon:1, command: [daemon, --nics=8], env: {LEVEL: info}, mounts: {sys: /hostsysfs, sockets: /run}, capabilities: [NET_ADMIN], root: true, cpu: 1}
topology:
  - {name: block, label: topology.example.com/block, nodes: 8}
  - {name: rack, label: topology.example.com/rack, nodes: 4}
  - {name: host, label: kubernetes.io/hostname, nodes: 1}
storageClasses:
  fast: {accessModes: [ReadWriteMany, ReadOnlyMany], default: true}
  slow: {accessModes: [ReadWriteMany, ReadOnlyMany]}
  roomy: {accessModes: [ReadWriteOncePod]}
volumes:
  vault: {driver: secrets-store.csi.k8s.io, attributes: {secretProviderClass: cv}, settable: [mode], secret: licence, fsType: ext4, readOnly: true, podSecurity: restricted, teams: [cv]}
  work: {storageClass: roomy, accessMode: ReadWriteOncePod, size: 1Gi, most: 8Gi}
registries: [registry.example.com, mirror.example.com]
mirrors:
  - {source: registry.example.com/training, mirror: mirror.example.com/training}
dns: {namespace: dns-system, labels: {k8s-app: node-dns}, ports: [53, 5353], addresses: [169.254.20.10/32, 169.254.25.10/32]}
egress:
  s3: [{cidr: 10.40.8.0/24, ports: [443]}, {cidr: 10.41.0.0/16, excluding: [10.41.7.0/24], ports: [443, 9000]}]
  hub: [{cidr: 10.50.0.0/24, ports: [443]}]
proxy: {http: "http://proxy.example.com:3128", https: "http://proxy.example.com:3129", noProxy: [10.0.0.0/8], addresses: [10.1.2.3/32]}
cohorts:
  company: {}
  labs: {parent: company, quota: {h100: {gpus: 8}}, borrow: {h100: {gpus: 8}}, lend: {h100: {gpus: 8}}, weight: 2}
preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
teams:
  cv:
    queue: training
    podSecurity: {level: privileged, reason: Cards of the nodes, until: "2030-01-31"}
    cohort: company
    quota: {cpu: {cpu: 112}, a100: {gpus: 16}, h100: {gpus: 16}, burst: {cpu: 100}}
    borrow: {h100: {gpus: 8}}
    lend: {h100: {gpus: 8}}
    hardQuota: {gpus: 48, storage: {roomy: 64Gi}}
    weight: 3
    serviceAccounts: {sweeps: {reason: The sweep controller reads runs}}
    persistentVolumes:
      slides: {bucket: slide, account: exampleslides, mountOptions: [--use-adls=true], attributes: {resourceGroup: slides}, secret: licence, size: 2Ti, encrypted: true}
      clips: {bucket: eg-clips, authentication: driver}
      corpus: {driver: fsx.csi.aws.com, handle: fs-1, fsType: lustre, attributes: {dnsname: fs-1.example.com, mountname: fsx}, size: 1200Gi}
      home: {nfs: {server: nfs.example.com, path: /exports/home}, size: 1Ti}
    queueingStrategy: StrictFIFO
    admissionMode: UsageBasedAdmissionFairSharing
    localQueues: {training: {weight: 2}, night: {weight: 1}}
  nlp:
    queue: training
    clusterQueue: language
    cohort: labs
    quota: {cpu: {cpu: 60, memory: 200Gi}, a100: {gpus: 16, devices: {rdma/ib-1: 63}}, h100: {gpus: 32, disk: 8Ti}}
    priorities: [low, normal]
    preemption: {withinClusterQueue: Never, reclaimWithinCohort: LowerPriority}
  research:
    queue: training
    cohort: labs
    concurrentAdmission: {migration: TryPreferredFlavors, lastAcceptablePool: h100}
admissionChecks:
  budget: {controller: budget.example.com/check, pools: [h100], teams: [cv, nlp]}
  licences: {external: true}
workloadIdentity: {provider: azure, egress: [hub]}
kueue: {admissionFairSharing: {usageHalfLifeTime: 7d}, resources: {excludeResourcePrefixes: [hugepages-], transformations: {rdma/ib-0: {strategy: Replace, outputs: {example.com/credits: 2}}}}}
secretStore: {name: vault, path: "kv/{team}/{namespace}/{secret}", refresh: 2h}
monitoring: {namespace: watch, ruleLabels: {release: prometheus}, dashboardLabels: {grafana_dashboard: "1"}, pending: 2h}
limits: {workers: 64, objects: {pods: 900, runs: 400, claims: 40}}
defaults: {cpu: 12, env: {TZ: UTC}}
env: {SITE: lab}
"""  # noqa: E501  one line per pool
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
description: Seeing machines
namespace: team-cv
contact: cv@example.com
costCentre: cc-1
groups:
  dataScientists: [cv-scientists, shared]
  mlops: [cv-mlops]
  admins: [cv-admins]
  viewers: [auditors]
debuggers: [{group: cv-on-call, until: "2030-01-31", reason: a hanging launcher}]
clusters: [lab]
claims:
  scans: {accessModes: [ReadOnlyMany, ReadWriteMany], claimName: scans-2026}
  results: {accessModes: [ReadWriteMany], size: 2Ti, storageClass: slow, retention: 365d}
  scratch: {accessModes: [ReadWriteMany], size: 1Ti}
  corpus: {accessModes: [ReadOnlyMany], claimName: corpus-fsx}
  home: {accessModes: [ReadWriteMany], dataSize: 800Gi, retention: 30d}
connections:
  slides: {type: azure-blob, bucket: slide, region: eu-1, prefix: q, mount: blob, readOnly: true, egress: hub}
  clips:
    {bucket: eg-clips, region: eu-1, prefix: q3, endpoint: "https://s.example.com", mount: mountpoint-s3, retention: 90d}
  bucket: {endpoint: "https://s3.example.com", bucket: pics, prefix: "2026", region: eu-1, secret: s3-keys}
  frames: {type: gcs, bucket: frames, prefix: raw, mount: gcsfuse, egress: hub}
  shown: {endpoint: "https://s3.example.com", bucket: films, secret: s3-keys, claim: scans}
secrets: [huggingface, licence]
configMaps: [tuning]
pullSecrets: [registry-pull]
identity:
  azure: {clientId: 11111111-2222-3333-4444-555555555555, tenantId: 66666666-7777-8888-9999-000000000000}
defaults: {memory: 48Gi, priority: low, env: {LOG: info, TZ: CET}, egress: [hub]}
"""  # noqa: E501  one line per bucket
FULL = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
name: full
description: Everything that a spec can say
image: openmpi
command: [python, train.py, --ranks, "{ranks}"]
workers: 4
gpus: 4
slots: 4
gpu: {model: h100-80gb}
cpu: 16
data: {scans: /data, bucket: env, slides: /slides, corpus: /corpus}
env: {SEED: "7", LOG: debug, NODE: {field: spec.nodeName}, ALGO: {configMap: tuning/algo}}
secrets: {env: {HF_TOKEN: huggingface/token}, files: {licence: /opt/licence}}
checkpoint: {to: results, path: /ckpt, everySteps: 200}
mpi: {flags: [--mca, btl, tcp], bindTo: core, mapBy: node}
launcher: {cpu: 3, memory: 6Gi}
network: {posture: restricted, egress: [internet, s3], transport: tcp}
placement: {topology: {preferred: rack}, spread: pack}
timeout: 12h
retries: 2
labels: {example.com/project: mapping}
run: 2
residency: eu
workdir: /workspace
exitCodes: {fail: [42]}
files: {tuning: /etc/tuning, ./ds.json: /etc/ds.json}
queue: night
serviceAccount: sweeps
preflight: true
scratch: {size: 4Gi, path: /mnt/scratch}
volumes: {vault: {path: /vault, attributes: {mode: "0440"}}, work: {path: /work, size: 2Gi}}
setup:
- {name: fetch, command: [python, fetch.py], env: {A: b, C: {configMap: tuning/c}}}
- {command: unpack it, cpu: 2, memory: 2Gi}
sidecars:
- {name: metrics, image: pytorch, env: {LEVEL: info, SEED: "8"}}
- {image: mpich, command: [serve, "1"], cpu: 1}
"""
PLAIN = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi4
command: horovodrun -np {ranks} python train.py
gpus: 2
network: {rdma: auto}
placement: {nodePool: a100, near: [torch, roles], apart: [full]}
scratch: {size: 4Gi, medium: memory}
checkpoint: {to: bucket}
"""
TORCH = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
profile: small
image: pytorch
command: [python, train.py]
data: {shown: /films}
placement: {spread: spread}
elastic: {min: 1, max: 4, restarts: 5}
"""
ROLES = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: pytorch
framework: tensorflow
command: [python, train.py]
workers: 2
gpus: 1
roles:
  chief: {gpus: 2, cpu: 3, env: {A: b, C: {configMap: tuning/c}}}
  ps: {workers: 2, command: [python, serve.py], image: mpich, memory: 8Gi}
"""
STEPS = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi4
command: python train.py
gpus: 2
timeout: 3h
data: {results: /data}
steps:
- {fetch: hf://example/llama-1b@8f5d2b1, to: /data/llama, secret: huggingface/token, image: pytorch}
- {name: frames, fetch: bucket/raw, to: /data/frames, image: pytorch, timeout: 9m, cpu: 3}
- {name: tokenize, command: [python, tokenize.py], gpus: 1, env: {A: b, C: {configMap: tuning/c}}}
"""
CATALOG = workspaces.CATALOG.replace("framework: torch\n", "framework: torch\n    fetches: [hf, s3]\n")
CATALOG = CATALOG.replace(
    'version: "5.0.8"}\n', 'version: "5.0.8"}\n    preflight: /usr/local/bin/gangplan-preflight\n'
)
WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: bucket-residency
scope: {cluster: lab, team: cv, job: full}
reason: The bucket moves to another region in spring, and nothing in it is personal.
approver: platform@example.com
expires: "2027-05-31"
"""
OTHER = "apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n"
PATCHES = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: TrainingRuntime}
  patch: |-
    - op: add
      path: /spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/env/0
      value: {name: PATCHED, value: first}
- target: {kind: Namespace}
  path: labels.yaml
"""
LABELS = "- op: add\n  path: /metadata/labels/example.com~1site\n  value: north\n"


def everything(root: Path) -> Path:
    """Write the workspace: one cluster, three teams, five specs, two patches, a waiver."""
    return write(
        root,
        {
            "overlays/lab/cluster.yaml": CLUSTER,
            "overlays/lab/kustomization.yaml": PATCHES,
            "overlays/lab/labels.yaml": LABELS,
            "images/catalog.yaml": CATALOG,
            "policies/waivers/bucket.yaml": WAIVER,
            "specs/cv/team.yaml": TEAM,
            "specs/nlp/team.yaml": OTHER,
            "specs/research/team.yaml": OTHER,
            "specs/cv/full.yaml": FULL,
            "specs/cv/ds.json": "{}\n",
            "specs/cv/plain.yaml": PLAIN,
            "specs/cv/torch.yaml": TORCH,
            "specs/cv/roles.yaml": ROLES,
            "specs/cv/steps.yaml": STEPS,
        },
    )
