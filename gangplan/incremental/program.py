"""gangplan itself, as a digest: a change of its files or of its packages may change any result."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from hashlib import sha256

from gangplan.incremental.look import look, memory_of
from gangplan.incremental.store import Store

#: Folders that Python makes from the files; they are not part of the program.
WITHOUT = frozenset({"__pycache__"})


def package() -> str:
    """Return the folder of the import package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def requirements() -> list[str]:
    """Return the versions of Python and of the installed packages."""
    found = [sys.version]
    for folder in sorted({path for path in sys.path if path.endswith("site-packages")}):
        with suppress(OSError):  # Python skips folders of its path that are gone
            found += sorted(name for name in os.listdir(folder) if name.endswith(".dist-info"))
    return found


def program(store: Store) -> str:
    """Return a digest of the program by its bytes: the same for two installations of one version."""
    top = package()
    held = memory_of(store.get("program"))
    parts = []
    memory: dict[str, tuple[str, str]] = {}
    # Folders outside the package that belong to it are links, which a look does not follow.
    for name in ("", *sorted(one for one in os.listdir(top) if os.path.islink(os.path.join(top, one)))):
        folder = os.path.realpath(os.path.join(top, name))
        seen = look("", [folder], held, WITHOUT)
        memory |= seen.memory
        parts += [f"{name}{path[len(folder) :]} {digest}" for path, digest in sorted(seen.contents.items())]
    if memory != held:
        store.put("program", memory)
    return sha256("\0".join([*parts, *requirements()]).encode("utf-8", "surrogateescape")).hexdigest()
