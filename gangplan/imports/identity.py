"""Map what identifies a job: its name, description, labels and annotations."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import MIGRATED_PREFIX, ORIGIN_LABEL, SpecDraft
from gangplan.model import syncing
from gangplan.resolve.limits import RESERVED_LABEL_PREFIXES, RESERVED_PLAIN_LABELS

# The name of a run is the job's, a dash and eight digits; MPI pods leave 44 characters (gangplan.plan.names).
_LONGEST = 35
_MOST_LABELS = 16
_OF_METADATA = {
    "namespace": "a run is in its team's namespace",
    "generateName": "runs are named by what they are",
    "creationTimestamp": "the server sets it",
    "resourceVersion": "the server sets it",
    "uid": "the server sets it",
    "generation": "the server sets it",
    "managedFields": "the server sets it",
    "ownerReferences": "nothing owns a run but Git",
    "finalizers": "nothing holds a run back but its controller",
    "selfLink": "the server sets it",
    "clusterName": "the server sets it",
}


def build_migrated_name(text: str) -> str:
    """Return `migrated-` and the source's name, as a valid name of a job."""
    bare = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "job"
    return f"{MIGRATED_PREFIX}{bare}"[:_LONGEST].rstrip("-")


def map_identity(draft: SpecDraft) -> None:
    """Map name, description and labels."""
    work = draft.work
    root = work.account.root()
    file = PurePosixPath(work.account.file).name
    told = work.settings.get("description")
    origin = f"Imported from {work.kind} {work.name} ({file})"
    draft.put("description", f"{told.value} ({origin[0].lower()}{origin[1:]})" if told else origin)
    draft.put(f"labels/{ORIGIN_LABEL}", work.kind.lower())
    root["apiVersion"].dropped("the spec has its own")
    root["kind"].dropped("the spec has its own")
    root["status"].dropped("it is of the past")
    metadata = root["metadata"]
    metadata["name"].mapped("name")
    for key, why in _OF_METADATA.items():
        metadata[key].dropped(why)
    for key, node in metadata["labels"].fields():
        _map_source_label(draft, key, node)
    for key, node in metadata["annotations"].fields():
        if syncing.is_engine_annotation(key) or key.startswith(("kubectl.kubernetes.io/", "meta.helm.sh/")):
            node.dropped("what applies rendered/ sets its own")
        else:
            node.asked("annotations of runs are the platform's to add, by a patch")


def _map_source_label(draft: SpecDraft, key: str, node: SourceNode) -> None:
    stated = [one.teams[draft.home.team] for one in draft.home.clusters.values()]
    queues = {one.queue for one in stated}
    if key == "kueue.x-k8s.io/queue-name" and any(node.text() in one.local_queues for one in stated):
        draft.put("queue", node.text(), node)
    elif key == "kueue.x-k8s.io/queue-name":
        same = node.text() in queues
        (node.same if same else node.dropped)("runs wait in their team's queue")
    elif key == "kueue.x-k8s.io/priority-class":
        level = next((one for one in ("low", "normal", "high", "critical") if one in node.text().lower()), "")
        draft.put("priority", level, node) if level else node.asked(
            "choose priority: low, normal, high or critical"
        )
    elif _is_source_label_reserved(key):
        node.dropped("labels of this prefix belong to controllers")
    elif len(draft.values["labels"]) >= _MOST_LABELS:
        node.asked("a spec has up to 16 labels")
    elif re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", node.text()) and len(node.text()) <= 63:
        draft.put(f"labels/{key}", node.text(), node)
    else:
        node.asked("its value is none that a label can have")


def _is_source_label_reserved(key: str) -> bool:
    prefix = key.partition("/")[0] if "/" in key else ""
    return (
        key in RESERVED_PLAIN_LABELS
        or any(prefix == one or prefix.endswith(f".{one}") for one in RESERVED_LABEL_PREFIXES)
        or not key
    )
