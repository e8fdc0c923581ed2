"""Find the first acceptable version of a program on this machine. Nothing is installed here.

Order: the override variable, PATH, the tool cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from gangplan.errors import ToolError
from gangplan.records import dataclass
from gangplan.tools.pins import Tool
from gangplan.tools.versions import find_tool_cache_root, version_of

ToolOrigin = Literal["override", "PATH", "cache"]


@dataclass(frozen=True)
class FoundTool:
    """A program that may be used."""

    tool: Tool
    path: Path
    version: str
    origin: ToolOrigin

    @property
    def label(self) -> str:
        """The name and version, as reports name the program that judged."""
        return f"{self.tool.name} {self.version}"


@dataclass(frozen=True)
class RefusedTool:
    """A program of the right name that cannot be used; `reason` ends a sentence that begins with `path`."""

    path: Path
    version: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


@dataclass(frozen=True)
class ToolSearch:
    """The result of a search: the program to use, if any, and those that were skipped."""

    tool: Tool
    found: FoundTool | None
    refused: tuple[RefusedTool, ...]

    def error(self) -> ToolError:
        """Return the error to raise if the program is needed but was not found."""
        tool = self.tool
        seen = "".join(f"; {refused}" for refused in self.refused)
        return ToolError(
            f"{tool.name} {tool.line} is neither on PATH nor in the tool cache{seen}",
            f"run `gangplan tools install {tool.name}`, or set {tool.variable}=/path/to/{tool.name}",
        )


def search_tool(tool: Tool) -> ToolSearch:
    """Search for a program. Raises ToolError only if the override variable names an unusable one."""
    if chosen := os.environ.get(tool.variable):
        return ToolSearch(tool, _require_override_tool(tool, Path(chosen).expanduser()), ())
    refused: list[RefusedTool] = []
    for path, origin in _list_tool_candidates(tool):
        judged = _judge_tool_version(tool, path, origin)
        if isinstance(judged, FoundTool):
            return ToolSearch(tool, judged, tuple(refused))
        refused.append(judged)
    return ToolSearch(tool, None, tuple(refused))


def find_tool(tool: Tool) -> FoundTool | None:
    """Return the program to use, or None. Raises ToolError if the override variable names an unusable one."""
    return search_tool(tool).found


def find_required_tool(tool: Tool) -> FoundTool:
    """Return the program to use. Raises ToolError that lists what was tried and says how to get one."""
    outcome = search_tool(tool)
    if outcome.found is None:
        raise outcome.error()
    return outcome.found


def build_cached_path(tool: Tool) -> Path:
    """Return the path of the pinned version in the tool cache, whether it is there or not."""
    return find_tool_cache_root() / tool.name / tool.version / tool.name


def find_executables_on_path(name: str) -> Iterator[Path]:
    """Yield every executable of this name on PATH, in order, each real file once."""
    seen: set[str] = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        # An empty or relative entry means the current folder: a repository must not bring its own programs.
        if not os.path.isabs(folder):
            continue
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            yield Path(path)


def _list_tool_candidates(tool: Tool) -> Iterator[tuple[Path, ToolOrigin]]:
    for path in find_executables_on_path(tool.name):
        yield path, "PATH"
    cached = build_cached_path(tool)
    if os.path.isfile(cached):  # not is_file(), which raises if a folder may not be entered
        yield cached, "cache"


def _judge_tool_version(tool: Tool, path: Path, origin: ToolOrigin) -> FoundTool | RefusedTool:
    try:
        version = version_of(tool, path)
    except ToolError as error:
        return RefusedTool(path, None, f"does not say its version ({error.message})")
    if version is None:
        return RefusedTool(path, None, "does not say its version")
    if not tool.accepts(version):
        return RefusedTool(path, version, f"is version {version}, not {tool.line}")
    return FoundTool(tool, path, version, origin)


def _require_override_tool(tool: Tool, path: Path) -> FoundTool:
    """Return the program that the user chose. Raises ToolError: a fallback would hide a mistake."""
    if not os.path.isfile(path):
        raise ToolError(f"{tool.variable}={path}: no such file", f"unset {tool.variable}, or name a program")
    judged = _judge_tool_version(tool, path.absolute(), "override")
    if isinstance(judged, RefusedTool):
        raise ToolError(
            f"{tool.variable}={path} {judged.reason}",
            f"unset {tool.variable}, or name a {tool.name} {tool.line}",
        )
    return judged
