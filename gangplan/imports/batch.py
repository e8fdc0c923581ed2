"""Import many sources at once: draft specs, changes of other files, findings, and comparisons with runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from gangplan.findings import Finding, Location, sort_findings
from gangplan.imports.account import Account
from gangplan.imports.claims import collect_imported_claim_templates
from gangplan.imports.comments import add_import_comments_to_spec
from gangplan.imports.draft import ImportTarget, SpecDraft
from gangplan.imports.equivalence import Equivalence, compare_imported_job_with_run
from gangplan.imports.kinds import SourceKind
from gangplan.imports.mapping import draft_spec_of_imported_job
from gangplan.imports.others import describe_missing_source_kind
from gangplan.imports.refused import RefusedSourceError
from gangplan.imports.sources import (
    GIVEN,
    OtherObject,
    SourceObject,
    find_blanks_in_commands_and_variables,
    find_unfilled_source_values,
    list_files_to_import,
    read_importable_objects_from_value,
    refuse_unread_values,
)
from gangplan.imports.suggest import Suggestion, apply_import_suggestions
from gangplan.imports.trials import convert_imported_job_to_sweep
from gangplan.imports.unset import ask_about_unset_variables
from gangplan.imports.workload import SourceJob
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.records import dataclass
from gangplan.rules.core import WORKSPACE_EMPTY
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SOURCE, IMPORT_UNPLACED
from gangplan.source import load_objects
from gangplan.starter.draft import create_draft_copy_of_workspace
from gangplan.starter.text import render_file_text
from gangplan.workspace import SPECS


@dataclass(slots=True)
class ImportedSource:
    """A source and its draft spec; `runs` are comparisons with its rendered runs, by cluster.

    `earlier` is the text of the spec that an earlier import wrote for the same source; empty without one.
    """

    draft: SpecDraft
    source: SourceObject
    text: str
    earlier: str = ""
    runs: dict[str, Equivalence] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether its spec has no errors in the workspace as it would become."""
        return not any(one.is_error for one in self.findings)


@dataclass(slots=True)
class Batch:
    """The outcome of an import; `before` and `after` are the contents of files that suggestions change.

    `refused` is how many sources became no spec.
    """

    imported: list[ImportedSource] = field(default_factory=list)
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)
    before: dict[str, bytes | None] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    suggestions: list[Suggestion] = field(default_factory=list)

    @property
    def everything(self) -> list[Finding]:
        """All findings in order."""
        return sort_findings([*self.findings, *(one for each in self.imported for one in each.findings)])


def read_import_batch(
    kind: SourceKind, named: Sequence[Path], home: ImportTarget, filled: Mapping[str, str]
) -> Batch:
    """Draft a spec for each source that is named, without checking it yet.

    Raises UserError for what does not exist.
    """
    batch = Batch()
    files = list_files_to_import(named, kind.suffixes)
    refuse_unread_values(files, filled)
    found, batch.findings = kind.find(files, filled)
    if not found and not batch.findings:
        place = files[0] if files else named[0]
        batch.findings.append(
            Finding(IMPORT_SOURCE, kind.place(place), *describe_missing_source_kind(kind, files))
        )
    return _draft_specs_of_sources(batch, kind, found, home)


def import_source_given_as_value(kind: SourceKind, value: Mapping[str, Any], home: ImportTarget) -> Batch:
    """Draft a spec for a source that a program gives as a value: a JSON document named `source`."""
    found = read_importable_objects_from_value(value, kind.takes)
    batch = Batch()
    if not found:
        help = f"gangplan import {kind.name} -h says what it reads."
        batch.findings.append(
            Finding(IMPORT_SOURCE, Location(GIVEN), f"there is no {kind.label} in it", help)
        )
    return _draft_specs_of_sources(batch, kind, found, home)


