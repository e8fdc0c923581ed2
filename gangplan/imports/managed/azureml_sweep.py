"""Convert a search of Azure ML (a sweep job) to a job with parameters.

Its trial is the job, and the search's own fields override those of the trial. The kinds of distributions are
those of azure-ai-ml 1.35, entities/_job/sweep/search_space.py.
"""

from __future__ import annotations

import math
from typing import Any

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.made import SELF_KEY, OriginValue
from gangplan.imports.managed.azureml_step import StepAccount, build_azureml_origin_tree
from gangplan.imports.trials import Trials
from gangplan.imports.workload import SourceError

# Fields that belong to the search, not to its trials.
_OF_SEARCH = ("trial", "search_space", "sampling_algorithm", "objective", "limits", "early_termination", "type", "$schema")  # fmt: skip
# Trials of a search without a limit, in total and at once (azure-ai-ml 1.35 has no default; the service's is
# 1000).
_MOST = 20
_SEED = 1


class SweptAccount(StepAccount):
    """The account of a search; `root` is the job of one trial."""

    __slots__ = ("search",)

    def __init__(self, search: Account, tree: Any, others: tuple[Account, ...]) -> None:
        super().__init__(search, tree, others)
        self.search = search


def convert_azureml_search(search: Account, component: Account | None) -> SweptAccount:
    """Convert a search to the job of one trial. Raises SourceError if the trial is kept elsewhere."""
    root = search.root()
    trial = component.root() if component is not None else root["trial"]
    if not isinstance(trial.value, dict) or "command" not in trial.value:
        raise SourceError(
            f"its trial is in {root['trial'].text() or 'another file'}",
            "Name the file of the component, too; or write the trial inline.",
        )
    tree: dict[str, Any] = {SELF_KEY: OriginValue(None, root)}
    skipped = ("name", "version", "display_name", "type", "$schema") if component is not None else ()
    for key, node in trial.fields():
        if key in skipped:
            node.dropped("the search has its own name")
        else:
            tree[key] = build_azureml_origin_tree(node)
    if component is not None:
        root["trial"].dropped("the component has its command")
    for key, node in root.fields():
        if key in _OF_SEARCH:
            continue
        below = tree.get(key)
        if key in ("inputs", "outputs") and isinstance(below, dict) and isinstance(node.value, dict):
            for inner, one in node.fields():
                trial[key][inner].dropped("the search says another")
                below[inner] = build_azureml_origin_tree(one)
        else:
            tree[key] = build_azureml_origin_tree(node)
    limit = root["limits"]["trial_timeout"]
    if limit:
        tree["limits"] = {"timeout": OriginValue(limit.value, limit)}
    for key in ("type", "$schema"):
        root[key].dropped("it says what kind of file this is")
    return SweptAccount(search, tree, (component,) if component is not None else ())


def read_azureml_search_trials(search: Account, questions: list[tuple[SourceNode, str, str]]) -> Trials:
    """Return the trials of a search.

    Raises SourceError for a distribution that a sweep does not have.
    """
    root = search.root()
    space, limits = root["search_space"], root["limits"]
    of = {name: _convert_azureml_search_parameter(name, node) for name, node in space.fields()}
    if not of:
        raise SourceError("its search_space is empty", "Write what it searches.")
    samples, at_once = limits["max_total_trials"], limits["max_concurrent_trials"]
    how = root["sampling_algorithm"]["type"] or root["sampling_algorithm"]
    seed = root["sampling_algorithm"]["seed"]
    is_grid = how.text().lower() == "grid"
    parameters: dict[str, Any]
    if is_grid and all(isinstance(one, list) for one in of.values()):
        parameters = {"grid": of}
        samples.same("a grid is tried as a whole")
    else:
        count = samples.number() or _MOST
        parameters = {"random": {"samples": count, "seed": seed.number() or _SEED, "of": of}}
        samples.mapped("parameters.random.samples")
        if not samples.number():
            questions.append(
                (space, f"the search says no number of trials; {count} are assumed", "Correct samples.")
            )
    if how.text().lower() == "bayesian":
        questions.append((how, "a Bayesian search chooses trials by earlier ones; a sweep draws all at once", "Go on with the best of them: results of the sweep."))  # fmt: skip
    root["sampling_algorithm"].mapped("parameters")
    goal = root["objective"]
    if goal:
        why = "what trials have reached is read from a file in Git: results of the sweep"
        goal.asked(why)
        questions.append(
            (
                goal["primary_metric"] or goal,
                why,
                "Write results: {file, metric, goal, keep} once there are any.",
            )
        )
    root["early_termination"].asked("results of the sweep say which trials go on")
    limits["timeout"].asked("a sweep has no limit of its own; timeout is that of each trial")
    count = at_once.number() or min(samples.number() or _MOST, 10)
    at_once.mapped("maxConcurrent")
    return Trials(parameters, max(1, count), space)


def _convert_azureml_search_parameter(name: str, node: SourceNode) -> Any:
    """Convert a parameter to a list of values or a range.

    Raises SourceError for a distribution that a sweep does not have.
    """
    kind = node["type"].text().lower()
    node.mapped(f"parameters.{name}")
    low, high = node["min_value"].value, node["max_value"].value
    numbers = isinstance(low, int | float) and isinstance(high, int | float)
    if kind == "choice" and isinstance(node["values"].value, list):
        return [one.value for one in node["values"].items() if not isinstance(one.value, dict | list)]
    if kind == "randint" and (upper := node["upper"].number()) is not None and 0 < upper <= 10_000:
        return list(range(upper))
    if kind == "uniform" and numbers:
        return {"min": float(low), "max": float(high)}
    if kind == "loguniform" and numbers:
        return {
            "min": _round_search_value(math.exp(low)),
            "max": _round_search_value(math.exp(high)),
            "scale": "log",
        }
    step = node["q"].value
    if (
        kind == "quniform"
        and numbers
        and isinstance(step, int | float)
        and step > 0
        and (high - low) / step < 10_000
    ):
        first, last = round(low / step), round(high / step)
        return [_round_search_value(number * step) for number in range(first, last + 1)]
    raise SourceError(
        f"{name} is drawn by {kind or 'nothing'}, and a sweep draws from lists and ranges",
        "Write its values: choice; or a range: uniform, loguniform.",
    )


def _round_search_value(number: float) -> float:
    """Round a number to what people write, without floating-point noise."""
    return float(f"{number:.10g}")
