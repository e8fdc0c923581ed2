"""The requested part of a review: clusters, teams and files, of today or of the base."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.request import Request
from gangplan.pipeline.scope import WorkScope, select_work_scope
from gangplan.records import dataclass
from gangplan.review.sides import Sides
from gangplan.rules.merges import RENDERED_STALE
from gangplan.spec.waiver import WaiverScope
from gangplan.workspace import RENDERED, SPECS, Workspace


@dataclass(frozen=True, slots=True)
class ReviewPart:
    """The requested part: everything without scopes, else what one of them covers."""

    scopes: tuple[WorkScope, ...] = ()

    def takes(self, cluster: str, team: str, source: str) -> bool:
        """Return whether the run of a spec on a cluster belongs to the part."""
        return not self.scopes or any(one.takes(cluster, team, source) for one in self.scopes)

    def covers(self, path: str, source: str) -> bool:
        """Return whether a rendered file belongs to the part."""
        return not self.scopes or any(one.covers(path, source) for one in self.scopes)

    def has_team(self, cluster: str, team: str) -> bool:
        """Return whether all of a team on a cluster, or runs of it, belong to the part."""
        return not self.scopes or any(
            one.allows(cluster)
            and (not one.teams or team in one.teams)
            and _is_team_in_review_scope(one, cluster, team)
            for one in self.scopes
        )

    def is_about(self, finding: Finding) -> bool:
        """Return whether a finding belongs to the part: every error, and the rest if it is in the part's
        files."""
        if not self.scopes or finding.is_error:
            return True
        file, clusters = finding.where.file, finding.clusters
        if finding.rule == RENDERED_STALE:  # only files of the part were counted
            return True
        if file.startswith(f"{RENDERED}/"):
            return self.covers(file.removeprefix(f"{RENDERED}/"), file)
        return any(
            one.reads(file) and (not clusters or any(map(one.allows, clusters)))
            for one in self.scopes
            if file.startswith(f"{SPECS}/") or one.names_nothing
        )

    def has_cluster(self, cluster: str) -> bool:
        """Return whether anything on a cluster can belong to the part."""
        return not self.scopes or any(one.allows(cluster) for one in self.scopes)

    def has_waiver(self, scope: WaiverScope) -> bool:
        """Return whether a waiver of this scope can excuse anything of the part."""
        return not self.scopes or any(
            _fits_pattern(one.clusters, scope.cluster) and _fits_pattern(_list_scope_teams(one), scope.team)
            for one in self.scopes
        )

    def reads(self, spec: str) -> bool:
        """Return whether a spec belongs to the part."""
        return not self.scopes or any(one.reads(spec) for one in self.scopes)


def _fits_pattern(names: Collection[str], pattern: str | None) -> bool:
    """Return whether a pattern fits one of the names; without names, all are meant."""
    return pattern is None or not names or any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _list_scope_teams(scope: WorkScope) -> set[str]:
    """Return the teams that flags and named files mean; empty for all."""
    if scope.teams or scope.named_clusters:
        return {*scope.teams}
    return {*scope.named_teams, *(file.split("/")[1] for file in scope.files)}


def _is_team_in_review_scope(scope: WorkScope, cluster: str, team: str) -> bool:
    """Return whether the named files mean anything of a team on a cluster."""
    return (
        scope.names_nothing
        or cluster in scope.named_clusters
        or team in scope.named_teams
        or any(file.split("/")[1] == team for file in scope.files)
    )


def resolve_review_part(request: Request, sides: Sides) -> ReviewPart:
    """Return the part that flags and named files mean: any of them may be gone today. Raises UserError."""
    if not (request.clusters or request.teams or request.specs):
        return ReviewPart()
    after, before = sides.after.workspace, sides.before.workspace
    scopes = []
    for clusters, teams, name in _combine_flags_and_files(request):
        named = [_resolve_path_from_root(request.root, name)] if name else []
        scope = None
        with suppress(UserError):
            scope = _select_review_scope(before, clusters, teams, named)
        try:
            scopes.append(_select_review_scope(after, clusters, teams, named))
        except UserError:
            if scope is None:
                raise
        scopes += [scope] if scope is not None else []
    return ReviewPart(tuple(scopes))


def _combine_flags_and_files(request: Request) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Yield every cluster with every team and every named file, each by itself."""
    clusters: Sequence[tuple[str, ...]] = [(one,) for one in request.clusters] or [()]
    teams: Sequence[tuple[str, ...]] = [(one,) for one in request.teams] or [()]
    yield from product(clusters, teams, request.specs or ("",))


def _select_review_scope(
    workspace: Workspace, clusters: tuple[str, ...], teams: tuple[str, ...], named: list[str]
) -> WorkScope:
    return select_work_scope(workspace, clusters, teams, named, workspace.root)[0]


def _resolve_path_from_root(root: Path, name: str) -> str:
    """Return a named file as a path from the root, if it is below it."""
    path = os.path.relpath(os.path.join(os.getcwd(), name), root)
    return name if path.startswith("..") else path.replace(os.sep, "/")
