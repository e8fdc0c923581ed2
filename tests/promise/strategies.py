"""Random patches on the objects of a run, at places where a patch can matter; some are harmless."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.promise.patched import Operation

Patch = tuple[str, list[Operation]]
POD = "LAUNCHER", "NODE"
JOB = "LAUNCHERS", "WORKERS"
IMAGE = "openmpi@sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
CONTAINER = {
    "name": "logs",
    "image": "registry.example.com/fluent-bit:4",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    },
    "resources": {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "100m", "memory": "64Mi"},
    },
}
# Kind, path, and values for `add`, which also replaces. Values that are planned are among them.
ADDED: list[tuple[str, str, list[Any]]] = [
    ("TrainJob", "/spec/trainer/numNodes", [1, 2, 4, 5]),
    ("TrainJob", "/spec/trainer/numProcPerNode", [1, 2, 3]),
    ("TrainJob", "/spec/trainer/image", ["other:1", f"mirror.example.net/{IMAGE}"]),
    ("TrainJob", "/spec/trainer/args", [["mpirun", "-np", "1", "true"], []]),
    ("TrainJob", "/spec/trainer/env", [[{"name": name, "value": "1"}] for name in ("LEVEL", "HTTPS_PROXY")]),
    ("TrainJob", "/metadata/labels/example.com~1tier", ["gold"]),
    ("TrainingRuntime", "/spec/mlPolicy/numNodes", [1, 2, 3]),
    ("TrainingRuntime", "/spec/mlPolicy/mpi/numProcPerNode", [1, 2, 7]),
    ("TrainingRuntime", "/spec/mlPolicy/mpi/runLauncherAsNode", [True, False]),
    ("TrainingRuntime", "/spec/template/spec/network/enableDNSHostnames", [True, False]),
    ("TrainingRuntime", "/spec/template/spec/network/subdomain", ["training"]),
    ("TrainingRuntime", "/spec/template/spec/successPolicy/targetReplicatedJobs/0", ["node", "launcher"]),
    *[("TrainingRuntime", f"{job}/replicas", [1, 2]) for job in JOB],
    *[("TrainingRuntime", f"{job}/template/spec/backoffLimit", [0, 3]) for job in JOB],
    *[("TrainingRuntime", f"{job}/template/spec/completionMode", ["Indexed", "NonIndexed"]) for job in JOB],
    *[("TrainingRuntime", f"{job}/template/spec/parallelism", [1, 3]) for job in JOB],
    *[
        ("TrainingRuntime", f"{pod}/containers/0/image", ["other:1", f"mirror.example.net/{IMAGE}"])
        for pod in POD
    ],
    *[("TrainingRuntime", f"{pod}/containers/0/command", [["sleep", "9"]]) for pod in POD],
    *[("TrainingRuntime", f"{pod}/restartPolicy", ["Never", "OnFailure"]) for pod in POD],
    *[("TrainingRuntime", f"{pod}/securityContext/runAsUser", [1000, 2000]) for pod in POD],
    *[("TrainingRuntime", f"{pod}/hostAliases", [[{"ip": "10.0.0.1", "hostnames": ["a"]}]]) for pod in POD],
    *[("TrainingRuntime", f"{pod}/dnsPolicy", ["ClusterFirst", "Default"]) for pod in POD],
    *[("TrainingRuntime", f"{pod}/runtimeClassName", ["nvidia"]) for pod in POD],
    *[
        (
            "TrainingRuntime",
            f"{pod}/tolerations",
            [[{"key": "example.com/gpu", "operator": "Exists"}]],
        )
        for pod in POD
    ],
    *[("TrainingRuntime", f"{pod}/containers/-", [CONTAINER]) for pod in POD],
    ("TrainingRuntime", "LAUNCHER/containers/0/args/2", ["8", "9"]),
    ("TrainingRuntime", "LAUNCHER/containers/0/args/1", ["--verbose", "--host=a,b", "-np"]),
    ("TrainingRuntime", "LAUNCHERS/dependsOn", [[{"name": "node", "status": "Complete"}]]),
    (
        "TrainingRuntime",
        "LAUNCHER/containers/0/env/-",
        [
            {"name": name, "value": "1"}
            for name in ("NCCL_DEBUG", "PRTE_MCA_ras_base_hostfile", "PRTE_MCA_plm", "UCX_TLS")
        ],
    ),
]
REMOVED = [
    ("TrainJob", "/spec/trainer/numNodes"),
    ("TrainJob", "/spec/trainer/numProcPerNode"),
    ("TrainJob", "/spec/activeDeadlineSeconds"),
    ("TrainingRuntime", "LAUNCHERS/dependsOn"),
    ("TrainingRuntime", "/spec/template/spec/successPolicy"),
    ("TrainingRuntime", "/spec/template/spec/network"),
    ("TrainingRuntime", "NODE/securityContext/fsGroup"),
    ("TrainingRuntime", "LAUNCHER/containers/0/env"),
    ("TrainingRuntime", "LAUNCHER/containers/0/args/LAST"),
    ("TrainingRuntime", "NODE/containers/0/startupProbe"),
]


def _added() -> st.SearchStrategy[tuple[str, Operation]]:
    return st.sampled_from(ADDED).flatmap(
        lambda row: st.sampled_from(row[2]).map(
            lambda value: (row[0], {"op": "add", "path": row[1], "value": value})
        )
    )


def patches(least: int = 1, most: int = 3) -> st.SearchStrategy[Patch]:
    """Draw operations on one kind of object of a run (`TrainJob` or `TrainingRuntime`), for `verdict`."""
    removed = st.sampled_from(REMOVED).map(lambda row: (row[0], {"op": "remove", "path": row[1]}))
    every = st.lists(st.one_of(_added(), _added(), removed), min_size=least, max_size=most)
    return every.map(lambda chosen: _of_one_kind(chosen))


def _of_one_kind(chosen: list[tuple[str, Operation]]) -> Patch:
    """Return the operations for the kind of the first one, each path once."""
    kind, operations = chosen[0][0], dict[str, Operation]()
    for other, operation in chosen:
        if other == kind:
            operations.setdefault(operation["path"], operation)
    return kind, list(operations.values())
