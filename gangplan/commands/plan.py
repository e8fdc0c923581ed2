"""`gangplan plan`."""

from __future__ import annotations

import json
import sys

from gangplan.commands.common import exit_code, print_findings
from gangplan.errors import Exit, UserError
from gangplan.pipeline import Request, preview
from gangplan.report.plan import plan_document, plan_text


def plan(request: Request, format: str) -> Exit:
    """Print what the specs amount to."""
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    result = preview(request)
    print_findings(result.findings)
    runs = sorted(result.runs, key=lambda run: (run.unit.job.source, run.cluster))
    if format == "json":
        sys.stdout.write(json.dumps(plan_document(runs), indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(plan_text(runs))
    return exit_code(result)
