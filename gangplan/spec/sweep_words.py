"""The help for parameters of a sweep that do not say how to combine their values."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import format_scalar
from gangplan.source import Document

_FORMS = ("grid", "list", "random")


def suggest_sweep_parameters_block(document: Document) -> str:
    """Return a help with the block `parameters:` in which stray parameters are moved: values to `grid`,
    ranges to `random`."""
    given = document.value["parameters"]
    stray = {name: item for name, item in given.items() if name not in _FORMS}
    ranges = {name for name, item in stray.items() if isinstance(item, dict)}
    if any({*stray[name]} - {"min", "max", "scale"} or "random" in given for name in ranges):
        return f"Known fields: {', '.join(_FORMS)}."
    grid = [
        _format_parameter_entry(document, ("parameters", "grid", name), item)
        for name, item in _list_block_parameters(given, "grid")
    ]
    grid += [
        _format_parameter_entry(document, ("parameters", name), item)
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
