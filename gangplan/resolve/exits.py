"""Exit codes that are and are not retried: whether they agree, and whether they can be seen."""

from __future__ import annotations

from gangplan.model.exits import LAUNCH_EXITS, PREFLIGHT_EXITS
from gangplan.model.job import PulledImage, RetryExitCodes
from gangplan.resolve.context import JobResolution
from gangplan.rules.model import WARNING
from gangplan.rules.pods import EXIT_CODES_CLASH, EXIT_CODES_LOST, EXIT_CODES_UNUSED


def resolve_exit_codes(context: JobResolution, image: PulledImage | None, retries: int) -> RetryExitCodes:
    """Return the spec's exit codes, sorted; both empty if it has none."""
    asked = context.spec.spec.exit_codes
    if asked is None:
        return RetryExitCodes()
    looks = PREFLIGHT_EXITS.values() if context.spec.spec.preflight else ()
    own = {one.code: one.meaning for one in (*LAUNCH_EXITS.values(), *looks)}
    for field, codes in (("retry", asked.retry), ("fail", asked.fail)):
        for index, code in enumerate(codes):
            if field == "fail" and code in asked.retry:
                why, help = f"{code} is in retry and in fail", "Keep it in one of them."
            elif code in own:
                why = f"{code} is an exit code of the launch itself: {own[code]}"
                help = "Remove it; gangplan decides about it (docs/job-commands.md)."
            else:
                continue
            context.report(EXIT_CODES_CLASH, context.where("exitCodes", field, index), why, help)
    if not retries:
        message = "the run has no retries, so exit codes decide nothing"
        context.report(
            EXIT_CODES_UNUSED, context.where("exitCodes"), message, "Add retries: 1, or remove exitCodes."
        )
    if image is not None and image.framework == "torch" and {*asked.retry, *asked.fail} - {1}:
        message = "torchrun ends with 1 whatever its ranks end with, so no other exit code is seen"
        context.report(EXIT_CODES_LOST, context.where("exitCodes"), message, "Remove exitCodes.")
    if image is not None and image.mpi is not None and image.mpi.family == "IntelMPI":
        # Seen in half of the launches of 2021.18.1 whose other ranks were still at work
        # (tests/reality/test_pods.py).
        message = "Intel MPI's mpirun may end with 255 instead of the program's exit code, once it has to kill other ranks"
        help = "Let the program end on all ranks at once, or list 255 in retry or fail as well."
        context.report(EXIT_CODES_LOST, context.where("exitCodes"), message, help, WARNING)
    return RetryExitCodes(tuple(sorted({*asked.retry})), tuple(sorted({*asked.fail})))
