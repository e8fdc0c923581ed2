"""The part of the workspace that a command works on: what flags and named files mean."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding, name_differing_clusters, set_clusters, sort_findings
from gangplan.records import dataclass
from gangplan.rules.core import WORKSPACE_EMPTY
from gangplan.spec.near import find_closest, find_nearest_file
from gangplan.spec.root import find_path_from_root
from gangplan.workspace import CATALOG, OVERLAYS, RENDERED, SPECS, SpecFile, Workspace, suggest_nearest

# Every run depends on these folders: a named file in one of them means the whole workspace.
SHARED = ("images", "policies", "schemas", "jobtemplates")
_READ = f"{SPECS}/, {OVERLAYS}/, {', '.join(f'{one}/' for one in SHARED[:-1])} and {SHARED[-1]}/"


@dataclass(frozen=True, slots=True)
class WorkScope:
    """Clusters and teams to work on (flags; empty: all), and in them what named files mean (empty:
    everything).

    A spec means its runs, a team its specs and tenants, a cluster everything on it.
    """

    clusters: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    named_teams: frozenset[str] = frozenset()
    named_clusters: frozenset[str] = frozenset()

    @property
    def names_nothing(self) -> bool:
        """Whether no file was named, or one that everything depends on."""
        return not (self.files or self.named_teams or self.named_clusters)

    @property
    def names_specs_alone(self) -> bool:
        """Whether the only files named are specs."""
        return bool(self.files) and not (self.named_teams or self.named_clusters)

    @property
    def is_everything(self) -> bool:
        """Whether the whole workspace is worked on."""
        return self.names_nothing and not self.clusters and not self.teams

    def has_whole(self, cluster: str) -> bool:
        """Return whether everything of a cluster is worked on: its platform, its tenants and every run."""
        is_meant = self.names_nothing or cluster in self.named_clusters
        return is_meant and not self.teams and self.allows(cluster)

    def has_runs_of(self, cluster: str, team: str) -> bool:
        """Return whether every run of a team on a cluster is worked on."""
        teams = self.tenants(cluster)
        return teams is not None and (not teams or team in teams)

    def tenants(self, cluster: str) -> tuple[str, ...] | None:
        """Return the teams whose tenants are worked on. Empty means the platform and all tenants, None
        means nothing."""
        if not self.allows(cluster):
            return None
        if self.names_nothing or cluster in self.named_clusters:
            return self.teams
        return tuple(sorted(self.named_teams)) or None

    def takes(self, cluster: str, team: str, file: str) -> bool:
        """Return whether the run of a spec on a cluster is worked on."""
        if not self.allows(cluster) or not self._allows_team(team):
            return False
        return cluster in self.named_clusters or self._means(team, file)

    def covers(self, path: str, source: str) -> bool:
        """Return whether a rendered file (its path in the tree, the file it comes from) belongs to this
        part."""
        cluster, kind, team, *_ = [*path.split("/"), "", "", ""]
        if kind == "runs":
            return self.takes(cluster, team, source)
        tenants = self.tenants(cluster)
        return tenants is not None and (not tenants or (kind == "tenants" and team in tenants))

    def has_team(self, team: str) -> bool:
        """Return whether a team's own file is worked on."""
        is_meant = self.names_nothing or self.named_clusters or team in self.named_teams
        return bool(is_meant) and self._allows_team(team)

    def reads(self, file: str) -> bool:
        """Return whether a file of the workspace counts for this part: every file but the specs of others."""
        top, team, *rest = [*file.split("/"), ""]
        if top != SPECS or not rest or rest[0] == "team.yaml":
            return True
        return self._allows_team(team) and (bool(self.named_clusters) or self._means(team, file))

    def allows(self, cluster: str) -> bool:
        """Return whether the flags let a cluster be worked on."""
        return not self.clusters or cluster in self.clusters

    def _allows_team(self, team: str) -> bool:
        return not self.teams or team in self.teams

    def _means(self, team: str, file: str) -> bool:
        return self.names_nothing or file in self.files or team in self.named_teams


WHOLE_SCOPE = WorkScope()


@dataclass(slots=True)
class _Named:
    """What the named files mean together."""

    files: set[str] = field(default_factory=set)
    teams: set[str] = field(default_factory=set)
    clusters: set[str] = field(default_factory=set)
    everything: bool = False


