"""`gangplan schema print`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gangplan.errors import Exit, UserError
from gangplan.reference.schemas import build_editor_schema


def print_schema(kind: str, root: Path | None = None, team: str | None = None) -> Exit:
    """Print the schema of a format; with a workspace, the one of specs with the names that it or a team may
    use.

    Raises UserError for another format with a workspace, and for a team that does not exist.
    """
    schema = build_editor_schema(kind)
    if root is not None:
        from gangplan.contents.files import WorkspaceFiles
        from gangplan.contents.team_schema import narrow_spec_schema_to_teams

        if kind != "spec":
            raise UserError(
                f"the schema of '{kind}' is the same in every workspace",
                "Leave out --workspace and --team.",
            )
        schema = narrow_spec_schema_to_teams(schema, WorkspaceFiles(root, (team,) if team else ()))
    sys.stdout.write(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
    return Exit.CLEAN
