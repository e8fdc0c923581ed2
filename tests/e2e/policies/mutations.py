"""Rendered objects changed at random by seed, in ways that policies look at."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from gangplan.objects import walk_leaves

Object = dict[str, Any]
DIGEST = "@sha256:" + "ab" * 32
IMAGES = (
    "docker.io/library/python:3.12",
    "python",
    "registry.example.com/x:latest",
    f"registry.example.com/training/openmpi{DIGEST}",
    "registry.example.com:5000/a/b:1.2",
    "",
)
TEXTS = (
    "",
    "true",
    "x",
    "eu",
    "us-east-1",
    "training-high",
    "10.0.0.0/8",
    "0.0.0.0/0",
    "UDP",
    "Unconfined",
    "Localhost",
)
NUMBERS = (0, 1, -1, 29, 30, 86_400, 604_801, 65_535, 2**31 - 1)
CONTEXTS: tuple[Object, ...] = (
    {"privileged": True},
    {"allowPrivilegeEscalation": True},
    {"runAsUser": 0},
    {"runAsNonRoot": False},
    {"capabilities": {"add": ["SYS_ADMIN"]}},
    {"capabilities": {"drop": ["NET_RAW"]}},
    {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
    {"seccompProfile": {"type": "Unconfined"}},
    {"procMount": "Unmasked"},
    {"seLinuxOptions": {"user": "u"}},
    {},
)
VOLUMES: tuple[Object, ...] = (
    {"hostPath": {"path": "/etc"}},
    {"emptyDir": {}},
    {"emptyDir": {"sizeLimit": "1Gi"}},
    {"nfs": {"server": "nfs.example.com", "path": "/"}},
    {"persistentVolumeClaim": {"claimName": "notes"}},
)
POD: tuple[Object, ...] = (
    {"hostNetwork": True},
    {"hostPID": True},
    {"hostIPC": True},
    {"automountServiceAccountToken": True},
    {"priorityClassName": "system-node-critical"},
    {"terminationGracePeriodSeconds": 5},
    {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}},
    {"nodeSelector": {"topology.kubernetes.io/region": "us-east-1"}},
)
LABELS = (
    "gangplan.dev/team",
    "gangplan.dev/job",
    "gangplan.dev/run",
    "gangplan.dev/cost-centre",
    "gangplan.dev/hipaa",
    "gangplan.dev/gdpr",
    "gangplan.dev/residency",
    "gangplan.dev/waived-image-digest",
    "kueue.x-k8s.io/priority-class",
)


def pods_of(body: Object) -> list[Object]:
    """Return every pod spec in an object."""
    found: list[Object] = []

    def search(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("containers"), list):
                found.append(value)
            for inner in value.values():
                search(inner)
        elif isinstance(value, list):
            for inner in value:
                search(inner)

    search(body)
    return found


def mutated(body: Object, random: Random) -> Object:
    """Return a copy with one to three changes."""
    result = copy.deepcopy(body)
    for _ in range(random.randint(1, 3)):
        random.choice((_label, _pod, _container, _volume, _leaf, _leaf, _drop, _network))(result, random)
    return result


def _label(body: Object, random: Random) -> None:
    labels = body["metadata"].setdefault("labels", {})
    name = random.choice([*LABELS, *labels])
    if name in labels and random.random() < 0.5:
        del labels[name]
    else:
        labels[name] = random.choice(("", "true", "eu", "x", "cc-1", "research"))


def _pod(body: Object, random: Random) -> None:
    for pod in pods_of(body)[: random.randint(1, 2)]:
        pod.update(copy.deepcopy(random.choice(POD)))


def _container(body: Object, random: Random) -> None:
    containers = [one for pod in pods_of(body) for one in pod["containers"] if isinstance(one, dict)]
    if not containers:
        return
    container = random.choice(containers)
    kind = random.randrange(4)
    if kind == 0:
        container["image"] = random.choice(IMAGES)
    elif kind == 1:
        container.setdefault("securityContext", {}).update(copy.deepcopy(random.choice(CONTEXTS)))
    elif kind == 2:
        container["ports"] = [{"containerPort": 80, "hostPort": random.choice((0, 80))}]
    else:
        secret = {
            "name": random.choice(("DB_PASSWORD", "token", "PATH")),
            "value": random.choice(("s3cr3t", "")),
        }
        container.setdefault("env", []).append(secret)


def _volume(body: Object, random: Random) -> None:
    pods = pods_of(body)
    if pods:
        volume = {"name": f"extra-{random.randrange(1000)}", **copy.deepcopy(random.choice(VOLUMES))}
        random.choice(pods).setdefault("volumes", []).append(volume)


def _network(body: Object, random: Random) -> None:
    if body["kind"] != "NetworkPolicy":
        return
    way = random.choice(("ingress", "egress"))
    peers: tuple[Any, ...] = (
        {},
        {
            "to" if way == "egress" else "from": [
                {"ipBlock": {"cidr": random.choice(("0.0.0.0/0", "10.40.8.0/24"))}}
            ]
        },
        {"ports": [{"port": 443}]},
        {"to" if way == "egress" else "from": [{"namespaceSelector": {}}]},
    )
    rules = body["spec"].setdefault(way, [])
    if isinstance(rules, list):
        rules.append(random.choice(peers))


def _leaf(body: Object, random: Random) -> None:
    """Set another value of the same type somewhere in the spec or the metadata."""
    leaves = [
        (path, value)
        for path, value in walk_leaves(body)
        if path[0] in ("spec", "metadata")
        and path != ("metadata", "name")
        and path != ("metadata", "namespace")
    ]
    if not leaves:
        return
    path, value = random.choice(leaves)
    node: Any = body
    for step in path[:-1]:
        node = node[step]
    if isinstance(value, bool):
        node[path[-1]] = not value
    elif isinstance(value, int):
        node[path[-1]] = random.choice(NUMBERS)
    elif isinstance(value, str):
        node[path[-1]] = random.choice(TEXTS)


def _drop(body: Object, random: Random) -> None:
    """Remove a field or an entry."""
    paths = [path for path, _ in walk_leaves(body) if path[0] == "spec"]
    if not paths:
        return
    path = random.choice(paths)
    path = path[: random.randint(2, len(path))] if len(path) > 1 else path
    node: Any = body
    for step in path[:-1]:
        node = node[step]
    if isinstance(node, dict | list):
        del node[path[-1]]
