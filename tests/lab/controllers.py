"""JobSet, Trainer, Kueue and KWOK: configuration, command, environment, probes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import assets, build, programs
from .programs import KUEUE_METRICS_CERTS
from .site import Site

Object = dict[str, Any]

MANAGERS = ("jobset", "trainer", "kueue")


@dataclass(frozen=True)
class Manager:
    """One controller manager, ready to start."""

    name: str
    command: list[str]
    environment: dict[str, str]
    manifests: list[Object]
    webhook_port: int
    health_port: int


def manager(site: Site, name: str, settings: Mapping[str, Any]) -> Manager:
    """Prepare a controller manager with its own upstream configuration and our ports."""
    program = site.profile.program(name)
    manifests = json.loads((build.home(program) / "manifests.json").read_text())
    folder = site.folder / name
    webhook, health = site.ports.take(), site.ports.take()
    certificates = folder / "k8s-webhook-server" / "serving-certs"
    site.identity.link(certificates)
    moved = _moved(name, webhook, health, certificates)
    file = folder / "configuration.yaml"
    file.write_text(json.dumps(merged(assets.configuration(manifests), moved, settings), indent=2))
    command = [str(build.executable(program)), f"--config={file}", f"--kubeconfig={site.kubeconfig}"]
    # Trainer has no setting for its certificate: it looks in a folder of TMPDIR.
    environment = {"TMPDIR": str(folder), KUEUE_METRICS_CERTS: str(certificates)}
    return Manager(name, command, environment, manifests, webhook, health)


def _moved(name: str, webhook: int, health: int, certificates: Path) -> Object:
    """Return what one lab changes in any manager's configuration."""
    moved: Object = {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "127.0.0.1:0"},
        "webhook": {"host": "127.0.0.1", "port": webhook},
        "leaderElection": {"leaderElect": False},
    }
    if name == "trainer":
        return {**moved, "certManagement": {"enable": False}}
    moved["internalCertManagement"] = {"enable": False}
    moved["webhook"]["certDir"] = str(certificates)
    if name == "kueue":
        # The visibility server needs a fixed port and an aggregated API.
        moved["featureGates"] = {"VisibilityOnDemand": False}
    return moved


def kwok(site: Site, port: int) -> list[str]:
    """Return the command of KWOK, which acts out the Stage objects of the cluster."""
    return [
        str(site.executable("kwok")),
        f"--kubeconfig={site.kubeconfig}",
        "--manage-all-nodes=true",
        "--enable-crds=Stage",
        "--cidr=10.244.0.1/16",
        f"--server-address=127.0.0.1:{port}",
    ]


def mpi_operator(site: Site, port: int) -> list[str]:
    """Return the command of the MPI operator, which has no webhook and no configuration file."""
    return [
        str(site.executable("mpi-operator")),
        f"--kubeconfig={site.kubeconfig}",
        f"--health=127.0.0.1:{port}",
    ]


def training_operator(site: Site, port: int) -> list[str]:
    """Return the command of the training operator, which has no webhook and no configuration file."""
    return [
        str(build.executable(programs.TRAINING_OPERATOR)),
        f"--kubeconfig={site.kubeconfig}",
        f"--health=127.0.0.1:{port}",
    ]


def merged(base: Mapping[str, Any], *changes: Mapping[str, Any]) -> Object:
    """Return a mapping with changes merged into it, mapping by mapping."""
    result = dict(base)
    for change in changes:
        for key, value in change.items():
            old = result.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                value = merged(old, value)
            result[key] = value
    return result
