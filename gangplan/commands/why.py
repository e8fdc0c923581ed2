"""`gangplan why`: the origin of each value of a job, or of one line of a file."""

from __future__ import annotations

import sys
from dataclasses import replace

from gangplan.asked import ask, place_in
from gangplan.commands.common import exit_code, print_findings
from gangplan.errors import Exit
from gangplan.pipeline import Request, Result, preview
from gangplan.report.origins import origins_text
from gangplan.report.whence import answer_text


def why(request: Request, what: str) -> Exit:
    """Print the origin of each resolved value of a spec; with a line, what that line comes from or became.

    `what` is SPEC or FILE:LINE, where FILE is any file that is rendered or that something is rendered from.
    """
    place = place_in(what)
    if place is not None:
        answer = ask(replace(request, specs=()), *place)
        errors = [finding for finding in answer.findings if finding.is_error]
        print_findings(errors)
        sys.stdout.write(answer_text(answer))
        return exit_code(Result(errors))
    result = preview(replace(request, specs=(what,)))
    print_findings(result.findings)
    sys.stdout.write("\n".join(origins_text(run) for run in result.runs))
    return exit_code(result)
