"""The start of `gangplan` and `python -m gangplan`, before the rest of the program is imported.

Most of a start is spent on imports, so what can be answered without them is answered here. Only the standard
library is imported at the top, and little of it.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from gangplan import __version__


def main() -> int:
    """Run the command line and return its exit code. An interrupt shows no traceback, however early it is."""
    try:
        return _answer_or_run()
    except KeyboardInterrupt:  # while files or modules are read; later ones end in `gangplan.cli`
        from gangplan.errors import INTERRUPTED, Exit

        sys.stderr.write(INTERRUPTED)
        return Exit.INTERRUPTED


def _answer_or_run() -> int:
    if sys.argv[1:] == ["--version"] and _replay_stored_answer([(1, f"gangplan {__version__}\n")]):
        return 0
    from gangplan.incremental.answers import build_question_for_cached_answer

    asked = build_question_for_cached_answer(sys.argv[1:])
    if asked is not None and (answer := asked.answer()) is not None:
        written, code = answer
        if _replay_stored_answer(written):
            return code
    # One object in fifty is in a cycle, so the collector frees next to nothing, but takes a fifth of the time
    # of a short command, and several seconds of one with 10 000 specs.
    gc.set_threshold(5_000_000, 20, 20)
    if "mpi4py.futures" in sys.modules:  # `mpirun python -m mpi4py.futures -m gangplan ...`
        from gangplan.engines.mpi import start_mpi_ranks_early

        start_mpi_ranks_early("gangplan.pipeline.runs")
    from gangplan.cli import run_command_line

    code = run_command_line(asked.write, asked.before) if asked is not None else run_command_line()
    if asked is not None:
        with suppress(KeyboardInterrupt):  # all is done and said; the next command does without the answer
            asked.keep(code)
    gc.freeze()
    return code


def _replay_stored_answer(written: list[tuple[int, str]]) -> bool:
    """Write an answer as it was first written, and return whether that succeeded. A reader may go away."""
    for number, text in written:
        stream = sys.stdout if number == 1 else sys.stderr
        if stream is None:  # the caller closed it
            return False
        try:
            stream.buffer.write(text.encode("utf-8", "surrogateescape"))
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        except OSError:
            return False
    return True
