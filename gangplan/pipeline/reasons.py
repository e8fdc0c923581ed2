"""Reasons why a run is a new one although its spec is the same: the fields that differ, and what decides
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gangplan.emit import EarlierRun
from gangplan.findings import FieldPath, Location
from gangplan.generators.scripts import SCRIPTS_VOLUME
from gangplan.objects import Body, walk_leaves
from gangplan.plan import RunPlan
from gangplan.plan.names import is_hashed_kind
from gangplan.records import dataclass
from gangplan.source import ManifestError, load_objects
from gangplan.trace import Tracer
from gangplan.trace.cause import Cause
from gangplan.trace.files import find_value_at
from gangplan.trace.tracing import collect_traced_files_of_run
from gangplan.validate.problems import format_path

# How many places are named; the objects of `plan --base` have the rest.
_MOST = 3
# Where a TrainingRuntime has its jobs, and each of them the spec of its pods.
_JOBS = ("spec", "template", "spec", "replicatedJobs")
_POD = ("template", "spec", "template", "spec")


@dataclass(frozen=True, slots=True)
class RunReason:
    """Why a run is a new one although its spec is the same.

    `places` are fields of shared files whose value of today made a field of the run another one, each with
    its name; `fields` are the fields of the run that differ, which is all that is known without `places`:
    then gangplan has other launch scripts, or renders the run in another way.
    """

    places: tuple[tuple[str, Location], ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """`because of images/catalog.yaml:6:13 (images.openmpi.digest)`, or `different in` some fields."""
        if self.places:
            return f"because of {format_changed_places(self.places)}"
        return f"different in {_format_shortened_list(self.fields, 'fields')}" if self.fields else ""


def explain_change_since_earlier_run(
    unit: RunPlan, earlier: EarlierRun, bodies: Sequence[Body], trace: Tracer
) -> RunReason:
    """Return why a run is not the earlier one: the places that decide the fields which differ.

    Only what makes another run counts; labels and the like may change without one.
    """
    try:
        before = load_objects(earlier.text.replace(earlier.name, unit.run_name))
    except ManifestError:
        return RunReason()  # reported elsewhere
    old = {body["kind"]: body for body in before}
    values = _build_written_value_lookup(unit)
    certain: dict[tuple[str, Location], None] = {}
    fields: dict[str, None] = {}
    for index, body in enumerate(bodies):
        if not is_hashed_kind(body["kind"]):
            continue
        for path, was, value in _find_fields_changed_since_earlier_run(old.get(body["kind"], {}), body):
            found = [one for one in trace(index, path).causes if _is_told(unit, one)]
            # Only causes whose value is in the new field and was not in the old one: others that decide the
            # field may not have changed at all.
            certain.update(
                ((format_path(one.field), one.where), None)
                for one in found
                if one.where is not None and _is_in(values(one), value, was)
            )
            fields[_name_field_of_run(body, path, value)] = None
    return RunReason(tuple(certain), tuple(fields))


def format_changed_places(places: Sequence[tuple[str, Location]]) -> str:
    """Return `images/catalog.yaml:6:13 (images.openmpi.digest)` for each place, or for the first of many."""
    told = [f"{where}{f' ({field})' if field else ''}" for field, where in places]
    return _format_shortened_list(told, "places")


def _format_shortened_list(words: Sequence[str], what: str) -> str:
    more = [f"{len(words) - _MOST} other {what}"] if len(words) > _MOST else []
    return ", ".join([*words[:_MOST], *more])


def _name_field_of_run(body: Body, path: FieldPath, value: Any) -> str:
    """Return a field in words: `the launch scripts`, or `containers[0].args[3] of launcher`."""
    if SCRIPTS_VOLUME in str(value):
        return "the launch scripts"
    if path[: len(_JOBS)] != _JOBS:
        return f"{body['kind']} {format_path(path)}"
    job = find_value_at(body, path[: len(_JOBS) + 1])
    inner = path[len(_JOBS) + 1 :]
    return f"{format_path(inner[len(_POD) :] if inner[: len(_POD)] == _POD else inner)} of {job['name']}"


def _find_fields_changed_since_earlier_run(old: Body, new: Body) -> Iterator[tuple[FieldPath, Any, Any]]:
    """Yield the fields of an object that changed, each with both values; no metadata."""
    part = "data" if "data" in new else "spec"
    before = dict(walk_leaves(old.get(part) or {}))
    for path, value in walk_leaves(new.get(part) or {}):
        if before.get(path) != value:
            yield (part, *path), before.get(path), value


def _is_told(unit: RunPlan, cause: Cause) -> bool:
    """Return whether a cause is written in a file other than the spec, which did not change."""
    return cause.where is not None and cause.is_written and cause.where.file != unit.job.source


def _build_written_value_lookup(unit: RunPlan) -> Callable[[Cause], Any]:
    """Return a function that looks up what is written at a cause."""
    files = collect_traced_files_of_run(unit)
    documents = {one.file: one for one in (files.team, files.cluster, files.catalog) if one is not None}

    def value(cause: Cause) -> Any:
        document = documents.get(cause.file)
        return find_value_at(document.value, cause.field) if document is not None else None

    return value


def _is_in(value: Any, new: object, old: object) -> bool:
    return isinstance(value, str | int) and str(value) in str(new) and str(value) not in str(old)
