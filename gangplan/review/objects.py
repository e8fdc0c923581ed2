"""Objects, before and after: what was added, removed and changed, field by field and not line by line.

A run that replaces an earlier one is compared with it, even though their names differ. Entries of lists that
have a name are compared by it, so that one more entry is one change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gangplan.emit import is_launch_file
from gangplan.emit.header import find_line_source
from gangplan.findings import FieldPath
from gangplan.objects import Body, walk_leaves
from gangplan.records import dataclass
from gangplan.review.meaning import find_meaning_of_changed_field
from gangplan.review.sides import Sides
from gangplan.review.trees import RenderedTree, compare_files_of_rendered_trees
from gangplan.source import ManifestError, load_objects

# The placeholder for the name of a run where two runs of a job are compared.
RUN = "<run>"
# The fields that identify an entry of a list: the first one that all entries have and no two share.
_NAMES = ("name", "mountPath", "containerPort", "key", "kind", "action", "record", "alert", "ip")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs: its path, its meaning, and both values; `ABSENT_VALUE` where there is none."""

    path: FieldPath
    meaning: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """An object that differs: what happened to it, where it is, which run it belongs to, and what changed.

    `what` is added, removed or changed; `team` is empty for objects that are for no team; `run` is the job of
    its run, or empty; `file` is the rendered file.
    """

    what: str
    cluster: str
    kind: str
    namespace: str
    name: str
    team: str
    run: str
    source: str
    file: str
    fields: Sequence[FieldChange] = ()


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT_VALUE = _Absent()

Found = dict[
    tuple[str, str, str, str], tuple[Body, str, str]
]  # cluster, kind, namespace, name -> object, file, source


def compare_objects_of_both_sides(sides: Sides, unknown: Collection[str] = ()) -> list[ObjectChange]:
    """Return every object that differs between the trees, by cluster, kind, namespace and name.

    Files that cannot be read are left out, because they are findings; and so are the `unknown` ones, for
    which it is not known what happens to them; nor is it for the launch scripts of their teams.
    """
    before, after = sides.before.tree, sides.after.tree
    teams = {path.rpartition("/")[0] for path in unknown}
    paths = [
        path
        for path in compare_files_of_rendered_trees(before, after)
        if path not in unknown and not (is_launch_file(path) and path.rpartition("/")[0] in teams)
    ]
    heirs = _find_run_files_replaced_between_sides(sides)
    old = _load_rendered_objects_of_side(paths, before, {path: old for path, (old, _) in heirs.items()})
    new = _load_rendered_objects_of_side(paths, after, {path: new for path, (_, new) in heirs.items()})
    found = []
    for key in sorted({*old, *new}):
        body, path, source = new.get(key) or old[key]
        what = "changed" if key in old and key in new else "added" if key in new else "removed"
        fields = tuple(_list_object_field_changes(old[key][0], body, path)) if what == "changed" else ()
        if what == "changed" and not fields:
            continue
        cluster, part, team, *_ = [*path.split("/"), "", ""]
        labels = (body.get("metadata") or {}).get("labels") or {}
        job = str(labels.get("gangplan.dev/job") or path.rpartition("/")[2].rpartition("-")[0])
        found.append(
            ObjectChange(
                what,
                cluster,
                *key[1:],
                team=team
                if part in ("runs", "tenants")
                else _find_team_of_changed_queue(sides, cluster, body),
                run=job if part == "runs" else "",
                source=source,
                file=path,
                fields=fields,
            )
        )
    return found


def _find_team_of_changed_queue(sides: Sides, cluster: str, body: Body) -> str:
    """Return the team that a ClusterQueue is for, or for whose sweep; empty for other objects."""
    name = str((body.get("metadata") or {}).get("name"))
    for side in (sides.after, sides.before) if body.get("kind") == "ClusterQueue" else ():
        if file := side.workspace.clusters.get(cluster):
            for team, granted in file.spec.teams.items():
                own = granted.cluster_queue or team
                if name == own or name.startswith(f"{own}."):
                    return team
    return ""


