"""Comparison of what is rendered now with a Git revision: would a sync from there to here go through?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path as FilePath

from gangplan.emit.header import MARK
from gangplan.findings import Finding, Location
from gangplan.objects import Body, Path, walk
from gangplan.records import dataclass
from gangplan.resolve.platform import resolve_platform
from gangplan.rules.lifecycle import BASE_UNREADABLE
from gangplan.rules.model import Severity
from gangplan.rules.runs import RUN_STARTED
from gangplan.source import ManifestError, load_objects
from gangplan.tools.git import files_at
from gangplan.validate.problems import dotted
from gangplan.validate.run_hours import Key
from gangplan.validate.transition import transition
from gangplan.validate.versions import versions_of
from gangplan.workspace import RENDERED, Workspace

# path in the tree -> text
Tree = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """An object of a tree: its file, its index in that file, and the file that it was made from.

    `source` is empty if that file is gone. `changed` are the fields of the object that a finding is about.
    """

    path: str
    index: int
    source: str
    changed: tuple[Path, ...] = ()

    @property
    def home(self) -> Location:
        """The start of the source, or of the rendered file if the source is gone."""
        return Location(self.source or f"{RENDERED}/{self.path}", 1, 1)


# Objects by kind, namespace and name, each with its place.
Objects = dict[Key, tuple[Body, ObjectPlace]]


# A finding, at the start of its file, and the object that it is about; None if that is gone.
AboutObject = tuple[Finding, ObjectPlace | None]


def findings_since(
    workspace: Workspace, revision: str, today: Tree, covers: Iterable[str] = ()
) -> list[AboutObject]:
    """Return the findings between rendered/ at a revision and the current tree, cluster by cluster.

    Each is at the top of the file that made the object, or of its rendered file if that is gone. `covers`
    limits the clusters. Raises UserError for an unknown revision, ToolError without git.
    """
    before = {
        path: data.decode("utf-8", "replace")
        for path, data in files_at(workspace.root, revision, RENDERED).items()
        if path.endswith(".yaml")
    }
    names = list(covers) or sorted({path.partition("/")[0] for path in (*before, *today)})
    return [
        problem
        for name in names
        if name in workspace.clusters
        for problem in _cluster(workspace, name, revision, _of(name, before), _of(name, today))
    ]


def tree_of(folder: FilePath) -> dict[str, str]:
    """Return the text of every rendered file below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*.yaml"))
    }


def _of(cluster: str, tree: Tree) -> Tree:
    return {path: text for path, text in tree.items() if path.startswith(f"{cluster}/")}


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only in their object; the message of the first counts the others."""
    found: dict[tuple[str, Location, str], list[Finding]] = {}
    for one in findings:
        found.setdefault((one.rule, one.where, one.message), []).append(one)
    return [_counted(first, len(rest)) for first, *rest in found.values()]


def _counted(finding: Finding, more: int) -> Finding:
    if not more:
        return finding
    return replace(finding, message=f"{finding.message} and {more} more object{'' if more == 1 else 's'}")


def _cluster(workspace: Workspace, name: str, revision: str, before: Tree, after: Tree) -> list[AboutObject]:
    if before == after:
        return []
    problems: list[AboutObject] = []
    old, new = (_objects(tree, workspace, problems) for tree in (before, after))
    versions = versions_of(resolve_platform(workspace.clusters[name]))
    steps = transition([body for body, _ in old.values()], [body for body, _ in new.values()], versions)
    unread = {finding.where.file for finding, _ in problems}
    for step in steps:
        kind, namespace, object_name = step.key
        if step.problem.rule is RUN_STARTED and f"{RENDERED}/{new[step.key][1].path}" in unread:
            continue  # it may have been in the file that cannot be read
        about = "/".join(part for part in (kind, namespace, object_name) if part)
        problem = step.problem
        spot = (new.get(step.key) or old[step.key])[1]
        finding = Finding(
            problem.rule,
            spot.home,
            f"{problem.message} (since {revision}, cluster {name})",
            problem.help,
            about if problem.severity is Severity.ERROR else "",
            dotted(problem.path),
            clusters=(name,),
            level=problem.level,
        )
        problems.append((finding, _spot(step.key, problem.path, old, new)))
    return problems


def _spot(key: Key, path: Path, old: Objects, new: Objects) -> ObjectPlace | None:
    """Return where an object is now, with the fields that differ, or the name of the object that replaced
    it."""
    if key in new:
        changed = _changed(old[key][0], new[key][0], path) if key in old else (path,)
        return replace(new[key][1], changed=changed)
    file = old[key][1].path
    heirs = [
        spot for one, (_, spot) in new.items() if one[0] == key[0] and one not in old and spot.path == file
    ]
    return replace(heirs[0], changed=(("metadata", "name"),)) if heirs else None


def _changed(old: Body, new: Body, path: Path) -> tuple[Path, ...]:
    """Return the fields at or below a path that differ, those that still exist first."""
    one, other = (
        {field: value for field, value in walk(body) if field[: len(path)] == path} for body in (old, new)
    )
    here = [field for field, value in other.items() if one.get(field) != value]
    return (*here, *(field for field in one if field not in other))


def _objects(tree: Tree, workspace: Workspace, problems: list[AboutObject]) -> Objects:
    """Return the objects of a tree, each with its place; add a finding for each file that cannot be read."""
    found: Objects = {}
    for path, text in tree.items():
        first = text.partition("\n")[0]
        source = first.removeprefix(MARK) if first.startswith(MARK) else ""
        is_there = bool(source) and (workspace.root / source).is_file()
        try:
            bodies = load_objects(text)
        except ManifestError as bad:
            message = f"the committed file cannot be compared: {bad.message}"
            where, help = Location(f"{RENDERED}/{path}", 1, 1), "Render and commit it again."
            problems.append((Finding(BASE_UNREADABLE, where, message, help), None))
            continue
        for index, body in enumerate(bodies):
            metadata = body.get("metadata") or {}
            key = body.get("kind", ""), metadata.get("namespace") or "", metadata.get("name") or ""
            found[key] = body, ObjectPlace(path, index, source if is_there else "")
    return found
