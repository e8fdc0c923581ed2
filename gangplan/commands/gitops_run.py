"""Running `gangplan gitops`: from flags and gangplan.yaml to files, which are written or compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.commands.absent import no_cluster
from gangplan.commands.common import print_findings
from gangplan.commands.gitops_files import check_free, put_out
from gangplan.delivery.engine import Engine, Given, engine_of
from gangplan.delivery.made import files_of, home_of
from gangplan.delivery.stated import FILE, Stated, stated
from gangplan.errors import Exit, UserError
from gangplan.pipeline.request import Request
from gangplan.records import dataclass
from gangplan.rules.model import Severity
from gangplan.tools.git import folder_inside
from gangplan.workspace import load_workspace


@dataclass(frozen=True, slots=True)
class Asked:
    """What was requested, where it goes, and whether it is only compared."""

    request: Request
    output: str | None
    is_check: bool


def run(engine: Engine, asked: Asked, flags: Mapping[str, Any], bad: Sequence[UserError] = ()) -> Exit:
    """Run `gangplan gitops ENGINE`; `bad` are errors in its flags. Raises UserError."""
    said = said_in(asked.request.root)
    given = given_to((engine,), asked.request) if not isinstance(said, Exit) else said
    if isinstance(said, Exit) or isinstance(given, Exit):
        return Exit.INPUT
    known = given.workspace.clusters if given.workspace else given.clusters
    absent = [no_cluster(name, given.workspace) for name in given.clusters if name not in known]
    files = files_of(engine, given, flags, said, [*bad, *absent])
    return put_out(files, asked.output, asked.is_check, bool(asked.request.clusters))


def write(request: Request) -> Exit:
    """Run `gangplan gitops write`: write all that gangplan.yaml lists, each to its place. Raises
    UserError."""
    said = said_in(request.root)
    if isinstance(said, Exit):
        return said
    if not said.engines:
        help = "Create it: apiVersion: gangplan.dev/v1, kind: Workspace, gitops: {engines: {github: {}}}; see `gangplan explain Workspace`."
        raise UserError(f"nothing was written: no {FILE} lists an engine", help)
    made = [engine_of(name) for name in said.engines]
    given = given_to(made, request)
    if isinstance(given, Exit):
        return given
    ready = [(files_of(one, given, said=said), folder_of(request.root, one, said)) for one in made]
    for files, folder in ready:
        check_free(files, folder)
    for files, folder in ready:
        put_out(files, str(folder), is_check=False)
    return Exit.CLEAN


def folder_of(root: Path, engine: Engine, said: Stated) -> Path:
    """Return the folder of an engine's files, relative to the current folder if it is below."""
    home = home_of(engine, said)
    prefix = "" if home else folder_inside(root)
    top = root.parents[prefix.count("/")] if prefix else root
    try:
        return (top / home).relative_to(Path.cwd())
    except ValueError:
        return top / home


def said_in(root: Path) -> Stated | Exit:
    """Read gangplan.yaml, and print its findings."""
    said, findings = stated(root)
    print_findings(findings)
    return Exit.INPUT if findings else said


def given_to(engines: Iterable[Engine], request: Request) -> Given | Exit:
    """Return what engines build their files from, and print the findings of the workspace."""
    if not any(one.by_cluster for one in engines):
        return Given(request)
    workspace = load_workspace(request.root)
    print_findings(workspace.findings)
    if any(finding.severity is Severity.ERROR for finding in workspace.findings):
        return Exit.INPUT
    return Given(request, workspace, tuple(request.clusters or workspace.clusters))
