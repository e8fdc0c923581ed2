"""Comparison of what is rendered now with a Git revision: would a sync from there to here go through?"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path as FilePath

from gangplan.emit import EarlierRun
from gangplan.emit.header import find_line_source
from gangplan.findings import FieldPath, Finding, Location
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.objects import Body, walk_leaves
from gangplan.records import dataclass
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.rules.lifecycle import BASE_UNREADABLE, RUN_REMOVED, RUN_REPLACED
from gangplan.rules.model import Severity
from gangplan.rules.runs import RUN_STARTED
from gangplan.source import ManifestError, load_objects
from gangplan.tools.git import read_files_at
from gangplan.tools.revisions import Revision
from gangplan.validate.problems import Problem, format_path
from gangplan.validate.run_hours import ObjectKey
from gangplan.validate.runs import is_applied, is_same_spec, read_run_job_key
from gangplan.validate.sweep_runs import SWEEP_NAME_LABEL, read_sweep_label
from gangplan.validate.transition import TransitionStep, check_transition_between_commits
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import RENDERED, Workspace

# path in the tree -> text
TextsByPath = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RetrainedRun:
    """A run that trains again although its spec is the same: its earlier file, and the path of today's."""

    earlier: EarlierRun
    path: str

    @property
    def cluster(self) -> str:
        """Its cluster."""
        return self.path.partition("/")[0]

    @property
    def team(self) -> str:
        """Its team."""
        return self.path.split("/")[2]

    @property
    def folder(self) -> str:
        """The folder of its team's runs in the tree."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """An object of a tree: its file, its index in that file, and the file that it was made from.

    `source` is empty if that file is gone. `changed` are the fields of the object that a finding is about,
    `retrained` the runs.
    """

    path: str
    index: int
    source: str
    changed: tuple[FieldPath, ...] = ()
    retrained: tuple[RetrainedRun, ...] = ()

    @property
    def home(self) -> Location:
        """The start of the source, or of the rendered file if the source is gone."""
        return Location(self.source or f"{RENDERED}/{self.path}", 1, 1)


# Objects by kind, namespace and name, each with its place.
Objects = dict[ObjectKey, tuple[Body, ObjectPlace]]


# A finding, at the start of its file, and the object that it is about; None if that is gone.
SweepKey = tuple[str, str]  # namespace, sweep
RunsOfSweep = tuple[RetrainedRun, ...]
ObjectFinding = tuple[Finding, ObjectPlace | None]


def check_changes_since(
    workspace: Workspace, revision: Revision, today: TextsByPath, covers: Iterable[str] = ()
) -> list[ObjectFinding]:
    """Return the findings between rendered/ at a revision and the current tree, cluster by cluster.

    Each is at the top of the file that made the object, or of its rendered file if that is gone. `covers`
    limits the clusters. Raises ToolError without git.
    """
    before = {
        path: data.decode("utf-8", "replace")
        for path, data in read_files_at(workspace.root, revision.commit, RENDERED).items()
        if path.endswith(".yaml")
    }
    names = list(covers) or sorted({path.partition("/")[0] for path in (*before, *today)})
    return [
        problem
        for name in names
        if workspace.clusters and name not in workspace.unread
        for problem in _check_cluster_transition(
            workspace, name, revision, _select_cluster_files(name, before), _select_cluster_files(name, today)
        )
    ]


def read_rendered_texts(folder: FilePath) -> dict[str, str]:
    """Return the text of every rendered file below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*.yaml"))
    }


def _select_cluster_files(cluster: str, tree: TextsByPath) -> TextsByPath:
    return {path: text for path, text in tree.items() if path.startswith(f"{cluster}/")}


