"""A small shared cluster that is right, for tables of mistakes."""

from __future__ import annotations

from pathlib import Path

from tests.workspaces import CATALOG, write

CLUSTER = """\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}
region: eu-central
location: on-prem
nodePools:
  cpu: {count: 4, cpu: 60, memory: 240Gi, labels: {pool: cpu}}
  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}, taints: [{key: gpu, effect: NoSchedule}]}
  h100: {count: 8, cpu: 184, memory: 1900Gi, gpu: {model: h100-80gb, count: 8}, labels: {pool: h100}, taints: [{key: gpu, effect: NoSchedule}], topology: true}
topology:
  - {name: block, label: topology.example.com/block, nodes: 8}
  - {name: rack, label: topology.example.com/rack, nodes: 4}
  - {name: host, label: kubernetes.io/hostname, nodes: 1}
cohorts:
  company: {}
  labs: {parent: company, quota: {h100: {gpus: 8}}, borrow: {h100: {gpus: 8}}, lend: {h100: {gpus: 8}}}
preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
teams:
  cv:
    queue: training
    cohort: company
    quota: {cpu: {cpu: 120}, a100: {gpus: 16}, h100: {gpus: 16}}
    borrow: {h100: {gpus: 8}}
    lend: {h100: {gpus: 8}}
    hardQuota: {gpus: 40}
  nlp:
    queue: training
    cohort: labs
    quota: {cpu: {cpu: 60}, a100: {gpus: 16}, h100: {gpus: 32}}
    priorities: [low, normal]
  research:
    queue: training
    cohort: labs
    quota: {cpu: {cpu: 60}, h100: {gpus: 8}}
limits: {workers: 64}
"""
SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, train.py]
workers: 2
gpus: 4
"""
TEAMS = ("cv", "nlp", "research")


def workspace(root: Path) -> Path:
    """Write the cluster, its three teams, and a spec of each."""
    files = {"overlays/lab/cluster.yaml": CLUSTER, "images/catalog.yaml": CATALOG}
    for team in TEAMS:
        files[f"specs/{team}/team.yaml"] = (
            f"apiVersion: gangplan.dev/v1\nkind: Team\nnamespace: team-{team}\nclusters: [lab]\n"
            + ("groups: {dataScientists: [cv-scientists]}\n" if team == "cv" else "")
        )
        files[f"specs/{team}/train.yaml"] = SPEC
    return write(root, files)
