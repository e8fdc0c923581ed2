"""Wrong values for fields of a good workspace: where each is put, and the text that a finding points to."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from typing import Any

import yaml

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Wrong:
    """A wrong value (or, if `is_key`, a wrong name) at a path, and the text at the place of its finding.

    `points` is this text if it is not that of the value or key itself.
    """

    path: Path
    value: Any
    is_key: bool = False
    points: str = ""

    @property
    def text(self) -> str:
        """The text that must be at the reported line and column."""
        return self.points or str(self.path[-1] if self.is_key else self.value)


def key(*path: str | int, value: Any = "x") -> Wrong:
    """Return a wrong name."""
    return Wrong(path, value, True)


SPEC = (
    *(Wrong(("workers",), value) for value in (0, 501, 65, "many", 1.5, -2, 60)),
    *(Wrong(("gpus",), value) for value in (17, 9, "two")),
    *(Wrong(("cpu",), value) for value in ("32 cores", 999, "x", 0)),
    *(Wrong(("memory",), value) for value in ("32GB", "9Ti", "x", "12")),
    *(Wrong(("timeout",), value) for value in ("forever", "30h", "900h", "1.5x")),
    *(Wrong(("image",), value) for value in ("nope", "openmpii", "registry.example.com/a:1", "intel")),
    *(Wrong(("priority",), value) for value in ("urgent", "critical")),
    *(Wrong(("retries",), value) for value in (9, "often")),
    *(Wrong(("slots",), value) for value in (0, "many", 3)),
    *(Wrong((field,), "nope") for field in ("framework", "profile", "state")),
    *(Wrong(("run",), value) for value in (0, "first")),
    *(Wrong(("name",), value) for value in ("Upper", "x" * 60)),
    Wrong(("clusters", 0), "nowhere"),
    key("data", "nope", value="/data"),
    Wrong(("data", "scans"), "relative"),
    Wrong(("data", "scans"), "/etc/mpi"),
    Wrong(("data", "scans"), "/etc/../x"),
    key("env", "1A"),
    key("env", "HYDRA_HOST_FILE"),
    key("env", "A-B"),
    Wrong(("secrets", "env", "TOKEN"), "nope/key"),
    Wrong(("secrets", "env", "TOKEN"), "noslash"),
    key("secrets", "files", "nope", value="/opt/x"),
    Wrong(("checkpoint", "to"), "nope"),
    Wrong(("checkpoint",), {"to": "results", "everySteps": 0}, points="0"),
    Wrong(("checkpoint",), {"to": "results", "path": "relative"}, points="relative"),
    Wrong(("network", "posture"), "open"),
    Wrong(("network", "egress", 0), "nowhere"),
    Wrong(("network", "transport"), "udp"),
    Wrong(("network", "rdma"), "maybe"),
    Wrong(("network", "rdma"), "required"),
    Wrong(("placement", "nodePool"), "nope"),
    Wrong(("placement", "topology", "required"), "shelf"),
    Wrong(("placement", "spread"), "nope"),
    Wrong(("placement", "capacity"), "nope"),
    key("labels", "kubernetes.io/x"),
    key("labels", "a b"),
    Wrong(("labels", "a"), "x y"),
    Wrong(("mpi", "implementation"), "MPICH"),
    Wrong(("mpi", "bindTo"), "nope"),
    Wrong(("mpi", "launch"), "pmix"),
    Wrong(("launcher", "cpu"), 999),
    Wrong(("launcher", "memory"), "9Ti"),
    Wrong(("launcher", "memory"), "much"),
    Wrong(("gpu", "model"), "tpu"),
    Wrong(("gpu", "mig"), "9g.1gb"),
    key("wrokers", value=3),
    key("network", "postur"),
    Wrong(("command",), ["mpirun", "-np", "3", "x"], points="3"),
    Wrong(("command",), "a | b"),
)
TEAM = (
    Wrong(("namespace",), "kube-system"),
    Wrong(("namespace",), "Upper"),
    Wrong(("clusters", 0), "nowhere"),
    Wrong(("claims", "results", "size"), "2TB"),
    Wrong(("claims", "results", "storageClass"), "nope"),
    Wrong(("claims", "results", "accessModes", 0), "ReadWriteOften"),
    Wrong(("claims", "results", "accessModes", 0), "ReadWriteOnce"),
    Wrong(("connections", "shown", "claim"), "nope"),
    Wrong(("connections", "bucket", "endpoint"), "s3.example.com"),
    Wrong(("defaults", "memory"), "48GB"),
    Wrong(("defaults", "priority"), "urgent"),
    Wrong(("defaults", "egress", 0), "nowhere"),
    Wrong(("debuggers", 0, "until"), "soon"),
    key("contct"),
    key("groups", "viewrs", value=["x"]),
)
CLUSTER = (
    Wrong(("versions", "trainer"), "2.9.0"),
    Wrong(("versions", "kueue"), "0.16.1"),
    Wrong(("versions", "kubernetes"), "1.20.0"),
    Wrong(("nodePools", "a100", "cpu"), "many"),
    Wrong(("nodePools", "a100", "memory"), "1900GB"),
    Wrong(("nodePools", "a100", "gpu", "count"), 0),
    Wrong(("nodePools", "a100", "taints", 0, "effect"), "Never"),
    Wrong(("nodePools", "h100", "topology"), "yes please"),
    Wrong(("cohorts", "labs", "parent"), "nope"),
    Wrong(("teams", "cv", "cohort"), "nope"),
    key("teams", "cv", "quota", "nope", value={"gpus": 1}),
    Wrong(("teams", "cv", "quota", "a100", "gpus"), 900),
    Wrong(("teams", "cv", "weight"), -1),
    Wrong(("teams", "cv", "priorities"), ["urgent"], points="urgent"),
    Wrong(("teams", "cv", "hardQuota", "gpus"), 1),
    Wrong(("teams", "cv", "queue"), "Not A Name"),
    Wrong(("egress", "s3", 0, "cidr"), "10.40.8.1/24"),
    Wrong(("egress", "s3", 0, "ports", 0), 70000),
    Wrong(("dns", "ports", 0), 0),
    Wrong(("secretStore", "path"), "kv/{tema}/{secret}"),
    Wrong(("mirrors", 0, "mirror"), "not a repository"),
    Wrong(("limits", "workers"), 0),
    Wrong(("gang",), "slurm"),
    Wrong(("monitoring", "pending"), "later"),
    key("nodePols", value={}),
)
PATCH = (
    ("/spec/template/spec/replicatedJobs/0/template/spec/backoffLimit", "many"),
    ("/spec/mlPolicy/mpi/numProcPerNode", "four"),
    ("/spec/template/spec/replicatedJobs/0/template/spec/template/spec/restartPolicy", "Sometimes"),
    ("/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image", 7),
    (
        "/spec/template/spec/replicatedJobs/1/template/spec/template/spec/containers/0/resources/limits/cpu",
        "x",
    ),
)


def mutated(document: Any, wrong: Wrong) -> Any:
    """Return the document with the wrong value; missing parents are created."""
    whole = copy.deepcopy(document)
    node = whole
    for step, following in zip(wrong.path, wrong.path[1:], strict=False):
        if isinstance(node, dict):
            kept = node.get(step)
            if not isinstance(kept, list if isinstance(following, int) else dict):
                node[step] = [None] if isinstance(following, int) else {}
        node = node[step]
    node[wrong.path[-1]] = wrong.value
    return whole


def dumped(document: Any, chance: random.Random) -> str:
    """Write the document as people may write it: in blocks or not, with comments and blank lines."""
    text: str = yaml.safe_dump(
        document,
        sort_keys=False,
        default_flow_style=chance.choice([False, None]),
        allow_unicode=True,
        width=10**6,
    )
    lines = []
    for line in text.splitlines():
        if not line.startswith((" ", "-")) and chance.random() < 0.2:
            lines.append(chance.choice(["# a remark", ""]))
        lines.append(line)
    return "\n".join(lines) + "\n"