def _find_run_files_replaced_between_sides(sides: Sides) -> dict[str, tuple[str, str]]:
    """Return the files of runs that replace each other, with both names."""
    found = {}
    for key, new in sides.after.runs.items():
        old = sides.before.runs.get(key)
        if old is not None and old.name != new.name:
            found[old.path] = found[new.path] = (old.name, new.name)
    return found


def _load_rendered_objects_of_side(
    paths: Iterable[str], tree: RenderedTree, names: Mapping[str, str]
) -> Found:
    found: Found = {}
    for path in paths:
        if path not in tree.ids:
            continue
        content = tree.text(path)
        source = find_line_source(content.partition("\n")[0]) or ""
        if path in names:
            content = content.replace(names[path], RUN)
        try:
            bodies = load_objects(content)
        except ManifestError:
            continue
        for body in bodies:
            metadata = body.get("metadata") or {}
            cluster = path.partition("/")[0]
            job = f"{path.rpartition('/')[2].rpartition('-')[0]}-" if path in names else ""
            name = str(metadata.get("name") or "").replace(RUN, f"{job}{RUN}")
            key = cluster, str(body.get("kind") or ""), str(metadata.get("namespace") or ""), name
            found[key] = body, path, source
    return found


def _list_object_field_changes(old: Body, new: Body, file: str) -> Iterator[FieldChange]:
    kind = str(new.get("kind") or "")
    for path, before, after in iterate_changed_leaves(old, new):
        yield FieldChange(path, find_meaning_of_changed_field(kind, path, file), before, after)


def iterate_changed_leaves(old: Any, new: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any, Any]]:
    """Yield the leaves that differ, with both values; a name in the path of a list means the entry with
    that name."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from iterate_changed_leaves(
                old.get(key, ABSENT_VALUE), new.get(key, ABSENT_VALUE), (*path, key)
            )
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_object_lists(old, new, path)
    elif isinstance(old, dict | list) and new is ABSENT_VALUE and old:
        yield from ((one, value, ABSENT_VALUE) for one, value in walk_leaves(old, path))
    elif isinstance(new, dict | list) and old is ABSENT_VALUE and new:
        yield from ((one, ABSENT_VALUE, value) for one, value in walk_leaves(new, path))
    else:
        yield path, old, new


def _compare_object_lists(
    old: list[Any], new: list[Any], path: FieldPath
) -> Iterator[tuple[FieldPath, Any, Any]]:
    by = next((name for name in _NAMES if _is_called(old, name) and _is_called(new, name)), None)
    if by is not None:
        ours, theirs = ({str(one[by]): one for one in side} for side in (old, new))
        for key in {**ours, **theirs}:
            yield from iterate_changed_leaves(
                ours.get(key, ABSENT_VALUE), theirs.get(key, ABSENT_VALUE), (*path, key)
            )
        return
    if len(old) == len(new):
        left, places = old, list(range(len(new)))
        before, after = list(map(repr, old)), list(map(repr, new))
        here, there = set(before), set(after)
        if [one for one in before if one in there] == [one for one in after if one in here]:  # nothing moved
            left = [one for one, text in zip(old, before, strict=True) if text not in there]
            places = [index for index, text in enumerate(after) if text not in here]
        for index, one in zip(places, left, strict=True):
            yield from iterate_changed_leaves(one, new[index], (*path, index))
        return
    left = [one for one in new if one not in old]
    for one in old:
        if one not in new:
            yield (*path, "[]"), one, ABSENT_VALUE
    yield from (((*path, "[]"), ABSENT_VALUE, one) for one in left)


def _is_called(entries: list[Any], name: str) -> bool:
    """Return whether all entries have a value of this name, and no two have the same."""
    names = [str(one.get(name)) for one in entries if isinstance(one, dict) and one.get(name) is not None]
    return len(names) == len(entries) == len(set(names))
