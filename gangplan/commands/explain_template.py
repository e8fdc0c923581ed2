"""`gangplan explain template NAME`: its parameters, a spec that uses it, and what it produces."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.commands.absent import absent
from gangplan.errors import Exit, UserError
from gangplan.report.escape import own_line
from gangplan.report.template_page import template_page
from gangplan.spec.root import root_of
from gangplan.spec.templates import Templates
from gangplan.workspace import load_workspace, nearest


def explain_template(word: str, label: str, workspace: Path | None) -> Exit:
    """Print the page of a template, as specs of the team whose folder is the current one see it.

    Raises UserError.
    """
    if word != "template":
        raise UserError(f"'{word} {label}' is no page", f"Did you mean: gangplan explain template {label}?")
    loaded = load_workspace(root_of(workspace))
    templates = loaded.templates or Templates()
    here = Path.cwd().resolve()
    teams = [team for team in loaded.teams if (loaded.root / "specs" / team) in (here, *here.parents)]
    owners = [*teams, "", *sorted({one.team for one in templates.files})]
    pages = (template_page(templates, owner, label) for owner in owners)
    text = next((page for page in pages if page), "")
    if not text:
        seen = [pair for owner in owners for pair in templates.seen_by(owner).items()]
        name = label.partition("@")[0]
        files = {one.file for known, ones in seen if known == name for one in ones}
        raise absent(
            f"there is no template '{label}' that can be used",
            nearest(name, sorted({known for known, _ in seen})),
            (one for one in templates.findings if one.where.file in files),
        )
    sys.stdout.write("".join(f"{own_line(line)}\n" for line in text.splitlines()))
    return Exit.CLEAN
