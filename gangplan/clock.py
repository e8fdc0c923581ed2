"""The only module that reads the clock. Rendering never does; commands that do have a flag to override it."""

from __future__ import annotations

import os
import time


def read_today() -> str:
    """Return the local date as YYYY-MM-DD, or the unchecked text of `GANGPLAN_TODAY` if it is set."""
    return os.environ.get("GANGPLAN_TODAY") or time.strftime("%Y-%m-%d")


def read_unix_time() -> int:
    """Return the seconds since 1970."""
    return int(time.time())
