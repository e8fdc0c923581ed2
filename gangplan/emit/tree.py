"""The rendered tree: new texts are staged next to it, then the whole tree is swapped in at once.

A killed render leaves the old tree or the new one (journal.py handles small changes of a large tree).
Unchanged files are never written. Only files with gangplan's mark are replaced or removed, and nothing
outside the tree is touched.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from gangplan.emit import journal
from gangplan.emit.header import read_header_source
from gangplan.emit.swap import exchange_paths
from gangplan.errors import ToolError, UserError, find_os_error_help
from gangplan.incremental.seal import read_seal_key
from gangplan.records import dataclass

STATE_FOLDER = ".gangplan"


class FileOutcome(StrEnum):
    """What a render does to one file."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file of the tree by its path in it, what happens to it, and the digest of its new text."""

    path: str
    outcome: FileOutcome
    digest: str = field(default="", compare=False)


@dataclass(slots=True)
class StagingFolder:
    """A folder for new texts next to the tree. Workers put files into it, and one process commits them.

    `tree` is the folder for the result; `folder` is the stage, on the same file system. A stage with
    `is_look` is never committed: it only compares texts with the tree, and refuses nothing there.
    """

    tree: Path
    folder: Path
    is_look: bool = False

    @classmethod
    def beside(cls, tree: Path, state: Path) -> StagingFolder:
        """Create an empty stage in the state folder; remove what an earlier, killed render left there."""
        if tree.is_symlink():
            raise UserError(f"{tree} is a link; a render would replace it", "Make it a folder.")
        folder = state / "stage"
        recover_tree(tree, state)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir(parents=True)
        except OSError as failed:
            raise _build_tree_write_error(state, failed) from None
        return cls(tree, folder)

    def put(self, path: str, text: str) -> TreeChange:
        """Compare a text with the tree and stage it if it differs. Raises UserError for an unmanaged file."""
        data, existing = text.encode(), os.path.join(self.tree, path)
        digest = sha256(data).hexdigest()
        old = (
            _read_regular_rendered_file(existing) if self.is_look else _read_existing_rendered_file(existing)
        )
        if old == data:
            return TreeChange(path, FileOutcome.SAME, digest)
        if old is not None and not self.is_look and read_header_source(Path(existing)) is None:
            raise UserError(
                f"{existing} would be overwritten, but gangplan did not write it", "Move it away."
            )
        target = self.folder / path
        try:
            try:
                target.write_bytes(data)
            except FileNotFoundError:  # the first of its folder
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        except OSError as failed:
            raise _build_tree_write_error(self.folder, failed) from None
        return TreeChange(path, FileOutcome.NEW if old is None else FileOutcome.CHANGED, digest)

    def obsolete(
        self,
        wanted: set[str],
        in_scope: Callable[[str, str], bool],
        folders: Collection[str] | None = None,
    ) -> list[str]:
        """Return gangplan's files that are no longer rendered; `in_scope(path, source)` limits what may go.

        `folders` are those of the tree that may have some ("" is the tree itself), if they are known.
        """
        found = []
        for path in sorted(
            _list_rendered_tree_files(self.tree)
            if folders is None
            else _list_rendered_files_in_folders(self.tree, folders)
        ):
            if path in wanted:
                continue
            source = read_header_source(self.tree / path)
            if source is not None and in_scope(path, source):
                found.append(path)
        return found

    def commit(self, removed: Iterable[str]) -> None:
        """Make the tree what was staged. Raises ToolError if the file system refuses."""
        staged, gone = sorted(_list_rendered_tree_files(self.folder)), set(removed)
        is_plain = all(journal.is_inside_rendered_tree(self.tree, path) for path in (*staged, *gone))
        try:
            if len(staged) + len(gone) == 1 and is_plain and self.tree.exists():
                self._commit_one(staged, gone)
            elif (staged or gone) and is_plain and self._is_small_part(len(staged) + len(gone)):
                journal.commit_staged_files(self.tree, self.folder, staged, gone)
            elif staged or gone:
                self._commit_all(gone)
        except OSError as failed:
            raise _build_tree_write_error(self.tree, failed) from None
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the stage and leave the tree as it is. Staged files that a journal still needs stay."""
        if not journal.locate_journal(self.folder).exists():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _is_small_part(self, changes: int) -> bool:
        """Return whether so few of so many files change that a journal pays off."""
        if read_seal_key() is None:
            return False
        most = max(journal.JOURNAL_MIN_FILES, changes * journal.JOURNAL_FRACTION)
        return any(number >= most for number, _ in enumerate(_list_rendered_tree_files(self.tree)))

    def _commit_one(self, staged: list[str], gone: set[str]) -> None:
        """Rename or remove a single file, which is already atomic."""
        for path in staged:
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.folder / path, self.tree / path)
        for path in gone:
            (self.tree / path).unlink()
            journal.remove_empty_parent_folders(self.tree / path, self.tree)

    def _commit_all(self, gone: set[str]) -> None:
        """Complete the stage with links to all unchanged files, then exchange it with the tree."""
        folder = str(self.folder)
        for path in _list_rendered_tree_files(self.tree):
            if path in gone or os.path.lexists(os.path.join(folder, path)):
                continue
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            _link_or_copy_file(self.tree / path, target)
        if self.tree.exists():
            exchange_paths(self.folder, self.tree)
        else:
            self.tree.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.folder, self.tree)


def _read_existing_rendered_file(path: str) -> bytes | None:
    """Return the bytes of the file at a path, or None if nothing is there. Raises UserError for non-files."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as failed:
        raise UserError(
            f"{path}: {failed.strerror}", "A rendered file belongs here; move what is in its way."
        ) from None


