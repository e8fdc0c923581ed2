"""Which part of the workspace a command works on."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from pathlib import Path

from gangplan.errors import UserError
from gangplan.workspace import SPECS, SpecFile, Workspace, nearest


@dataclass(frozen=True, slots=True)
class Scope:
    """Clusters, teams and spec files to work on; empty means all."""

    clusters: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether every spec of a cluster is worked on."""
        return not self.teams and not self.files

    def covers(self, path: str, source: str) -> bool:
        """Whether a rendered file (its path in the tree, the file it comes from) belongs to this part."""
        cluster, kind, team, *_ = [*path.split("/"), "", "", ""]
        if self.clusters and cluster not in self.clusters:
            return False
        if self.files:
            return kind == "runs" and source in self.files
        return not self.teams or team in self.teams

    def reads(self, file: str) -> bool:
        """Whether a file of the workspace counts for this part: every file but the specs of others."""
        top, team, *rest = [*file.split("/"), ""]
        if top != SPECS or not rest or rest[0] == "team.yaml":
            return True
        return file in self.files if self.files else not self.teams or team in self.teams


def select(
    workspace: Workspace, clusters: tuple[str, ...], teams: tuple[str, ...], specs: tuple[str, ...], cwd: Path
) -> tuple[Scope, list[SpecFile]]:
    """The scope and its spec files. Raises UserError when a name is unknown or nothing is left.

    A spec argument is a path (from `cwd` or the root), a folder, or a pattern such as 'specs/nlp/*.yaml'.
    """
    for name in clusters:
        if name not in workspace.clusters:
            raise UserError(
                f"nothing was checked: there is no cluster '{name}'", nearest(name, workspace.clusters)
            )
    for name in teams:
        if name not in workspace.teams:
            raise UserError(f"nothing was checked: there is no team '{name}'", nearest(name, workspace.teams))
    chosen = [file for file in workspace.spec_files if not teams or file.team in teams]
    if specs:
        matched: dict[str, SpecFile] = {}
        for argument in specs:
            matched.update({file.file: file for file in _matching(workspace, chosen, argument, cwd)})
        chosen = sorted(matched.values(), key=lambda file: file.file)
    if not chosen and not specs and _has_tenants(workspace, clusters, teams):
        return Scope(clusters, teams, frozenset()), []  # a platform before its first job
    if not chosen:
        raise UserError(
            "nothing was checked: there is no spec"
            + (f" of team {', '.join(teams)}" if teams else f" under {SPECS}/"),
            f"Add {SPECS}/<team>/<job>.yaml.",
        )
    files = frozenset(file.file for file in chosen) if specs else frozenset()
    return Scope(clusters, teams, files), chosen


def _has_tenants(workspace: Workspace, clusters: tuple[str, ...], teams: tuple[str, ...]) -> bool:
    """Whether a team that is asked for stands on a cluster that is asked for: there is something to render."""
    wanted = set(teams or workspace.teams)
    return any(wanted & set(workspace.clusters[name].spec.teams) for name in clusters or workspace.clusters)


def _matching(workspace: Workspace, files: list[SpecFile], argument: str, cwd: Path) -> list[SpecFile]:
    """The spec files that one argument names."""
    names = []
    for base in (cwd, workspace.root):
        path = os.path.relpath(os.path.normpath(base / argument), workspace.root).replace(os.sep, "/")
        names.append(path)
        found = [
            file for file in files if fnmatch.fnmatchcase(file.file, path) or file.file.startswith(f"{path}/")
        ]
        if found:
            return found
    target = workspace.root / names[-1]
    if (
        target.exists()
        and names[-1].startswith("..") is False
        and target.suffix != ".yaml"
        and target.is_file()
    ):
        raise UserError(f"nothing was checked: {argument} is not a .yaml file", "Specs end in .yaml.")
    if any(name.startswith("../") for name in names) and not any(not name.startswith("..") for name in names):
        raise UserError(
            f"nothing was checked: {argument} is outside the workspace {workspace.root.name}/",
            "Name a file under specs/.",
        )
    raise UserError(
        f"nothing was checked: no spec matches '{argument}'",
        nearest(names[-1], [file.file for file in workspace.spec_files]),
    )
