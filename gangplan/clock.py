"""The only look at the clock. Rendering never asks; commands that do have a flag that answers instead."""

from __future__ import annotations

import os
import time


def day() -> str:
    """The day as YYYY-MM-DD: `GANGPLAN_TODAY` where it is set, which nobody has checked, else today here."""
    return os.environ.get("GANGPLAN_TODAY") or time.strftime("%Y-%m-%d")


def now() -> int:
    """Seconds since 1970."""
    return int(time.time())
