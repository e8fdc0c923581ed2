"""Where a GitOps engine finds the rendered tree, and what a valid repository address is."""

from __future__ import annotations

import re

from gangplan.errors import UserError
from gangplan.records import dataclass

OCI_SCHEME = "oci://"
# A repository that does not exist: written until the real one is known.
EXAMPLE_REPOSITORY = "https://git.example.com/ml/jobs.git"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
# Projects of Argo CD read an address as a pattern (3.5, AppProject.IsSourcePermitted), so no character of a
# pattern is allowed in it; nor one that ends a path or a command in a first line (made.py).
_PART = r"[^\s/?#*\[\]{}!\\`'\"<>|^]+"
_PATH = rf"(?:/{_PART})+/?"
# https://host/path, ssh://user@host/path, and the form of scp, user@host:path.
_GIT = re.compile(
    rf"https?://{_HOST}{_PATH}|ssh://(?:[A-Za-z0-9._-]+@)?{_HOST}{_PATH}"
    rf"|[A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*:/?(?!:){_PART.replace('[^', '[^:', 1)}(?:{_PATH})?"
)
_SERVER = re.compile(rf"https?://{_HOST}(?:{_PATH}|/)?")
_ARTIFACT = re.compile(rf"oci://{_HOST}(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+")
_SCP = re.compile(r"([A-Za-z0-9._-]+@[A-Za-z0-9.-]+):/?(.+)")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
# What no reference may contain (git-check-ref-format(1), Git 2.47).
_NO_REF = re.compile(r"\.\.|//|/\.|\.lock(?:/|$)|[./]$")


@dataclass(frozen=True, slots=True)
class RepositorySource:
    """The address and branch of the repository, the namespace of the engine, and the folder of the workspace
    in the repository (`ml/jobs`; empty at its top)."""

    repository: str
    revision: str
    namespace: str
    prefix: str = ""

    @property
    def is_oci(self) -> bool:
        """Whether it is an OCI artifact, whose tag or digest is the revision."""
        return self.repository.startswith(OCI_SCHEME)

    def path(self, *parts: str) -> str:
        """Return a path below the workspace, from the top of the repository."""
        return "/".join((*([self.prefix] if self.prefix else []), *parts)) or "."


def check_gitops_repository_url(value: str, words: str = "--repo") -> str:
    """Return the address of a Git repository, which must not have a login in it. Raises UserError."""
    _check_login(value)
    if not (value.isprintable() and _GIT.fullmatch(value)):
        plain, query, _ = value.partition("?")  # the query may have a token
        message = f"'{plain}{query and '?...'}' is not the address of a Git repository"
        raise UserError(message, f"Write it as {EXAMPLE_REPOSITORY} or git@git.example.com:ml/jobs.git.")
    return value


def check_gitops_artifact_url(value: str, words: str = "--repo") -> str:
    """Return the address of an OCI artifact, which must not have a login or a tag in it. Raises UserError."""
    _check_login(value)
    if not _ARTIFACT.fullmatch(value):
        message = f"'{value}' is not the address of an OCI artifact"
        raise UserError(message, f"Write {words} oci://registry.example.com/ml/jobs; a tag is its revision.")
    return value


def check_branch_name(value: str, words: str = "--branch") -> str:
    """Return the name of a branch; `words` are how users give it. Raises UserError."""
    if not _BRANCH.fullmatch(value) or _NO_REF.search(value):
        raise UserError(f"'{value}' is not the name of a branch", f"Write {words} main.")
    return value


def _check_login(value: str) -> None:
    if (plain := strip_login(value)) != value:
        message = "the address of the repository has a user or a password in it, which would be committed"
        raise UserError(message, f"Write {plain}; the engine takes its credentials from a Secret.")


def is_server_address(text: str) -> bool:
    """Return whether a text is the address of an API server."""
    return text.isprintable() and _SERVER.fullmatch(text) is not None


def strip_login(address: str) -> str:
    """Return the address without a user and password; the user of SSH stays, because it is not a secret."""
    plain = re.sub(r"^((?:https?|oci)://)[^/]*@", r"\1", address)
    return re.sub(r"^(ssh://[^/:@]*):[^/]*@", r"\1@", plain)


def format_flux_url(repository: str) -> str:
    """Return an address as a GitRepository takes it: with a scheme, which the scp form does not have (Flux
    2.9)."""
    short = _SCP.fullmatch(repository)
    return f"ssh://{short[1]}/{short[2]}" if short else repository
