"""Read the versions of programs, and remember them until the files change.

Starting a Go program takes 20 to 60 ms, reading the memory 0.1 ms, so commands must not ask each time.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gangplan.errors import ToolError
from gangplan.tools import buildinfo
from gangplan.tools.buildinfo import BuildInfo
from gangplan.tools.pins import Tool, parse_tool_version
from gangplan.tools.run import run_program

#: Seconds that a program may take to print its version: it takes 20 to 60 ms, on a busy machine a second.
_TIMEOUT_S = 6.0

#: The most programs that are remembered; every command reads the file, so it must stay small.
_MAX_REMEMBERED = 64

_FORMAT = 1

Probe = Callable[[Path, BuildInfo | None], str | None]


def find_tool_cache_root() -> Path:
    """Return the tool cache: $GANGPLAN_TOOL_CACHE, else gangplan/tools in the user's cache folder."""
    if chosen := os.environ.get("GANGPLAN_TOOL_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG base directory specification says that a relative path is ignored here.
    root = Path(base) if base and os.path.isabs(base) else _find_user_home_for_tool_cache() / ".cache"
    return root / "gangplan" / "tools"


def _find_user_home_for_tool_cache() -> Path:
    """Return the user's home, or a path that cannot contain anything: in containers, users may lack one.

    In a shared folder such as /tmp, another user of the machine could place a program first.
    """
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def version_of(tool: Tool, path: Path) -> str | None:
    """Return a version such as `5.8.1`, or None without one. Raises ToolError if the program cannot run."""
    return recall_tool_version(path, lambda path, info: _read_tool_version(tool, path, info))


def ask_tool_version(tool: Tool, path: Path) -> str | None:
    """Return what `version_of` does, but without remembering, for a program that will be moved."""
    return _read_tool_version(tool, path, buildinfo.read_build_info(path))


def _read_tool_version(tool: Tool, path: Path, info: BuildInfo | None) -> str | None:
    """Return the linker's version, else the printed one: a `go install` build calls itself `development`."""
    built = info.versions.get(info.main, "") if info and info.package == tool.package else ""
    return parse_tool_version(built) or parse_tool_version(
        _read_program_output(path, *tool.version_arguments)
    )


def ask_kubectl_for_kustomize_version(path: Path) -> str | None:
    """Return the version of kustomize in kubectl, or None without one. Raises ToolError if it cannot run."""

    def probe(path: Path, _: BuildInfo | None) -> str | None:
        try:
            answer = json.loads(_read_program_output(path, "version", "--client", "--output=json"))
            return parse_tool_version(answer["kustomizeVersion"])
        except (ValueError, KeyError, TypeError):
            return None

    return recall_tool_version(path, probe)


def _read_program_output(path: Path, *arguments: str) -> str:
    return run_program([path, *arguments], timeout_s=_TIMEOUT_S).stdout.decode("utf-8", "replace")


def recall_tool_version(path: Path, probe: Probe) -> str | None:
    """Return what `probe` says about a program, from memory until its size, inode or time of change differs.

    Only Go binaries are remembered: a script or the shim of a version manager may start another program
    tomorrow without a change of its own. Raises ToolError if the file cannot be read.
    """
    try:
        real = path.resolve(strict=True)
        status = real.stat()
        stamp = [status.st_mtime_ns, status.st_size, status.st_ino]
        memory = _load_remembered_tool_versions()
        known = memory.get(str(real))
        if isinstance(known, list) and known[:-1] == stamp and isinstance(known[-1], str):
            return known[-1]
        info = buildinfo.read_build_info(real)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
    version = probe(path, info)
    if info and version:
        _store_remembered_tool_versions({**memory, str(real): [*stamp, version]})
    return version


def _build_versions_path() -> Path:
    return find_tool_cache_root() / "versions.json"


def _load_remembered_tool_versions() -> dict[str, Any]:
    """Return the remembered versions; a missing, unreadable or damaged file counts as empty."""
    try:
        content = json.loads(_build_versions_path().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return {}
    programs = content.get("programs")
    return programs if isinstance(programs, dict) else {}


def _store_remembered_tool_versions(programs: dict[str, Any]) -> None:
    """Replace the memory atomically; without a writable cache, programs are asked again next time."""
    kept = dict(list(programs.items())[-_MAX_REMEMBERED:])
    file = _build_versions_path()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".versions-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump({"format": _FORMAT, "programs": kept}, out)
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
