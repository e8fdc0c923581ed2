"""Checks of templates by themselves: their names, parameters, placeholders and fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gangplan.findings import Finding
from gangplan.rules.core import SPEC_MISSING_FIELD
from gangplan.rules.templates import (
    TEMPLATE_PARAMETER_UNUSED,
    TEMPLATE_PARAMETER_VALUE,
    TEMPLATE_PLACEHOLDER,
    TEMPLATE_UNUSABLE,
)
from gangplan.source import Document
from gangplan.spec.base import GANGPLAN_API_VERSION
from gangplan.spec.filled_document import FilledDocument, Layer
from gangplan.spec.job import TrainingJob
from gangplan.spec.job_template import NOT_IN_JOB_TEMPLATE, JobTemplate
from gangplan.spec.load import parse_spec_document
from gangplan.spec.near import find_closest, suggest_nearest
from gangplan.spec.placeholders import (
    PARAMETER_PREFIX,
    compile_placeholder_template,
    explain_miswritten_placeholder,
    find_miswritten_placeholders,
    find_template_placeholders,
)
from gangplan.spec.template_arguments import (
    check_template_argument_in_spec,
    find_job_template_parameters,
    job_template_defaults_of,
)
from gangplan.spec.template_file import TemplateFile
from gangplan.spec.templates import TemplateSet, find_job_template_chain


def check_job_template_file(
    template: JobTemplate, document: Document, stem: str, number: str | None
) -> list[Finding]:
    """Return all findings that need only this file."""
    return [
        *_check_name_in_job_template_file(template, document, stem, number),
        *_check_job_template_parameters(template, document),
        *_check_job_template_own_fields(document),
    ]


def _check_name_in_job_template_file(
    template: JobTemplate, document: Document, stem: str, number: str | None
) -> Iterator[Finding]:
    if template.name is not None and template.name != stem:
        message = f"name is '{template.name}', but the file is '{stem}'"
        yield Finding(
            TEMPLATE_UNUSABLE, document.where(("name",)), message, "Remove the line, or rename the file."
        )
    if number is not None and number != str(template.version):
        message = f"the file is {stem}@{number}, and its version is {template.version}"
        help = f"Write version: {number}, or rename the file to {stem}@{template.version}.yaml."
        yield Finding(TEMPLATE_UNUSABLE, document.where(("version",)), message, help)


def _check_job_template_parameters(template: JobTemplate, document: Document) -> Iterator[Finding]:
    for name, one in template.parameters.items():
        at = ("parameters", name)
        for bound in ("min", "max"):
            if getattr(one, bound) is not None and one.type not in ("integer", "number"):
                message = f"parameter '{name}' is a {one.type}, which has no {bound}:"
                help = "Remove it, or list the values under enum:."
                yield Finding(TEMPLATE_PARAMETER_VALUE, document.where((*at, bound), key=True), message, help)
                return
        if one.min is not None and one.max is not None and one.min > one.max:
            message = f"parameter '{name}' is at least {one.min} and at most {one.max}"
            yield Finding(
                TEMPLATE_PARAMETER_VALUE, document.where((*at, "min")), message, "Write min: below max:."
            )
            return
        free = one.model_copy(update={"enum": ()})
        for index, value in enumerate(one.enum):
            yield from check_template_argument_in_spec(free, name, document, (*at, "enum", index), value)
        if one.default is not None:
            yield from check_template_argument_in_spec(one, name, document, (*at, "default"), one.default)


def _check_job_template_own_fields(document: Document) -> Iterator[Finding]:
    for field in document.value["job"]:
        if field in NOT_IN_JOB_TEMPLATE:
            where = document.where(("job", field), key=True)
            message = f"{field}: is not a field of a template's job"
            yield Finding(TEMPLATE_UNUSABLE, where, message, NOT_IN_JOB_TEMPLATE[field])


def _check_job_template_fields(one: TemplateFile, chain: Sequence[TemplateFile]) -> Iterator[Finding]:
    """Check for fields that no job has, and values that fields do not accept, as far as defaults of
    parameters allow."""
    assert one.document is not None
    known = {PARAMETER_PREFIX + name: home for name, home in job_template_defaults_of(chain).items()}
    body = _drop_open_job_template_placeholders(one.document.value["job"], frozenset(known))
    layer = Layer(one.document, ("job",), known)
    make = compile_placeholder_template(body)
    body = make(layer.given) if make else body
    value = {"apiVersion": GANGPLAN_API_VERSION, "kind": "TrainingJob", **body}
    for finding in parse_spec_document(TrainingJob, FilledDocument(value, [layer]))[1]:
        if finding.rule != SPEC_MISSING_FIELD:
            yield finding


def _drop_open_job_template_placeholders(value: Any, known: frozenset[str]) -> Any:
    """Return the fields without those that contain a placeholder without a known value."""
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        is_open = not isinstance(item, dict) and any(
            one.name not in known for one in find_template_placeholders(item)
        )
        if not is_open and not (
            isinstance(item, dict)
            and item
            and not (inner := _drop_open_job_template_placeholders(item, known))
        ):
            found[key] = inner if isinstance(item, dict) and item else item
    return found


def check_versions_of_job_template_files(files: Sequence[TemplateFile]) -> Iterator[Finding]:
    """Check that each version of a template is in one file only."""
    first: dict[tuple[str, str, int], TemplateFile] = {}
    for one in files:
        known = first.setdefault((one.team, one.name, one.version), one)
        if known is not one and one.document is not None:
            message = f"{one.label} is in {known.file}, too"
            help = "Give it another version, or remove one of the files."
            yield Finding(TEMPLATE_UNUSABLE, one.document.where(("version",)), message, help)


def check_job_template_files_together(templates: TemplateSet) -> Iterator[Finding]:
    """Check what templates extend, and report placeholders without a parameter and unused parameters."""
    for one in templates.files:
        if one.template is None or one.document is None:
            continue
        chain = [one]
        if one.template.extends is not None:
            above, wrong = find_job_template_chain(
                templates, one.team, one.template.extends, one.document, ("extends",)
            )
            if not above:
                yield from (wrong,) if wrong else ()
                continue
            chain += above
            if one in above:
                continue
        wrong_names = list(_check_job_template_placeholders(one, chain))
        yield from wrong_names
        if not any(found.is_error for found in wrong_names):
            yield from _check_job_template_fields(one, chain)


def _check_job_template_placeholders(one: TemplateFile, chain: Sequence[TemplateFile]) -> Iterator[Finding]:
    assert one.document is not None
    assert one.template is not None
    names, used = find_job_template_parameters(chain), set[str]()
    for each in chain:
        if each.document is not None:
            used |= {found.name for found in find_template_placeholders(each.document.value["job"])}
    for found in find_template_placeholders(one.document.value["job"]):
        if found.name.startswith(PARAMETER_PREFIX) and found.name[len(PARAMETER_PREFIX) :] in names:
            continue
        where = one.document.inside(("job", *found.path), found.offset)
        yield Finding(
            TEMPLATE_PLACEHOLDER, where, *_explain_unknown_job_template_placeholder(found.name, list(names))
        )
    for written, miss in find_miswritten_placeholders(one.document.value["job"]):
        if miss.name.removeprefix(PARAMETER_PREFIX) in names:
            used.add(miss.name)
            where = one.document.inside(("job", *miss.path), miss.offset)
            yield Finding(TEMPLATE_PLACEHOLDER, where, *explain_miswritten_placeholder(written, miss.name))
    for name in one.template.parameters:
        if PARAMETER_PREFIX + name not in used:
            message = f"nothing in the template uses parameter '{name}'"
            where = one.document.where(("parameters", name), key=True)
            help = f"Write ${{{{ parameters.{name} }}}} into job:, or remove it."
            yield Finding(TEMPLATE_PARAMETER_UNUSED, where, message, help)


def _explain_unknown_job_template_placeholder(name: str, known: Collection[str]) -> tuple[str, str]:
    if not name:
        return "'${{' is never closed", "Write ${{ parameters.NAME }}, in quotes inside a list in brackets."
    if name.startswith(PARAMETER_PREFIX):
        bare = name[len(PARAMETER_PREFIX) :]
        message, near = f"there is no parameter '{bare}'", find_closest(bare, known)
        if near:
            return message, f"Write ${{{{ parameters.{near} }}}}."
        return message, suggest_nearest(bare, known) if known else f"Add {bare}: under parameters:."
    if name in known:
        return f"'{name}' names nothing", f"Write ${{{{ parameters.{name} }}}}."
    return f"'{name}' names nothing", "Write ${{ parameters.NAME }}."
