"""The templates of a workspace: finding them by name and version, and filling them in for a spec.

A template of the platform is `jobtemplates/NAME.yaml`, one of a team `specs/<team>/templates/NAME.yaml`,
which takes precedence over a platform's of the same name. Further versions have files of their own:
`NAME@2.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.findings import FieldPath, Finding
from gangplan.model.trial import ExpectedEfficiency, FromTemplate
from gangplan.records import dataclass
from gangplan.rules.templates import (
    TEMPLATE_EXTENDS,
    TEMPLATE_PARAMETER_UNKNOWN,
    TEMPLATE_UNKNOWN,
)
from gangplan.source import Document
from gangplan.spec.filled_document import Argument, FilledDocument, Layer, merge_job_template_fields
from gangplan.spec.near import suggest_nearest
from gangplan.spec.placeholders import PARAMETER_PREFIX, compile_placeholder_template
from gangplan.spec.template_arguments import resolve_job_template_arguments
from gangplan.spec.template_file import TemplateFile

PLATFORM_TEAM = ""
# The maximum number of templates from the one that a spec names to the last one that is extended.
MAX_TEMPLATE_LAYERS = 8
OWN = ("template", "parameters")


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """All templates of a workspace, and the spec files that may use one, with a mark that changes with what
    they use.

    `findings` are about the templates themselves.
    """

    files: tuple[TemplateFile, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def seen_by(self, team: str) -> dict[str, list[TemplateFile]]:
        """Return the templates that specs of a team may name, by name, newest last; the team's own take
        precedence."""
        found: dict[str, list[TemplateFile]] = {}
        for owner in {PLATFORM_TEAM, team}:
            own: dict[str, list[TemplateFile]] = {}
            for one in self.files:
                if one.team == owner:
                    own.setdefault(one.name, []).append(one)
            found = found | own if owner else own | found
        return {name: sorted(found[name], key=lambda one: one.version) for name in sorted(found)}

    def find(self, team: str, label: str) -> TemplateFile | None:
        """Return the template of a name, `horovod-large` or `horovod-large@2`, as seen by specs of a team."""
        name, _, version = label.partition("@")
        for one in reversed(self.seen_by(team).get(name, ())):
            if not version or str(one.version) == version:
                return one
        return None


@dataclass(frozen=True, slots=True)
class Use:
    """A spec with a template: the document with everything filled in, the values of its parameters, and the
    templates, beginning with the one that it names."""

    document: FilledDocument
    chain: tuple[TemplateFile, ...]
    arguments: Mapping[str, Argument]


def find_job_template_chain(
    templates: TemplateSet, team: str, label: str, document: Document, path: FieldPath
) -> tuple[list[TemplateFile], Finding | None]:
    """Return a template and all that it extends, or a finding at the place that names one.

    Return neither if one of the templates cannot be used, because that is reported for the template itself.
    """
    found: list[TemplateFile] = []
    while True:
        one = templates.find(team, label)
        where = document.where(path)
        if one is None:
            return [], Finding(
                TEMPLATE_UNKNOWN, where, *_explain_unknown_job_template(templates, team, label)
            )
        if one in found:
            names = " extends ".join(each.label for each in [*found[found.index(one) :], one])
            return [], Finding(
                TEMPLATE_EXTENDS, where, f"the templates lead back: {names}", "Remove one extends:."
            )
        if len(found) == MAX_TEMPLATE_LAYERS:
            message = f"{found[0].label} is the {MAX_TEMPLATE_LAYERS + 1}th layer of templates or more"
            return [], Finding(
                TEMPLATE_EXTENDS, where, message, f"Join some: at most {MAX_TEMPLATE_LAYERS} are followed."
            )
        found.append(one)
        if one.template is None or one.document is None:
            return [], None
        if one.template.extends is None:
            return found, None
        # What a platform's template extends belongs to the platform, even if a team uses it.
        label, document, path, team = one.template.extends, one.document, ("extends",), one.team


def _explain_unknown_job_template(templates: TemplateSet, team: str, label: str) -> tuple[str, str]:
    known = templates.seen_by(team)
    name, _, version = label.partition("@")
    if name in known and version:
        there = ", ".join(one.label for one in known[name])
        return f"template '{name}' has no version {version}", f"There is {there}."
    if not known:
        return f"there is no template '{label}'", f"Write jobtemplates/{name}.yaml with kind: JobTemplate."
    return f"there is no template '{name}'", suggest_nearest(name, known)


def fill_job_template(
    templates: TemplateSet, team: str, document: Document
) -> tuple[Use | None, list[Finding]]:
    """Return the spec in a document with `template:`, with everything filled in, or the findings about it."""
    label = document.value.get("template")
    if not isinstance(label, str):
        return None, []  # reported as a wrong type
    chain, wrong = find_job_template_chain(templates, team, label, document, ("template",))
    if not chain:
        return None, [wrong] if wrong else []
    arguments, findings = resolve_job_template_arguments(chain, document)
    if findings or arguments is None:
        return None, findings
    own = {name: item for name, item in document.value.items() if name not in OWN}
    layers = [Layer(document, (), {}), *_list_job_template_layers(chain, arguments)]
    value: Any = {}
    for layer in reversed(layers[1:]):
        make = compile_placeholder_template(layer.value)
        value = merge_job_template_fields(make(layer.given) if make else layer.value, value)
    return Use(FilledDocument(merge_job_template_fields(own, value), layers), tuple(chain), arguments), []


def apply_job_template(
    templates: TemplateSet | None, team: str, document: Document
) -> tuple[Document | None, FromTemplate | None, list[Finding]]:
    """Return the document of a spec with `template:` or `parameters:`, filled in, and what it was made
    from."""
    if document.value.get("kind") != "TrainingJob":
        return document, None, []  # reported as a file of another kind
    if "template" not in document.value:
        where = document.where(("parameters",), key=True)
        help = "Add template: NAME, or remove parameters:."
        return (
            None,
            None,
            [Finding(TEMPLATE_PARAMETER_UNKNOWN, where, "the spec has parameters: and no template:", help)],
        )
    use, findings = fill_job_template(templates or TemplateSet(), team, document)
    if use is None:
        is_text = isinstance(document.value["template"], str)
        return (None if is_text else document), None, findings
    expected = next((one.template.expect for one in use.chain if one.template and one.template.expect), ())
    return (
        use.document,
        FromTemplate(
            use.chain[0].label,
            use.chain[0].file,
            tuple(
                (name.removeprefix(PARAMETER_PREFIX), one.given.text) for name, one in use.arguments.items()
            ),
            tuple(ExpectedEfficiency(one.workers, one.efficiency, one.source) for one in expected),
        ),
        [],
    )


def _list_job_template_layers(
    chain: Sequence[TemplateFile], arguments: Mapping[str, Argument]
) -> Iterator[Layer]:
    for one in chain:
        assert one.document is not None
        yield Layer(one.document, ("job",), arguments)
