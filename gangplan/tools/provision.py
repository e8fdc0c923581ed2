"""Install a program into the tool cache.

It comes from the pinned release archive, which must have the pinned SHA-256, or else from `go install` of the
pinned version, which the Go checksum database verifies. A program appears in the cache whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gangplan.errors import ToolError
from gangplan.tools import download
from gangplan.tools.find import FoundTool, build_cached_path, find_executables_on_path, find_tool
from gangplan.tools.pins import Tool, detect_platform
from gangplan.tools.run import run_program
from gangplan.tools.versions import ask_tool_version, find_tool_cache_root, version_of

#: Both builds together take 35 s on two cores with a cold cache; ten times that means a machine in trouble.
_BUILD_TIMEOUT_S = 600.0

#: Seconds to wait for another process that installs the same program: a build and a minute.
_LOCK_TIMEOUT_S = _BUILD_TIMEOUT_S + 60.0

#: Variables that `go install` may need for modules and caches. Not GOOS, GOARCH: the program runs here.
_GO_ENVIRONMENT = (
    *("GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOAUTH", "GOVCS"),
    *("GOFLAGS", "GOTOOLCHAIN", "GOROOT", "GOPATH", "GOENV", "GOCACHE", "GOMODCACHE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
)

ReportProgress = Callable[[str], None]


def _ignore_progress(_: str) -> None:
    """Report nothing."""


def is_offline() -> bool:
    """Return whether GANGPLAN_OFFLINE forbids all downloads."""
    return os.environ.get("GANGPLAN_OFFLINE", "") not in ("", "0")


def ensure(tool: Tool, report: ReportProgress = _ignore_progress) -> FoundTool:
    """Return the program to use, and install it if none is found.

    Raises ToolError as `install_pinned_tool`.
    """
    return find_tool(tool) or install_pinned_tool(tool, report)


def install_pinned_tool(tool: Tool, report: ReportProgress = _ignore_progress) -> FoundTool:
    """Install the pinned version into the tool cache unless it is there; `report` gets a line for each step.

    Raises ToolError that lists what was tried and why each attempt failed.
    """
    target = build_cached_path(tool)
    try:
        with _lock_tool_installation(tool, report):
            # The previous holder of the lock may have installed it.
            if target.is_file() and version_of(tool, target) == tool.version:
                return FoundTool(tool, target, tool.version, "cache")
            return _try_tool_install_methods(tool, target, report)
    except OSError as error:
        raise ToolError(
            f"{tool.name} {tool.version} cannot be installed into {target.parent}: {error.strerror or error}",
            "set GANGPLAN_TOOL_CACHE to a folder that can be written",
        ) from error


def _try_tool_install_methods(tool: Tool, target: Path, report: ReportProgress) -> FoundTool:
    """Try each way in turn, in a work folder on the cache's file system, while holding the lock."""
    if is_offline():
        raise _build_tool_install_error(tool, ["GANGPLAN_OFFLINE is set: nothing was tried"])
    failures: list[str] = []
    for way in (_fetch_tool_from_archive, _build_tool_from_source):
        with _create_tool_install_folder(tool) as folder:
            try:
                program = way(tool, folder, report)
                _check_installed_tool_version(tool, program)
            except ToolError as error:
                failures.append(error.message)
                report(f"{tool.name}: {error.message}")
                continue
            _place_tool_in_cache(program, target)
            return FoundTool(tool, target, tool.version, "cache")
    raise _build_tool_install_error(tool, failures)


def _fetch_tool_from_archive(tool: Tool, folder: Path, report: ReportProgress) -> Path:
    archive = tool.archive()
    if archive is None:
        raise ToolError(f"no release archive is known for {'/'.join(detect_platform())}")
    report(f"{tool.name}: downloading {archive.url}")
    return download.fetch_tool_executable(archive, tool.name, folder)


def _build_tool_from_source(tool: Tool, folder: Path, report: ReportProgress) -> Path:
    go = next(find_executables_on_path("go"), None)
    if go is None:
        raise ToolError("go is not on PATH, so it cannot be built")
    module = f"{tool.package}@v{tool.version}"
    report(f"{tool.name}: go install {module}")
    kept = {name: os.environ[name] for name in _GO_ENVIRONMENT if name in os.environ}
    # A C compiler would only be another cause of failure; the work folder is removed with all its contents.
    own = {"GOBIN": str(folder), "GOTMPDIR": str(folder), "CGO_ENABLED": "0", "GOWORK": "off"}
    run_program([go, "install", module], timeout_s=_BUILD_TIMEOUT_S, cwd=folder, env={**kept, **own})
    return folder / tool.name


def _check_installed_tool_version(tool: Tool, program: Path) -> None:
    """Raise ToolError unless the result is a program of the pinned version."""
    if not program.is_file():
        raise ToolError(f"{program.name} was not made")
    version = ask_tool_version(tool, program)
    if version != tool.version:
        raise ToolError(f"{program.name} says it is version {version}, not {tool.version}")


def _place_tool_in_cache(program: Path, target: Path) -> None:
    """Put a program in its place atomically: a kill or a power cut leaves all of it or nothing."""
    program.chmod(0o755)
    with program.open("rb") as file:
        os.fsync(file.fileno())
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(program, target)


def _build_tool_install_error(tool: Tool, reasons: list[str]) -> ToolError:
    tried = "; ".join(reasons)
    return ToolError(
        f"{tool.name} {tool.version} cannot be installed: {tried}",
        f"put {tool.name} {tool.line} on PATH, or set {tool.variable}=/path/to/{tool.name}",
    )


@contextlib.contextmanager
def _create_tool_install_folder(tool: Tool) -> Iterator[Path]:
    """Yield a folder on the cache's own file system, so that a rename suffices; remove it in any case."""
    parent = find_tool_cache_root() / "work" / f"{tool.name}-{tool.version}"
    # We hold the lock, so anything here was left by an installation that was killed.
    shutil.rmtree(parent, ignore_errors=True)
    parent.mkdir(parents=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(parent, ignore_errors=True)


@contextlib.contextmanager
def _lock_tool_installation(tool: Tool, report: ReportProgress) -> Iterator[None]:
    """Hold the lock of one program at one version; the kernel releases it if the holder dies.

    Raises ToolError if another process holds it for too long.
    """
    file = find_tool_cache_root() / "locks" / f"{tool.name}-{tool.version}"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        waiting = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ToolError(f"another process has been installing {tool.name} for too long") from None
                if not waiting:
                    report(f"{tool.name}: waiting for another process that installs it")
                    waiting = True
                time.sleep(0.1)
        yield
