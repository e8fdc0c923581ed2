"""Build the pod that corresponds to a job of a managed service, as a tree of origins."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.made import SELF_KEY, MadeNode, OriginValue
from gangplan.imports.pods import SourcePod, read_imported_pod_template
from gangplan.records import dataclass
from gangplan.spec.machines import INSTANCES

_GPU = "nvidia.com/gpu"
# Percent of a node left after the kubelet and the system: managed services give a job the whole machine.
_OF_CPU, _OF_MEMORY = 90, 85


@dataclass(slots=True)
class ManagedPod:
    """What a service starts on each of its machines."""

    account: Account
    image: OriginValue | None = None
    command: tuple[str, ...] = ()
    command_node: SourceNode | None = None
    workdir: OriginValue | None = None
    env: list[tuple[str, str, SourceNode]] = field(default_factory=list)
    mounts: list[tuple[str, str, bool, SourceNode]] = field(default_factory=list)
    machine: str = ""
    machine_node: SourceNode | None = None
    gpus: int | None = None

    @property
    def gpu_count(self) -> int:
        """The GPUs of each machine: those of its type, else as many as were stated."""
        known = INSTANCES.get(self.machine.lower())
        return known.gpus if known else self.gpus or 0

    def pod(self) -> SourcePod:
        """Build the pod; its volumes are claims."""
        container: dict[str, Any] = {
            SELF_KEY: OriginValue(None, self.command_node),
            "name": OriginValue("node"),
            "command": OriginValue(list(self.command), self.command_node),
            "env": [
                {
                    SELF_KEY: OriginValue(None, node),
                    "name": OriginValue(name, node),
                    "value": OriginValue(value, node),
                }
                for name, value, node in self.env
            ],
            "resources": {"limits": self._limits()},
            "volumeMounts": [
                {
                    SELF_KEY: OriginValue(None, node),
                    "name": OriginValue(claim),
                    "mountPath": OriginValue(path, node),
                    "readOnly": OriginValue(reads, node),
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
                SELF_KEY: OriginValue(None, node),
                "name": OriginValue(claim),
                "persistentVolumeClaim": {
                    "claimName": OriginValue(claim, node),
                    "readOnly": OriginValue(reads, node),
                },
            }
            for claim, (reads, node) in by_claim.items()
        ]
        pod = read_imported_pod_template(
            MadeNode(self.account, {"spec": {"containers": [container], "volumes": volumes}})
        )
        assert pod is not None
        return pod

    def _limits(self) -> dict[str, OriginValue]:
        found: dict[str, OriginValue] = {}
        if self.gpu_count:
            found[_GPU] = OriginValue(str(self.gpu_count), self.machine_node)
        known = INSTANCES.get(self.machine.lower())
        if known is not None and not known.gpus:  # with GPUs, a worker gets its share of the node
            found["cpu"] = OriginValue(str(max(1, known.cpu * _OF_CPU // 100)), self.machine_node)
            found["memory"] = OriginValue(
                f"{max(1, int(known.memory * _OF_MEMORY / 100))}Gi", self.machine_node
            )
        return found


def build_claim_name(*parts: str) -> str:
    """Return a name for a claim, from what a service calls the data."""
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(part for part in parts if part).lower()).strip("-")
    name = name if name[:1].isalpha() else f"data-{name}".strip("-")
    return name[:63].strip("-")
