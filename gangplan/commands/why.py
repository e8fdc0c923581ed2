"""`gangplan why`."""

from __future__ import annotations

import sys

from gangplan.commands.common import exit_code, print_findings
from gangplan.errors import Exit
from gangplan.pipeline import Request, preview
from gangplan.report.origins import origins_text


def why(request: Request) -> Exit:
    """Print the origin of each resolved value."""
    result = preview(request)
    print_findings(result.findings)
    sys.stdout.write("\n".join(origins_text(run) for run in result.runs))
    return exit_code(result)
