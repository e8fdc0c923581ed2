"""Rows of engines and of their options. Nothing here is slow to import, because help needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.spec.near import suggest_nearest

if TYPE_CHECKING:
    from gangplan.pipeline.request import Request
    from gangplan.workspace import Workspace

# Modules of this package, in the order of the help.
NAMES = ("argocd", "flux", "tekton", "github", "gitlab", "jenkins", "codeowners")
Value = str | int | tuple[str, ...] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EngineInput:
    """What an engine builds its files from: the workspace, some clusters, and a value for each of its
    options.

    Without `is_rendered`, the tree will exist by the time the files are read. `workspace` is None for engines
    that do not need it. `homes` are the folders of the engines that gangplan.yaml lists, by name.
    """

    request: Request
    workspace: Workspace | None = None
    clusters: tuple[str, ...] = ()
    is_rendered: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    homes: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, option: str) -> Any:
        return self.values[option]


@dataclass(frozen=True, slots=True)
class EngineOption:
    """A flag of an engine's command, and the field of its settings with the same name.

    The type of its value is that of `default`: a text, a number, a list, or a mapping, whose flags are
    NAME=VALUE. If neither is given, the setting `shared` by all engines is used, then what `find` returns.
    `check` returns the value as the engine takes it, or raises UserError, with the words that the user gave
    it by; `against` raises one for names that the workspace does not have.
    """

    name: str
    help: str
    metavar: str
    example: str
    default: Value = ""
    shared: str = ""
    find: Callable[[EngineInput], Value] | None = None
    check: Callable[[Any, str], Any] | None = None
    is_needed: bool = False
    against: Callable[[EngineInput, Any], None] | None = None

    @property
    def flag(self) -> str:
        """The flag."""
        return f"--{self.name}"


@dataclass(frozen=True, slots=True)
class GitopsEngine:
    """One engine: its options, and the function that builds its files, by their paths below `home`.

    `home` is a folder of the workspace; empty for files at the top of the repository. `by_cluster`: its files
    are about clusters, and a command may choose some of them.
    """

    name: str
    help: str
    options: tuple[EngineOption, ...]
    files: Callable[[EngineInput], Mapping[str, str]]
    home: str = ""
    by_cluster: bool = False


def find_delivery_engine(name: str) -> GitopsEngine:
    """Return the engine with this name. Raises UserError if there is none."""
    if name not in NAMES:
        raise UserError(f"there is no engine '{name}'", suggest_nearest(name, NAMES))
    engine: GitopsEngine = import_module(f"gangplan.delivery.{name}").ENGINE
    return engine


def list_engines() -> list[GitopsEngine]:
    """Return all engines."""
    return [find_delivery_engine(name) for name in NAMES]
