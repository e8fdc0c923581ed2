"""Statuses recorded from the real controllers of each profile (tests/e2e/test_health.py --update)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gangplan.gitops.record import KUEUE_QUEUE_LABEL, STATE_ANNOTATION

FOLDER = Path(__file__).parent / "statuses"
# The fields, labels and annotations that decide health.
_KEPT = ("name", "namespace", "generation")
_MARKS = ("labels", KUEUE_QUEUE_LABEL), ("annotations", STATE_ANNOTATION)
_SPEC = ("suspend", "active", "stopPolicy", "clusterQueue")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def trimmed(body: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an object that decide its health, without times and uids; of its spec, only what
    shows whether it waits."""
    metadata = {key: value for key, value in body["metadata"].items() if key in _KEPT}
    for place, name in _MARKS:
        if name in (body["metadata"].get(place) or {}):
            metadata[place] = {name: body["metadata"][place][name]}
    spec = {key: value for key, value in body.get("spec", {}).items() if key in _SPEC}
    kept = {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "spec": spec}
    text = json.dumps(kept | {"status": body.get("status", {})})
    text = _UID.sub("00000000-0000-0000-0000-000000000000", _TIME.sub("2026-01-01T00:00:00Z", text))
    found: dict[str, Any] = json.loads(text)
    return found


def recorded() -> list[tuple[str, str, dict[str, Any]]]:
    """Return each object with a name for its case and the word that it must get."""
    return [
        (f"{path.stem}-{one['object']['kind']}-{one['case'].replace(' ', '-')}", one["word"], one["object"])
        for path in sorted(FOLDER.glob("*.json"))
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]
