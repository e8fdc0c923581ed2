"""The reach of a change of a shared file: the runs, teams and clusters that did not ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.findings import Finding
from gangplan.records import dataclass
from gangplan.review.edits import EditKind, RunEdit
from gangplan.review.fields import ChangedField, compare_fields, find_document_of_shared_file
from gangplan.review.objects import ObjectChange
from gangplan.review.sides import Sides
from gangplan.review.totals import Total, sum_active_runs_of_side
from gangplan.workspace import CATALOG, OVERLAYS, SPECS

# All clusters and teams depend on files in these folders, of the kinds that a workspace reads there.
SHARED = ("policies", "schemas", "jobtemplates")
_READ_KINDS = (".yaml", ".yml", ".json")
TEAM = "team.yaml"


@dataclass(frozen=True, slots=True)
class Reach:
    """What a change of one shared file affects.

    `fields` are those that changed, each with its place today (if it is gone, where it would be). `retrained`
    is what runs take that train again; `updated` counts runs that change in place; `standing` objects of the
    platform and of teams; `findings` the new ones. If several shared files change, a run may be affected by
    any of those that it depends on.
    """

    file: str
    fields: tuple[ChangedField, ...]
    clusters: tuple[str, ...]
    teams: tuple[str, ...]
    retrained: Total
    updated: int
    standing: int
    findings: int

    @property
    def has_effect(self) -> bool:
        """Whether the change does anything to runs, objects or findings."""
        return bool(self.retrained.runs or self.updated or self.standing or self.findings)


def find_reaches_of_shared_files(
    sides: Sides, edits: Sequence[RunEdit], objects: Sequence[ObjectChange], new: Sequence[Finding]
) -> list[Reach]:
    """Return the reach of every shared file that changed, by name."""
    return [
        _compute_shared_file_reach(sides, file, edits, objects, new)
        for file in sides.changed_files
        if is_shared(file)
    ]


def is_shared(file: str) -> bool:
    """Return whether more than one job depends on a file."""
    parts = file.split("/")
    if parts[0] in SHARED:
        return file.endswith(_READ_KINDS)
    return file == CATALOG or parts[0] == OVERLAYS or (parts[0] == SPECS and parts[2:] == [TEAM])


def _list_changed_file_fields(sides: Sides, file: str) -> list[ChangedField]:
    """Return the fields of a file that changed; empty if the file is new or gone."""
    old, new = (find_document_of_shared_file(side.workspace, file) for side in (sides.before, sides.after))
    return compare_fields(old.value, new) if old is not None and new is not None else []


def _compute_shared_file_reach(
    sides: Sides,
    file: str,
    edits: Sequence[RunEdit],
    objects: Sequence[ObjectChange],
    new: Sequence[Finding],
) -> Reach:
    again = [
        one
        for one in edits
        if one.edit is EditKind.RETRAINED
        and _is_team_in_reach_of_file(file, one.facts.cluster, one.facts.team)
        and _may_retrain_by_image(file, one)
    ]
    started = {(one.facts.cluster, one.facts.team, one.facts.job) for one in edits}
    touched = [one for one in objects if _is_team_in_reach_of_file(file, one.cluster, one.team)]
    updated = {(one.cluster, one.team, one.run) for one in touched if one.run} - started
    standing = [one for one in touched if not one.run]
    teams = {one.facts.team for one in again} | {key[1] for key in updated} | {one.team for one in standing}
    clusters = (
        {one.facts.cluster for one in again} | {key[0] for key in updated} | {one.cluster for one in standing}
    )
    found = [one for one in new if one.where.file == file or _is_caused(file, one)]
    return Reach(
        file,
        tuple(_list_changed_file_fields(sides, file)),
        tuple(sorted(clusters)),
        tuple(sorted(teams - {""})),
        sum_active_runs_of_side(one.facts for one in again),
        len(updated),
        len(standing),
        len(found),
    )


def _is_team_in_reach_of_file(file: str, cluster: str, team: str) -> bool:
    """Return whether what a team has on a cluster depends on a file."""
    top, name, *_ = [*file.split("/"), ""]
    if top == OVERLAYS:
        return name == cluster
    return name == team if top == SPECS else True


def _may_retrain_by_image(file: str, edit: RunEdit) -> bool:
    """Return whether the catalog can be the reason why a run is retrained: its image changed."""
    old, new = edit.before, edit.after
    return file != CATALOG or old is None or new is None or old.image != new.image


def _is_caused(file: str, finding: Finding) -> bool:
    """Return whether a finding about a spec may come from a policy that changed."""
    return file.startswith("policies/") and finding.rule.is_policy
