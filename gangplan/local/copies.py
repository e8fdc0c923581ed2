"""A copy of a program's folder, so that nothing which a run writes, changes or deletes is the user's."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from gangplan.records import dataclass

# What a copy may take: it is made before each run, into a folder that may be in memory.
LARGEST = 64 * 2**20
MOST_COPIED_BYTES = 512 * 2**20
MOST_COPIED = 20_000
# Folders of other programs, large and of no interest to a run. A Python environment has this file.
_OTHERS = frozenset({".git", "node_modules"})
_ENVIRONMENT = "pyvenv.cfg"


@dataclass(frozen=True, slots=True)
class CopiedFolder:
    """The paths in a copied folder that are links to the original: too big to copy, or of other programs."""

    too_big: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def has_links(self) -> bool:
        """Whether anything is a link to the original."""
        return bool(self.too_big or self.others)


def copy_program_folder(source: Path, target: Path, mark: str) -> CopiedFolder:
    """Copy a folder without what is too big, which gets links to the original, its top folders first.

    Folders with the file `mark` are those of runs, perhaps of this one, and are left out.
    """
    source = source.resolve()
    target.mkdir(parents=True)
    too_big: list[str] = []
    others: list[str] = []
    bytes_left, files_left = MOST_COPIED_BYTES, MOST_COPIED
    folders = deque([source])
    while folders:
        for place in _list_program_folder(folders.popleft()):
            inside = place.relative_to(source)
            new = target / inside
            if place.is_symlink():
                new.symlink_to(_resolve_link_in_local_copy(place, source, target))
                continue
            files_left -= 1
            if place.is_dir():
                if (place / mark).exists():
                    continue
                is_other = place.name in _OTHERS or (place / _ENVIRONMENT).exists()
                if not is_other and files_left > 0:
                    new.mkdir()
                    folders.append(place)
                    continue
                (others if is_other else too_big).append(inside.as_posix())
            elif place.is_file():
                size = place.stat().st_size
                if size <= min(LARGEST, bytes_left) and files_left > 0 and _copy_program_file(place, new):
                    bytes_left -= size
                    continue
                too_big.append(inside.as_posix())
            new.symlink_to(place)
    return CopiedFolder(tuple(too_big), tuple(others))


def _list_program_folder(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder, in order; nothing if it cannot be read."""
    try:
        yield from sorted(folder.iterdir())
    except OSError:
        return


def _copy_program_file(place: Path, new: Path) -> bool:
    """Copy a file with its mode and times; return False if it cannot be read."""
    try:
        shutil.copy2(place, new)
    except OSError:
        new.unlink(missing_ok=True)
        return False
    return True


def _resolve_link_in_local_copy(link: Path, source: Path, target: Path) -> str:
    """Return where the copy of a link leads: inside the folder to the copy, otherwise to the same place."""
    text = os.readlink(link)
    place = Path(os.path.normpath(link.parent / text))
    if place.is_relative_to(source):
        return text if not os.path.isabs(text) else str(target / place.relative_to(source))
    return str(place)
