"""What a new workspace depends on: a few answers, each checked where it is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from gangplan.errors import UserError
from gangplan.gitops.source import EXAMPLE_REPOSITORY
from gangplan.records import dataclass
from gangplan.spec.lookalikes import strip_accents
from gangplan.spec.namespaces import RESERVED_NAMESPACES
from gangplan.spec.near import suggest_nearest
from gangplan.spec.words import DNS_LABEL

STARTER_FORGES = ("github", "gitlab", "none")
STARTER_ENGINES = ("argocd", "flux", "tekton", "none")
ACCELERATORS = ("nvidia", "amd", "none")
_MOST = 63


@dataclass(frozen=True, slots=True)
class WorkspaceAnswers:
    """The answers that a new workspace is built from.

    `forge` reviews changes, `sync` is the engine that syncs them, and `team` and `cluster` are the first
    ones. `repository` is its address as the engine reads it, and `prefix` the folder of the workspace in it.
    With `is_sample`, the workspace has two teams and two clusters. `seen` are fields of the cluster's file,
    if somebody has looked at the cluster.
    """

    forge: str
    sync: str
    team: str
    cluster: str
    repository: str = EXAMPLE_REPOSITORY
    branch: str = "main"
    is_sample: bool = False
    prefix: str = ""
    accelerator: str = "nvidia"
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def teams(self) -> tuple[str, ...]:
        """All teams, the first one first."""
        return (self.team, "vision") if self.is_sample else (self.team,)

    @property
    def clusters(self) -> tuple[str, ...]:
        """All clusters, the first one first."""
        return (self.cluster, "cloud") if self.is_sample else (self.cluster,)


def check_choice(what: str, value: str, known: tuple[str, ...]) -> str:
    """Return the value if it is one of those known. Raises UserError."""
    if value not in known:
        raise UserError(f"there is no {what} '{value}'", suggest_nearest(value, known))
    return value


def check_name(what: str, value: str) -> str:
    """Return a name of a team or cluster, which becomes a folder, a namespace and a part of object names.

    Raises UserError if it cannot.
    """
    if not re.fullmatch(DNS_LABEL, value) or len(value) > _MOST:
        near = strip_accents(value)
        like = re.sub(r"[^a-z0-9]+", "-", near).lstrip("-0123456789")[:_MOST].strip("-")
        if any(sign.isalnum() and not sign.isascii() for sign in near):
            like = ""  # of a name in another alphabet, too little would be left
        help = (
            f"Write {like}." if like else "Use lower-case letters, digits and '-', and begin with a letter."
        )
        raise UserError(f"'{value}' cannot be the name of a {what}", help)
    if what == "team" and RESERVED_NAMESPACES.fullmatch(value):
        message = f"'{value}' cannot be the name of a team: its namespace belongs to the platform"
        raise UserError(message, "Choose another name, such as nlp.")
    return value
