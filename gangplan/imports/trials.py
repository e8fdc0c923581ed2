"""Import jobs that run once per setting of parameters as sweeps, and compare each run with its setting.

While a source is read, a marker without spaces replaces a parameter in words and variables, so that no shell
splits it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.records import dataclass
from gangplan.spec.sweep_checks import NOT_IN_SWEEP_TEMPLATE

_MARK = re.compile(r"GANGPLAN__([A-Za-z_][A-Za-z0-9_-]*?)__PARAMETER")


@dataclass(frozen=True, slots=True)
class Trials:
    """What is tried, as `parameters` of a sweep; how many trials run at once; and the place in the source."""

    parameters: Mapping[str, Any]
    at_once: int
    node: SourceNode


def build_parameter_mark(name: str) -> str:
    """Return the marker for the value of a parameter."""
    return f"GANGPLAN__{name}__PARAMETER"


def convert_imported_job_to_sweep(values: Mapping[str, Any], trials: Trials) -> dict[str, Any]:
    """Convert the values of a job to those of a sweep.

    What a trial's template cannot have is left to the sweep.
    """
    template = {
        name: _render_trial_parameter_references(one)
        for name, one in values.items()
        if name not in NOT_IN_SWEEP_TEMPLATE
    }
    return {"parameters": dict(trials.parameters), "maxConcurrent": trials.at_once, "template": template}


def _render_trial_parameter_references(value: Any) -> Any:
    if isinstance(value, str):
        return _MARK.sub(lambda found: f"${{{{ parameters.{found[1]} }}}}", value)
    if isinstance(value, Mapping):
        return {name: _render_trial_parameter_references(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_render_trial_parameter_references(one) for one in value)
    return value


def fill_trial_values(text: str, setting: Sequence[tuple[str, str]]) -> str:
    """Return a text of the source with the values of one trial."""
    given = dict(setting)
    return _MARK.sub(lambda found: given.get(found[1], found[0]), text) if given else text
