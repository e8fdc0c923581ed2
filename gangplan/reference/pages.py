"""All generated pages by path."""

from __future__ import annotations

import json

from gangplan.reference.causes import causes_page
from gangplan.reference.formats import contents, format_page
from gangplan.reference.own_policies import own_policies_page
from gangplan.reference.policies import policies_page
from gangplan.reference.rules import rules_page
from gangplan.reference.schemas import FINDINGS, IMPORT, PLAN, editor_schema, models


def pages() -> dict[str, str]:
    """Return every generated page by its path."""
    found = {
        f"schema/{kind}.json": json.dumps(editor_schema(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in [*models(), FINDINGS, PLAN, IMPORT]
    }
    found["spec.md"] = "\n".join(
        [
            "# File formats",
            "",
            "Generated from the models by `make docs`. `gangplan explain FIELD` shows one of them.",
            "",
            *contents(),
            *(format_page(kind) for kind in models()),
        ]
    )
    found["rules.md"] = rules_page()
    found["causes.md"] = causes_page()
    found["policies.md"] = policies_page()
    found["own-policies.md"] = own_policies_page()
    return found
