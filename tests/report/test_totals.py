"""The totals of a plan equal the requests of the rendered pods, as Kubernetes counts them, in every
example."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.model.quantity import parse_quantity
from gangplan.source import load_objects
from tests.workspaces import gangplan, rendered

EXAMPLES = sorted(
    path.name for path in (Path(__file__).parents[1] / "examples").iterdir() if (path / "input").is_dir()
)
COUNTED = ("cpu", "memory")


def of_pod(spec: dict[str, Any], resource: str) -> int:
    """Return the requests of a pod in thousandths (component-helpers v0.34, resource/helpers.go)."""

    def wanted(container: dict[str, Any]) -> int:
        amount = container.get("resources", {}).get("requests", {}).get(resource, 0)
        return parse_quantity(str(amount)).nano // 10**6

    total, beside, most = sum(map(wanted, spec["containers"])), 0, 0
    for container in spec.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            beside += wanted(container)
        else:
            most = max(most, beside + wanted(container))
    return max(total + beside, most)


def of_run(text: str) -> dict[str, int]:
    bodies = {body["kind"]: body for body in load_objects(text)}
    runtime, trainer = bodies["TrainingRuntime"]["spec"], bodies["TrainJob"]["spec"]["trainer"]
    runs_ranks = runtime["mlPolicy"].get("mpi", {}).get("runLauncherAsNode", False)
    found = dict.fromkeys(COUNTED, 0)
    for job in runtime["template"]["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]
        count = trainer["numNodes"] - runs_ranks if job["name"] == "node" else spec.get("parallelism", 1)
        for resource in COUNTED:
            found[resource] += count * of_pod(spec["template"]["spec"], resource)
    return found


@pytest.mark.parametrize("example", EXAMPLES)
def test_totals_equal_the_requests_of_pods(example: str, tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "examples" / example / "input"
    shutil.copytree(source, tmp_path / "workspace", ignore=shutil.ignore_patterns(".gangplan"))
    root = tmp_path / "workspace"
    assert gangplan("render", "-C", root).code == 0
    texts = {path: text.decode() for path, text in rendered(root).items() if is_run_file(path)}
    planned = json.loads(gangplan("plan", "--format", "json", "-C", root).out)["runs"]
    compared = 0
    for run in planned:
        text = next(
            (text for path, text in texts.items() if path.endswith(run["file"].split("rendered/")[-1])), ""
        )
        if "\nkind: TrainJob\n" not in text or "\nkind: TrainingRuntime\n" not in text:
            continue
        stated = {name: parse_quantity(run["totals"][name]).nano // 10**6 for name in COUNTED}
        assert stated == of_run(text), run["name"]
        compared += 1
    assert compared or not any("\nkind: TrainJob\n" in text for text in texts.values())
