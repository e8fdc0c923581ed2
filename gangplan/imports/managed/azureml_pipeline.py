"""Find jobs of Azure ML in files: command jobs, searches, and steps of pipelines with their components.

Jobs of other types are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gangplan.findings import Finding, Location
from gangplan.imports.account import Account, SourceNode
from gangplan.imports.comments import Comments
from gangplan.imports.managed.azureml import is_azureml_command_job
from gangplan.imports.managed.azureml_step import (
    PARENT_INPUT_PATTERN,
    StepAccount,
    find_azureml_step_component,
    merge_azureml_step,
)
from gangplan.imports.managed.azureml_sweep import convert_azureml_search
from gangplan.imports.sources import SourceObject, read_importable_objects_from_files
from gangplan.imports.workload import SourceError
from gangplan.records import dataclass
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SOURCE

_OTHERS = {
    "spark": ("a job of Spark has a cluster of its own", "Run it where Spark is."),
    "automl": ("an AutoML job has no program of yours", "Write the training as a program."),
    "parallel": (
        "a parallel job hands out files to processes",
        "Let the program take its share of the files.",
    ),
    "import": ("an import copies data", "Copy the data to a claim."),
    "data_transfer": ("a transfer copies data", "Copy the data to a claim."),
}

# az ml 2.0 of May 2022 and later: ${{inputs.NAME}}, where previews had {inputs.NAME}.
_IN_ONE_BRACE = re.compile(r"(?<![{\w])\{(?:inputs|outputs|search_space)\.\w+\}(?!\})")
_TODAY = "Write it as az ml reads it today: type: command or sweep, ${{inputs.NAME}}, compute: azureml:NAME, and resources.instance_count."

_IN_ORDER = (
    "each step of the pipeline becomes a spec of its own; the order of steps, and what the pipeline hands from one to the next, do not",
    "Start them in order, in Git; put what they share on a claim.",
)
# Components of a pipeline may be pipelines.
_DEEPEST = 8


def kind_of(value: Mapping[str, Any]) -> str:
    """Return the kind of a job, from its type or its schema."""
    schema = str(value.get("$schema", "")).rpartition("/")[2].partition(".")[0].removesuffix("Job").lower()
    return str(value.get("type") or schema or ("pipeline" if isinstance(value.get("jobs"), dict) else ""))


@dataclass(slots=True)
class _Found:
    """The contents of files: sources, findings, and components by name."""

    known: Mapping[str, Account]
    findings: list[Finding]
    sources: list[SourceObject] = field(default_factory=list)
    left: list[Account] = field(default_factory=list)


def find_azureml_jobs(
    files: Sequence[Path], filled: Mapping[str, str]
) -> tuple[list[SourceObject], list[Finding]]:
    """Find command jobs, searches and steps of pipelines in files.

    A component that a workspace or a registry keeps is known if its file is among these.
    """
    jobs, findings = read_importable_objects_from_files(
        files, lambda value: _is_job(value) or _is_component(value), filled
    )
    known = {str(one.value["name"]): one.account for one in jobs if _is_component(one.value)}
    found = _Found(known, findings)
    for one in jobs:
        kind = kind_of(one.value)
        if _is_component(one.value) and not all(_is_component(each.value) for each in jobs):
            continue  # it only serves the jobs that use it
        if early := _find_form_of_preview(one.value):
            why = f"it cannot be imported: {early} is a form of the preview of az ml, which Azure ML has given up"
            findings.append(Finding(IMPORT_SOURCE, one.account.where(()), why, _TODAY))
        elif kind == "sweep":
            _add_azureml_sweep_source(one, found)
        elif is_azureml_command_job(one.value):
            found.sources.append(one)
        elif isinstance(one.value.get("jobs"), dict):
            before = len(found.sources)
            _add_azureml_pipeline_steps(one.account, one, found, (), one.account.root()["inputs"])
            if len(found.sources) > before:
                _account_for_azureml_pipeline_fields(one.account, found.sources[before], found.left)
                findings.append(Finding(IMPORT_ASKED, one.account.where(()), *_IN_ORDER))
            found.left.clear()
        elif kind in _OTHERS:
            why, help = _OTHERS[kind]
            findings.append(
                Finding(IMPORT_SOURCE, one.account.where(()), f"it cannot be imported: {why}", help)
            )
    return found.sources, findings


def _is_job(value: Mapping[str, Any]) -> bool:
    return (
        is_azureml_command_job(value)
        or isinstance(value.get("jobs"), dict)
        or kind_of(value) in {*_OTHERS, "sweep"}
        or kind_of(value).endswith("_job")
    )


def _find_form_of_preview(value: Mapping[str, Any]) -> str:
    """Return what only the preview of 2021 read, and nothing of today would fill in or count; empty without."""
    kind, trial, compute = str(value.get("type", "")), value.get("trial"), value.get("compute")
    if kind.endswith("_job"):
        return f"type: {kind}"
    commands = (value.get("command"), trial.get("command") if isinstance(trial, dict) else None)
    for one in commands:
        if isinstance(one, str) and (found := _IN_ONE_BRACE.search(one)):
            return found[0]
    if isinstance(compute, dict) and compute.get("instance_count", 1) != 1:
        return "compute.instance_count"
    return ""


def _is_component(value: Mapping[str, Any]) -> bool:
    """Return whether a file is a component by itself, which pipelines refer to."""
    return "Component" in str(value.get("$schema", "")) and "name" in value


def _add_azureml_sweep_source(one: SourceObject, found: _Found) -> None:
    """Add a search, as the job of one trial."""
    try:
        component = find_azureml_step_component(one.account.root(), found.known, "trial")
        found.sources.append(replace(one, account=convert_azureml_search(one.account, component)))
    except SourceError as error:
        found.findings.append(
            Finding(IMPORT_SOURCE, one.account.where(()), f"it cannot be imported: {error}", error.help)
        )


def _build_refused_azureml_step_finding(place: Location, name: str, step: Mapping[str, Any]) -> Finding:
    """Return the finding for a step that is not a command, or whose command is not in the files."""
    if (kind := str(step.get("type", ""))) in _OTHERS:
        why, help = _OTHERS[kind]
        return Finding(IMPORT_SOURCE, place, f"the step {name} cannot be imported: {why}", help)
    what = str(step.get("component", "another file"))
    help = "Name the component's file, too; or write its command inline."
    if what.startswith("azureml:"):
        help = "Name the component's file, too (az ml component show prints it); or write its command inline."
    return Finding(IMPORT_SOURCE, place, f"the step {name} is in {what}", help)


def _add_azureml_pipeline_steps(
    account: Account,
    pipeline: SourceObject,
    found: _Found,
    above: tuple[tuple[str, Account], ...],
    given: SourceNode,
) -> None:
    """Add the steps of a pipeline, each as a separate source; a spec does not have their order.

    If the pipeline is a component, `above` has the names and accounts of the steps that it is in; `given` are
    its inputs.
    """
    value = account.root()["jobs"]
    for name, place in value.fields():
        step = place.value
        if not isinstance(step, dict):
            found.findings.append(Finding(IMPORT_SOURCE, place.where, f"the step {name} is not a job"))
            continue
        own = account.part(("jobs", name))
        component = find_azureml_step_component(own.root(), found.known)
        whole = "-".join([*(one for one, _ in above), name])
        inner = component.root()["jobs"] if component is not None else None
        if (
            inner is not None
            and component is not None
            and isinstance(inner.value, dict)
            and inner.value
            and len(above) < _DEEPEST
        ):
            handed = _merge_nested_azureml_pipeline_inputs(own.root(), component.root(), given)
            before = len(found.sources)
            _add_azureml_pipeline_steps(component, pipeline, found, (*above, (name, own)), handed)
            if len(found.sources) > before:
                _account_for_azureml_pipeline_fields(component, found.sources[before], ())
        elif kind_of(step) == "sweep":
            _add_azureml_sweep_source(replace(pipeline, account=own, value=step), found)
        elif (component is not None and "command" in component.root().value) or is_azureml_command_job(
            {"type": "command", **step}
        ):
            one = merge_azureml_step(own, whole, component, given)
            one.others = (*one.others, *(each for _, each in above))
            comments = Comments("", None, ()) if above else pipeline.comments.below(("jobs", name))
            found.sources.append(SourceObject(one, step, comments, pipeline.others))
        else:
            refused = _build_refused_azureml_step_finding(place.where, whole, step)
            own.mark((), "asked", "", refused.message)
            found.left.append(own)
            found.findings.append(refused)


# What becomes of the fields of a whole pipeline.
_OF_WHOLE = {
    **dict.fromkeys(("type", "$schema", "version"), "it says what kind of file this is"),
    **dict.fromkeys(
        ("name", "display_name", "description", "experiment_name", "tags"), "each step has a name of its own"
    ),
    "compute": "the team's queue and quota take the place of compute targets",
    "settings": "a run has no pipeline around it",
    "inputs": "no step that is imported takes it",
}


def _account_for_azureml_pipeline_fields(
    pipeline: Account, first: SourceObject, left: Sequence[Account]
) -> None:
    """Add what a pipeline has besides steps to the account of its first step.

    Steps that are `left` because they were refused are added, too.
    """
    rest, account = pipeline.without("jobs"), first.account
    for key, why in _OF_WHOLE.items():
        rest.root()[key].dropped(why)
    rest.root()["outputs"].asked("what the pipeline keeps is on the claims of its steps")
    if isinstance(account, StepAccount):
        account.others = (*account.others, rest, *left)


def _merge_nested_azureml_pipeline_inputs(
    step: SourceNode, component: SourceNode, given: SourceNode
) -> SourceNode:
    """Return the inputs of a pipeline that is a component.

    The step's values, with the outer pipeline's filled in, override the component's defaults.
    """
    values: dict[str, Any] = {}
    for name, node in component["inputs"].fields():
        node.dropped("the step gives its value")
        values[name] = node["default"].value if isinstance(node.value, dict) else node.value
    for name, node in step["inputs"].fields():
        handed = PARENT_INPUT_PATTERN.fullmatch(node.text())
        values[name] = given[handed[1]].value if handed and given[handed[1]] else node.value
        node.mapped("command")
    step["component"].dropped("its steps have their commands")
    step["type"].dropped("it says what kind of step this is")
    step["outputs"].asked("what the pipeline hands from one step to the next")
    return SourceNode(step.account, ("inputs",), values)
