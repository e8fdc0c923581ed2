"""`gangplan docs`: writes the generated pages, or lists those that are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.api.page import render_python_api_fields_module, render_python_page
from gangplan.commands.cli_page import render_cli_page
from gangplan.errors import Exit
from gangplan.reference.pages import render_docs_pages

# The types of a job's fields, as seen from docs/.
MODULE = "../gangplan/api/fields.py"


def run_docs_command(folder: Path, check: bool) -> Exit:
    """Write all pages below `folder` and a module, or with `check` list those that are stale."""
    stale = []
    made = {**render_docs_pages(), "cli.md": render_cli_page(), "python.md": render_python_page()}
    if (folder / MODULE).is_file():  # a folder that is only for the pages has no module
        made[MODULE] = render_python_api_fields_module()
    for name, text in made.items():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stdout.write(f"{'stale' if check else 'wrote'}: {folder / name}\n")
    return Exit.FINDINGS if check and stale else Exit.CLEAN
