"""Take installation manifests from a program's module, as plain objects."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from .programs import Program

Object = dict[str, Any]

#: The kinds of an upstream installation that a control plane without pods needs.
KEPT = {
    "ConfigMap",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "Namespace",
    "ValidatingWebhookConfiguration",
}

#: KWOK's own simulation of a node's life; the lab has its own for pods.
KWOK_FILES = (
    "crd/bases/*_stages.yaml",
    "stage/node/fast/node-initialize.yaml",
    "stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
)

#: Programs whose manifests kustomize builds.
BUILT = ("jobset", "kueue", "trainer")

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str) -> list[Object]:
    """Return the objects of a YAML stream."""
    return [item for item in yaml.load_all(text, Loader=_Loader) if item]


def manifests(program: Program, module: Path, kustomize: Path) -> list[Object]:
    """Return the objects that must be in the cluster before a program starts."""
    takers: dict[str, Callable[[], list[Object]]] = {
        "jobset": lambda: _built(module / "config", "default", kustomize),
        "kueue": lambda: _built(module / "config", "default", kustomize),
        "trainer": lambda: _built(module / "manifests", "overlays/manager", kustomize),
        "mpi-operator": lambda: _files(module / "manifests/base", "kubeflow.org_mpijobs.yaml"),
        "training-operator": lambda: _files(module / "manifests/base/crds", "kubeflow.org_[!m]*.yaml"),
        "kwok": lambda: _files(module / "kustomize", *KWOK_FILES),
        "argocd": lambda: _files(module / "manifests/crds", "*-crd.yaml"),
        "katib-check": lambda: _files(module / "manifests/v1beta1/components/crd", "experiment.yaml"),
        "source-controller": lambda: _files(module / "config/crd/bases", "*.yaml"),
        "kustomize-controller": lambda: _files(module / "config/crd/bases", "*.yaml"),
    }
    taker = takers.get(program.name)
    return taker() if taker else []


def _files(folder: Path, *patterns: str) -> list[Object]:
    """Return the objects of some of a folder's files."""
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return [item for path in paths for item in read(path.read_text())]


def _built(folder: Path, target: str, kustomize: Path) -> list[Object]:
    """Build an upstream installation, and keep what the lab needs of it."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "upstream"
        shutil.copytree(folder, copy, copy_function=shutil.copyfile)
        for path in copy.rglob("kustomization.yaml"):
            lines = path.read_text().splitlines(keepends=True)
            # Trainer fetches a JobSet from a remote address; the lab has its own.
            path.write_text("".join(line for line in lines if "third-party/jobset" not in line))
        command = [str(kustomize), "build", str(copy / target)]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
    return [item for item in read(output.stdout) if item["kind"] in KEPT]


def configuration(objects: list[Object]) -> Object:
    """Return the controller's configuration among its installation manifests."""
    for item in objects:
        if item["kind"] == "ConfigMap" and "controller_manager_config.yaml" in item["data"]:
            (found,) = read(item["data"]["controller_manager_config.yaml"])
            return found
    raise LookupError("no controller_manager_config.yaml among the manifests")
