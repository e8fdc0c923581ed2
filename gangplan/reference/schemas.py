"""JSON Schemas of the file formats, as editors use them, and of the findings, plans and imports."""

from __future__ import annotations

from typing import Any

from gangplan.errors import UserError
from gangplan.reference.editor import SCHEMA_DRAFT, build_schema_id, simplify_schema_for_editor
from gangplan.report.findings_schema import build_findings_json_schema
from gangplan.spec.base import Strict

# Not files that people write, but documents of `--format json`: findings, plans of changes, and imports.
FINDINGS_SCHEMA, PLAN_SCHEMA, IMPORT_SCHEMA = "findings", "plan", "import"


def list_format_models() -> dict[str, type[Strict]]:
    """Return the models of the file formats, by the names that the command takes."""
    from gangplan.delivery.stated import build_delivery_settings_model
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
        "workspace": build_delivery_settings_model(),
    }


def build_editor_schema_of_format(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a format, as editors use it. Raises UserError for an unknown format."""
    known = list_format_models()
    if kind == FINDINGS_SCHEMA:
        return {
            "$schema": SCHEMA_DRAFT,
            "$id": build_schema_id(kind),
            "title": "Findings",
            **build_findings_json_schema(),
        }
    if kind == PLAN_SCHEMA:
        from gangplan.report.review_schema import build_review_json_schema

        return {
            "$schema": SCHEMA_DRAFT,
            "$id": build_schema_id(kind),
            "title": "Plan of a change",
            **build_review_json_schema(),
        }
    if kind == IMPORT_SCHEMA:
        from gangplan.report.import_schema import build_import_json_schema

        return {
            "$schema": SCHEMA_DRAFT,
            "$id": build_schema_id(kind),
            "title": "Import",
            **build_import_json_schema(),
        }
    if kind not in known:
        raise UserError(
            f"there is no file format '{kind}'",
            f"Formats: {', '.join([*known, FINDINGS_SCHEMA, PLAN_SCHEMA, IMPORT_SCHEMA])}.",
        )
    schema = simplify_schema_for_editor(known[kind].model_json_schema(by_alias=True))
    return {"$schema": SCHEMA_DRAFT, "$id": build_schema_id(kind), "title": known[kind].__name__, **schema}


def build_editor_schema(kind: str) -> dict[str, Any]:
    """Return `build_editor_schema_of_format` plus what only an editor needs: in a sweep or a template, also the schema of the
    job."""
    schema = build_editor_schema_of_format(kind)
    if kind == "spec":
        return _require_fields_or_template(schema)
    if kind not in ("sweep", "template"):
        return schema
    from gangplan.reference.sweep_schema import add_job_schema, add_template_schema

    return (add_template_schema if kind == "sweep" else add_job_schema)(
        schema, build_editor_schema_of_format("spec")
    )


def _require_fields_or_template(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a spec that requires most fields only without a template."""
    required = [name for name in schema["required"] if name in ("apiVersion", "kind")]
    either = [
        {"required": ["template"]},
        {"required": [one for one in schema["required"] if one not in required]},
    ]
    return {**schema, "required": required, "anyOf": either}