def select_work_scope(
    workspace: Workspace, clusters: tuple[str, ...], teams: tuple[str, ...], named: Sequence[str], cwd: Path
) -> tuple[WorkScope, list[SpecFile]]:
    """Return the scope and its spec files. Raises UserError if a name is unknown or nothing is left.

    `named` are paths (from `cwd` or the root) of specs, of other files of the workspace, which mean what
    depends on them, of folders, or patterns such as 'specs/nlp/*.yaml'.
    """
    for name in clusters:
        if name not in workspace.clusters and name not in workspace.unread:
            raise UserError(
                f"nothing was checked: there is no cluster '{name}'",
                suggest_nearest(name, workspace.clusters),
            )
    for name in teams:
        if name not in workspace.teams and not _is_unread(workspace, name):
            raise UserError(
                f"nothing was checked: there is no team '{name}'", suggest_nearest(name, workspace.teams)
            )
    means = _Named()
    flags = WorkScope(clusters, teams)
    for argument in named:
        _add_argument_to_work_scope(means, workspace, flags, argument, cwd)
    if means.files and any(one.spec.schedules for one in workspace.clusters.values()):
        from gangplan.resolve.order import find_specs_of_later_jobs  # few clusters create runs after others

        means.files |= {one for one in find_specs_of_later_jobs(workspace, means.files) if flags.reads(one)}
    scope = flags
    if not means.everything:
        scope = WorkScope(
            clusters, teams, frozenset(means.files), frozenset(means.teams), frozenset(means.clusters)
        )
    chosen = [file for file in workspace.spec_files if scope.reads(file.file)]
    if not chosen and not _has_work_in_scope_before_jobs(workspace, scope):
        raise UserError(
            "nothing was checked: there is no spec"
            + (f" of team {', '.join(teams)}" if teams else f" under {SPECS}/"),
            f"Add {SPECS}/<team>/<job>.yaml.",
        )
    return scope, chosen


def _is_unread(workspace: Workspace, team: str) -> bool:
    """Return whether a team has a folder, but no file that describes the team."""
    return any(one.where.file == f"{SPECS}/{team}/team.yaml" for one in workspace.findings)


def _has_work_in_scope_before_jobs(workspace: Workspace, scope: WorkScope) -> bool:
    """Return whether there is something to work on before the first job: a tenant, or a file that was not
    read."""
    clusters, teams = {*scope.clusters, *scope.named_clusters}, {*scope.teams, *scope.named_teams}
    wrong = any(one.is_error for one in workspace.findings if one.rule != WORKSPACE_EMPTY)
    if scope.named_teams:  # the file of a team is checked by itself, even before any cluster lists the team
        return True
    if clusters & workspace.unread or teams - workspace.teams.keys() or (scope.is_everything and wrong):
        return True
    tenants = ((scope.tenants(name), cluster.spec.teams) for name, cluster in workspace.clusters.items())
    return any(asked is not None and {*(asked or workspace.teams)} & {*there} for asked, there in tenants)


def _add_argument_to_work_scope(
    means: _Named, workspace: Workspace, flags: WorkScope, argument: str, cwd: Path
) -> None:
    """Add what one argument means. Raises UserError for one that means nothing."""
    names = []
    for base in (cwd, workspace.root):
        path = find_path_from_root(workspace.root, base, argument)
        names.append(path)
        files = [file for file in workspace.spec_files if _matches_spec_path(file.file, path)]
        if files:
            allowed = {file.file for file in files if flags.reads(file.file)}
            if not allowed:
                raise _build_other_scope_error(argument, "team", flags.teams)
            means.files |= allowed
            return
        if (workspace.root / path).exists() and _add_other_path_to_scope(
            means, workspace, flags, argument, path
        ):
            return
    raise _build_unknown_scope_argument_error(workspace, argument, names, cwd)


def _matches_spec_path(file: str, path: str) -> bool:
    return fnmatch.fnmatchcase(file, path) or file.startswith(f"{path}/")


def _add_other_path_to_scope(
    means: _Named, workspace: Workspace, flags: WorkScope, argument: str, path: str
) -> bool:
    """Add what a path other than a spec means; return False if nothing depends on it."""
    top, *rest = path.split("/")
    if path in (".", OVERLAYS) or top in SHARED:
        means.everything = True
        return True
    if top == OVERLAYS and rest[0] in {*workspace.clusters, *workspace.unread}:
        if flags.tenants(rest[0]) is None:
            raise _build_other_scope_error(argument, "cluster", flags.clusters)
        means.clusters.add(rest[0])
        return True
    if top == SPECS and rest[1:] == ["team.yaml"]:
        if not flags.has_team(rest[0]):
            raise _build_other_scope_error(argument, "team", flags.teams)
        means.teams.add(rest[0])
        return True
    return False


def _build_other_scope_error(argument: str, what: str, names: Sequence[str]) -> UserError:
    return UserError(
        f"nothing was checked: {argument} belongs to another {what} than {', '.join(names)}",
        f"Leave --{what} out, or name another file.",
    )


