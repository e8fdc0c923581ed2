"""Read the base revision of a change, and the state of a merge. Nothing here writes or fetches.

Read with plumbing of Git 2.25 and later: rev-parse, merge-base, ls-tree, cat-file, ls-files. The work tree
and the index are never written, no hook runs (`core.fsmonitor` is one), and no object is fetched
(`protocol.allow`).
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from gangplan.errors import ToolError, UserError
from gangplan.records import dataclass
from gangplan.tools.git import GIT_TIMEOUT_S, commit_of, find_repository_prefix
from gangplan.tools.run import CompletedProgram, run_program

_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never")
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
_FETCH = "git fetch --unshallow (GitHub: fetch-depth: 0, GitLab: GIT_DEPTH: 0)"


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision that a change is compared with: its commit, and the name that was `asked` for.

    `is_merge_base`: the commit is where HEAD branched off `asked`, which has moved on since.
    """

    commit: str
    asked: str
    is_merge_base: bool

    @property
    def words(self) -> str:
        """The revision in words: `main (1a2b3c4d5e6f)`, `the merge base of HEAD and main (...)`."""
        name = f"the merge base of HEAD and {self.asked}" if self.is_merge_base else self.asked
        return f"{name} ({self.commit[:12]})"


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a workspace at a commit: blob ids by path from its root.

    `unread` are links and submodules, which are not compared.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


def resolve_git_revision(root: Path, asked: str) -> Revision:
    """Return the merge base of HEAD and a revision, or for `REF..` the revision itself.

    Raises UserError for an unknown revision or if there is no merge base (exit 2), ToolError without Git
    or outside a repository (exit 3).
    """
    name = asked.removesuffix("..")
    if not name.strip():
        help = "Name a branch, tag or commit; in CI, check that its variable is set."
        raise UserError("--base names no revision", help)
    tip = commit_of(root, name)
    if asked.endswith(".."):
        return Revision(tip, name, False)
    head = commit_of(root, "HEAD")
    found = _run_git_command(root, "merge-base", tip, head, ok=(0, 1))
    if found.returncode:
        raise _explain_missing_merge_base(root, name)
    commit = found.stdout.decode().split()[0]
    return Revision(commit, name, commit != tip)