def merge_equal_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only in their object; the message of the first counts the others."""
    found: dict[tuple[str, Location, str], list[Finding]] = {}
    for one in findings:
        found.setdefault((one.rule, one.where, one.message), []).append(one)
    return [_add_object_count(first, len(rest)) for first, *rest in found.values()]


def _add_object_count(finding: Finding, more: int) -> Finding:
    if not more:
        return finding
    return replace(finding, message=f"{finding.message} and {more} more object{'' if more == 1 else 's'}")


def _check_cluster_transition(
    workspace: Workspace, name: str, revision: Revision, before: TextsByPath, after: TextsByPath
) -> list[ObjectFinding]:
    if before == after:
        return []
    problems: list[ObjectFinding] = []
    old, new = (_load_tree_objects(tree, workspace, problems) for tree in (before, after))
    # Of a cluster that has left Git, no object is there to be judged by its versions: any do.
    file = workspace.clusters.get(name) or next(iter(workspace.clusters.values()))
    versions = choose_schema_versions_of(resolve_platform_of_cluster_file(file))
    steps = check_transition_between_commits(
        [body for body, _ in old.values()], [body for body, _ in new.values()], versions
    )
    if name not in workspace.clusters:
        steps = [one for one in steps if one.problem.rule is RUN_REMOVED]  # nothing else is synced there
    unread = {finding.where.file for finding, _ in problems}
    since = f"the merge base with {revision.asked}" if revision.is_merge_base else revision.asked
    again = _find_retrained_runs(old, new, before)
    sweeps = _group_retrained_runs_by_sweep(old, again)
    for step in steps:
        kind, namespace, object_name = step.key
        if step.problem.rule is RUN_STARTED and f"{RENDERED}/{new[step.key][1].path}" in unread:
            continue  # it may have been in the file that cannot be read
        about = "/".join(part for part in (kind, namespace, object_name) if part)
        problem = step.problem
        if problem.clue.kind == "run":
            problem = _add_restoring_step(workspace, revision, step, before, new)
        spot = (new.get(step.key) or old[step.key])[1]
        finding = Finding(
            problem.rule,
            spot.home,
            f"{problem.message} (since {since}, cluster {name})",
            _describe_ending_on_left_cluster(step.key, old[step.key][0], name, name in workspace.clusters)
            if problem.rule is RUN_REMOVED and _has_spec_left_cluster(old[step.key][1], after)
            else problem.help,
            about if problem.severity is Severity.ERROR else "",
            format_path(problem.path),
            clusters=(name,),
            level=problem.level,
            clue=problem.clue,
        )
        place = _find_current_object_place(step.key, problem.path, old, new)
        if problem.rule is RUN_REPLACED and problem.severity is Severity.WARNING:
            place = replace(
                old[step.key][1],
                retrained=sweeps.get(_read_sweep_key(step.key, old)) or _list_run(step.key, again),
            )
        problems.append((finding, place))
    return problems


def _add_restoring_step(
    workspace: Workspace, revision: Revision, step: TransitionStep, before: TextsByPath, new: Objects
) -> Problem:
    """Return the problem of a run that another one replaced, with how to bring back its file: its record is
    made from that, and a render removed it."""
    problem, (run, ending) = step.problem, step.problem.clue.given
    path = next((path for path in before if path.endswith(f"/{run}.yaml")), "")
    home = step.key[1], run.rpartition("-")[0]
    folders = (
        place.path.rpartition("/")[0]
        for key, (body, place) in new.items()
        if read_run_job_key(key, body) == home
    )
    folder = next(folders, "")
    if not path or not folder or (workspace.root / RENDERED / folder / f"{run}.yaml").is_file():
        return problem
    first = f" First bring its file back: {format_restoring(revision, path, folder)}."
    clue = problem.clue._replace(given=(run, f"{ending}{first}"))
    return replace(problem, help=f"{problem.help}{first}", clue=clue)


def format_restoring(revision: Revision, path: str, folder: str = "") -> str:
    """Return the command that brings back a file of the tree, or with an empty path the whole tree.

    `folder` is where the file belongs today, if its team has another name now.
    """
    name = revision.commit[:12] if revision.is_merge_base else shlex.quote(revision.asked)
    was, _, file = path.rpartition("/")
    if folder in ("", was):
        return f"git checkout {name} -- {RENDERED}{f'/{path}' if path else ''}"
    return f"mkdir -p {RENDERED}/{folder} && git show {name}:./{RENDERED}/{path} > {RENDERED}/{folder}/{file}"


def _has_spec_left_cluster(place: ObjectPlace, after: TextsByPath) -> bool:
    """Return whether the spec of an object is there, but renders nothing on the object's cluster."""
    return bool(place.source) and all(
        find_line_source(text.partition("\n")[0]) != place.source for text in after.values()
    )


