"""JSON Schemas of the file formats, as editors use them, and of the findings."""

from __future__ import annotations

from typing import Any

from gangplan.errors import UserError
from gangplan.report.findings_schema import findings_schema
from gangplan.spec.base import Strict

DRAFT = "https://json-schema.org/draft/2020-12/schema"


# Not a file that people write, but the document of `--format json`.
FINDINGS = "findings"


def models() -> dict[str, type[Strict]]:
    """The file formats by the names that the command takes."""
    from gangplan.spec.catalog import ImageCatalog
    from gangplan.spec.cluster import Cluster
    from gangplan.spec.job import TrainingJob
    from gangplan.spec.team import Team
    from gangplan.spec.waiver import Waiver

    return {"spec": TrainingJob, "team": Team, "cluster": Cluster, "catalog": ImageCatalog, "waiver": Waiver}


def schema_of(kind: str) -> dict[str, Any]:
    """The JSON Schema of a file format, as editors use it. Raises UserError for an unknown one."""
    known = models()
    if kind == FINDINGS:
        return {"$schema": DRAFT, "title": "Findings", **findings_schema()}
    if kind not in known:
        raise UserError(f"there is no file format '{kind}'", f"Formats: {', '.join([*known, FINDINGS])}.")
    schema: dict[str, Any] = _untitled(known[kind].model_json_schema(by_alias=True))
    return {"$schema": DRAFT, "title": known[kind].__name__, **schema}


def _untitled(value: Any, names: bool = False) -> Any:
    """Without the titles that pydantic invents from field names; `names` marks maps whose keys are names."""
    if isinstance(value, dict):
        return {
            key: _untitled(item, names=key in ("properties", "$defs") and not names)
            for key, item in value.items()
            if names or key != "title"
        }
    if isinstance(value, list):
        return [_untitled(item) for item in value]
    return value
