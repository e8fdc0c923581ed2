"""Read files and history of a Git repository. Nothing here writes, fetches or runs hooks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from gangplan.errors import ToolError, UserError
from gangplan.records import dataclass
from gangplan.tools.run import join_first_lines, run_program

#: Seconds after which a Git command is stopped.
GIT_TIMEOUT_S = 120.0


def read_files_at(root: Path, revision: str, folder: str) -> dict[str, bytes]:
    """Return every file below `folder` (a path from `root`) at a revision, as bytes by path in the folder.

    Empty if the revision has no such folder. Raises UserError for an unknown revision (exit 2), and
    ToolError without git or outside a repository (exit 3).
    """
    commit = commit_of(root, revision)
    listed = run_program(
        ["git", "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{find_repository_prefix(root)}{folder}"],
        timeout_s=GIT_TIMEOUT_S,
        cwd=root,
        ok=(0, 128),
    )
    if listed.returncode:  # no such folder at that revision
        return {}
    blobs = []
    for line in listed.stdout.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        # MODE TYPE ID; only regular files (100...), no links and no submodules.
        if facts.startswith(b"100"):
            blobs.append((path.decode("utf-8", "surrogateescape"), facts.split()[2]))
    contents = _read_git_blobs(root, [name for _, name in blobs])
    return {path: data for (path, _), data in zip(blobs, contents, strict=True) if data is not None}


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A commit that added (`is_added`) or removed a file, and its time in seconds since 1970."""

    commit: str
    time_s: int
    is_added: bool


def history_of(root: Path, folder: str) -> dict[str, list[FileEvent]]:
    """Return the commits that added or removed each file below `folder` (a path from `root`), latest first.

    Raises UserError for a shallow clone, which has no history, and ToolError as `read_files_at`.
    """
    commit_of(root, "HEAD")
    shallow = run_program(["git", "rev-parse", "--is-shallow-repository"], timeout_s=GIT_TIMEOUT_S, cwd=root)
    if shallow.stdout.strip() == b"true":
        raise UserError(
            "the clone is shallow, so that Git's history is not there", "git fetch --unshallow, then again."
        )
    asked = ["--format=%x01%H %ct", "--name-status", "--no-renames", "--diff-filter=AD", "--relative"]
    told = run_program(["git", "log", *asked, "--", folder], timeout_s=GIT_TIMEOUT_S, cwd=root)
    found: dict[str, list[FileEvent]] = {}
    commit, time_s = "", 0
    for line in told.stdout.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("\x01"):
            commit, time = line[1:].split()
            time_s = int(time)
        elif line[1:2] == "\t":
            path = line[2:].removeprefix(f"{folder}/")
            found.setdefault(path, []).append(FileEvent(commit, time_s, line[0] == "A"))
    return found


def read_texts_removed_from_git(root: Path, folder: str, removed: Mapping[str, FileEvent]) -> dict[str, str]:
    """Return the texts of files below `folder` before the commits that removed them, by path in it."""
    if not removed:
        return {}
    below = f"{find_repository_prefix(root)}{folder}"
    names = [
        f"{event.commit}^:{below}/{path}".encode("utf-8", "surrogateescape")
        for path, event in removed.items()
    ]
    found = zip(removed, _read_git_blobs(root, names), strict=True)
    return {path: data.decode("utf-8", "replace") for path, data in found if data is not None}


