"""Find the lines of a log that say what went wrong."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path

#: The length at which lines (stack traces, objects) are cut; the rest is in the file.
WIDTH = 400

#: klog errors (``E1121 ...``), zap errors in both of its styles, crashes.
_TROUBLE = re.compile(
    r"""^[EF]\d{4}\s|\tERROR\t|"level":"(error|fatal|panic)"|level=(error|fatal)"""
    r"""|^panic:|^fatal error|\bFATAL\b|^Error:|^error:|unable to|address already in use""",
)


def relevant(log: Path, limit: int = 8, *, start: int = 0, anything: bool = False) -> str:
    """Return a log's last relevant lines after an offset, or without any, its last lines or nothing."""
    telling: deque[str] = deque(maxlen=limit)
    last: deque[str] = deque(maxlen=limit)
    with log.open(errors="replace") as file:
        file.seek(start)
        for line in file:
            last.append(line)
            if _TROUBLE.search(line):
                telling.append(line)
    lines = telling or (last if anything else ())
    return "\n".join([f"--- {log}", *(line.rstrip()[:WIDTH] for line in lines)]) if lines else ""
