"""Where a GitOps engine finds the rendered tree."""

from __future__ import annotations

import re

from gangplan.errors import UserError
from gangplan.records import dataclass

RENDERED = "rendered"
# A repository that is no one's: written until the real one is known.
EXAMPLE = "https://git.example.com/ml/jobs.git"
# https://host/path, ssh://user@host/path, and the form of scp, user@host:path.
_URL = re.compile(r"(?:https?|ssh)://[^\s/]+/\S+|[\w.-]+@[\w.-]+:[^\s:]+")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


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


def check_url(value: str, words: str = "--repo") -> str:
    """The address of a Git repository. Raises UserError."""
    if not _URL.fullmatch(value):
        message = f"'{value}' is not the address of a Git repository"
        raise UserError(message, f"Write it as {EXAMPLE} or git@git.example.com:ml/jobs.git.")
    return value


def check_branch(value: str, words: str = "--branch") -> str:
    """The name of a branch, given by some words. Raises UserError."""
    if not _BRANCH.fullmatch(value) or ".." in value:
        raise UserError(f"'{value}' is not the name of a branch", f"Write {words} main.")
    return value


def flux_url(repository: str) -> str:
    """An address as a GitRepository takes it: with a scheme, which the form of scp has not (Flux 2.9)."""
    short = re.fullmatch(r"([\w.-]+@[\w.-]+):(.+)", repository)
    return f"ssh://{short[1]}/{short[2]}" if short else repository