def commit_of(root: Path, revision: str) -> str:
    """Return the id of a revision's commit.

    Raises UserError for an unknown revision, ToolError without git or outside a repository.
    """
    try:
        found = run_program(
            ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"],
            timeout_s=GIT_TIMEOUT_S,
            cwd=root,
            ok=(0, 1, 128),
        )
    except ToolError as missing:
        raise ToolError(f"this reads Git, and {missing.message}", "Install git.") from None
    if found.returncode == 0:
        return found.stdout.decode().strip()
    if "not a git repository" in found.stderr:
        help = "Use it in a clone of the repository, or begin one: git init, then git commit."
        raise ToolError("this reads Git, but the workspace is in no repository", help)
    if "dubious ownership" in found.stderr:
        help = "Use a clone of your own, or trust this one: git config --global --add safe.directory FOLDER."
        raise ToolError(f"this reads Git: {join_first_lines(found.stderr, 1).removeprefix('fatal: ')}", help)
    help = "Name a branch, tag or commit; in CI, fetch it first (a shallow clone lacks it)."
    remote = f"origin/{revision}"
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{remote}^{{commit}}"]
    if not run_program(command, timeout_s=GIT_TIMEOUT_S, cwd=root, ok=(0, 1, 128)).returncode:
        help = f"Did you mean {remote}? A clone has a branch of its own only once it is checked out."
    raise UserError(f"Git knows no revision '{revision}'", help)


def is_before(root: Path, one: str, other: str) -> bool:
    """Return whether a commit is an ancestor of another one; False if Git does not have both."""
    command = ["git", "merge-base", "--is-ancestor", "--end-of-options", one, other]
    return run_program(command, timeout_s=GIT_TIMEOUT_S, cwd=root, ok=(0, 1, 128)).returncode == 0


def list_uncommitted(root: Path, folders: Sequence[str]) -> list[str]:
    """Return the output of `git status` for folders of a workspace, one line per file. Raises ToolError."""
    command = ["git", "--literal-pathspecs", "status", "--porcelain", "--untracked-files=all", "--", *folders]
    done = run_program(command, timeout_s=GIT_TIMEOUT_S, cwd=root)
    return done.stdout.decode("utf-8", "replace").splitlines()


def find_repository_prefix(root: Path) -> str:
    """Return the path of `root` inside its repository, with a slash at the end; empty at the top."""
    done = run_program(["git", "rev-parse", "--show-prefix"], timeout_s=GIT_TIMEOUT_S, cwd=root)
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def _read_git_blobs(root: Path, names: list[bytes]) -> list[bytes | None]:
    """Return the blobs of named objects, read by one process; None for a missing object or another type."""
    if not names:
        return []
    answer = run_program(
        ["git", "cat-file", "--batch"], input=b"\n".join(names) + b"\n", timeout_s=GIT_TIMEOUT_S, cwd=root
    ).stdout
    found: list[bytes | None] = []
    at = 0
    for _ in names:
        end = answer.index(b"\n", at)  # ID TYPE SIZE, or NAME missing
        kind, size = answer[at:end].rsplit(b" ", 2)[-2:]
        if size == b"missing":
            found.append(None)
            at = end + 1
            continue
        found.append(answer[end + 1 : end + 1 + int(size)] if kind == b"blob" else None)
        at = end + int(size) + 2
    return found


def find_folder_in_git_repository(folder: Path) -> str | None:
    """Return the path of a folder inside its repository (`ml/jobs`), empty at the top.

    None outside of any repository, or without git. Raises ToolError where Git refuses to answer, such as in a
    repository of another user.
    """
    if not shutil.which("git"):
        return None
    command = ["git", "rev-parse", "--show-prefix"]
    done = run_program(command, timeout_s=GIT_TIMEOUT_S, cwd=folder, ok=(0, 128))
    if done.returncode and "not a git repository" not in done.stderr:
        raise ToolError(f"Git refuses: {join_first_lines(done.stderr, 1)}", "Name the folder: --prefix DIR.")
    return None if done.returncode else done.stdout.decode("utf-8", "replace").strip().strip("/")


def find_git_origin_url(folder: Path) -> str:
    """Return the URL of the remote `origin` of a folder's repository, without a password.

    Empty without such a remote. Raises ToolError without git.
    """
    command = ["git", "config", "--get", "remote.origin.url"]
    done = run_program(command, timeout_s=GIT_TIMEOUT_S, cwd=folder, ok=(0, 1, 128))
    address = done.stdout.decode("utf-8", "replace").strip()
    return re.sub(r"^(https?://)[^/@]*@", r"\1", address) if not done.returncode else ""
