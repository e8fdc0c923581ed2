"""A workspace whose cluster starts runs by CronJobs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import gangplan, write

DIGEST = f"sha256:{'ab' * 32}"
CATALOG = (
    workspaces.CATALOG
    + f"  kubectl: {{repository: registry.example.com/kubectl, digest: {DIGEST}, framework: plain}}\n"
)
OFFER = "schedules: {client: kubectl, egress: [kubernetes]}\n"
SERVER = "egress:\n  kubernetes: [{cidr: 10.96.0.1/32, ports: [443]}]\n"
CLUSTER = workspaces.CLUSTER.replace("egress:\n", SERVER) + OFFER
NIGHTLY = 'schedule: {cron: "0 4 * * *", timeZone: Europe/Berlin}\ntimeout: 20h\n'
SPEC = workspaces.SPEC + NIGHTLY


def stock(root: Path, spec: str = SPEC, **files: str) -> None:
    """Write the workspace, with one scheduled job."""
    workspaces.stock(root)
    write(
        root,
        {
            "specs/nlp/filings.yaml": spec,
            "overlays/lab/cluster.yaml": CLUSTER,
            "images/catalog.yaml": CATALOG,
            **files,
        },
    )


def rendered(root: Path, part: str = "runs") -> list[dict[str, Any]]:
    """Render, and return all objects of a part of the rendered tree but launch scripts."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code in (0, 1), outcome.err
    files = sorted((root / "rendered/lab" / part).rglob("*-*.yaml" if part == "runs" else "*.yaml"))
    return [body for file in files for body in load_objects(file.read_text(encoding="utf-8"))]


def one(bodies: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    """Return the only object of a kind, or the one with a name."""
    found = [body for body in bodies if body["kind"] == kind and name in ("", body["metadata"]["name"])]
    assert len(found) == 1, [body["metadata"]["name"] for body in found]
    return found[0]


def template(bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the TrainJob that the schedule creates."""
    maps = [body for body in bodies if body["kind"] == "ConfigMap" and "run.yaml" in body["data"]]
    (run,) = load_objects(maps[0]["data"]["run.yaml"])
    return run


def started(
    container: dict[str, Any], folder: Path, shell: str, run: str
) -> subprocess.CompletedProcess[str]:
    """Run the script of a CronJob's pod as the kubelet does, with the kubectl and run.yaml of a folder."""
    script = container["command"][2].replace("$$", "$")
    args = [one.replace("$(JOB)", run) for one in container["args"]]
    args[0] = str(folder / "run.yaml")
    flags = ["sh"] if shell == "busybox" else []
    return subprocess.run(
        [str(shutil.which(shell)), *flags, "-c", script, "gangplan-schedule", *args],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "TOLD": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def created(folder: Path) -> dict[str, Any] | None:
    """Return what the script gave kubectl to create, or None."""
    file = folder / "created"
    return load_objects(file.read_text())[0] if file.exists() else None
