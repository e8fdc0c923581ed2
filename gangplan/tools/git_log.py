"""Read the changes of each commit of a branch. Like `tools/git.py`, this only reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.tools.git import GIT_TIMEOUT_S, commit_of
from gangplan.tools.run import run_program


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a commit changed: the commit, its time in seconds since 1970, and the new blob.

    `blob` is empty if the file was removed.
    """

    commit: str
    time_s: int
    path: str
    blob: str


def list_file_changes_in_git_log(root: Path, *folders: str) -> Iterator[FileChange]:
    """Yield every change of files below some folders (paths from `root`) on the branch of HEAD, oldest first.

    Only first parents are followed, so the changes of a merge request appear with its merge. Raises UserError
    for a shallow clone, and ToolError as `commit_of`.
    """
    commit_of(root, "HEAD")
    shallow = run_program(["git", "rev-parse", "--is-shallow-repository"], timeout_s=GIT_TIMEOUT_S, cwd=root)
    if shallow.stdout.strip() == b"true":
        raise UserError(
            "the clone is shallow, so that Git's history is not there", "git fetch --unshallow, then again."
        )
    asked = ["--first-parent", "-m", "--reverse", "--root", "--format=%x01%H %ct"]
    shown = ["--raw", "--no-abbrev", "--no-renames", "--relative"]
    told = run_program(["git", "log", *asked, *shown, "--", *folders], timeout_s=GIT_TIMEOUT_S, cwd=root)
    commit, time_s = "", 0
    for line in told.stdout.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("\x01"):
            commit, time = line[1:].split()
            time_s = int(time)
        elif line.startswith(":"):
            # :MODE MODE BLOB BLOB LETTER<tab>PATH. Git quotes unusual names, but gangplan writes none.
            facts, _, path = line.partition("\t")
            _, mode, _, blob, letter = facts.split()
            if letter == "D" or mode.startswith("100"):
                yield FileChange(commit, time_s, path, "" if letter == "D" else blob)
