"""The format of a file in a workspace: from its path, and for specs from its kind."""

from __future__ import annotations

import re

from gangplan.errors import UserError
from gangplan.reference.schemas import list_format_models
from gangplan.source import Document
from gangplan.spec.base import Strict

_PLACES = (
    (r"specs/[^/]+/team\.yaml", "team"),
    (r"specs/[^/]+/templates/.+\.yaml", "template"),
    (r"specs/[^/]+/.+\.yaml", "spec"),
    (r"overlays/[^/]+/cluster\.yaml", "cluster"),
    (r"images/catalog\.yaml", "catalog"),
    (r"policies/waivers/[^/]+\.yaml", "waiver"),
    (r"jobtemplates/.+\.yaml", "template"),
    (r"gangplan\.yaml", "workspace"),
)


def find_file_format(file: str, document: Document | None) -> str:
    """Return the format of a file by its path from the root: `spec`, `sweep`, `team`, ...

    Raises UserError for a file of no format.
    """
    kind = document.value.get("kind") if document is not None and isinstance(document.value, dict) else None
    for pattern, name in _PLACES:
        if re.fullmatch(pattern, file):
            if name == "template":
                return "template" if kind == "JobTemplate" or file.startswith("jobtemplates/") else "spec"
            return "sweep" if name == "spec" and kind == "Sweep" else name
    raise UserError(
        f"{file} is not a file that gangplan reads",
        "Name a spec, team.yaml, cluster.yaml, the catalog or a template.",
    )


def find_format_model(format: str) -> type[Strict]:
    """Return the model of a format."""
    return list_format_models()[format]
