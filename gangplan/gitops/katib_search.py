"""What Katib is asked for: which values of parameters, chosen how, compared by which metric.

Source: kubeflow/katib v0.19.0 (pkg/apis/controller/experiments/v1beta1, pkg/suggestion/v1beta1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from gangplan.errors import UserError
from gangplan.objects import Body
from gangplan.source import Document
from gangplan.spec.sweep import Range, Sweep
from gangplan.spec.trials import count_trials, read_given_value

# Written out, as Katib's webhook would: Argo CD compares the items of a list as wholes.
UNIFORM, LOG_UNIFORM = "uniform", "logUniform"
# The values of each parameter, as they are written, or the range that they come from.
Space = Mapping[str, tuple[str, ...] | Range]
# Katib puts values into JSON as they are, and does not escape them for the kubelet (manifest/generator.go).
_UNSAFE = re.compile(r'["\\$\x00-\x1f]')
_MAX_SEED = 2**32  # of NumPy's RandomState, which the algorithms use
_METRIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:@%-]*")


class KatibSearch(NamedTuple):
    """What Katib is asked for: which metric, whether less or more of it is better, how values are chosen from
    which space, and how many trials there are at most."""

    metric: str
    goal: str
    algorithm: str
    space: Space
    trials: int


def choose_katib_search(
    sweep: Sweep, document: Document, metric: str | None, goal: str | None, algorithm: str | None
) -> KatibSearch:
    """Return what is asked of Katib, from the sweep and from flags. Raises UserError."""
    parameters, results = sweep.parameters, sweep.results
    if parameters.list or (parameters.grid and parameters.random):
        help = "Write either grid or random."
        raise UserError("Katib chooses values from one grid or from ranges, not from a list of trials", help)
    if metric is not None and not _METRIC.fullmatch(metric):
        raise UserError(f"--metric {metric!r} is not the name of a metric", "Write --metric loss.")
    metric = metric or (results.metric if results else "")
    if not metric:
        raise UserError("--metric is missing: Katib compares trials by it", "Write --metric loss.")
    space = _read_katib_search_space(sweep, document)
    chosen = algorithm or ("grid" if parameters.grid else "random")
    trials = count_trials(sweep)
    if chosen == "grid":
        ranges = [name for name, of in space.items() if isinstance(of, Range)]
        if ranges:
            raise UserError(f"a grid has lists, and {ranges[0]} has a range", "Write --algorithm random.")
        trials = min(trials, prod(len(of) for of in space.values() if isinstance(of, tuple)))
    return KatibSearch(metric, goal or (results.goal if results else "minimize"), chosen, space, trials)


def _read_katib_search_space(sweep: Sweep, document: Document) -> Space:
    parts = ("random", "of") if sweep.parameters.random else ("grid",)
    given = sweep.parameters.random.of if sweep.parameters.random else sweep.parameters.grid
    space: dict[str, tuple[str, ...] | Range] = {}
    for name, of in given.items():
        if isinstance(of, Range):
            space[name] = of
            continue
        path = ("parameters", *parts, name)
        texts = tuple(read_given_value(document, (*path, at), one).text for at, one in enumerate(of))
        if unsafe := next(filter(_UNSAFE.search, texts), None):
            message = f"{name} has the value {unsafe!r}, which Katib would put into JSON without escaping it"
            raise UserError(message, 'Write values without ", \\, $ and line ends, or keep the sweep.')
        space[name] = texts
    return space


def build_katib_algorithm(sweep: Sweep, search: KatibSearch) -> Body:
    """Return the algorithm, with the seed of the sweep if it has one."""
    found: Body = {"algorithmName": search.algorithm}
    if sweep.parameters.random:
        found["algorithmSettings"] = [
            {"name": "random_state", "value": str(sweep.parameters.random.seed % _MAX_SEED)}
        ]
    return found


def build_katib_parameter(name: str, of: tuple[str, ...] | Range) -> Body:
    """Return a parameter with its list or range."""
    if not isinstance(of, Range):
        # Katib writes the numbers of a discrete parameter in its own way, and leaves categories as they are.
        space: Body = {"list": list(of), "distribution": UNIFORM}
        return {"name": name, "parameterType": "categorical", "feasibleSpace": space}
    is_whole = isinstance(of.min, int) and isinstance(of.max, int)
    space = {
        "min": str(of.min),
        "max": str(of.max),
        "distribution": LOG_UNIFORM if of.scale == "log" else UNIFORM,
    }
    return {"name": name, "parameterType": "int" if is_whole else "double", "feasibleSpace": space}
