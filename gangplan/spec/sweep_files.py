"""The sweeps of a workspace: reading and checking their files, and making jobs of their trials."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from gangplan.findings import Finding
from gangplan.model.job import Trial
from gangplan.model.trial import FromTemplate
from gangplan.records import dataclass
from gangplan.source import Document, load_file
from gangplan.spec.base import GANGPLAN_API_VERSION
from gangplan.spec.job import TrainingJob
from gangplan.spec.load import parse_spec_document
from gangplan.spec.placeholders import compile_placeholder_template, find_template_placeholders
from gangplan.spec.sweep import Sweep
from gangplan.spec.sweep_checks import check_sweep_spec
from gangplan.spec.trial_document import TrialDocument
from gangplan.spec.trials import (
    TrialSetting,
    build_trial_values,
    count_trials,
    format_trial_name,
    list_sweep_trial_settings,
)

if TYPE_CHECKING:
    from gangplan.spec.templates import TemplateSet

KIND = "Sweep"
# Fields of a trial that its sweep decides.
OWN = frozenset({"apiVersion", "kind", "name", "state", "retired", "maxConcurrent", "parameters"})
# Fields of a template that affect neither the number of a trial's pods nor where they go.
_INSIDE = frozenset(
    {"command", "env", "description", "labels", "workdir", "data", "files", "secrets", "checkpoint"}
)


@dataclass(frozen=True, slots=True)
class SweepFile:
    """One sweep: its file, team, name and content; `sweep` is None if `findings` say why.

    `mark` is equal for sweeps whose objects on clusters, their queues, are the same.
    """

    file: str
    team: str
    name: str
    sweep: Sweep | None
    document: Document | None
    mark: str
    losers: frozenset[str] = frozenset()  # trials that are over because of their results
    findings: tuple[Finding, ...] = ()

    @property
    def queue(self) -> str:
        """The name of its LocalQueue."""
        return f"sweep-{self.name}"

    @property
    def reads_results(self) -> bool:
        """Whether its findings or its trials depend on a file of results next to it."""
        return self.document is not None and self.document.value.get("results") is not None


def find_sweeps_among_spec_files(root: Path, files: Sequence[tuple[str, str]]) -> dict[str, SweepFile]:
    """Return the sweeps among spec files (path, team), by path."""
    found = {}
    for file, team in files:
        document, findings = load_file(root / file, file)
        if document is not None and is_sweep(document):
            found[file] = _apply_results_to_sweep_file(
                root, _parse_sweep_file(file, team, document, findings)
            )
    return found


def is_sweep(document: Document) -> bool:
    """Return whether a file declares that it is a sweep."""
    return isinstance(document.value, dict) and document.value.get("kind") == KIND


def _parse_sweep_file(file: str, team: str, document: Document, findings: list[Finding]) -> SweepFile:
    sweep, more = parse_spec_document(Sweep, document)
    findings = [*findings, *more]
    name = PurePosixPath(file).stem
    if sweep is not None:
        name = sweep.name or name
        findings += check_sweep_spec(sweep, document, name)
    if sweep is None or any(one.is_error for one in findings):
        return SweepFile(file, team, name, None, document, "", findings=tuple(findings))
    mark = _compute_queue_digest_of_sweep_file(team, name, sweep, document)
    return SweepFile(file, team, name, sweep, document, mark, findings=tuple(findings))


def _apply_results_to_sweep_file(root: Path, file: SweepFile) -> SweepFile:
    """Return the sweep with the trials that are over because of its results."""
    if file.sweep is None or file.document is None or file.sweep.results is None:
        return file
    from gangplan.spec.sweep_results import find_losing_trials_in_results_file  # few sweeps have results

    losers, findings = find_losing_trials_in_results_file(root, file.file, file.sweep, file.document)
    is_good = not any(one.is_error for one in findings)
    return replace(
        file,
        losers=losers,
        findings=(*file.findings, *findings),
        sweep=file.sweep if is_good else None,
        mark=file.mark if is_good else "",
    )


def _compute_queue_digest_of_sweep_file(team: str, name: str, sweep: Sweep, document: Document) -> str:
    """Return a digest of what decides the queue of a sweep.

    The values that are tried are a part of it only if they can make trials larger or smaller.
    """
    template = document.value["template"]
    told = [team, name, sweep.max_concurrent, count_trials(sweep), template]
    if find_shaping_fields(template):
        told.append(document.value["parameters"])
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def find_shaping_fields(template: Any) -> list[str]:
    """Return the fields with placeholders that may affect the number of a trial's pods and where they go."""
    return sorted({str(one.path[0]) for one in find_template_placeholders(template)} - _INSIDE)


