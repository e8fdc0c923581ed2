"""The trials of a sweep: their settings, their names, and the values of their placeholders.

A trial is identified by its settings alone: its name is a hash of their texts. So adding a value adds trials
and renames none, regardless of the order, and a drawn value depends only on seed, parameter and number.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation, localcontext
from itertools import product
from typing import Any

from gangplan.findings import FieldPath
from gangplan.source import Document
from gangplan.spec.placeholders import PARAMETER_PREFIX, TRIAL_NAME, GivenValue
from gangplan.spec.sweep import Range, Sweep

# Significant digits of a drawn number; a program could not distinguish trials by more digits.
_DIGITS = 4
_LENGTH = 8
_PARTS = 16**13  # the number of equal parts for a drawn share
TrialSetting = Mapping[str, GivenValue]  # parameter -> its value


def format_trial_name(setting: TrialSetting) -> str:
    """Return the trial's own part of its name, from the texts of its values."""
    texts = {name: setting[name].text for name in sorted(setting)}
    digest = hashlib.sha256(json.dumps(texts, ensure_ascii=False).encode()).digest()
    return base64.b32encode(digest).decode().lower()[:_LENGTH]


def count_trials(sweep: Sweep) -> int:
    """Return the largest possible number of trials; drawn ones may coincide."""
    found = 1 if sweep.parameters.grid else 0
    for values in sweep.parameters.grid.values():
        found *= len(values)
    drawn = sweep.parameters.random
    return found + len(sweep.parameters.list) + (drawn.samples if drawn else 0)


def list_sweep_trial_settings(sweep: Sweep, document: Document) -> Iterator[TrialSetting]:
    """Yield every setting once, in the order of the file: the grid, the list, the drawn ones."""
    seen: set[tuple[str, ...]] = set()
    for setting in _iterate_sweep_trial_settings(sweep, document):
        key = tuple(fold_sweep_number_text(setting[name].text) for name in sorted(setting))
        if key not in seen:
            seen.add(key)
            yield setting


def _iterate_sweep_trial_settings(sweep: Sweep, document: Document) -> Iterator[TrialSetting]:
    parameters = sweep.parameters
    if parameters.grid:
        names = list(parameters.grid)
        columns = [
            [
                read_given_value(document, ("parameters", "grid", name, index), value)
                for index, value in enumerate(values)
            ]
            for name, values in parameters.grid.items()
        ]
        for values in product(*columns):
            yield dict(zip(names, values, strict=True))
    for index, entry in enumerate(parameters.list):
        at: FieldPath = ("parameters", "list", index)
        yield {name: read_given_value(document, (*at, name), value) for name, value in entry.items()}
    if parameters.random is not None:
        yield from _draw_random_settings(sweep, document)


def _draw_random_settings(sweep: Sweep, document: Document) -> Iterator[TrialSetting]:
    drawn = sweep.parameters.random
    assert drawn is not None
    choices: dict[str, Any] = {}
    for name, of in drawn.of.items():
        at: FieldPath = ("parameters", "random", "of", name)
        choices[name] = of
        if isinstance(of, tuple):
            choices[name] = [
                read_given_value(document, (*at, index), value) for index, value in enumerate(of)
            ]
    for number in range(drawn.samples):
        yield {name: _draw_parameter_value(drawn.seed, name, number, of) for name, of in choices.items()}


def _draw_parameter_value(seed: int, name: str, number: int, of: Any) -> GivenValue:
    """Return the value of a parameter in a sample. It is independent of other parameters and other
    samples."""
    digest = hashlib.sha256(f"{seed}\0{name}\0{number}".encode()).hexdigest()
    share = int(digest[:13], 16)
    if isinstance(of, list):
        found: GivenValue = of[share * len(of) // _PARTS]
        return found
    return _draw_number_in_range(of, share)


def _draw_number_in_range(of: Range, share: int) -> GivenValue:
    """Return a number in a range. Unlike floats, decimal arithmetic is the same on every machine."""
    if isinstance(of.min, int) and isinstance(of.max, int) and of.scale == "linear":
        whole = of.min + share * (of.max - of.min + 1) // _PARTS
        return GivenValue(whole, str(whole))
    with localcontext() as context:
        context.prec = 28
        low, high, part = Decimal(str(of.min)), Decimal(str(of.max)), Decimal(share) / _PARTS
        if of.scale == "log":
            value = (low.ln() + (high.ln() - low.ln()) * part).exp()
        else:
            value = low + (high - low) * part
        if isinstance(of.min, int) and isinstance(of.max, int):
            whole = min(int(of.max), max(int(of.min), int(value.to_integral_value())))
            return GivenValue(whole, str(whole))
        context.prec = _DIGITS
        text = str(+value).lower()
    return GivenValue(float(text), text)


def read_given_value(document: Document, path: FieldPath, value: Any) -> GivenValue:
    """Return a value with its text in the file: 1e-4 stays 1e-4."""
    text = value if isinstance(value, str) else document.text(path)
    return GivenValue(value, str(value) if text is None else text)


def fold_sweep_number_text(text: str) -> str:
    """Return a text that is equal for values that a program could not distinguish: 1e-3 and 0.001."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return str(number.normalize()) if number.is_finite() else text


def build_trial_values(setting: TrialSetting, name: str) -> dict[str, GivenValue]:
    """Return the values of a trial's placeholders."""
    found = {f"{PARAMETER_PREFIX}{key}": given for key, given in setting.items()}
    found[TRIAL_NAME] = GivenValue(name, name)
    return found
