"""`gangplan explain template NAME`: its parameters, a spec that uses it, and what it produces."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.commands.absent import build_missing_name_error
from gangplan.errors import Exit, UserError
from gangplan.report.escape import escape_own_line
from gangplan.report.template_page import render_template_page
from gangplan.spec.root import locate_workspace_root
from gangplan.spec.templates import TemplateSet
from gangplan.workspace import load_workspace, suggest_nearest


def print_explain_page_of_template(word: str, label: str, workspace: Path | None) -> Exit:
    """Print the page of a template, as specs of the team whose folder is the current one see it.

    Raises UserError.
    """
    if word != "template":
        raise UserError(
            f"'{word} {label}' is not a page", f"Did you mean: gangplan explain template {label}?"
        )
    loaded = load_workspace(locate_workspace_root(workspace))
    templates = loaded.templates or TemplateSet()
    here = Path.cwd().resolve()
    teams = [team for team in loaded.teams if (loaded.root / "specs" / team) in (here, *here.parents)]
    owners = [*teams, "", *sorted({one.team for one in templates.files})]
    pages = (render_template_page(templates, owner, label) for owner in owners)
    text = next((page for page in pages if page), "")
    if not text:
        seen = [pair for owner in owners for pair in templates.seen_by(owner).items()]
        name = label.partition("@")[0]
        files = {one.file for known, ones in seen if known == name for one in ones}
        raise build_missing_name_error(
            f"there is no template '{label}' that can be used",
            suggest_nearest(name, sorted({known for known, _ in seen})),
            (one for one in templates.findings if one.where.file in files),
        )
    sys.stdout.write("".join(f"{escape_own_line(line)}\n" for line in text.splitlines()))
    return Exit.CLEAN