@dataclass(frozen=True, slots=True)
class TrialJob:
    """A trial as a job: its typed spec and its document; `spec` is None if `findings` say why."""

    trial: Trial
    spec: TrainingJob | None
    document: Document
    findings: tuple[Finding, ...]
    template: FromTemplate | None = None  # from which the job was made


def build_sweep_trial_jobs(file: SweepFile, templates: TemplateSet | None = None) -> Iterator[TrialJob]:
    """Yield the trials that are in Git one by one, without keeping data of one for the next.

    `templates` are those of the workspace; the sweep's template may name one of them.
    """
    sweep, document = file.sweep, file.document
    if sweep is None or document is None:
        return
    template = document.value["template"]
    make = compile_placeholder_template(template) or (lambda _: template)
    stopped, removed = frozenset(sweep.stopped) | file.losers, frozenset(sweep.removed)
    earlier: dict[str, list[str]] = {}
    for run in sweep.retired:
        earlier.setdefault(run.rpartition("-")[0], []).append(run)
    job = partial(_build_sweep_trial_job, file, sweep, document, make, templates)
    for setting in list_sweep_trial_settings(sweep, document):
        name = format_trial_name(setting)
        if name not in removed:
            yield job(setting, name, name in stopped, earlier.get(f"{file.name}-{name}", ()))


def _build_sweep_trial_job(
    file: SweepFile,
    sweep: Sweep,
    document: Document,
    make: Any,
    templates: TemplateSet | None,
    setting: TrialSetting,
    name: str,
    is_stopped: bool,
    earlier: Sequence[str],
) -> TrialJob:
    given = build_trial_values(setting, name)
    value = {
        **make(given),
        "apiVersion": GANGPLAN_API_VERSION,
        "kind": "TrainingJob",
        "name": f"{file.name}-{name}",
        "state": "stopped" if is_stopped and sweep.state == "active" else sweep.state,
        **({"retired": list(earlier)} if earlier else {}),
    }
    own = TrialDocument(document, value, given, OWN)
    whole, made_from, findings = _fill_sweep_trial_template(own, file.team, templates)
    spec, more = parse_spec_document(TrainingJob, whole) if whole is not None else (None, [])
    findings = [*findings, *more]
    values = tuple((key, one.text) for key, one in setting.items())
    trial = Trial(file.name, name, values, file.queue, sweep.max_concurrent, count_trials(sweep))
    return TrialJob(trial, spec, whole or own, tuple(findings), made_from)


def _fill_sweep_trial_template(
    own: TrialDocument, team: str, templates: TemplateSet | None
) -> tuple[Document | None, FromTemplate | None, list[Finding]]:
    """Return the document of a trial, filled in if its job is made from a template."""
    if "template" not in own.value and "parameters" not in own.value:
        return own, None, []
    from gangplan.spec.templates import apply_job_template  # few sweeps name one

    return apply_job_template(templates, team, own)


def build_sweep_pod_shape_key(trial: TrialJob, fields: Sequence[str]) -> str:
    """Return a text that is equal for trials with the same pods; `fields` are those that values may affect
    (`find_shaping_fields`)."""
    value = trial.document.value
    if trial.template is not None:
        fields = sorted({*value} - _INSIDE - OWN)
    return repr([value.get(name) for name in fields])


def trial_names(file: SweepFile) -> dict[str, TrialSetting]:
    """Return all trials by name, including those that are no longer in Git."""
    if file.sweep is None or file.document is None:
        return {}
    return {format_trial_name(one): one for one in list_sweep_trial_settings(file.sweep, file.document)}
