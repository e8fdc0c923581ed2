"""`gangplan report comment`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from gangplan.errors import Exit, build_unreadable_file_error
from gangplan.tools.forge import find_pull_request_of_ci_job, write_pull_request_comment


def run_report_comment_command(file: Path, given: Mapping[str, str | None]) -> Exit:
    """Write or change the comment. Raises UserError, and ToolError if the forge refuses."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as bad:
        raise build_unreadable_file_error(file, bad, "Name a file in Markdown.") from None
    where = find_pull_request_of_ci_job(os.environ, given)
    verb = "wrote" if write_pull_request_comment(where, text) else "changed"
    sys.stdout.write(f"{verb} the comment on {where.repository} {where.number}\n")
    return Exit.CLEAN
