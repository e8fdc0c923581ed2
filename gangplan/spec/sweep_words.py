"""The help for parameters of a sweep that do not say how to combine their values."""

from __future__ import annotations

from typing import Any

from gangplan.objects import scalar
from gangplan.source import Document, Path

_FORMS = ("grid", "list", "random")


def parameters_help(document: Document) -> str:
    """Return a help with the block `parameters:` in which stray parameters are moved: values to `grid`,
    ranges to `random`."""
    given = document.value["parameters"]
    stray = {name: item for name, item in given.items() if name not in _FORMS}
    ranges = {name for name, item in stray.items() if isinstance(item, dict)}
    if any({*stray[name]} - {"min", "max", "scale"} or "random" in given for name in ranges):
        return f"Known fields: {', '.join(_FORMS)}."
    grid = [_entry(document, ("parameters", "grid", name), item) for name, item in _block(given, "grid")]
    grid += [
        _entry(document, ("parameters", name), item) for name, item in stray.items() if name not in ranges
    ]
    parts = [f"grid: {{{', '.join(grid)}}}"] if grid else []
    if ranges:
        of = [_entry(document, ("parameters", name), stray[name]) for name in stray if name in ranges]
        parts.append(f"random: {{samples: 20, seed: 1, of: {{{', '.join(of)}}}}}")
    return f"Write parameters: {{{', '.join(parts)}}}."


def _block(given: dict[str, Any], name: str) -> list[tuple[str, Any]]:
    found = given.get(name)
    return list(found.items()) if isinstance(found, dict) else []


def _entry(document: Document, path: Path, value: Any) -> str:
    """Return a parameter with its values as flow YAML; a single value becomes a list of one."""
    shown = _flow(document, path, value)
    return f"{path[-1]}: {shown if isinstance(value, dict | list) else f'[{shown}]'}"


def _flow(document: Document, path: Path, value: Any) -> str:
    """Return a value as it is written, with the text of numbers."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{key}: {_flow(document, (*path, key), one)}" for key, one in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_flow(document, (*path, at), one) for at, one in enumerate(value)) + "]"
    return scalar(value) if isinstance(value, str) else document.text(path) or ""
