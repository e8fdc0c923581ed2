"""Why runs train again although their specs did not change, what that takes, and how to keep them instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from gangplan.emit import EarlierRun
from gangplan.emit.header import find_line_source
from gangplan.findings import Finding
from gangplan.generators.trainjob import IMAGE_DIGEST
from gangplan.model.cost import format_hours
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.base import ObjectFinding, RetrainedRun, format_restoring
from gangplan.pipeline.reasons import RunReason, explain_change_since_earlier_run, format_changed_places
from gangplan.pipeline.request import Request
from gangplan.provenance.lines import render_run_files_with_line_origins
from gangplan.records import dataclass
from gangplan.review.edits import EditKind, RunEdit
from gangplan.review.fields import (
    ChangedField,
    compare_fields,
    compare_fields_since_revision,
    find_document_of_shared_file,
)
from gangplan.review.sides import Sides
from gangplan.review.totals import Total, sum_active_runs_of_side
from gangplan.tools.revisions import Revision
from gangplan.validate.problems import format_path
from gangplan.validate.sweep_runs import SWEEP_NAME_LABEL
from gangplan.workspace import CATALOG, OVERLAYS, RENDERED, SPECS, Workspace

_DIGEST = re.compile(rf'^    {re.escape(IMAGE_DIGEST)}: "?(sha256:[0-9a-f]+)"?$', re.MULTILINE)
# Returns the fields of a shared file that changed.
FieldsOfFile = Callable[[str], Sequence[ChangedField]]
# Returns the text of today of a file of the tree.
TextOfPath = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class RetrainCause:
    """The fields of shared files that make a run train again.

    Unless it `is_certain`, they are those that changed and that the run depends on. `differing` are the
    fields of the run itself, for a run that no field of a file explains. `image` is its image in the catalog.
    """

    image: str = ""
    fields: tuple[ChangedField, ...] = ()
    is_certain: bool = True
    differing: str = ""

    @property
    def words(self) -> str:
        """`because of images/catalog.yaml:6:13 (images.openmpi.digest)`; empty if nothing is known."""
        if not self.fields:
            return self.differing
        how = "because of" if self.is_certain else "because of one of"
        if not self.is_certain and len(self.fields) == 1:
            how = "probably because of"
        return f"{how} {format_changed_places(self.fields)}"


def find_retrain_causes(
    workspace: Workspace,
    request: Request,
    runs: Sequence[RetrainedRun],
    text: TextOfPath,
    changed: FieldsOfFile,
) -> dict[str, RetrainCause]:
    """Return the causes of retrained runs, by the paths of their files of today.

    Runs of a team in which the same lines differ have the same cause, which is looked for once.
    """
    groups: dict[tuple[str, ...], list[RetrainedRun]] = {}
    for one in runs:
        groups.setdefault(_list_new_lines_of_retrained_run(one, text(one.path)), []).append(one)
    found = {}
    for cluster in sorted({one.cluster for one in runs}):
        own = [group for group in groups.values() if group[0].cluster == cluster]
        specs = {find_line_source(text(group[0].path).partition("\n")[0]) for group in own}
        asked = tuple(sorted(str(request.root / one) for one in specs if one))
        made = render_run_files_with_line_origins(
            workspace, replace(request, clusters=(cluster,), specs=asked)
        )[0]
        files = {one.path: one for one in made if one.unit is not None}
        for group in own:
            file, first = files.get(group[0].path), group[0]
            if file is None or file.unit is None:
                continue
            reason = explain_change_since_earlier_run(file.unit, first.earlier, file.bodies, file.tracer)
            cause = _choose_change_behind_retraining(reason, first, file.unit.job.image.name, changed)
            found.update({one.path: cause for one in group})
    return found


def _list_new_lines_of_retrained_run(run: RetrainedRun, text: str) -> tuple[str, ...]:
    """Return cluster, team, image and the lines of a run that its earlier file lacks, without its name."""
    name = run.path.rpartition("/")[2].removesuffix(".yaml")
    old = set(run.earlier.text.replace(run.earlier.name, "").splitlines())
    image = _DIGEST.search(text)
    lines = (line for line in text.replace(name, "").splitlines() if line not in old)
    return run.cluster, run.team, image[1] if image else "", *lines


def _choose_change_behind_retraining(
    reason: RunReason, run: RetrainedRun, image: str, changed: FieldsOfFile
) -> RetrainCause:
    """Return the cause of a run: the traced fields, or else all that changed and that it depends on."""
    if reason.places:
        return RetrainCause(image, reason.places)
    entry = format_path(("images", image))
    files = (CATALOG, f"{OVERLAYS}/{run.cluster}/cluster.yaml", f"{SPECS}/{run.team}/team.yaml")
    possible = [
        one
        for file in files
        for one in changed(file)
        if file != CATALOG or not one[0].startswith("images") or f"{one[0]}.".startswith(f"{entry}.")
    ]
    return RetrainCause(image, tuple(possible), False, reason.words)


def explain_retrained_runs(
    workspace: Workspace,
    request: Request,
    problems: Sequence[ObjectFinding],
    revision: Revision,
    text: TextOfPath,
    facts: Mapping[str, RunFacts],
) -> list[ObjectFinding]:
    """Return the findings of a comparison; those about retrained runs have their cause and price, and the
    first one the total.

    `facts` are those of today's runs, by the paths of their files. Raises ToolError.
    """
    runs = [one for _, place in problems for one in (place.retrained if place else ())]
    if not runs:
        return list(problems)
    fields = compare_fields_since_revision(workspace, revision.commit, _list_shared_files(runs))
    causes = find_retrain_causes(workspace, request, runs, text, lambda file: fields.get(file, ()))
    keeping = Keeping(workspace, revision, {path: one.image for path, one in causes.items()})
    every, total = keeping.describe_all(runs), ""
    if len(runs) > 1:
        words = describe_hours_and_cost(
            sum_active_runs_of_side(facts[one.path] for one in runs if one.path in facts)
        )
        total = f"all {len(runs)} runs that are retrained take {words}"
    first = min((one for one, place in problems if place and place.retrained), key=lambda one: one.sort_key)
    found: list[ObjectFinding] = []
    for finding, place in problems:
        again = place.retrained if place else ()
        if not again:
            found.append((finding, place))
            continue
        told = sum_active_runs_of_side(facts[one.path] for one in again if one.path in facts)
        price = f"the price is at most {_format_cost(told)}" if told.cost else ""
        cause = causes.get(again[0].path, RetrainCause()).words
        parts = finding.message, price, total if finding is first else "", cause
        message = "; ".join(part for part in parts if part)
        help = _rewrite_help_of_retrain_finding(finding, keeping, again, every)
        found.append((replace(finding, message=message, help=help), None))
    return found


def add_changes_behind_retraining(request: Request, sides: Sides, edits: Sequence[RunEdit]) -> list[RunEdit]:
    """Return the edits of runs; those that are retrained have their causes, and how to keep the runs before.

    Raises UserError and ToolError.
    """
    before, after = sides.before, sides.after
    runs = {}
    for one in edits:
        if one.edit is EditKind.RETRAINED and one.before is not None and one.after is not None:
            earlier = EarlierRun(one.before.path, before.tree.text(one.before.path))
            runs[one.after.path] = RetrainedRun(earlier, one.after.path)
    if not runs:
        return list(edits)

    @cache
    def changed(file: str) -> list[ChangedField]:
        old, new = (find_document_of_shared_file(side.workspace, file) for side in (before, after))
        return compare_fields(old.value, new) if old is not None and new is not None else []

    causes = find_retrain_causes(after.workspace, request, list(runs.values()), after.tree.text, changed)
    images = {path: one.image for path, one in causes.items()}
    keeping = Keeping(after.workspace, sides.revision, images)
    found = []
    for one in edits:
        run = runs.get(one.after.path) if one.edit is EditKind.RETRAINED and one.after is not None else None
        if run is not None:
            cause = causes.get(run.path, RetrainCause())
            one = replace(one, causes=cause.fields, why=cause.words, keeping=keeping.list_steps(run))
        found.append(one)
    return found


def _list_shared_files(runs: Sequence[RetrainedRun]) -> set[str]:
    """Return the shared files with fields that runs depend on."""
    clusters = {f"{OVERLAYS}/{one.cluster}/cluster.yaml" for one in runs}
    return {CATALOG, *clusters, *(f"{SPECS}/{one.team}/team.yaml" for one in runs)}


def _rewrite_help_of_retrain_finding(
    finding: Finding, keeping: Keeping, runs: Sequence[RetrainedRun], every: str
) -> str:
    """Return the help of a finding, with all steps where one word in the spec keeps nothing; `every` are the
    steps for all runs."""
    if not any(map(keeping.list_needs, runs)):
        return finding.help
    every = f"To keep all runs: {every}. "
    one = (
        f"To keep the old one: {', then '.join(keeping.list_steps(runs[0]))}. "
        if finding.clue.kind == "run"
        else ""
    )
    return f"{one}{every}{finding.clue.given[1]}"


@dataclass(frozen=True, slots=True)
class Keeping:
    """How to keep earlier runs instead of training them again.

    What is kept must be in rendered/, from which a commit of the new run removed it, and its image in the
    catalog. `images` are the images of runs in the catalog, by the paths of their files of today.
    """

    workspace: Workspace
    revision: Revision
    images: Mapping[str, str]

    def list_steps(self, run: RetrainedRun) -> tuple[str, ...]:
        """Return the steps that keep one run, in their order."""
        keep = "template: {keep: true}" if SWEEP_NAME_LABEL in run.earlier.text else "keep: true"
        return (*self.list_needs(run), f"write {keep} in the spec", "gangplan render")

    def describe_all(self, runs: Sequence[RetrainedRun]) -> str:
        """Return the steps that keep all runs, in their order."""
        steps = [format_restoring(self.revision, "")] if any(map(self._is_missing, runs)) else []
        moved = {one.folder: one.earlier.path.rpartition("/")[0] for one in runs if self._is_missing(one)}
        steps += [
            f"mkdir -p {RENDERED}/{new} && cp {RENDERED}/{old}/*.yaml {RENDERED}/{new}"
            for new, old in moved.items()
            if new != old
        ]
        steps += dict.fromkeys(words for run in runs for words in self._list_unlisted_images(run))
        steps += dict.fromkeys(
            f"write keepRuns: true in {OVERLAYS}/{run.cluster}/cluster.yaml" for run in runs
        )
        return ", then ".join((*steps, "gangplan render"))

    def list_needs(self, run: RetrainedRun) -> list[str]:
        """Return what must be done before keep: true keeps a run."""
        missing = (
            [format_restoring(self.revision, run.earlier.path, run.folder)] if self._is_missing(run) else []
        )
        return [*missing, *self._list_unlisted_images(run)]

    def _is_missing(self, run: RetrainedRun) -> bool:
        return not (self.workspace.root / RENDERED / run.folder / f"{run.earlier.name}.yaml").is_file()

    def _list_unlisted_images(self, run: RetrainedRun) -> list[str]:
        """Return how to list the build that a run has, unless the catalog lists it: policies ask for that."""
        name, catalog = self.images.get(run.path, ""), self.workspace.catalog
        image = catalog.images.get(name) if catalog is not None else None
        found = _DIGEST.search(run.earlier.text)
        if image is None or found is None or found[1] in (image.digest, *image.earlier):
            return []
        return [f"list {found[1]} in {format_path(('images', name, 'earlier'))} of {CATALOG}"]


def describe_hours_and_cost(total: Total) -> str:
    """Return `at most 12096 GPU-hours and 12 CPU-hours (7955.76 EUR)`."""
    amounts = ((total.gpu_hours, "GPU"), (total.cpu_hours, "CPU"))
    hours = [f"{format_hours(amount)} {unit}-hours" for amount, unit in amounts if amount]
    cost = f" ({_format_cost(total)})" if total.cost else ""
    return f"at most {' and '.join(hours) or '0 GPU-hours'}{cost}"


def _format_cost(total: Total) -> str:
    return " + ".join(f"{amount} {currency}" for currency, amount in total.cost.items())
