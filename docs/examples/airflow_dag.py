"""Runs of gangplan in Airflow 2.10 or later: each task creates a run from its template and waits for it.

Apply rendered/ with an engine first, with pipelines: {engine: tekton} or kfp in cluster.yaml, so that no Job
waits next to this DAG. RUNS names the runs, as `gangplan pipeline tekton` does. The pods are those of a
waiting Job of gangplan, so that the cluster's policies, quotas and network let them through.
"""

from __future__ import annotations

import datetime

from airflow import DAG
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

NAMESPACE = "research"
DIGEST = "2c1f8d75f1b40f3e2d3e0b5c9b4802040604b3c2d1aa99887766554433220011"
CLIENT = f"registry.example.com/tools/kubectl@sha256:{DIGEST}"
# Each run, whether it is created here (and not by an engine), and what it comes after.
RUNS = {
    "features": ("features-4c5fe5f3", False, ()),
    "train": ("train-fcbc34ff", True, ("features",)),
    "evaluate": ("evaluate-ef99115d", True, ("train", "features")),
    "register": ("register-bdf432ca", True, ("evaluate",)),
}
LABELS = {
    "app.kubernetes.io/managed-by": "gangplan",
    "gangplan.dev/cost-centre": "1007",
    "gangplan.dev/role": "scheduler",
    "gangplan.dev/team": "research",
    "sidecar.istio.io/inject": "false",
}
AMOUNT = {"cpu": "100m", "memory": "128Mi"}
SCRIPT = r"""
set -eu
run=$1
while :; do
  if found=$(kubectl get trainjobs.trainer.kubeflow.org "$run" --ignore-not-found --output=jsonpath='{.metadata.name}{" "}{.metadata.annotations.gangplan\.dev/state}{" "}{.status.conditions[?(@.status=="True")].type}'); then
    case " $found " in
    *" Complete "*) exit 0 ;;
    *" Failed "*) echo "run $run failed" >&2; exit 75 ;;
    *" stopped "*) echo "run $run was stopped before it was complete" >&2; exit 75 ;;
    "  ") [ "$2" != create ] || kubectl create --filename=/template/run.yaml ;;
    esac
  fi
  sleep 30
done
"""  # noqa: E501  one question


def pod(run: str, is_optional: bool) -> dict[str, object]:
    """The pod that creates a run and waits for it; the operator adds the command."""
    container = {
        "name": "base",  # the operator's name for it
        "image": CLIENT,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {"requests": AMOUNT, "limits": AMOUNT},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "template", "mountPath": "/template", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    spec = {
        "serviceAccountName": "gangplan-scheduler",
        "automountServiceAccountToken": True,  # the account itself gives none
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 135,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "nodeSelector": {"kubernetes.io/os": "linux", "pool": "cpu"},
        "tolerations": [{"key": "training", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [
            {"name": "template", "configMap": {"name": f"{run}-template", "optional": is_optional}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": LABELS}, "spec": spec}


def step(name: str, run: str, is_created: bool) -> KubernetesPodOperator:
    """A task for a run. It is not tried again: that is for the run, which keeps its name when it fails."""
    return KubernetesPodOperator(
        task_id=name,
        name=name,
        namespace=NAMESPACE,
        pod_template_dict=pod(run, not is_created),
        cmds=["/bin/sh", "-c", SCRIPT, "wait"],
        arguments=[run, "create" if is_created else "leave"],
        retries=0,
        on_finish_action="delete_succeeded_pod",
    )


with DAG("research", start_date=datetime.datetime(2026, 1, 1), schedule=None, catchup=False) as dag:
    tasks = {name: step(name, run, is_created) for name, (run, is_created, _) in RUNS.items()}
    for name, (_, _, earlier) in RUNS.items():
        for one in earlier:
            tasks[one] >> tasks[name]
