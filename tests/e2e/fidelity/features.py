"""Rarely used fields for random worlds, and what clusters and images need for them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Object = dict[str, Any]
Feature = Callable[[Random, Object], None]
REGISTRY = "registry.example.com/tools"
MOUNTED = {"scratch": "/scratch"}
PORT = [{"cidr": "10.50.0.0/24", "ports": [443]}]
# Nothing is pulled: any digest will do.
DIGEST = "sha256:9384f5ec682b7697960f72c3f2bf797d7b7d3a2948211afedccbbaa998877665"
TOOLS: dict[str, Object] = {
    "tensorflow": {"framework": "tensorflow"},
    "plain": {"framework": "plain"},
    "fetcher": {"framework": "plain", "fetches": ["hf", "s3"]},
    "kubectl": {"framework": "plain", "user": {"uid": 65532, "gid": 65532}},
}
CHECKED = ("openmpi", "mpich")
BY_MPI = ("openmpi", "openmpi-cuda", "horovod", "intel-hpc", "mpich")


def offer(cluster: Object, mpi_operator: str = "") -> None:
    """Let a cluster file offer what the fields need: volumes, egress, a client for schedules."""
    if mpi_operator:
        cluster["versions"]["mpiOperator"] = mpi_operator
    cluster["environment"] = "dev"  # the only one that keeps pods of failed runs
    classes = cluster.setdefault("storageClasses", {})
    if not any(one.get("default") for one in classes.values()):
        classes["shared"] = {"accessModes": ["ReadWriteMany", "ReadOnlyMany"], "default": True}
    classes["fast"] = {"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]}
    cluster["volumes"] = {
        "vault": {"driver": "secrets-store.csi.k8s.io", "attributes": {"secretProviderClass": "vault"}},
        "certs": {"driver": "csi.cert-manager.io", "settable": ["csi.cert-manager.io/dns-names"]},
        "work": {
            "storageClass": "fast",
            "accessMode": "ReadWriteOncePod",
            "size": "10Gi",
            "most": "1Ti",
        },
    }
    cluster["volumes"]["vault"]["readOnly"] = True
    cluster["egress"] |= {"huggingface": PORT, "kubernetes": PORT}
    cluster["schedules"] = {"client": "kubectl", "egress": ["kubernetes"]}


def supply(images: Object) -> None:
    """Add the images to a catalog."""
    for name, entry in TOOLS.items():
        images[name] = {"repository": f"{REGISTRY}/{name}", "digest": DIGEST, **entry}
    for name in CHECKED:
        images[name]["preflight"] = "/usr/local/bin/gangplan-preflight"


def add(random: Random, spec: Object) -> None:
    """Add some of the fields, each rarely. Not all can be combined, and gangplan refuses those that
    cannot."""
    for feature, chance in FEATURES.items():
        if random.random() < chance:
            feature(random, spec)


def _roles(random: Random, spec: Object) -> None:
    for name in ("gpus", "mpi", "launcher", "slots", "cpu", "memory"):
        spec.pop(name, None)
    if random.random() < 0.5:
        spec |= {"image": "tensorflow", "command": ["python", "train.py"]}
        roles: Object = {
            "ps": {"workers": random.randint(1, 3), "memory": "8Gi"},
            "chief": {},
            "evaluator": {},
        }
        roles["evaluator"] = {"command": ["python", "judge.py"], "cpu": 1}
    else:
        spec |= {"image": "plain", "command": ["solve", "--cells", "1e3"]}
        roles = {"loader": {"workers": 2, "cpu": "500m", "env": {"CACHE": "off", "N": 3}}, "y": {}}
    spec["roles"] = {
        name: roles[name] for name in random.sample(sorted(roles), random.randint(1, len(roles)))
    }


def _elastic(random: Random, spec: Object) -> None:
    for name in ("workers", "mpi", "launcher", "slots", "roles", "exitCodes"):
        spec.pop(name, None)
    least = random.randint(1, 3)
    spec |= {"image": "pytorch", "command": ["python", "train.py"]}
    spec["elastic"] = {"min": least, "max": least + random.randint(1, 3), "restarts": random.choice([1, 10])}


def _steps(random: Random, spec: Object) -> None:
    spec["data"] = {**spec.get("data", {}), **MOUNTED}
    steps: list[Object] = [
        {"fetch": "hf://example/llama-1b@8f5d2b1", "to": "/scratch/llama", "image": "fetcher"},
        {"name": "scans", "fetch": "market/q3", "to": "/scratch/q3", "image": "fetcher", "timeout": "10m"},
        {"command": ["sort", "{{ a }}", "~", ""], "cpu": 2, "env": {"Y": "no"}},
    ]
    if random.random() < 0.5:
        steps[0]["secret"] = "hub.token/key.pem"  # a reference
    spec["steps"] = random.sample(steps, random.randint(1, 3))


def _volumes(random: Random, spec: Object) -> None:
    names = "csi.cert-manager.io/dns-names"
    volumes: Object = {
        "vault": "/mnt/secrets",
        "certs": {
            "path": "/tls",
            "attributes": {names: random.choice(["job.example.com", "1e3", "{{ x }}"])},
        },
        "work": {"path": "/work", "size": random.choice(["500Gi", "1Ti", "10240Mi"])},
    }
    spec["volumes"] = {name: volumes[name] for name in random.sample(sorted(volumes), random.randint(1, 3))}


def _containers(random: Random, spec: Object) -> None:
    if random.random() < 0.7:
        spec["setup"] = [{"command": ["python", "fetch.py", "# no comment"], "env": {"PARTS": 4}}]
        if random.random() < 0.5:
            spec["setup"].append(
                {"name": "sort", "command": "sh -c 'sort /tmp/x'", "cpu": 1, "memory": "2Gi"}
            )
    if random.random() < 0.7:
        sidecars: list[Object] = [{"name": "metrics", "image": "plain", "cpu": "250m", "memory": "256Mi"}]
        sidecars.append(
            {"command": ["python", "sync.py", "two\nlines"], "env": {"NODE": {"field": "spec.nodeName"}}}
        )
        spec["sidecars"] = random.sample(sidecars, random.randint(1, 2))


def _pods(random: Random, spec: Object) -> None:
    spec["workdir"] = random.choice(["/workspace", "/a b"])
    spec["scratch"] = random.choice(
        [{"size": "1Gi", "medium": "memory", "path": "/tmp/s"}, {"size": "3Gi", "path": "/var/x"}]
    )
    spec["gracePeriod"] = random.choice(["30s", "5m"])
    spec["env"] = {
        **spec.get("env", {}),
        "ROOM": {"resource": "limits.memory"},
        "NODE": {"field": "spec.nodeName"},
    }
    if random.random() < 0.5:
        spec["retries"] = 2
        spec["exitCodes"] = random.choice([{"fail": [42]}, {"retry": [143, 137]}])


def _preflight(random: Random, spec: Object) -> None:
    spec["preflight"] = True
    if spec["image"] not in CHECKED:
        for name in ("roles", "elastic", "mpi"):
            spec.pop(name, None)
        spec |= {"image": random.choice(CHECKED), "command": ["python", "train.py"]}


def _debug(random: Random, spec: Object) -> None:
    spec["debug"] = {"until": random.choice(["2026-12-01", "2027-02-28"])}
    spec.pop("retries", None)


def _schedule(random: Random, spec: Object) -> None:
    spec["schedule"] = {"cron": random.choice(["@daily", "0 22 * * SUN", "*/30 1-5 1,15 * MON-FRI"])}
    if random.random() < 0.6:
        spec["schedule"] |= {
            "timeZone": "Europe/Berlin",
            "startingDeadline": "2h",
            "keep": random.randint(1, 9),
        }
    for name in ("run", "state"):
        spec.pop(name, None)
    if random.random() < 0.2:
        spec["state"] = "stopped"


def _mpijob(random: Random, spec: Object) -> None:
    """Choose the other backend, where the cluster has both, without fields that only a TrainJob can have."""
    for name in ("roles", "elastic", "exitCodes", "schedule", "debug"):
        spec.pop(name, None)
    if spec["image"] not in BY_MPI:
        spec |= {"image": random.choice(BY_MPI), "command": ["python", "train.py"], "workers": 2}
        if spec["image"] == "intel-hpc":
            spec["mpi"] = {"licenseAcknowledged": True}
    spec["backend"] = "mpijob"


FEATURES: dict[Feature, float] = {
    _roles: 0.15,
    _elastic: 0.1,
    _steps: 0.15,
    _volumes: 0.15,
    _containers: 0.2,
    _pods: 0.2,
    _preflight: 0.1,
    _debug: 0.1,
    _schedule: 0.12,
    _mpijob: 0.2,  # last: it removes what does not go with it
}


def prefer_kind(kind: str) -> None:
    """Let every random run of this process be of a kind, if it is that of a backend."""
    if kind == "MPIJob":
        FEATURES[_mpijob] = 1.0


def swept(spec: Object) -> Object:
    """Return a sweep of two trials of a job."""
    own = ("apiVersion", "kind", "name", "schedule", "state")
    template = {key: value for key, value in spec.items() if key not in own}
    command = template["command"] if isinstance(template["command"], list) else template["command"].split()
    template["command"] = [*command, "--lr=${{ parameters.lr }}", "${{ trial.name }}"]
    head = {"apiVersion": spec["apiVersion"], "kind": "Sweep", "name": spec["name"]}
    return {**head, "parameters": {"grid": {"lr": [1e-4, "a b"]}}, "maxConcurrent": 2, "template": template}
