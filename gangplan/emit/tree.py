"""The rendered tree: new texts are staged beside it, then the whole tree is swapped in at once.

A killed render leaves the old tree or the new one. Unchanged files are never written. Only files that
carry our mark are replaced or removed, and nothing outside the tree is touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gangplan.emit.header import source_of
from gangplan.emit.swap import advice, exchange
from gangplan.errors import ToolError, UserError

STATE = ".gangplan"


class FileOutcome(StrEnum):
    """What a render does to one file."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Change:
    """One file of the tree, by its path inside it, and what happens to it."""

    path: str
    outcome: FileOutcome


@dataclass(slots=True)
class Stage:
    """A place for new texts beside the tree. Workers put files, one process commits them.

    `tree` is the folder that will hold the result; `folder` is the stage, on the same file system.
    """

    tree: Path
    folder: Path

    @classmethod
    def beside(cls, tree: Path, state: Path) -> Stage:
        """An empty stage in the state folder; what an earlier, killed render left there is removed."""
        if tree.is_symlink():
            raise UserError(f"{tree} is a link; a render would replace it", "Make it a folder.")
        folder = state / "stage"
        _recover(tree, folder)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir(parents=True)
        except OSError as failed:
            raise _refused(state, failed) from None
        return cls(tree, folder)

    def put(self, path: str, text: str) -> Change:
        """Compare a text with the tree and stage it when it differs. Raises UserError for a foreign file."""
        data, existing = text.encode(), self.tree / path
        try:
            old = existing.read_bytes()
        except FileNotFoundError:
            old = None
        except OSError as failed:
            raise UserError(
                f"{existing}: {failed.strerror}", "A rendered file belongs here; move what is in its way."
            ) from None
        if old == data:
            return Change(path, FileOutcome.SAME)
        if old is not None and source_of(existing) is None:
            raise UserError(
                f"{existing} would be overwritten, but gangplan did not write it", "Move it away."
            )
        target = self.folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as failed:
            raise _refused(self.folder, failed) from None
        return Change(path, FileOutcome.NEW if old is None else FileOutcome.CHANGED)

    def obsolete(self, wanted: set[str], in_scope: Callable[[str, str], bool]) -> list[str]:
        """Files of ours that nothing renders any more. `in_scope(path, source)` limits what may go."""
        found = []
        for path in sorted(_files(self.tree)):
            if path in wanted:
                continue
            source = source_of(self.tree / path)
            if source is not None and in_scope(path, source):
                found.append(path)
        return found

    def commit(self, removed: Iterable[str]) -> None:
        """Make the tree what was staged. Raises ToolError when the file system refuses."""
        staged, gone = sorted(_files(self.folder)), set(removed)
        try:
            if len(staged) + len(gone) == 1 and self.tree.exists():
                self._commit_one(staged, gone)
            elif staged or gone:
                self._commit_all(gone)
        except OSError as failed:
            raise _refused(self.tree, failed) from None
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the stage; the tree stays as it is."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _commit_one(self, staged: list[str], gone: set[str]) -> None:
        """A single rename or removal is already all or nothing."""
        for path in staged:
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.folder / path, self.tree / path)
        for path in gone:
            (self.tree / path).unlink()
            _remove_empty(self.tree / path, self.tree)

    def _commit_all(self, gone: set[str]) -> None:
        """Complete the stage with links to everything unchanged, then exchange it with the tree."""
        for path in _files(self.tree):
            target = self.folder / path
            if path in gone or os.path.lexists(target):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(self.tree / path, target)
        if self.tree.exists():
            exchange(self.folder, self.tree)
        else:
            self.tree.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.folder, self.tree)


def _refused(folder: Path, failed: OSError) -> ToolError:
    message = f"cannot write in {folder}: {failed.strerror}; the rendered tree is as it was"
    return ToolError(message, advice(failed))


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files and links below a folder, relative, with forward slashes."""
    for parent, folders, names in os.walk(folder):
        inside = os.path.relpath(parent, folder).replace(os.sep, "/")
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*names, *links):
            yield name if inside == "." else f"{inside}/{name}"


def _link(source: Path, target: Path) -> None:
    """A second name for an unchanged file, or a copy where the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _remove_empty(path: Path, root: Path) -> None:
    for folder in path.parents:
        if folder == root:
            return
        try:
            folder.rmdir()
        except OSError:
            return


def _recover(tree: Path, folder: Path) -> None:
    """Finish a two-step exchange that was interrupted between its renames."""
    aside = folder.with_name(f"{folder.name}.aside")
    if aside.exists() and not tree.exists():
        os.rename(aside, tree)
    shutil.rmtree(aside, ignore_errors=True)
