"""pydantic without plugins: what a file means must not depend on which other packages are installed."""

from __future__ import annotations

import sys
from types import ModuleType

# The module of pydantic 2 that looks for plugins among all installed packages. It imports importlib.metadata
# (with email, zipfile and socket: 13 ms) even where PYDANTIC_DISABLE_PLUGINS tells it to look for none.
_LOADER = "pydantic.plugin._loader"


def without_plugins() -> None:
    """Let pydantic find no plugins, unless it has looked for some already.

    A pydantic that has no such module goes its own way; tests/test_start.py would show it.
    """
    none = ModuleType(_LOADER)
    none.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules.setdefault(_LOADER, none)
