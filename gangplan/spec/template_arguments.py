"""The values of a template's parameters: those that a spec sets, else their defaults, each of the right
type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gangplan.findings import FieldPath, Finding
from gangplan.rules.templates import (
    TEMPLATE_PARAMETER_MISSING,
    TEMPLATE_PARAMETER_UNKNOWN,
    TEMPLATE_PARAMETER_VALUE,
)
from gangplan.source import Document
from gangplan.spec.filled_document import Argument
from gangplan.spec.job_template import TemplateParameter
from gangplan.spec.near import suggest_nearest
from gangplan.spec.phrases import describe_kind_of_spec_value
from gangplan.spec.placeholders import PARAMETER_PREFIX, GivenValue
from gangplan.spec.template_file import TemplateFile

_NAMES = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false"}
_EXAMPLES = {"integer": "8", "number": "0.1", "string": "adam", "boolean": "true"}
# Ends of names whose value is a program.
_PROGRAMS = ("script", "program", "file", "main")


def find_job_template_parameters(
    chain: Sequence[TemplateFile],
) -> dict[str, tuple[TemplateParameter, Document]]:
    """Return the parameters of a template and of those that it extends, and where each is declared.

    If several templates declare one, the first in the chain counts.
    """
    found: dict[str, tuple[TemplateParameter, Document]] = {}
    for one in reversed(chain):
        if one.template is not None and one.document is not None:
            for name, parameter in one.template.parameters.items():
                found[name] = (parameter, one.document)
    return found


def job_template_defaults_of(chain: Sequence[TemplateFile]) -> dict[str, Argument]:
    """Return the parameters with a default, by name."""
    found = {}
    for name, (parameter, home) in find_job_template_parameters(chain).items():
        at: FieldPath = ("parameters", name, "default")
        if parameter.default is not None:
            found[name] = Argument(as_given(parameter, home, at, parameter.default), home, at)
    return found


def resolve_job_template_arguments(
    chain: Sequence[TemplateFile], document: Document
) -> tuple[dict[str, Argument] | None, list[Finding]]:
    """Return a value for each placeholder of the chain, or the findings about the values in the spec."""
    known, findings = find_job_template_parameters(chain), list[Finding]()
    given = document.value.get("parameters")
    given = {} if given is None else given
    if not isinstance(given, dict):
        message = f"parameters: expected names and values, not {describe_kind_of_spec_value(given)}"
        help = f"Write parameters: {{{next(iter(known), 'size')}: 8}}."
        return None, [Finding(TEMPLATE_PARAMETER_VALUE, document.where(("parameters",)), message, help)]
    found: dict[str, Argument] = {}
    for name, value in given.items():
        at: FieldPath = ("parameters", name)
        if name not in known:
            message = f"template {chain[0].label} has no parameter '{name}'"
            help = suggest_nearest(name, known) if known else "Remove it; the template has no parameters."
            findings.append(Finding(TEMPLATE_PARAMETER_UNKNOWN, document.where(at, key=True), message, help))
            continue
        wrong = list(check_template_argument_in_spec(known[name][0], name, document, at, value))
        findings += wrong
        if not wrong:
            found[PARAMETER_PREFIX + name] = Argument(
                as_given(known[name][0], document, at, value), document, at
            )
    defaults = job_template_defaults_of(chain)
    for name, (parameter, _) in known.items():
        if name in given:
            continue
        if name in defaults:
            found[PARAMETER_PREFIX + name] = defaults[name]
            continue
        message = f"template {chain[0].label} needs a value for '{name}'"
        help = f"Write parameters: {{{name}: {build_sample_of_template_parameter(parameter, name)}}}."
        if parameter.description:
            help = f"{help} {parameter.description.strip().rstrip('.')}."
        findings.append(Finding(TEMPLATE_PARAMETER_MISSING, document.where(("template",)), message, help))
    return (None if findings else found), findings


def build_sample_of_template_parameter(parameter: TemplateParameter, name: str) -> str:
    """Return a value that the parameter called `name` accepts, as an example."""
    for value in (parameter.default, *parameter.enum, parameter.min, parameter.max):
        if value is not None and _has_job_template_parameter_type(parameter.type, value):
            return _format_parameter_value(value)
    is_program = parameter.type == "string" and name.lower().endswith(_PROGRAMS)
    return "train.py" if is_program else _EXAMPLES[parameter.type]


def _format_parameter_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_given(parameter: TemplateParameter, document: Document, path: FieldPath, value: Any) -> GivenValue:
    """Return a value with its text in the file: 1e-4 stays 1e-4; for a string, the text is the value."""
    text = value if isinstance(value, str) else document.text(path)
    text = str(value) if text is None else text
    return GivenValue(text if parameter.type == "string" else value, text)


def check_template_argument_in_spec(
    parameter: TemplateParameter, name: str, document: Document, path: FieldPath, value: Any
) -> Iterator[Finding]:
    """Check a value's type and bounds."""
    where, shown = document.where(path), document.text(path)
    if not _has_job_template_parameter_type(parameter.type, value):
        what = describe_kind_of_spec_value(value) if shown is None else f"'{shown}'"
        message = f"parameter '{name}' is {_NAMES[parameter.type]}, not {what}"
        yield Finding(
            TEMPLATE_PARAMETER_VALUE,
            where,
            message,
            f"Write {build_sample_of_template_parameter(parameter, name)}.",
        )
        return
    given = as_given(parameter, document, path, value)
    allowed = [str(one) if parameter.type == "string" else one for one in parameter.enum]
    if allowed and given.value not in allowed:
        message = f"parameter '{name}' is one of {', '.join(map(str, allowed))}, not {given.text}"
        help = suggest_nearest(str(given.value), list(map(str, allowed)))
        yield Finding(TEMPLATE_PARAMETER_VALUE, where, message, help)
    elif isinstance(given.value, (int, float)) and not isinstance(given.value, bool):
        if parameter.min is not None and given.value < parameter.min:
            message = f"parameter '{name}' is at least {parameter.min}, not {given.text}"
            yield Finding(TEMPLATE_PARAMETER_VALUE, where, message, f"Write {parameter.min} or more.")
        elif parameter.max is not None and given.value > parameter.max:
            message = f"parameter '{name}' is at most {parameter.max}, not {given.text}"
            yield Finding(TEMPLATE_PARAMETER_VALUE, where, message, f"Write {parameter.max} or less.")


def _has_job_template_parameter_type(type: str, value: Any) -> bool:
    if type == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return type == "string"
    return isinstance(
        value,
        {"integer": int, "number": (int, float), "string": (str, int, float)}[type],  # type: ignore[arg-type]
    )


def describe_job_template_parameter(parameter: TemplateParameter, name: str, document: Document) -> str:
    """Return what a parameter accepts, in words: `integer, from 2 to 100, default 4`.

    Numbers are as the template has them: 1e-4 stays 1e-4.
    """
    at: FieldPath = ("parameters", name)

    def text(field: str, value: Any) -> str:
        return as_given(parameter, document, (*at, field), value).text

    words: str = parameter.type
    if parameter.enum:
        allowed = (
            as_given(parameter, document, (*at, "enum", index), one).text
            for index, one in enumerate(parameter.enum)
        )
        words += f", one of {', '.join(allowed)}"
    if parameter.min is not None:
        words += f", from {text('min', parameter.min)}"
    if parameter.max is not None:
        words += f"{' to' if parameter.min is not None else ', up to'} {text('max', parameter.max)}"
    return (
        f"{words}, default {text('default', parameter.default)}"
        if parameter.default is not None
        else f"{words}, required"
    )
