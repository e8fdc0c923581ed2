"""ConfigMap: the files next to a spec, as the run was rendered with them; as immutable as the run."""

from __future__ import annotations

import base64
import re
from typing import Any

from gangplan.generators.common import (
    TemplateRenderer,
    generate_run_labels,
    generate_run_part_annotations,
    render_to_objects,
)
from gangplan.model.backend import RUNTIME_FRAMEWORK_LABEL
from gangplan.objects import Body
from gangplan.plan import RunPlan

FILES_MAP_KIND = "ConfigMap"
# Characters that no text file has, and that parsers of YAML and JSON disagree about.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")


def generate_run_files_config_map(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the ConfigMap of a run, or nothing if it mounts no files from next to its spec."""
    if not unit.job.files:
        return []
    texts, others = dict[str, str](), dict[str, str]()
    for one in unit.job.files:
        text = _convert_bytes_to_config_map_text(one.data)
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
        "labels": dict(generate_run_labels(unit)),
        "annotations": dict(generate_run_part_annotations(unit, FILES_MAP_KIND)),
    }
    return [generate_files_config_map(metadata, fixed)]


def generate_files_config_map(run: Body, fixed: Body) -> Body:
    """Return the ConfigMap with this content, named and labelled after the metadata of a run's object."""
    labels = {name: value for name, value in run["labels"].items() if name != RUNTIME_FRAMEWORK_LABEL}
    metadata = {**run, "name": f"{run['name']}-files", "labels": labels}
    return {"apiVersion": "v1", "kind": FILES_MAP_KIND, "metadata": metadata, "immutable": True, **fixed}


def _convert_bytes_to_config_map_text(data: bytes) -> str | None:
    """Decode UTF-8 text that every parser reads in the same way, or return None."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _NOT_TEXT.search(text) else text
