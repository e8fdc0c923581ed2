"""What is rendered today against what a Git revision holds: would a sync from there to here go through?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gangplan.emit.header import MARK
from gangplan.findings import Finding, Location, Severity, warning
from gangplan.gates import versions_of
from gangplan.objects import Body
from gangplan.resolve.platform import resolve_platform
from gangplan.source import ManifestError, load_objects
from gangplan.tools.git import files_at
from gangplan.validate.schema_messages import dotted
from gangplan.validate.transition import Key, transition
from gangplan.workspace import RENDERED, Workspace

# path in the tree -> text
Tree = Mapping[str, str]


def findings_since(
    workspace: Workspace, revision: str, today: Tree, covers: Iterable[str] = ()
) -> list[Finding]:
    """The findings between rendered/ at a revision and the tree of today, cluster by cluster.

    Each stands at the file that made the object, or at its rendered file where that is gone. `covers` limits
    the clusters. Raises UserError for an unknown revision, ToolError without git.
    """
    before = {
        path: data.decode("utf-8", "replace")
        for path, data in files_at(workspace.root, revision, RENDERED).items()
        if path.endswith(".yaml")
    }
    names = list(covers) or sorted({path.partition("/")[0] for path in (*before, *today)})
    return [
        finding
        for name in names
        if name in workspace.clusters
        for finding in _cluster(workspace, name, revision, _of(name, before), _of(name, today))
    ]


def tree_of(folder: Path) -> dict[str, str]:
    """Every rendered file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*.yaml"))
    }


def _of(cluster: str, tree: Tree) -> Tree:
    return {path: text for path, text in tree.items() if path.startswith(f"{cluster}/")}


def _cluster(workspace: Workspace, name: str, revision: str, before: Tree, after: Tree) -> list[Finding]:
    if before == after:
        return []
    places: dict[Key, Location] = {}
    findings: list[Finding] = []
    old, new = (
        [body for path, text in tree.items() for body in _bodies(path, text, places, workspace, findings)]
        for tree in (before, after)
    )
    versions = versions_of(resolve_platform(workspace.clusters[name]))
    for step in transition(old, new, versions):
        kind, namespace, object_name = step.key
        about = "/".join(part for part in (kind, namespace, object_name) if part)
        problem = step.problem
        findings.append(
            Finding(
                problem.rule,
                problem.severity,
                places[step.key],
                f"{problem.message} (since {revision}, cluster {name})",
                problem.help,
                about if problem.severity is Severity.ERROR else "",
                dotted(problem.path),
            )
        )
    return findings


def _bodies(
    path: str, text: str, places: dict[Key, Location], workspace: Workspace, findings: list[Finding]
) -> list[Body]:
    """The objects of one rendered file; where each comes from is noted in `places`, the later tree wins."""
    try:
        bodies = load_objects(text)
    except ManifestError as bad:
        message = f"the committed file cannot be compared: {bad.message}"
        findings.append(
            warning("base-unreadable", Location(f"{RENDERED}/{path}"), message, "Render and commit it again.")
        )
        return []
    first = text.partition("\n")[0]
    source = first.removeprefix(MARK) if first.startswith(MARK) else ""
    is_there = source and (workspace.root / source).is_file()
    where = Location(source, 1, 1) if is_there else Location(f"{RENDERED}/{path}")
    for body in bodies:
        metadata = body.get("metadata") or {}
        places[body.get("kind", ""), metadata.get("namespace") or "", metadata.get("name") or ""] = where
    return bodies
