"""Formats a verdict of the admission solver in one line."""

from __future__ import annotations

from gangplan.model.amounts import format_with_unit
from gangplan.validate.kueue.model import AdmissionVerdict

# Part of the name of a sweep's queue (resolve/sweeps.py); names of team queues have no dot.
SWEEP = ".sweep-"


def format_admission(verdict: AdmissionVerdict | None) -> str:
    """Format a verdict: `admitted at once when idle (...)` or `never: ...`, with what the run borrows."""
    if verdict is None:
        return "not judged: the objects are invalid"
    if verdict.outcome == "never":
        return f"never: {verdict.cause_message}"
    if not verdict.queue:
        return "starts at once: no queue holds it back"
    flavors = ", ".join(
        f"{podset}: {' + '.join(sorted(set(of.values())))}" for podset, of in verdict.assignment.items()
    )
    words = f"admitted at once when idle ({flavors})"
    if verdict.borrowed:
        beyond = ", ".join(
            f"{format_with_unit(resource, value)} of {flavor}"
            for (flavor, resource), value in sorted(verdict.borrowed.items())
        )
        if SWEEP in verdict.queue:
            words += f"; takes {beyond} of the team's quota"
        else:
            words += f"; borrows {beyond} beyond the team's own quota"
    return words