def _read_regular_rendered_file(path: str) -> bytes | None:
    """Return the bytes of a regular file, or None for anything else.

    Does not follow links or wait for pipes.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(number, "rb", buffering=0) as file:
        try:
            return file.read() if stat.S_ISREG(os.fstat(number).st_mode) else None
        except OSError:
            return None


def _build_tree_write_error(folder: Path, failed: OSError) -> ToolError:
    message = f"cannot write in {folder}: {failed.strerror}; the rendered tree is as it was"
    return ToolError(message, find_os_error_help(failed))


def _list_rendered_tree_files(folder: Path) -> Iterator[str]:
    """Yield the paths of all files and links below a folder, relative, with forward slashes."""
    for parent, folders, names in os.walk(folder):
        inside = parent[len(str(folder)) + 1 :].replace(os.sep, "/")
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*names, *links):
            yield f"{inside}/{name}" if inside else name


def _list_rendered_files_in_folders(tree: Path, folders: Collection[str]) -> Iterator[str]:
    """Yield the paths of files and links directly in some folders, not below them."""
    for inside in folders:
        with suppress(FileNotFoundError), os.scandir(tree / inside) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield f"{inside}/{entry.name}" if inside else entry.name


def _link_or_copy_file(source: Path, target: Path) -> None:
    """Create a second name for an unchanged file, or a copy if the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def is_unfinished(state: Path) -> bool:
    """Return whether a killed render left changes of its tree to be made."""
    return journal.locate_journal(state / "stage").exists()


def recover_tree(tree: Path, state: Path) -> None:
    """Finish a killed render's journal, or undo its exchange if it stopped between two renames.

    Raises ToolError if the file system refuses. The caller holds the lock.
    """
    folder = state / "stage"
    try:
        journal.complete_rendered_tree_journal(tree, folder)
    except OSError as failed:
        raise _build_tree_write_error(tree, failed) from None
    aside = folder.with_name(f"{folder.name}.aside")
    if aside.exists() and not tree.exists():
        os.rename(aside, tree)
    shutil.rmtree(aside, ignore_errors=True)
