"""Build an overlay: from a folder with a kustomization to the bytes that would reach the cluster.

The engine is kustomize itself, else the one in kubectl, which is some versions older; reports name it.
"""

from __future__ import annotations

from pathlib import Path

from gangplan.errors import ToolError, UserError
from gangplan.records import dataclass
from gangplan.tools.find import find_executables_on_path, search_tool
from gangplan.tools.pins import KUSTOMIZE_TOOL
from gangplan.tools.run import GO_ENVIRONMENT, run_program
from gangplan.tools.versions import ask_kubectl_for_kustomize_version

#: The oldest kubectl engine accepted: kustomize 5 (kubectl 1.27) dropped and renamed fields of version 4.
_OLDEST_EMBEDDED_MAJOR = 5

_ENVIRONMENT = {
    # Several builds run in parallel, one per core: 20 to 25 % faster in all (2 cores, 240 objects per build).
    "GOMAXPROCS": "1",
    "GOGC": "400",
    # The same bytes everywhere: no remote files, and no remote bases, which git fetches.
    **GO_ENVIRONMENT,
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_TERMINAL_PROMPT": "0",
}


class OverlayError(UserError):
    """kustomize refuses an overlay; `cause` is its reason."""

    def __init__(self, refused: str, cause: str, help: str) -> None:
        super().__init__(f"{refused}: {cause}", help)
        self.cause = cause


@dataclass(frozen=True)
class KustomizeEngine:
    """A program that builds kustomizations: its name, its version of kustomize, and its command."""

    name: str
    version: str
    command: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name of the engine in reports: `kustomize 5.8.1`, `kubectl kustomize 5.5.0`."""
        return f"{self.name} {self.version}"

    @property
    def path(self) -> Path:
        """The program's file."""
        return Path(self.command[0])

    def build(self, directory: Path, timeout_s: float = 60.0) -> bytes:
        """Build a kustomization into YAML documents, without network and plugins.

        Raises OverlayError with the innermost cause for a refused overlay, ToolError if the engine fails.
        """
        folder = directory.resolve()
        done = run_program([*self.command, folder], timeout_s=timeout_s, env=_ENVIRONMENT, ok=(0, 1))
        if done.returncode == 0:
            return done.stdout
        # Imported here, so that only a failure pays for compiling its patterns.
        from gangplan.tools.kustomize_errors import find_cause_in_kustomize_stderr

        by_hand = f"to see it by hand: {' '.join(self.command)} {directory}"
        raise OverlayError(
            f"{directory}: {self.name} cannot build it",
            find_cause_in_kustomize_stderr(done.stderr, folder),
            by_hand,
        )


def find_kustomize_engine() -> KustomizeEngine | None:
    """Return the engine to use: kustomize, else kubectl's, else None.

    Raises ToolError for a broken override.
    """
    found = search_tool(KUSTOMIZE_TOOL).found
    if found is not None:
        return KustomizeEngine(KUSTOMIZE_TOOL.name, found.version, (str(found.path), "build"))
    return _find_kubectl_kustomize()


def require_engine() -> KustomizeEngine:
    """Return the engine to use. If none is found, raises ToolError that lists what was tried."""
    chosen = find_kustomize_engine()
    if chosen is None:
        error = search_tool(KUSTOMIZE_TOOL).error()
        raise ToolError(f"{error.message}, and there is no kubectl either", error.help)
    return chosen


def _find_kubectl_kustomize() -> KustomizeEngine | None:
    for path in find_executables_on_path("kubectl"):
        try:
            version = ask_kubectl_for_kustomize_version(path)
        except ToolError:
            continue
        if version and int(version.split(".")[0]) >= _OLDEST_EMBEDDED_MAJOR:
            return KustomizeEngine("kubectl kustomize", version, (str(path), "kustomize"))
    return None
