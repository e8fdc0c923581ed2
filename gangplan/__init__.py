"""gangplan: declarative GitOps configuration generator and validator for distributed training."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing typing would slow every start
if TYPE_CHECKING:
    from gangplan.api.job import TrainingJob as TrainingJob
    from gangplan.api.workspace import Draft as Draft
    from gangplan.api.workspace import Imported as Imported
    from gangplan.api.workspace import InvalidError as InvalidError
    from gangplan.api.workspace import Rendering as Rendering
    from gangplan.api.workspace import Workspace as Workspace
    from gangplan.errors import GangplanError as GangplanError
    from gangplan.errors import UserError as UserError
    from gangplan.findings import Finding as Finding
    from gangplan.findings import Location as Location
    from gangplan.rules.model import Severity as Severity

__version__ = "0.1.0"
# The public API for Python programs (docs/python.md). Names are imported on first use: commands need none.
_HOMES = {
    "Draft": "api.workspace",
    "Finding": "findings",
    "GangplanError": "errors",
    "Imported": "api.workspace",
    "InvalidError": "api.workspace",
    "Location": "findings",
    "Rendering": "api.workspace",
    "Severity": "rules.model",
    "TrainingJob": "api.job",
    "UserError": "errors",
    "Workspace": "api.workspace",
}
__all__ = ["__version__", *_HOMES]  # all of them are strings


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'gangplan' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"gangplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