def _draft_specs_of_sources(
    batch: Batch, kind: SourceKind, found: Sequence[SourceObject], home: ImportTarget
) -> Batch:
    """Add a draft for each source to the batch, or the reasons why there is none."""
    named = list((home.workspace.root / SPECS / home.team).rglob("*.yaml"))
    specs = {path.stem: path for path in named if path.is_file()}
    taken, again = {path.stem for path in named}, set[str]()
    for source in found:
        open_values = (
            list(find_unfilled_source_values(source.account, bool(home.answers.image)))
            if kind.has_templates
            else []
        )
        batch.findings += open_values
        work = None if open_values else _read_source_job(kind, source, batch.findings)
        if work is None:
            batch.refused += 1
            continue
        work.claims = {**work.claims, **_collect_imported_claim_access_modes(source.others)}
        work.device_claims = collect_imported_claim_templates(source.others)
        draft = draft_spec_of_imported_job(work, home)
        _look_for_blanks_in_draft(kind, draft)
        if draft.refusals:
            batch.findings += draft.refusals
            batch.refused += 1
            continue
        earlier = _find_earlier_import(draft, specs, again)
        if earlier:
            draft.name = earlier
            again.add(earlier)
        else:
            draft.name = _choose_free_job_name(draft.name, taken)
        before = specs[earlier].read_text(encoding="utf-8", errors="replace") if earlier else ""
        batch.imported.append(
            ImportedSource(draft, source, _render_draft_of_imported_spec(draft, source), before)
        )
    batch.suggestions = _merge_import_suggestions(batch.imported)
    return batch


def _look_for_blanks_in_draft(kind: SourceKind, draft: SpecDraft) -> None:
    """Refuse blanks of a cloud's job that the spec would have, and ask about those in commands and variables.

    So are variables that a command reads and nothing sets.
    """
    if kind.is_script:
        return
    ask_about_unset_variables(draft)
    for account in (draft.work.account, *draft.work.others):
        if not kind.has_templates:
            has_image = bool(draft.home.answers.image)
            draft.refusals += find_unfilled_source_values(account, has_image, is_mapped=True)
        for node, message, help in find_blanks_in_commands_and_variables(account):
            draft.wonder(node, message, help)


def _read_source_job(kind: SourceKind, source: SourceObject, findings: list[Finding]) -> SourceJob | None:
    """Return the workload of a source; None if it cannot be imported, and `findings` say why."""
    work, refusals = None, []
    try:
        work = kind.read(source.account, source.others)
    except RefusedSourceError as error:
        refusals = list(error.findings)
    except ValueError as error:
        message = f"this {kind.label} cannot be imported: {error}"
        help = getattr(error, "help", "") or f"Correct the {kind.label}, or leave the file out."
        refusals = [Finding(IMPORT_SOURCE, source.account.where(()), message, help)]
    # A wrong count is the cause of what else is wrong, as of pods that are not there.
    refusals = _list_source_miscounts(kind, source.account) or refusals
    findings += refusals
    return None if refusals else work


def _list_source_miscounts(kind: SourceKind, account: Account) -> list[Finding]:
    """Return a finding for each value that should say how many of something there are, and does not."""
    help = "Write how many there are as a whole number: 4."
    blanks = (
        {one.where: one for one in find_unfilled_source_values(account)}
        if account.miscounts and not kind.is_script
        else {}
    )
    return [
        blanks.get(one.where)
        or Finding(
            IMPORT_SOURCE, one.where, f"{one.name}: {one.value!r} is not a whole number of at least 0", help
        )
        for one in account.miscounts
    ]


def _collect_imported_claim_access_modes(others: Sequence[OtherObject]) -> dict[str, tuple[str, ...]]:
    """Return the access modes of the claims that came with a source."""
    found: dict[str, tuple[str, ...]] = {}
    for one in others:
        metadata, spec = one.value.get("metadata"), one.value.get("spec")
        is_claim = one.value.get("kind") == "PersistentVolumeClaim"
        if is_claim and isinstance(metadata, dict) and isinstance(spec, dict):
            modes = spec.get("accessModes")
            if isinstance(modes, list) and modes:
                found.setdefault(str(metadata.get("name")), tuple(map(str, modes)))
    return found


