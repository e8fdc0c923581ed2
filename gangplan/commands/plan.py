"""`gangplan plan`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gangplan.commands.common import exit_code, print_findings
from gangplan.commands.reports import repository_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import in_order
from gangplan.pipeline.now import against
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request
from gangplan.report.json import findings_part
from gangplan.report.network import network_document, network_text
from gangplan.report.now import now_document, now_text
from gangplan.report.plan import plan_document, plan_text


def plan(request: Request, format: str, usage: Path | None = None) -> Exit:
    """Print what the specs amount to, or with `with_flows` who may talk to whom.

    With `usage`, a snapshot of what is in use, also which runs would be admitted now. As JSON, findings stand in
    the document, in the shape that validate gives them.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    result = preview(request)
    now, near = against(request, result, usage) if usage and not result.has_errors else ([], [])
    findings = in_order([*result.findings, *near])
    runs = sorted(result.runs, key=lambda run: (run.unit.job.source, run.cluster))
    text, document = (network_text, network_document) if request.with_flows else (plan_text, plan_document)
    if format == "json":
        part = findings_part(findings, repository_folder(request.root))
        whole = document(runs) | ({"now": now_document(now)} if usage else {}) | part
        sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        print_findings(findings)
        sys.stdout.write(text(runs) + (now_text(usage.name, now) if usage else ""))
    return exit_code(result.findings)
