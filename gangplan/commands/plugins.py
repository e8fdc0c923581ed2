"""pydantic without plugins: the meaning of a file must not depend on which other packages are installed."""

from __future__ import annotations

import sys
from types import ModuleType

# The module of pydantic 2 that looks for plugins in all installed packages. It imports importlib.metadata
# (with email, zipfile and socket: 13 ms) even if PYDANTIC_DISABLE_PLUGINS tells it to look for none.
_LOADER = "pydantic.plugin._loader"


def disable_pydantic_plugins() -> None:
    """Let pydantic find no plugins, unless it has already looked for some.

    A pydantic without such a module is not affected; tests/test_start.py would show it.
    """
    none = ModuleType(_LOADER)
    none.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules.setdefault(_LOADER, none)
