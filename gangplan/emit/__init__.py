"""Write rendered texts into the tree: staged, compared, swapped in at once, never half written."""

from gangplan.emit.earlier import EarlierRun, EarlierRuns, is_launch_file, is_run_file, renamed
from gangplan.emit.header import conflict_line, header_lines, source_of
from gangplan.emit.tree import Change, FileOutcome, Stage

__all__ = [
    "Change",
    "EarlierRun",
    "EarlierRuns",
    "FileOutcome",
    "Stage",
    "conflict_line",
    "header_lines",
    "is_launch_file",
    "is_run_file",
    "renamed",
    "source_of",
]
