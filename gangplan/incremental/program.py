"""gangplan itself, as a digest: a change of its files or of its packages may change any result."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from hashlib import sha256

from gangplan.incremental.look import look_at_folders, read_memory
from gangplan.incremental.store import RecordStore

#: Folders that Python makes from the files; they are not part of the program.
SKIPPED_FOLDERS = frozenset({"__pycache__"})


def find_package_folder() -> str:
    """Return the folder of the import package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def list_installed_versions() -> list[str]:
    """Return the versions of Python and of the installed packages."""
    found = [sys.version]
    for folder in sorted({path for path in sys.path if path.endswith("site-packages")}):
        with suppress(OSError):  # Python skips folders of its path that are gone
            found += sorted(name for name in os.listdir(folder) if name.endswith(".dist-info"))
    return found


def digest_program(store: RecordStore) -> str:
    """Return a digest of the program by its bytes: the same for two installations of one version."""
    top = find_package_folder()
    held = read_memory(store.get("program"))
    parts = []
    memory: dict[str, tuple[str, str]] = {}
    # Folders outside the package that belong to it are links, which a look does not follow.
    for name in ("", *sorted(one for one in os.listdir(top) if os.path.islink(os.path.join(top, one)))):
        folder = os.path.realpath(os.path.join(top, name))
        seen = look_at_folders("", [folder], held, SKIPPED_FOLDERS)
        memory |= seen.memory
        parts += [f"{name}{path[len(folder) :]} {digest}" for path, digest in sorted(seen.contents.items())]
    if memory != held:
        store.put("program", memory)
    return sha256(
        "\0".join([*parts, *list_installed_versions()]).encode("utf-8", "surrogateescape")
    ).hexdigest()
