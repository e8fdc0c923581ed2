"""Write rendered texts into the tree: staged, compared, swapped in at once, never half written."""

from gangplan.emit.earlier import EarlierRun, EarlierRuns, build_renamed_finding, is_launch_file, is_run_file
from gangplan.emit.header import build_header_lines, find_conflict_line, read_header_source
from gangplan.emit.tree import FileOutcome, StagingFolder, TreeChange

__all__ = [
    "EarlierRun",
    "EarlierRuns",
    "FileOutcome",
    "StagingFolder",
    "TreeChange",
    "build_header_lines",
    "build_renamed_finding",
    "find_conflict_line",
    "is_launch_file",
    "is_run_file",
    "read_header_source",
]
