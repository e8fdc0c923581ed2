"""Which part of a review is asked for: teams and files, of today or of the base."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.request import Request
from gangplan.pipeline.scope import Scope, select
from gangplan.records import dataclass
from gangplan.review.sides import Sides
from gangplan.workspace import RENDERED, SPECS, Workspace


@dataclass(frozen=True, slots=True)
class Part:
    """What is asked for: everything where there are no scopes, else what one of them covers."""

    scopes: tuple[Scope, ...] = ()

    def takes(self, cluster: str, team: str, source: str) -> bool:
        """Whether the run of a spec on a cluster belongs to it."""
        return not self.scopes or any(one.takes(cluster, team, source) for one in self.scopes)

    def covers(self, path: str, source: str) -> bool:
        """Whether a rendered file does."""
        return not self.scopes or any(one.covers(path, source) for one in self.scopes)

    def has_team(self, cluster: str, team: str) -> bool:
        """Whether all of a team on a cluster does, or runs of it."""
        return not self.scopes or any(
            one.allows(cluster) and (not one.teams or team in one.teams) and _names(one, cluster, team)
            for one in self.scopes
        )

    def is_about(self, finding: Finding) -> bool:
        """Whether a finding does: every error, and of the rest what is in its files."""
        if not self.scopes or finding.is_error:
            return True
        file = finding.where.file
        if file.startswith(f"{RENDERED}/"):
            return self.covers(file.removeprefix(f"{RENDERED}/"), file)
        return any(
            one.reads(file) for one in self.scopes if file.startswith(f"{SPECS}/") or one.names_nothing
        )


def _names(scope: Scope, cluster: str, team: str) -> bool:
    """Whether the named files mean anything of a team on a cluster."""
    return (
        scope.names_nothing
        or cluster in scope.named_clusters
        or team in scope.named_teams
        or any(file.split("/")[1] == team for file in scope.files)
    )


def part_of(request: Request, sides: Sides) -> Part:
    """The part that flags and named files mean: a team or file may be gone today. Raises UserError."""
    if not request.teams and not request.specs:
        return Part()
    after, before = sides.after.workspace, sides.before.workspace
    scopes = []
    for teams, name in _asked(request):
        named = [_from_root(request.root, name)] if name else []
        scope = None
        with suppress(UserError):
            scope = _select(before, teams, named)
        try:
            scopes.append(_select(after, teams, named))
        except UserError:
            if scope is None:
                raise
        scopes += [scope] if scope is not None else []
    return Part(tuple(scopes))


def _asked(request: Request) -> list[tuple[tuple[str, ...], str]]:
    """Every team with every named file, each by itself."""
    teams: Sequence[tuple[str, ...]] = [(team,) for team in request.teams] or [()]
    return [(team, name) for team in teams for name in (request.specs or ("",))]


def _select(workspace: Workspace, teams: tuple[str, ...], named: list[str]) -> Scope:
    return select(workspace, (), teams, named, workspace.root)[0]


def _from_root(root: Path, name: str) -> str:
    """A named file as a path from the root, where it is below it."""
    path = os.path.relpath(os.path.join(os.getcwd(), name), root)
    return name if path.startswith("..") else path.replace(os.sep, "/")
