"""ConfigMap: the files beside a spec, as the run was rendered with them. It changes no more than the run."""

from __future__ import annotations

import base64
import re
from typing import Any

from gangplan.generators.common import Writer, objects_of, run_annotations, run_labels
from gangplan.model.backend import FRAMEWORK
from gangplan.objects import Body
from gangplan.plan import Unit

KIND = "ConfigMap"
# Characters that no text file has, and that readers of YAML and JSON do not agree about.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")


def run_files(unit: Unit, write: Writer = objects_of) -> list[Body]:
    """The ConfigMap of a run; none where it mounts no file from beside its spec."""
    if not unit.job.files:
        return []
    texts, others = dict[str, str](), dict[str, str]()
    for one in unit.job.files:
        text = _text(one.data)
        if text is None:
            others[one.key] = base64.b64encode(one.data).decode()
        else:
            texts[one.key] = text
    fixed: dict[str, Any] = {"data": texts} if texts else {}
    if others:
        fixed["binaryData"] = others
    metadata = {
        "name": unit.run_name,
        "namespace": unit.job.namespace,
        "labels": dict(run_labels(unit)),
        "annotations": dict(run_annotations(unit, KIND)),
    }
    return [files_map(metadata, fixed)]


def files_map(run: Body, fixed: Body) -> Body:
    """The ConfigMap, from the metadata of a run's object and what it holds."""
    labels = {name: value for name, value in run["labels"].items() if name != FRAMEWORK}
    metadata = {**run, "name": f"{run['name']}-files", "labels": labels}
    return {"apiVersion": "v1", "kind": KIND, "metadata": metadata, "immutable": True, **fixed}


def _text(data: bytes) -> str | None:
    """What is UTF-8 and reads the same everywhere; None for all else."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _NOT_TEXT.search(text) else text
