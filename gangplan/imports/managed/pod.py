"""Build the pod that corresponds to a job of a managed service, as a tree of origins."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from gangplan.imports.account import Account, Node
from gangplan.imports.made import SELF, Made, Origin
from gangplan.imports.pods import PodOf, pod_of
from gangplan.records import dataclass
from gangplan.spec.machines import INSTANCES

_GPU = "nvidia.com/gpu"
# Percent of a node left after the kubelet and the system: managed services give a job the whole machine.
_OF_CPU, _OF_MEMORY = 90, 85


@dataclass(slots=True)
class Managed:
    """What a service starts on each of its machines."""

    account: Account
    image: Origin | None = None
    command: tuple[str, ...] = ()
    command_node: Node | None = None
    workdir: Origin | None = None
    env: list[tuple[str, str, Node]] = field(default_factory=list)
    mounts: list[tuple[str, str, bool, Node]] = field(default_factory=list)
    machine: str = ""
    machine_node: Node | None = None
    gpus: int | None = None

    @property
    def gpu_count(self) -> int:
        """The GPUs of each machine: those of its type, else as many as were stated."""
        known = INSTANCES.get(self.machine.lower())
        return known.gpus if known else self.gpus or 0

    def pod(self) -> PodOf:
        """Build the pod; its volumes are claims."""
        container: dict[str, Any] = {
            SELF: Origin(None, self.command_node),
            "name": Origin("node"),
            "command": Origin(list(self.command), self.command_node),
            "env": [
                {SELF: Origin(None, node), "name": Origin(name, node), "value": Origin(value, node)}
                for name, value, node in self.env
            ],
            "resources": {"limits": self._limits()},
            "volumeMounts": [
                {
                    SELF: Origin(None, node),
                    "name": Origin(claim),
                    "mountPath": Origin(path, node),
                    "readOnly": Origin(reads, node),
                }
                for claim, path, reads, node in self.mounts
            ],
        }
        if self.image is not None:
            container["image"] = self.image
        if self.workdir is not None:
            container["workingDir"] = self.workdir
        by_claim = {claim: (reads, node) for claim, _, reads, node in self.mounts}
        volumes = [
            {
                SELF: Origin(None, node),
                "name": Origin(claim),
                "persistentVolumeClaim": {"claimName": Origin(claim, node), "readOnly": Origin(reads, node)},
            }
            for claim, (reads, node) in by_claim.items()
        ]
        pod = pod_of(Made(self.account, {"spec": {"containers": [container], "volumes": volumes}}))
        assert pod is not None
        return pod

    def _limits(self) -> dict[str, Origin]:
        found: dict[str, Origin] = {}
        if self.gpu_count:
            found[_GPU] = Origin(str(self.gpu_count), self.machine_node)
        known = INSTANCES.get(self.machine.lower())
        if known is not None and not known.gpus:  # with GPUs, a worker gets its share of the node
            found["cpu"] = Origin(str(max(1, known.cpu * _OF_CPU // 100)), self.machine_node)
            found["memory"] = Origin(f"{max(1, int(known.memory * _OF_MEMORY / 100))}Gi", self.machine_node)
        return found


def claim_of(*parts: str) -> str:
    """Return a name for a claim, from what a service calls the data."""
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(part for part in parts if part).lower()).strip("-")
    name = name if name[:1].isalpha() else f"data-{name}".strip("-")
    return name[:63].strip("-")