def _build_unknown_scope_argument_error(
    workspace: Workspace, argument: str, names: Sequence[str], cwd: Path
) -> UserError:
    """Return the error for an argument that means nothing. `names` are the paths from the root that it may
    mean."""
    begin, inside = "nothing was checked:", [name for name in names if name.split("/")[0] != ".."]
    path = next((name for name in inside if (workspace.root / name).exists()), "")
    if path.startswith(f"{RENDERED}/") or path == RENDERED:
        help = "Name the spec that its first line names, or compare all of it: gangplan render --check."
        return UserError(f"{begin} {argument} is what gangplan renders, not what it is rendered from", help)
    if path.startswith(f"{SPECS}/") and (workspace.root / path).is_file() and not path.endswith(".yaml"):
        return UserError(f"{begin} {argument} is not a .yaml file", "Specs end in .yaml.")
    if f"{path}/".startswith(f"{SPECS}/") and (workspace.root / path).is_dir():
        help = f"Name {SPECS}/<team>/team.yaml for what the team has on its clusters, or add a spec."
        return UserError(f"{begin} there is no spec in {argument}", help)
    if path.count("/") == 1 and path.startswith(f"{SPECS}/"):
        team = next(iter(workspace.teams), "TEAM")
        help = f"Move it to its team's folder, such as mv {path} {SPECS}/{team}/{path.split('/')[1]}."
        return UserError(f"{begin} {argument} is not in a team's folder", help)
    if path:
        return UserError(f"{begin} {argument} is not a file that gangplan reads", f"It reads {_READ}.")
    if not inside or (cwd / argument).exists():
        return UserError(
            f"{begin} {argument} is outside the workspace {workspace.root.name}/",
            f"Name a file under {SPECS}/.",
        )
    known = [file.file for file in workspace.spec_files]
    if set(argument) & set("*?["):
        return UserError(f"{begin} no spec matches '{argument}'", suggest_nearest(inside[-1], known))
    return UserError(
        f"{begin} there is no file '{argument}'",
        _suggest_meant_scope_argument(workspace, argument, inside[-1], known),
    )


def _suggest_meant_scope_argument(
    workspace: Workspace, argument: str, path: str, specs: Sequence[str]
) -> str:
    """Return a help that says what a name that is not a file was probably meant for."""
    for what, names in (("team", workspace.teams), ("cluster", workspace.clusters)):
        if argument in names:
            return f"Did you mean --{what} {argument}?"
    others = [
        *(file for file in (CATALOG,) if (workspace.root / file).exists()),
        *(one.document.file for one in workspace.teams.values()),
        *(one.document.file for one in workspace.clusters.values()),
    ]
    near = find_nearest_file(path, specs) or find_closest(path, others)
    help = f"Did you mean '{near}'?" if near else "gangplan list specs names all specs."
    return f"{help} A deleted file can be named with --base; without names all is checked."


_JOB = "TrainJob/"


def filter_findings_by_scope(
    findings: Sequence[Finding], scope: WorkScope, runs: Collection[tuple[str, str, str]]
) -> list[Finding]:
    """Return the findings in order: every error, and the rest if it is about a cluster that is worked on.

    If only specs are named, those are the clusters that they run on. `runs` are (cluster, namespace, job); a
    finding that holds on only some of a run's clusters names them.
    """
    refs = {one.object_ref.removeprefix(_JOB) for one in findings if one.object_ref.startswith(_JOB)}
    told = {(namespace, job) for namespace, _, job in (ref.partition("/") for ref in refs)}
    clusters: dict[str, list[str]] = {}
    for cluster, namespace, job in runs:
        if (namespace, job) in told:
            clusters.setdefault(f"{_JOB}{namespace}/{job}", []).append(cluster)
    on = {cluster for cluster, _, _ in runs} if scope.names_specs_alone else set()

    @cache
    def is_meant(clusters: tuple[str, ...]) -> bool:
        return not clusters or any(scope.allows(one) and one in (on or {one}) for one in clusters)

    def concerns(finding: Finding) -> bool:
        return is_meant(finding.clusters) or finding.is_error

    return name_differing_clusters(
        sort_findings(filter(concerns, map(_assign_overlay_cluster, findings))), clusters
    )


def _assign_overlay_cluster(finding: Finding) -> Finding:
    """Return a finding in a cluster's own files as one about that cluster."""
    if not finding.where.file.startswith(OVERLAYS):
        return finding
    top, cluster, *_ = [*finding.where.file.split("/"), ""]
    return set_clusters(finding, cluster) if top == OVERLAYS and not finding.clusters else finding
