"""JSON Schemas of the file formats, as editors use them, and of the findings, plans and imports."""

from __future__ import annotations

from typing import Any

from gangplan.errors import UserError
from gangplan.reference.editor import DRAFT, identity, readable
from gangplan.report.findings_schema import findings_schema
from gangplan.spec.base import Strict

# Not files that people write, but documents of `--format json`: findings, plans of changes, and imports.
FINDINGS, PLAN, IMPORT = "findings", "plan", "import"


def models() -> dict[str, type[Strict]]:
    """Return the models of the file formats, by the names that the command takes."""
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
    """Return the JSON Schema of a format, as editors use it. Raises UserError for an unknown format."""
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
    """Return `schema_of` plus what only an editor needs: in a sweep or a template, also the schema of the
    job."""
    schema = schema_of(kind)
    if kind == "spec":
        return _by_template(schema)
    if kind not in ("sweep", "template"):
        return schema
    from gangplan.reference.sweep_schema import with_job, with_template

    return (with_template if kind == "sweep" else with_job)(schema, schema_of("spec"))


def _by_template(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a spec that requires most fields only without a template."""
    required = [name for name in schema["required"] if name in ("apiVersion", "kind")]
    either = [
        {"required": ["template"]},
        {"required": [one for one in schema["required"] if one not in required]},
    ]
    return {**schema, "required": required, "anyOf": either}
