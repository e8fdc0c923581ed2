"""The helps for parts of sweeps and templates that are not where they belong."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from gangplan.findings import UNKNOWN_FIELD, Clue, FieldPath, Problem
from gangplan.objects import format_scalar
from gangplan.rules.core import SPEC_UNKNOWN_FIELD
from gangplan.source import Document
from gangplan.spec.blocks import list_spec_fields_at
from gangplan.spec.job import TrainingJob
from gangplan.spec.job_template import NOT_IN_JOB_TEMPLATE
from gangplan.spec.sweep import Sweep
from gangplan.spec.sweep_checks import NOT_IN_SWEEP_TEMPLATE
from gangplan.spec.words import SYNONYMS, SYNONYMS_INSIDE, fold_name

_FORMS = ("grid", "list", "random")
# How many characters a block in a help may have, and how many values a range with steps.
_LONGEST, _MOST_STEPS = 300, 20


def explain_job_field_outside_its_block(
    model: type[BaseModel], document: Document, word: str
) -> Problem | None:
    """Return the problem of a field of the job at the top of a sweep or template; None for any other word.

    The help writes the block with all such fields, if it is short and the file has none yet.
    """
    given, holder = document.value, "template" if model is Sweep else "job"
    stray: dict[str, str] = {}
    for name in map(str, given):
        field = _find_job_field(model, name)
        if field and (field not in stray.values() or name == field):  # a field counts, not its other names
            stray = {known: meant for known, meant in stray.items() if meant != field} | {name: field}
    if word not in stray:
        help = _list_fields_of_specs_alone(model).get(word, "")
        return Problem((word,), f"unknown field '{word}'", help, SPEC_UNKNOWN_FIELD) if help else None
    shown = {name: stray[name] for name in given if name in stray}
    block = ", ".join(
        f"{field}: {_format_sweep_value_as_written(document, (name,), given[name])}"
        for name, field in shown.items()
    )
    if holder in given or len(block) > _LONGEST:
        *names, last = shown
        help = f"Move {' and '.join(filter(None, (', '.join(names), last)))} into {holder}:."
    else:
        help = f"Write {holder}: {{{block}}}."
    what = "the fields" if stray[word] == word else f"'{stray[word]}' and the other fields"
    message = f"unknown field '{word}'; {what} of the job belong in {holder}"
    clue = Clue((word,), UNKNOWN_FIELD, follows=(holder,))
    return Problem((word,), message, help, SPEC_UNKNOWN_FIELD, clue=clue)


def _find_job_field(model: type[BaseModel], word: str) -> str:
    """Return the field of a job that a word means; empty if it means none, or one of the file's own."""
    folded = fold_name(word)
    of_job = list_spec_fields_at(TrainingJob, ()) - {*_list_fields_of_specs_alone(model)}
    field = word if word in of_job else SYNONYMS.get(folded, "")
    is_own = word in list_spec_fields_at(model, ()) or (model.__name__, folded) in SYNONYMS_INSIDE
    return field if field in of_job and not is_own else ""


def _list_fields_of_specs_alone(model: type[BaseModel]) -> dict[str, str]:
    """Return the fields of a job that neither a sweep's template nor a JobTemplate's job has, with helps."""
    return NOT_IN_SWEEP_TEMPLATE if model is Sweep else NOT_IN_JOB_TEMPLATE


def suggest_sweep_parameters_block(document: Document) -> str:
    """Return a help with the block `parameters:` in which stray parameters are moved: values to `grid`,
    ranges to `random`."""
    given = document.value["parameters"]
    stray = {name: item for name, item in given.items() if name not in _FORMS}
    listed = {
        name: text
        for name, item in stray.items()
        if (text := _list_values_of_other_tools(document, ("parameters", name), item))
    }
    ranges = {name for name, item in stray.items() if isinstance(item, dict)} - {*listed}
    if any({*stray[name]} - {"min", "max", "scale"} or "random" in given for name in ranges):
        return f"Known fields: {', '.join(_FORMS)}."
    grid = [
        _format_parameter_entry(document, ("parameters", "grid", name), item)
        for name, item in _list_block_parameters(given, "grid")
    ]
    grid += [
        f"{name}: {listed[name]}"
        if name in listed
        else _format_parameter_entry(document, ("parameters", name), item)
        for name, item in stray.items()
        if name not in ranges
    ]
    parts = [f"grid: {{{', '.join(grid)}}}"] if grid else []
    if ranges:
        of = [
            _format_parameter_entry(document, ("parameters", name), stray[name])
            for name in stray
            if name in ranges
        ]
        parts.append(f"random: {{samples: 20, seed: 1, of: {{{', '.join(of)}}}}}")
    return f"Write parameters: {{{', '.join(parts)}}}."


def _list_values_of_other_tools(document: Document, path: FieldPath, item: Any) -> str:
    """Return the values of {values: [...]}, {value: ...} or {min, max, step} as a flow list; empty for other
    forms."""
    if not isinstance(item, dict):
        return ""
    if {*item} == {"values"} and isinstance(item["values"], list):
        return _format_sweep_value_as_written(document, (*path, "values"), item["values"])
    if {*item} == {"value"} and not isinstance(item["value"], dict | list):
        return f"[{_format_sweep_value_as_written(document, (*path, 'value'), item['value'])}]"
    numbers = [one for one in item.values() if isinstance(one, int | float) and not isinstance(one, bool)]
    if {*item} != {"min", "max", "step"} or len(numbers) < len(item):
        return ""
    low, high, step = (Decimal(str(item[name])) for name in ("min", "max", "step"))
    if step <= 0 or not 0 <= (high - low) / step < _MOST_STEPS:
        return ""
    return f"[{', '.join(str(low + step * at) for at in range(int((high - low) / step) + 1))}]"


def _list_block_parameters(given: dict[str, Any], name: str) -> list[tuple[str, Any]]:
    found = given.get(name)
    return list(found.items()) if isinstance(found, dict) else []


def _format_parameter_entry(document: Document, path: FieldPath, value: Any) -> str:
    """Return a parameter with its values as flow YAML; a single value becomes a list of one."""
    shown = _format_sweep_value_as_written(document, path, value)
    return f"{path[-1]}: {shown if isinstance(value, dict | list) else f'[{shown}]'}"


def _format_sweep_value_as_written(document: Document, path: FieldPath, value: Any) -> str:
    """Return a value as it is written, with the text of numbers."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{key}: {_format_sweep_value_as_written(document, (*path, key), one)}"
                for key, one in value.items()
            )
            + "}"
        )
    if isinstance(value, list):
        return (
            "["
            + ", ".join(
                _format_sweep_value_as_written(document, (*path, at), one) for at, one in enumerate(value)
            )
            + "]"
        )
    return format_scalar(value) if isinstance(value, str) else document.text(path) or ""
