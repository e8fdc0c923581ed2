"""Learn a program's version once: a path in, its version out, remembered until the file changes.

Starting a Go program costs 20 to 60 ms, the memory 0.1 ms; commands must not pay for the version each time.
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
from gangplan.tools.pins import Tool, parse_version
from gangplan.tools.run import run

#: Seconds that a program may take to say its version: it takes 20 to 60 ms, on a busy machine a second.
_TIMEOUT_S = 6.0

#: Programs remembered at most; the file is read by every command and must stay small.
_MAX_REMEMBERED = 64

_FORMAT = 1

Probe = Callable[[Path, BuildInfo | None], str | None]


def cache_root() -> Path:
    """Return the folder of installed tools: $GANGPLAN_TOOL_CACHE, else gangplan/tools in the user's cache."""
    if chosen := os.environ.get("GANGPLAN_TOOL_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG base directory specification tells to ignore a relative path here.
    root = Path(base) if base and os.path.isabs(base) else _home() / ".cache"
    return root / "gangplan" / "tools"


def _home() -> Path:
    """Return the user's folder, or one that nothing can be in: containers run under users that have none.

    A shared folder such as /tmp would let another user of the machine put his program there first.
    """
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def version_of(tool: Tool, path: Path) -> str | None:
    """Return a version such as `5.8.1`, or None when the program says none; ToolError if it cannot be run."""
    return remembered(path, lambda path, info: _ask(tool, path, info))


def asked_version(tool: Tool, path: Path) -> str | None:
    """Return what `version_of` does, without remembering a program that will not stay where it is."""
    return _ask(tool, path, buildinfo.read(path))


def _ask(tool: Tool, path: Path, info: BuildInfo | None) -> str | None:
    """Believe the linker first: `go install` leaves a program that calls itself `development`."""
    built = info.versions.get(info.main, "") if info and info.package == tool.package else ""
    return parse_version(built) or parse_version(_output(path, *tool.version_arguments))


def kubectl_kustomize_version(path: Path) -> str | None:
    """Return the version of the kustomize in kubectl, None without one; ToolError if it cannot be run."""

    def probe(path: Path, _: BuildInfo | None) -> str | None:
        try:
            answer = json.loads(_output(path, "version", "--client", "--output=json"))
            return parse_version(answer["kustomizeVersion"])
        except (ValueError, KeyError, TypeError):
            return None

    return remembered(path, probe)


def _output(path: Path, *arguments: str) -> str:
    return run([path, *arguments], timeout_s=_TIMEOUT_S).stdout.decode("utf-8", "replace")


def remembered(path: Path, probe: Probe) -> str | None:
    """Return what `probe` says of a program, from memory while its size and time of change are the same.

    Only Go binaries are remembered: a script or a version manager's stand-in may choose another program
    tomorrow without changing itself.
    """
    try:
        real = path.resolve(strict=True)
        status = real.stat()
        stamp = [status.st_mtime_ns, status.st_size, status.st_ino]
        memory = _load()
        known = memory.get(str(real))
        if isinstance(known, list) and known[:-1] == stamp and isinstance(known[-1], str):
            return known[-1]
        info = buildinfo.read(real)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
    version = probe(path, info)
    if info and version:
        _store({**memory, str(real): [*stamp, version]})
    return version


def _file() -> Path:
    return cache_root() / "versions.json"


def _load() -> dict[str, Any]:
    """Return the memory; an absent, unreadable or damaged one is empty."""
    try:
        content = json.loads(_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return {}
    programs = content.get("programs")
    return programs if isinstance(programs, dict) else {}


def _store(programs: dict[str, Any]) -> None:
    """Replace the memory in one step; without a writable cache the version is asked again next time."""
    kept = dict(list(programs.items())[-_MAX_REMEMBERED:])
    file = _file()
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