def _find_earlier_import(draft: SpecDraft, specs: Mapping[str, Path], again: set[str]) -> str:
    """Return the name of the spec that an earlier import wrote for this source; empty without one.

    It says so in its description. `again` are those of other sources of this import.
    """
    description = draft.values.get("description", "")
    folder = draft.home.workspace.root / SPECS / draft.home.team
    name, number = draft.name, 2
    while description and name in specs:
        is_ours = specs[name].parent == folder and name not in again
        if is_ours and description in specs[name].read_text(encoding="utf-8", errors="replace"):
            return name
        name, number = f"{draft.name}-{number}", number + 1
    return ""


def _choose_free_job_name(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free


def _render_draft_of_imported_spec(draft: SpecDraft, source: SourceObject) -> str:
    root, trials = draft.home.workspace.root, draft.work.trials
    if trials is not None:
        return add_import_comments_to_spec(
            render_file_text(
                "sweep", convert_imported_job_to_sweep(draft.ordered(), trials), root, draft.file
            ),
            source.comments.head(),
            {},
        )
    plain = render_file_text("job", draft.ordered(), root, draft.file)
    of_fields = {
        name: source.comments.of(node)
        for name, node in draft.origins.items()
        if node.account is source.account
    }
    return add_import_comments_to_spec(plain, source.comments.head(), of_fields)


def _merge_import_suggestions(imported: Sequence[ImportedSource]) -> list[Suggestion]:
    """Return all suggestions, each once; if several images have one name, the first counts."""
    found: list[Suggestion] = []
    for one in imported:
        for suggestion in one.draft.suggestions:
            same = [kept for kept in found if (kept.file, kept.path) == (suggestion.file, suggestion.path)]
            for kept in same:  # a pool must have room for the largest job
                if suggestion.path[:1] == ("nodePools",) and isinstance(kept.value, dict):
                    kept.value["count"] = max(kept.value["count"], suggestion.value["count"])
            is_list = isinstance(suggestion.value, tuple)
            if not any(kept.value == suggestion.value or not is_list for kept in same):
                found.append(suggestion)
    return found


def judge_import_batch(batch: Batch, root: Path) -> None:
    """Check the specs, and render their runs, in a copy of the workspace that has the suggestions."""
    names = {one.file for one in batch.suggestions}
    batch.before = {name: (root / name).read_bytes() if (root / name).is_file() else None for name in names}
    batch.after, left = apply_import_suggestions(batch.before, batch.suggestions)
    batch.findings += [
        Finding(
            IMPORT_UNPLACED,
            one.where,
            f"{one.file} gains {one.why}",
            f"Add it yourself:\n{one.text().rstrip()}",
        )
        for one in left
    ]
    if not batch.imported:
        return
    files = {one.draft.file: one.text for one in batch.imported}
    files |= {name: data.decode() for name, data in batch.after.items()}
    with create_draft_copy_of_workspace(root, files) as copy:
        result = preview_render(
            Request(copy, specs=tuple(one.draft.file for one in batch.imported), engine="serial")
        )
    _assign_results_to_sources(batch, result)


def _assign_results_to_sources(batch: Batch, result: Result) -> None:
    by_file = {one.draft.file: one for one in batch.imported}
    for finding in result.findings:
        owner = by_file.get(finding.where.file)
        if owner is not None:
            owner.findings.append(finding)
        elif finding.is_error and finding.rule != WORKSPACE_EMPTY:
            batch.findings.append(finding)
    for run in result.runs:
        one = by_file[run.unit.job.source]
        text = result.texts.get(run.path)
        if text is not None and run.cluster not in one.runs:  # for a sweep, the first trial
            trial = run.unit.job.trial
            one.runs[run.cluster] = compare_imported_job_with_run(
                one.draft, load_objects(text), trial.values if trial else ()
            )
    for one in batch.imported:
        if one.earlier not in ("", one.text):
            message = (
                f"{one.draft.file} was imported from here before and is different now, so it stays as it is"
            )
            help = "To import the source again, remove or rename that file."
            one.findings.append(Finding(IMPORT_ASKED, one.source.account.where(()), message, help))
        one.findings += [
            Finding(IMPORT_ASKED, ask.where, ask.message, ask.help) for ask in one.draft.questions
        ]
