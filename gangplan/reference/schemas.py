"""JSON Schemas of the file formats, as editors use them, and of the findings."""

from __future__ import annotations

from typing import Any

from gangplan.errors import UserError
from gangplan.reference.editor import DRAFT, identity, readable
from gangplan.report.findings_schema import findings_schema
from gangplan.spec.base import Strict

# Not files that people write, but documents of `--format json`: findings, what a change does, what an import made.
FINDINGS, PLAN, IMPORT = "findings", "plan", "import"


def models() -> dict[str, type[Strict]]:
    """The file formats by the names that the command takes."""
    from gangplan.delivery.stated import workspace_model
    from gangplan.spec.catalog import ImageCatalog
    from gangplan.spec.cluster import Cluster
    from gangplan.spec.job import TrainingJob
    from gangplan.spec.job_template import JobTemplate
    from gangplan.spec.sweep import Sweep
    from gangplan.spec.team import Team
    from gangplan.spec.waiver import Waiver

    return {
        "spec": TrainingJob,
        "sweep": Sweep,
        "template": JobTemplate,
        "team": Team,
        "cluster": Cluster,
        "catalog": ImageCatalog,
        "waiver": Waiver,
        "workspace": workspace_model(),
    }


def schema_of(kind: str) -> dict[str, Any]:
    """The JSON Schema of a file format, as editors use it. Raises UserError for an unknown one."""
    known = models()
    if kind == FINDINGS:
        return {"$schema": DRAFT, "$id": identity(kind), "title": "Findings", **findings_schema()}
    if kind == PLAN:
        from gangplan.report.review_schema import review_schema

        return {"$schema": DRAFT, "$id": identity(kind), "title": "Plan of a change", **review_schema()}
    if kind == IMPORT:
        from gangplan.report.import_schema import import_schema

        return {"$schema": DRAFT, "$id": identity(kind), "title": "Import", **import_schema()}
    if kind not in known:
        raise UserError(
            f"there is no file format '{kind}'", f"Formats: {', '.join([*known, FINDINGS, PLAN, IMPORT])}."
        )
    schema = readable(known[kind].model_json_schema(by_alias=True))
    return {"$schema": DRAFT, "$id": identity(kind), "title": known[kind].__name__, **schema}


def editor_schema(kind: str) -> dict[str, Any]:
    """The same as `schema_of`, with all that an editor can check: of a sweep and a template also the job."""
    schema = schema_of(kind)
    if kind == "spec":
        return _by_template(schema)
    if kind not in ("sweep", "template"):
        return schema
    from gangplan.reference.sweep_schema import with_job, with_template

    return (with_template if kind == "sweep" else with_job)(schema, schema_of("spec"))


def _by_template(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a spec, in which a template may say what else is required."""
    required = [name for name in schema["required"] if name in ("apiVersion", "kind")]
    either = [
        {"required": ["template"]},
        {"required": [one for one in schema["required"] if one not in required]},
    ]
    return {**schema, "required": required, "anyOf": either}
