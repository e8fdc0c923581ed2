"""The status of runs on a cluster, read from the output of `kubectl get trainjobs -A -o json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gangplan.errors import UserError, build_unreadable_file_error
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.records import dataclass

HELP = "Write it with: kubectl get trainjobs -A -o json > statuses.json"
# Trainer 2.1 to 2.3, pkg/apis/trainer/v1alpha1/trainjob_types.go; mpi-operator 0.7 and 0.8, v2beta1/types.go.
ENDS = {made.kind: made.ends for made in BACKEND_BY_KIND.values()}


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A TrainJob or an MPIJob of gangplan. `end` is the condition that ended it, empty while it waits or
    trains."""

    namespace: str
    team: str
    job: str
    name: str
    end: str
    is_record: bool


def read_statuses(path: Path) -> list[RunStatus]:
    """Read the runs of gangplan from a file and ignore other objects. Raises UserError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise build_unreadable_file_error(path, error, HELP) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}", HELP) from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise UserError(f"{path} is not a list of objects", HELP)
    try:
        return [
            _read_run_status(item)
            for item in items
            if item["kind"] in ENDS and _read_object_labels(item).get(_RUN)
        ]
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path} holds a run that cannot be read", HELP) from None


_RUN = "gangplan.dev/run"


def _read_object_labels(item: dict[str, Any]) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def _read_run_status(item: dict[str, Any]) -> RunStatus:
    metadata, labels = item["metadata"], _read_object_labels(item)
    conditions = (item.get("status") or {}).get("conditions") or ()
    ends = [
        one["type"] for one in conditions if one["type"] in ENDS[item["kind"]] and one["status"] == "True"
    ]
    state = (metadata.get("annotations") or {}).get("gangplan.dev/state")
    return RunStatus(
        str(metadata["namespace"]),
        labels.get("gangplan.dev/team", ""),
        labels.get("gangplan.dev/job", ""),
        str(metadata["name"]),
        ends[0] if ends else "",
        state == "stopped",
    )
