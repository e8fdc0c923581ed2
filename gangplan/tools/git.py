"""What a Git revision holds below a folder. Git is read only: nothing here writes, fetches or runs hooks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from gangplan.errors import ToolError, UserError
from gangplan.records import dataclass
from gangplan.tools.run import first_lines, run

#: Seconds after which a command of Git is stopped.
TIMEOUT_S = 120.0


def files_at(root: Path, revision: str, folder: str) -> dict[str, bytes]:
    """Every file below `folder` (a path from `root`) at a revision: its path inside the folder, and bytes.

    Empty where the revision has no such folder. Raises UserError for an unknown revision (exit 2), and
    ToolError without git or outside a repository (exit 3).
    """
    commit = commit_of(root, revision)
    listed = run(
        ["git", "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{prefix_of(root)}{folder}"],
        timeout_s=TIMEOUT_S,
        cwd=root,
        ok=(0, 128),
    )
    if listed.returncode:  # no such folder then
        return {}
    blobs = []
    for line in listed.stdout.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        # MODE TYPE ID: submodules are commits, links are not files of ours.
        if facts.startswith(b"100"):
            blobs.append((path.decode("utf-8", "surrogateescape"), facts.split()[2]))
    contents = _contents(root, [name for _, name in blobs])
    return {path: data for (path, _), data in zip(blobs, contents, strict=True) if data is not None}


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A commit that added a file, or removed it: the commit, its time in seconds since 1970, and which."""

    commit: str
    time_s: int
    is_added: bool


def history_of(root: Path, folder: str) -> dict[str, list[FileEvent]]:
    """When each file below `folder` (a path from `root`) was added and removed, the latest event first.

    Raises UserError where the clone is shallow, which has no history, and ToolError as `files_at`.
    """
    commit_of(root, "HEAD")
    shallow = run(["git", "rev-parse", "--is-shallow-repository"], timeout_s=TIMEOUT_S, cwd=root)
    if shallow.stdout.strip() == b"true":
        raise UserError(
            "the clone is shallow, so that Git's history is not there", "git fetch --unshallow, then again."
        )
    asked = ["--format=%x01%H %ct", "--name-status", "--no-renames", "--diff-filter=AD", "--relative"]
    told = run(["git", "log", *asked, "--", folder], timeout_s=TIMEOUT_S, cwd=root)
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


def removed_texts(root: Path, folder: str, removed: Mapping[str, FileEvent]) -> dict[str, str]:
    """What files below `folder` held before the commits that removed them."""
    if not removed:
        return {}
    below = f"{prefix_of(root)}{folder}"
    names = [
        f"{event.commit}^:{below}/{path}".encode("utf-8", "surrogateescape")
        for path, event in removed.items()
    ]
    found = zip(removed, _contents(root, names), strict=True)
    return {path: data.decode("utf-8", "replace") for path, data in found if data is not None}


def commit_of(root: Path, revision: str) -> str:
    """The id of a revision's commit. Raises UserError for an unknown one, ToolError without a repository."""
    try:
        found = run(
            ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"],
            timeout_s=TIMEOUT_S,
            cwd=root,
            ok=(0, 1, 128),
        )
    except ToolError as missing:
        raise ToolError(f"this reads Git, and {missing.message}", "Install git.") from None
    if found.returncode == 0:
        return found.stdout.decode().strip()
    if "not a git repository" in found.stderr or "dubious ownership" in found.stderr:
        raise ToolError(
            f"this reads Git: {first_lines(found.stderr, 1)}", "Use it in a clone of the repository."
        )
    raise UserError(
        f"Git knows no revision '{revision}'",
        "Name a branch, tag or commit; in CI, fetch it first (a shallow clone lacks it).",
    )


def is_before(root: Path, one: str, other: str) -> bool:
    """Whether a commit is among the ancestors of another one; False where Git does not have both."""
    command = ["git", "merge-base", "--is-ancestor", "--end-of-options", one, other]
    return run(command, timeout_s=TIMEOUT_S, cwd=root, ok=(0, 1, 128)).returncode == 0


def uncommitted(root: Path, folders: Sequence[str]) -> list[str]:
    """What `git status` says of some folders of a workspace, a line for each file. Raises ToolError."""
    command = ["git", "--literal-pathspecs", "status", "--porcelain", "--untracked-files=all", "--", *folders]
    done = run(command, timeout_s=TIMEOUT_S, cwd=root)
    return done.stdout.decode("utf-8", "replace").splitlines()


def prefix_of(root: Path) -> str:
    """The path of `root` inside its repository, with a slash at its end; empty at the top."""
    done = run(["git", "rev-parse", "--show-prefix"], timeout_s=TIMEOUT_S, cwd=root)
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def _contents(root: Path, names: list[bytes]) -> list[bytes | None]:
    """The blobs of some names of objects, in one process; None for one that is not there, or no blob."""
    if not names:
        return []
    answer = run(
        ["git", "cat-file", "--batch"], input=b"\n".join(names) + b"\n", timeout_s=TIMEOUT_S, cwd=root
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


def folder_inside(folder: Path) -> str | None:
    """The path of a folder inside its repository (`ml/jobs`); empty at the top, None outside of any, or
    without git.

    Raises ToolError where Git refuses to say, in a repository of somebody else.
    """
    if not shutil.which("git"):
        return None
    command = ["git", "rev-parse", "--show-prefix"]
    done = run(command, timeout_s=TIMEOUT_S, cwd=folder, ok=(0, 128))
    if done.returncode and "not a git repository" not in done.stderr:
        raise ToolError(f"Git refuses: {first_lines(done.stderr, 1)}", "Name the folder: --prefix DIR.")
    return None if done.returncode else done.stdout.decode("utf-8", "replace").strip().strip("/")


def remote(folder: Path) -> str:
    """The address that the repository around a folder is fetched from, without a password in it.

    Empty where there is none. Raises ToolError without git.
    """
    command = ["git", "config", "--get", "remote.origin.url"]
    done = run(command, timeout_s=TIMEOUT_S, cwd=folder, ok=(0, 1, 128))
    address = done.stdout.decode("utf-8", "replace").strip()
    return re.sub(r"^(https?://)[^/@]*@", r"\1", address) if not done.returncode else ""