def _explain_missing_merge_base(root: Path, name: str) -> UserError:
    shallow = _run_git_command(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    message = f"Git finds no merge base of HEAD and {name}"
    if shallow:
        return UserError(
            f"{message}: the clone is shallow",
            f"Fetch more: {_FETCH}; or write --base {name}.. for {name} itself.",
        )
    return UserError(
        f"{message}: their histories have nothing in common",
        f"Write --base {name}.. to compare with {name} itself.",
    )


def list_commit_files(root: Path, commit: str, folders: Sequence[str]) -> Listing:
    """Return the files below some folders of a workspace at a commit. Raises ToolError."""
    prefix = find_repository_prefix(root)
    names = [f"{prefix}{one}" for one in folders]
    # Literal pathspecs: a folder of a repository may be called `:(top)`.
    listed = _run_git_command(
        root, "--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, "--", *names
    )
    files: dict[str, str] = {}
    unread = []
    for line in listed.stdout.split(b"\0"):
        facts, _, name = line.partition(b"\t")
        path = name.decode("utf-8", "surrogateescape").removeprefix(prefix)
        if not facts or not _is_inside(path):
            continue
        if facts.startswith(b"100"):
            files[path] = facts.split()[2].decode()
        else:
            unread.append(path)
    return Listing(files, tuple(sorted(unread)))


def list_possibly_changed_git_files(root: Path, commit: str, folder: str) -> set[str]:
    """Return the tracked files below a folder of a workspace that may differ from a commit. Raises ToolError.

    Git answers from its index, by sizes and times, and reads next to no file. Files that it does not look
    at (assume-unchanged, skip-worktree) may differ, too.
    """
    prefix = find_repository_prefix(root)
    strict = ("-c", "core.checkStat=default", "-c", "core.trustctime=true", "--literal-pathspecs")
    differing = _run_git_command(
        root, *strict, "diff-index", "--raw", "-z", "--no-renames", commit, "--", f"{prefix}{folder}"
    )
    names = differing.stdout.split(b"\0")[1::2]  # MODES, IDS AND STATUS, then the path
    flagged = _run_git_command(root, *strict, "ls-files", "-v", "-z", "--full-name", "--", folder)
    names += [line[2:] for line in flagged.stdout.split(b"\0") if line and not line.startswith(b"H ")]
    return {name.decode("utf-8", "surrogateescape").removeprefix(prefix) for name in names}


def _is_inside(path: str) -> bool:
    """Return whether a path stays inside the folder; a tree that Git did not write may contain `..`."""
    return all(part not in ("", ".", "..") for part in path.split("/"))


def read_git_blobs_by_id(root: Path, ids: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of blobs by id, read by one process. Raises ToolError for a missing one."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    given = "".join(f"{one}\n" for one in wanted).encode()
    done = _run_git_command(root, "cat-file", "--batch", given=given, ok=(0, 128))
    answer = done.stdout
    found, at = {}, 0
    for name in wanted:
        end = answer.find(b"\n", at)
        words = answer[at : max(end, at)].split()  # ID TYPE SIZE, or: ID missing
        if done.returncode or len(words) != 3:
            raise ToolError(
                "the clone lacks files of the revision to compare with, and gangplan fetches nothing",
                "Clone without --filter, or fetch them: git fetch --refetch --no-filter.",
            )
        size = int(words[2])
        found[name] = answer[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def compute_git_blob_id(data: bytes, like: str) -> str:
    """Return Git's blob id of contents, with the hash function of the id `like` (SHA-1 or SHA-256)."""
    digest = hashlib.sha1(usedforsecurity=False) if len(like) == 40 else hashlib.sha256()
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def list_unmerged_files_in_git_index(root: Path) -> dict[str, tuple[int, ...]]:
    """Return the unmerged files of a workspace, with their stages in the index (1 base, 2 ours, 3 theirs)."""
    listed = _run_git_command(root, "ls-files", "-u", "-z").stdout
    found: dict[str, list[int]] = {}
    for line in listed.split(b"\0"):
        facts, _, name = line.partition(b"\t")
        if facts:
            path = name.decode("utf-8", "surrogateescape")
            found.setdefault(path, []).append(int(facts.split()[2]))
    return {path: tuple(stages) for path, stages in found.items()}


def merge_texts_with_git(
    root: Path, own: bytes | None, base: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Return a file that both sides of a merge changed, as Git joins it; None if it stops."""
    if own is None or base is None or theirs is None:
        return None
    with tempfile.TemporaryDirectory("-merge") as folder:
        names = []
        for name, data in (("own", own), ("base", base), ("theirs", theirs)):
            (Path(folder) / name).write_bytes(data)
            names.append(str(Path(folder) / name))
        done = _run_git_command(root, "merge-file", "-p", *names, ok=(*range(128), 255))
    return None if done.returncode else done.stdout


def find_git_merge_parents(root: Path) -> tuple[str, ...]:
    """Return both parents of the merge in progress, or else of HEAD; empty if HEAD is not a merge."""
    for pair in (("HEAD", "MERGE_HEAD"), ("HEAD^1", "HEAD^2")):
        found = [
            _run_git_command(root, "rev-parse", "--verify", "--quiet", f"{one}^{{commit}}", ok=(0, 1, 128))
            for one in pair
        ]
        if not any(one.returncode for one in found):
            return tuple(one.stdout.decode().strip() for one in found)
    return ()


def _run_git_command(
    root: Path, *arguments: str, given: bytes | None = None, ok: tuple[int, ...] = (0,)
) -> CompletedProgram:
    return run_program(
        [*_GIT, *arguments], input=given, timeout_s=GIT_TIMEOUT_S, cwd=root, env=_ENVIRONMENT, ok=ok
    )
