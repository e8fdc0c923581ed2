"""What a Git revision holds below a folder. Git is read only: nothing here writes, fetches or runs hooks."""

from __future__ import annotations

from pathlib import Path

from gangplan.errors import ToolError, UserError
from gangplan.tools.run import first_lines, run

_TIMEOUT_S = 120.0


def files_at(root: Path, revision: str, folder: str) -> dict[str, bytes]:
    """Every file below `folder` (a path from `root`) at a revision: its path inside the folder, and bytes.

    Empty where the revision has no such folder. Raises UserError for an unknown revision (exit 2), and
    ToolError without git or outside a repository (exit 3).
    """
    commit = _commit(root, revision)
    listed = run(
        ["git", "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{_prefix(root)}{folder}"],
        timeout_s=_TIMEOUT_S,
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
    return dict(zip((path for path, _ in blobs), _contents(root, [name for _, name in blobs]), strict=True))


def _commit(root: Path, revision: str) -> str:
    try:
        found = run(
            ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"],
            timeout_s=_TIMEOUT_S,
            cwd=root,
            ok=(0, 1, 128),
        )
    except ToolError as missing:
        help = "Install git, or leave --base out."
        raise ToolError(f"--base reads Git, and {missing.message}", help) from None
    if found.returncode == 0:
        return found.stdout.decode().strip()
    if "not a git repository" in found.stderr or "dubious ownership" in found.stderr:
        raise ToolError(
            f"--base reads Git: {first_lines(found.stderr, 1)}", "Use it in a clone of the repository."
        )
    raise UserError(
        f"Git knows no revision '{revision}'",
        "Name a branch, tag or commit; in CI, fetch it first (a shallow clone lacks it).",
    )


def _prefix(root: Path) -> str:
    """The path of `root` inside its repository, with a slash at its end; empty at the top."""
    done = run(["git", "rev-parse", "--show-prefix"], timeout_s=_TIMEOUT_S, cwd=root)
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def _contents(root: Path, names: list[bytes]) -> list[bytes]:
    """The blobs of some object ids, in one process."""
    if not names:
        return []
    answer = run(
        ["git", "cat-file", "--batch"], input=b"\n".join(names) + b"\n", timeout_s=_TIMEOUT_S, cwd=root
    ).stdout
    found, at = [], 0
    for _ in names:
        end = answer.index(b"\n", at)  # ID TYPE SIZE
        size = int(answer[at:end].rsplit(b" ", 1)[1])
        found.append(answer[end + 1 : end + 1 + size])
        at = end + size + 2
    return found
