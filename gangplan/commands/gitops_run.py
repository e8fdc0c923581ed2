"""Running `gangplan gitops`: from flags and gangplan.yaml to files, which are written or compared."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import print_findings_to_stderr
from gangplan.commands.gitops_files import check_output_flag_paths_free, write_or_print_files
from gangplan.delivery.engine import EngineInput, GitopsEngine, find_delivery_engine
from gangplan.delivery.made import build_delivery_engine_files, resolve_delivery_engine_home
from gangplan.delivery.stated import SETTINGS_FILE, GitopsSettings, read_delivery_settings
from gangplan.errors import Exit, UserError
from gangplan.pipeline.request import Request
from gangplan.records import dataclass
from gangplan.rules.model import Severity
from gangplan.tools.git import find_folder_in_git_repository
from gangplan.workspace import load_workspace


@dataclass(frozen=True, slots=True)
class Asked:
    """What was requested, where it goes, and whether it is only compared."""

    request: Request
    output: str | None
    is_check: bool


def run_gitops_engine_command(
    engine: GitopsEngine, asked: Asked, flags: Mapping[str, Any], bad: Sequence[UserError] = ()
) -> Exit:
    """Run `gangplan gitops ENGINE`; `bad` are errors in its flags. Raises UserError."""
    said = load_gitops_settings(asked.request.root)
    given = collect_gitops_engine_input((engine,), asked.request) if not isinstance(said, Exit) else said
    if isinstance(said, Exit) or isinstance(given, Exit):
        return Exit.INPUT
    known = given.workspace.clusters if given.workspace else given.clusters
    absent = [
        build_missing_cluster_error(name, given.workspace) for name in given.clusters if name not in known
    ]
    files = build_delivery_engine_files(engine, given, flags, said, [*bad, *absent])
    return write_or_print_files(files, asked.output, asked.is_check, bool(asked.request.clusters))


def run_gitops_write_command(request: Request) -> Exit:
    """Run `gangplan gitops write`: write all that gangplan.yaml lists, each to its place. Raises
    UserError."""
    said = load_gitops_settings(request.root)
    if isinstance(said, Exit):
        return said
    if not said.engines:
        help = "Create it: apiVersion: gangplan.dev/v1, kind: Workspace, gitops: {engines: {github: {}}}; see `gangplan explain Workspace`."
        raise UserError(f"nothing was written: no {SETTINGS_FILE} lists an engine", help)
    made = [find_delivery_engine(name) for name in said.engines]
    given = collect_gitops_engine_input(made, request)
    if isinstance(given, Exit):
        return given
    ready = [
        (
            build_delivery_engine_files(one, given, said=said),
            find_output_folder_of_gitops_engine(request.root, one, said),
        )
        for one in made
    ]
    for files, folder in ready:
        check_output_flag_paths_free(files, folder)
    for files, folder in ready:
        write_or_print_files(files, str(folder), is_check=False)
    _warn_of_clusters_with_several_engines(given, [one.name for one in made if one.home and one.by_cluster])
    return Exit.CLEAN


def _warn_of_clusters_with_several_engines(given: EngineInput, engines: Sequence[str]) -> None:
    """Warn of clusters whose objects several engines would apply: each undoes what the other does."""
    from gangplan.resolve.platform import list_sync_engines

    clusters = given.workspace.clusters if given.workspace else {}
    for name in given.clusters:
        both = [one for one in engines if one in list_sync_engines(clusters[name].spec)]
        if len(both) > 1:
            sys.stderr.write(
                f"warning: {' and '.join(both)} both sync cluster {name}\n"
                f"  help: State the version of one of them in overlays/{name}/cluster.yaml, such as"
                f' versions: {{argocd: "3.5.1"}}, or leave the other out of {SETTINGS_FILE}.\n'
            )


def find_output_folder_of_gitops_engine(root: Path, engine: GitopsEngine, said: GitopsSettings) -> Path:
    """Return the folder of an engine's files, relative to the current folder if it is below."""
    home = resolve_delivery_engine_home(engine, said)
    prefix = "" if home else find_folder_in_git_repository(root)
    top = root.parents[prefix.count("/")] if prefix else root
    try:
        return (top / home).relative_to(Path.cwd())
    except ValueError:
        return top / home


def load_gitops_settings(root: Path) -> GitopsSettings | Exit:
    """Read gangplan.yaml, and print its findings."""
    said, findings = read_delivery_settings(root)
    print_findings_to_stderr(findings)
    return Exit.INPUT if findings else said


def collect_gitops_engine_input(engines: Iterable[GitopsEngine], request: Request) -> EngineInput | Exit:
    """Return what engines build their files from, and print the findings of the workspace."""
    if not any(one.by_cluster for one in engines):
        return EngineInput(request)
    workspace = load_workspace(request.root)
    print_findings_to_stderr(workspace.findings)
    if any(finding.severity is Severity.ERROR for finding in workspace.findings):
        return Exit.INPUT
    return EngineInput(request, workspace, tuple(request.clusters or workspace.clusters))
