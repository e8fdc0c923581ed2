"""Tell lines that report a failure from those that healthy programs print, too.

A program that goes on after a warning has dealt with what the warning says, so it does not explain a failure that
something else reports.

Sources of the forms: logging of Python, glog and absl (TensorFlow, PyTorch), NCCL 2.18 to 2.28 (src/debug.cc),
Open MPI 4.1 (mca_base_component_repository.c), logfmt and JSON lines.
"""

from __future__ import annotations

import re

# NCCL has no level above WARN, and the events of `kubectl describe` begin with "Warning" without a colon.
_LEVEL = re.compile(
    r"(?<![\w=./-])(?:(?<!NCCL )WARN(?:ING)?|INFO|DEBUG|NOTICE)(?![\w./-])"
    r"|(?i:warning[:\]]|\blevel=\"?(?:warn(?:ing)?|info|debug|notice)\b)"
    r"|\[[WI](?:\d{4} [\d:.]+)? ?\w+\.\w+:\d+\]|[:\d] [WI] (?:tensorflow|external)/|\b[WI]\d{4} [\d:.]+ (?:\d+ )?torch/"
)
# Wherever they are in the line.
_GOES_ON = re.compile(
    r"\(ignored\)|Could not load dynamic library|failed call to cuInit"
    r"|\"(?i:level(?:name)?\": ?\"(?:warn(?:ing)?|info|debug|notice))\""
)
# Python prints it before the traceback of an exception that no code could catch.
_IGNORED = "Exception ignored in"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What a program prints of its own arguments, and the commands that `set -x` prints.
_ARGUMENTS = re.compile(r"(?:Namespace|Config|Arguments|Args|Params)\(\w+=|^(?:\S+ \| )?\++ \S")


def is_warning(line: str, needle: int, before: str = "") -> bool:
    """Return whether a line warns or informs, by the level before the needle and by the line before."""
    front = _ANSI.sub("", line[:needle])
    return bool(_LEVEL.search(front) or _GOES_ON.search(line)) or _IGNORED in before


def is_quoted(line: str, needle: int) -> bool:
    """Return whether the needle is in what a program was given, and not in what it says."""
    return _ARGUMENTS.search(line[:needle]) is not None
