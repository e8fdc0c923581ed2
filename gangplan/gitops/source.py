"""Where a GitOps engine finds the rendered tree."""

from __future__ import annotations

from gangplan.records import dataclass

RENDERED = "rendered"


@dataclass(frozen=True, slots=True)
class RepositorySource:
    """The repository's address and branch, the namespace that the engine runs in, and the folder of the
    workspace in the repository (`ml/jobs`; empty at its top)."""

    repository: str
    revision: str
    namespace: str
    prefix: str = ""

    @property
    def is_oci(self) -> bool:
        """Whether it is an OCI artifact, and the revision its tag or digest."""
        return self.repository.startswith("oci://")

    def path(self, *parts: str) -> str:
        """A path below the workspace, from the top of the repository."""
        return "/".join((*([self.prefix] if self.prefix else []), *parts)) or "."
