"""All generated pages by path."""

from __future__ import annotations

import json

from gangplan.reference.causes import render_causes_docs_page
from gangplan.reference.formats import list_format_docs_contents, render_format_docs_page
from gangplan.reference.own_policies import render_own_policies_docs_page
from gangplan.reference.policies import render_policies_docs_page
from gangplan.reference.rules import render_rules_docs_page
from gangplan.reference.schemas import (
    FINDINGS_SCHEMA,
    IMPORT_SCHEMA,
    PLAN_SCHEMA,
    build_editor_schema,
    list_format_models,
)


def render_docs_pages() -> dict[str, str]:
    """Return every generated page by its path."""
    found = {
        f"schema/{kind}.json": json.dumps(build_editor_schema(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in [*list_format_models(), FINDINGS_SCHEMA, PLAN_SCHEMA, IMPORT_SCHEMA]
    }
    found["spec.md"] = "\n".join(
        [
            "# File formats",
            "",
            "Generated from the models by `make docs`. `gangplan explain FIELD` shows one of them.",
            "",
            *list_format_docs_contents(),
            *(render_format_docs_page(kind) for kind in list_format_models()),
        ]
    )
    found["rules.md"] = render_rules_docs_page()
    found["causes.md"] = render_causes_docs_page()
    found["policies.md"] = render_policies_docs_page()
    found["own-policies.md"] = render_own_policies_docs_page()
    return found
