"""`gangplan docs`: the generated pages written, or told which are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.commands.cli_page import cli_page
from gangplan.errors import Exit
from gangplan.reference.pages import pages


def write_docs(folder: Path, check: bool) -> Exit:
    """Write all pages below `folder`, or with `check` tell which are not fresh."""
    stale = []
    for name, text in {**pages(), "cli.md": cli_page()}.items():
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