def _describe_ending_on_left_cluster(key: ObjectKey, body: Body, cluster: str, is_there: bool) -> str:
    """Return how to end a run on a cluster that its spec left: `state: stopped` would end it on the others,
    too.

    A cluster whose file is not there may have another name today, and then holds the same run.
    """
    kind, namespace, run = key
    backend, sweep = BACKEND_BY_KIND.get(kind), read_sweep_label(body)
    if backend is None:
        return f"To end it on {cluster} alone, delete it and the Job that creates it there with kubectl."
    what = f"-l {SWEEP_NAME_LABEL}={sweep}" if sweep else run
    renamed = f"If {cluster} has another name today, its runs are the same: end nothing. "
    return (
        f"{'' if is_there else renamed}state: stopped would end it on the spec's other clusters, too."
        f" To end it on {cluster} alone, once this is synced there: kubectl delete {backend.resource} {what}"
        f" -n {namespace}."
    )


def _find_retrained_runs(old: Objects, new: Objects, before: TextsByPath) -> dict[ObjectKey, RetrainedRun]:
    """Return the runs that train again although their specs are the same, by the keys that they had."""
    heirs = {
        read_run_job_key(key, body): (body, place)
        for key, (body, place) in new.items()
        if key[0] in BACKEND_BY_KIND and key not in old and is_applied(body)
    }
    found = {}
    for key, (body, place) in old.items() if heirs else ():
        if key[0] in BACKEND_BY_KIND and key not in new and is_applied(body):
            heir = heirs.get(read_run_job_key(key, body))
            if heir is not None and is_same_spec(body, heir[0]):
                found[key] = RetrainedRun(EarlierRun(place.path, before[place.path]), heir[1].path)
    return found


def _group_retrained_runs_by_sweep(
    old: Objects, again: Mapping[ObjectKey, RetrainedRun]
) -> dict[SweepKey, RunsOfSweep]:
    """Return the retrained runs of each sweep, which one finding is about."""
    found: dict[SweepKey, list[RetrainedRun]] = {}
    for key, run in again.items():
        sweep = _read_sweep_key(key, old)
        if sweep[1]:
            found.setdefault(sweep, []).append(run)
    return {sweep: tuple(runs) for sweep, runs in found.items()}


def _read_sweep_key(key: ObjectKey, old: Objects) -> SweepKey:
    """Return the namespace and the sweep of a run; the sweep is empty for a run outside of sweeps."""
    return key[1], str(read_sweep_label(old[key][0]) or "")


def _list_run(key: ObjectKey, again: Mapping[ObjectKey, RetrainedRun]) -> RunsOfSweep:
    return (again[key],) if key in again else ()


def _find_current_object_place(
    key: ObjectKey, path: FieldPath, old: Objects, new: Objects
) -> ObjectPlace | None:
    """Return where an object is now, with the fields that differ, or the name of the object that replaced
    it."""
    if key in new:
        changed = _find_changed_fields(old[key][0], new[key][0], path) if key in old else (path,)
        return replace(new[key][1], changed=changed)
    file = old[key][1].path
    heirs = [
        spot for one, (_, spot) in new.items() if one[0] == key[0] and one not in old and spot.path == file
    ]
    return replace(heirs[0], changed=(("metadata", "name"),)) if heirs else None


def _find_changed_fields(old: Body, new: Body, path: FieldPath) -> tuple[FieldPath, ...]:
    """Return the fields at or below a path that differ, those that still exist first."""
    one, other = (
        {field: value for field, value in walk_leaves(body) if field[: len(path)] == path}
        for body in (old, new)
    )
    here = [field for field, value in other.items() if one.get(field) != value]
    return (*here, *(field for field in one if field not in other))


def _load_tree_objects(tree: TextsByPath, workspace: Workspace, problems: list[ObjectFinding]) -> Objects:
    """Return the objects of a tree, each with its place; add a finding for each file that cannot be read."""
    found: Objects = {}
    for path, text in tree.items():
        source = find_line_source(text.partition("\n")[0]) or ""
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
