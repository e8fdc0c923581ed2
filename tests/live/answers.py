"""Answers in the form of API servers, written by hand and shortened to what is read."""

from __future__ import annotations

from typing import Any

KUEUE, TRAINER = "kueue.x-k8s.io/v1beta2", "trainer.kubeflow.org/v1alpha1"


def group(name: str, *versions: str) -> dict[str, Any]:
    """Return a group of /apis; its first version is the preferred one."""
    known = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": known, "preferredVersion": known[0]}


def resources(*names: str) -> dict[str, Any]:
    """Return an APIResourceList with resources such as `trainjobs/TrainJob`; those that end in ! have no
    namespace."""
    found = []
    for one in names:
        name, _, kind = one.rstrip("!").partition("/")
        found.append({"name": name, "kind": kind, "namespaced": not one.endswith("!")})
    return {"kind": "APIResourceList", "resources": found}


def node(name: str, pool: str = "", gpus: int = 0, **more: Any) -> dict[str, Any]:
    """Return a node of the pools of tests/workspaces.py."""
    cpu, memory = ("124", "1900Gi") if gpus else ("60", "240Gi")
    labels = {
        "kubernetes.io/hostname": name,
        "topology.example.com/rack": "r1",
        **({"pool": pool} if pool else {}),
    }
    return {
        "metadata": {"name": name, "labels": more.pop("labels", labels)},
        "spec": more.pop("spec", {}),
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {
                "cpu": cpu,
                "memory": memory,
                **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
                **more,
            },
        },
    }


QUEUE = {
    "metadata": {"name": "nlp", "uid": "1", "managedFields": []},
    "spec": {"cohortName": "training", "resourceGroups": []},
    "status": {
        "pendingWorkloads": 1,
        "flavorsUsage": [
            {"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": "8", "borrowed": "0"}]}
        ],
        "conditions": [{"type": "Active", "status": "True"}],
    },
}
RUN = {
    "metadata": {
        "name": "filings-0a1b2c3d",
        "namespace": "nlp",
        "labels": {
            "gangplan.dev/run": "filings-0a1b2c3d",
            "gangplan.dev/team": "nlp",
            "gangplan.dev/job": "filings",
        },
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    },
    "spec": {"trainer": {"env": [{"name": "TOKEN", "value": "hunter2"}]}},
    "status": {
        "conditions": [{"type": "Suspended", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    },
}
CLUSTER: dict[str, Any] = {
    "/version": {"gitVersion": "v1.34.4"},
    "/apis": {
        "groups": [
            group("apps", "v1"),
            group("trainer.kubeflow.org", "v1alpha1"),
            group("jobset.x-k8s.io", "v1alpha2"),
            group("kueue.x-k8s.io", "v1beta2", "v1beta1"),
        ]
    },
    f"/apis/{TRAINER}": resources(
        "trainjobs/TrainJob", "trainjobs/status/TrainJob", "trainingruntimes/TrainingRuntime"
    ),
    "/apis/jobset.x-k8s.io/v1alpha2": resources("jobsets/JobSet"),
    f"/apis/{KUEUE}": resources(
        "clusterqueues/ClusterQueue!",
        "localqueues/LocalQueue",
        "resourceflavors/ResourceFlavor!",
        "workloads/Workload",
    ),
    f"/openapi/v3/apis/{TRAINER}": {
        "components": {
            "schemas": {
                "org.kubeflow.trainer.v1alpha1.TrainJob": {
                    "properties": {
                        "spec": {
                            "properties": {"runtimePatches": {}, "activeDeadlineSeconds": {}, "trainer": {}}
                        }
                    }
                }
            }
        }
    },
    "/api/v1/nodes": [
        *(node(f"cpu-{number}") for number in range(4)),
        *(node(f"gpu-{number}", "a100", 8) for number in range(4)),
        *(node(f"spot-{number}", "spot", 8) for number in range(4)),
    ],
    "/apis/apps/v1/deployments": [
        {
            "metadata": {"name": "kueue-controller-manager", "labels": {}},
            "spec": {
                "template": {"spec": {"containers": [{"image": "registry.k8s.io/kueue/kueue:v0.19.2"}]}}
            },
        },
        {
            "metadata": {"name": "trainer", "labels": {"app.kubernetes.io/version": "v2.3.0"}},
            "spec": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "image": f"ghcr.io/kubeflow/trainer/trainer-controller-manager@sha256:{'0' * 64}"
                            }
                        ]
                    }
                }
            },
        },
    ],
    "/apis/storage.k8s.io/v1/storageclasses": [],
    "/apis/node.k8s.io/v1/runtimeclasses": [],
    f"/apis/{KUEUE}/clusterqueues": [QUEUE],
    f"/apis/{KUEUE}/localqueues": [],
    f"/apis/{KUEUE}/resourceflavors": [],
    "/api/v1/resourcequotas": [],
    f"/apis/{TRAINER}/trainjobs": [RUN],
}
