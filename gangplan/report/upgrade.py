"""Differences between two renderings of a cluster, before and after a change of versions, by kind and field.

A run is compared with the run of the same job, even if their names differ; its name is shown as `<run>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body, walk_leaves
from gangplan.pipeline.request import Result
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.source import load_objects
from gangplan.validate.problems import format_path

RUN = "<run>"
# If one field has more different values than this, the field is one line.
FEW = 3
# A leaf that one side does not have.
ABSENT_TEXT = "(absent)"


@dataclass(frozen=True, slots=True)
class Delta:
    """One difference that `count` objects of a kind share. An empty `path` means the object itself."""

    kind: str
    path: str
    old: Any
    new: Any
    count: int
    example: str
    values: int = 1


@dataclass(frozen=True, slots=True)
class Renamed:
    """A job whose run gets another name: it is another run, and trains again."""

    team: str
    job: str
    old: str
    new: str
    is_over: bool


@dataclass(slots=True)
class Upgrade:
    """What happens to one cluster's objects."""

    same: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0
    deltas: list[Delta] = field(default_factory=list)
    renamed: list[Renamed] = field(default_factory=list)

    @property
    def trains_again(self) -> list[Renamed]:
        """The runs that a GitOps engine would start again; those that are over are never started."""
        return [run for run in self.renamed if not run.is_over]


@dataclass(slots=True)
class _Field:
    """The differences of one field of one kind: by both values, how many there are, and the first object."""

    pairs: dict[str, tuple[Any, Any, int, str]] = field(default_factory=dict)

    def add(self, old: Any, new: Any, example: str) -> None:
        key = repr((old, new))
        _, _, count, first = self.pairs.get(key, (old, new, 0, example))
        self.pairs[key] = (old, new, count + 1, first)

    def deltas(self, kind: str, path: str) -> Iterator[Delta]:
        """Yield a line per pair of values; one for all if there are many."""
        if len(self.pairs) <= FEW:
            for old, new, count, example in self.pairs.values():
                yield Delta(kind, path, old, new, count, example)
            return
        old, new, _, example = next(iter(self.pairs.values()))
        total = sum(count for _, _, count, _ in self.pairs.values())
        yield Delta(kind, path, old, new, total, example, len(self.pairs))


def compare_cluster_renderings(before: Result, after: Result, cluster: str) -> Upgrade:
    """Return the differences of one cluster."""
    upgrade = Upgrade()
    fields: dict[tuple[str, str], _Field] = {}
    old, new = (
        _collect_rendered_texts_of_cluster(before, cluster),
        _collect_rendered_texts_of_cluster(after, cluster),
    )
    for name in sorted({*old, *new}):
        _compare_upgraded_files(name, old.get(name, ""), new.get(name, ""), upgrade, fields)
    upgrade.deltas = [
        delta for kind, path in sorted(fields) for delta in fields[kind, path].deltas(kind, path)
    ]
    upgrade.renamed = _find_runs_renamed_by_upgrade(before, after, cluster)
    return upgrade


def _collect_rendered_texts_of_cluster(result: Result, cluster: str) -> dict[str, str]:
    """Return the texts of a cluster by a name that stays the same: for a run, its team and job."""
    runs = {run.path: run for run in result.runs if run.cluster == cluster}
    texts: dict[str, str] = {}
    for path, text in result.texts.items():
        run = runs.get(path)
        if run is not None:
            texts[_format_team_job_label(run)] = text.replace(run.name, RUN)
        elif path.startswith(f"{cluster}/"):
            texts[path.removeprefix(f"{cluster}/")] = text
    return texts


def _format_team_job_label(run: PlannedRun) -> str:
    return f"{run.unit.job.team}/{run.unit.job.name}"


def _compare_upgraded_files(
    name: str, old: str, new: str, upgrade: Upgrade, fields: dict[tuple[str, str], _Field]
) -> None:
    before, after = _load_objects_by_name(old), (_load_objects_by_name(new) if new != old else None)
    if after is None:
        upgrade.same += len(before)
        return
    for key in {**before, **after}:
        one, other = before.get(key), after.get(key)
        kind = key[0]
        if one == other:
            upgrade.same += 1
        elif one is None or other is None:
            upgrade.added += one is None
            upgrade.removed += other is None
            place = (ABSENT_TEXT, key[2]) if one is None else (key[2], ABSENT_TEXT)
            fields.setdefault((kind, ""), _Field()).add(
                *_describe_added_or_removed(place), f"{name}: {key[2]}"
            )
        else:
            upgrade.changed += 1
            for path, was, now in _find_changed_leaves(one, other):
                fields.setdefault((kind, format_path(path)), _Field()).add(was, now, name)


def _describe_added_or_removed(place: tuple[str, str]) -> tuple[str, str]:
    """Return values without names, so that all objects that are added or removed are one difference."""
    return ("", "added") if place[0] == ABSENT_TEXT else ("removed", "")


def _load_objects_by_name(text: str) -> dict[tuple[str, str, str], Body]:
    """Return the objects of a text by kind, namespace and name."""
    found = {}
    for body in load_objects(text):
        meta = body["metadata"]
        found[body["kind"], meta.get("namespace", ""), meta["name"]] = body
    return found


def _find_changed_leaves(old: Body, new: Body) -> Iterator[tuple[FieldPath, Any, Any]]:
    """Yield each leaf that differs, in order; what one side lacks is ABSENT there."""
    before, after = dict(walk_leaves(old)), dict(walk_leaves(new))
    for path in {**before, **after}:
        was, now = before.get(path, ABSENT_TEXT), after.get(path, ABSENT_TEXT)
        if was != now:
            yield path, was, now


def _find_runs_renamed_by_upgrade(before: Result, after: Result, cluster: str) -> list[Renamed]:
    old = {_format_team_job_label(run): run for run in before.runs if run.cluster == cluster}
    found = []
    for run in sorted(after.runs, key=_format_team_job_label):
        earlier = old.get(_format_team_job_label(run)) if run.cluster == cluster else None
        if earlier is not None and earlier.name != run.name:
            job = run.unit.job
            found.append(Renamed(job.team, job.name, earlier.name, run.name, not job.is_active))
    return found
