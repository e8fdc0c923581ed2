"""The programs of `.ci/` as modules: they belong to no package, because they run before there is one."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.workspaces import REPOSITORY

CI = REPOSITORY / ".ci"


def load(name: str) -> ModuleType:
    """Load a file of `.ci/`."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", CI / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
