"""Apply a few changes to a large tree: journal them first, then make them one by one.

Exchanging whole trees needs a second name for every unchanged file: with 100 000 files that takes longer than
all the rest of a render. Here a killed render leaves some of the changes made, and a journal that lists all
of them; the next command that looks at the tree makes the others. Every file is whole at all times.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path

from gangplan.incremental.seal import open_sealed, read_seal_key, seal_text

#: The number of files in a tree from which a journal pays off, and the fraction (1/PART) that may change.
JOURNAL_MIN_FILES, JOURNAL_FRACTION = 2_000, 10


def locate_journal(folder: Path) -> Path:
    """Return where the journal of a stage is: next to it."""
    return folder.with_name("journal")


def commit_staged_files(tree: Path, folder: Path, staged: Iterable[str], gone: Iterable[str]) -> None:
    """Move the staged files of a folder into a tree and remove others. Raises OSError.

    The journal lists all changes before the first one is made; from then on they will be made.
    """
    journal = locate_journal(folder)
    aside = journal.with_name("journal.new")
    text = json.dumps({"staged": sorted(staged), "gone": sorted(gone)}).encode()
    aside.write_bytes(seal_text(text, _read_journal_key()))
    os.replace(aside, journal)
    complete_rendered_tree_journal(tree, folder)


def complete_rendered_tree_journal(tree: Path, folder: Path) -> None:
    """Make the remaining changes of a journal, if there is one. Raises OSError."""
    journal = locate_journal(folder)
    try:
        text = open_sealed(journal.read_bytes(), _read_journal_key())
    except FileNotFoundError:
        return
    if text is None:  # gangplan did not write it: it could name any file
        journal.unlink()
        return
    wanted = json.loads(text)
    if not all(is_inside_rendered_tree(tree, path) for path in (*wanted["staged"], *wanted["gone"])):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    for path in wanted["staged"]:
        if os.path.lexists(folder / path):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / path, tree / path)
    for path in wanted["gone"]:
        (tree / path).unlink(missing_ok=True)
        remove_empty_parent_folders(tree / path, tree)
    journal.unlink()


def _read_journal_key() -> bytes:
    """Return the key of journals.

    Raises OSError if there is none: the caller then exchanges the whole tree.
    """
    found = read_seal_key()
    if found is None:
        raise OSError(errno.ENOKEY, "there is no place for a key")
    return found


def is_inside_rendered_tree(tree: Path, path: str) -> bool:
    """Return whether a path of a tree is really in it: no folder on the way is a link."""
    parts = path.split("/")
    return ".." not in parts and not any(
        os.path.islink(tree.joinpath(*parts[:number])) for number in range(1, len(parts))
    )


def remove_empty_parent_folders(path: Path, root: Path) -> None:
    """Remove the empty parent folders of a path, up to `root`."""
    for folder in path.parents:
        if folder == root:
            return
        try:
            folder.rmdir()
        except OSError:
            return
