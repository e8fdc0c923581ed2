"""Checks of a sweep by itself: its parameters, placeholders and lists of trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from gangplan.findings import FieldPath, Finding
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.rules.model import NOTE, Rule, Severity
from gangplan.rules.sweeps import (
    PARAMETER_TWICE,
    PARAMETER_UNKNOWN,
    PARAMETER_UNUSED,
    PARAMETER_VALUES,
    SWEEP_TEMPLATE,
    TRIAL_UNKNOWN,
)
from gangplan.source import Document
from gangplan.spec.near import suggest_nearest
from gangplan.spec.placeholders import (
    PARAMETER_PREFIX,
    TRIAL_NAME,
    explain_miswritten_placeholder,
    find_miswritten_placeholders,
    find_template_placeholders,
)
from gangplan.spec.sweep import MAX_TRIALS, Range, Sweep
from gangplan.spec.trials import (
    count_trials,
    fold_sweep_number_text,
    format_trial_name,
    list_sweep_trial_settings,
    read_given_value,
)

# Fields that the sweep itself decides, and where to write them instead.
NOT_IN_SWEEP_TEMPLATE = {
    "apiVersion": "Remove it; the top of the file says it.",
    "kind": "Remove it; the top of the file says it.",
    "name": "Write name: next to template:, for the sweep; trials are named after it.",
    "team": "Remove it; the folder says whose the sweep is.",
    "queue": "Remove it; trials wait in the sweep's own queue, which takes from the team's quota.",
    "state": "Write state: next to template:.",
    "schedule": "Remove it; a sweep runs each trial once.",
    "retired": "List trials that are over under stopped:, next to template:.",
}
ReportProblem = Callable[..., None]


def check_sweep_spec(sweep: Sweep, document: Document, name: str) -> list[Finding]:
    """Return all findings about a sweep."""
    found: list[Finding] = []

    def report(
        rule: Rule,
        path: FieldPath,
        message: str,
        help: str,
        key: bool = False,
        level: Severity | None = None,
    ) -> None:
        found.append(Finding(rule, document.where(path, key=key), message, help, level=level))

    for field in document.value["template"]:
        if field in NOT_IN_SWEEP_TEMPLATE:
            help = NOT_IN_SWEEP_TEMPLATE[field]
            report(
                SWEEP_TEMPLATE,
                ("template", field),
                f"{field}: is not a field of the template",
                help,
                key=True,
            )
    _check_name(document, name, found)
    names = _check_sweep_parameters(sweep, document, report)
    _check_sweep_placeholders(document, names, found)
    if not found:
        _check_sweep_trial_lists(sweep, document, name, report)
    return found


def _check_name(document: Document, name: str, found: list[Finding]) -> None:
    is_good = name.isascii() and name == name.lower() and all(one.isalnum() or one == "-" for one in name)
    if not is_good or not name[:1].isalpha() or name.endswith("-"):
        message = f"'{name}' is not a valid sweep name: use lower-case letters, digits and '-', starting with a letter"
        found.append(Finding(SPEC_FILE_NAME, document.where(("name",)), message, "Rename it."))


def _check_sweep_parameters(sweep: Sweep, document: Document, report: ReportProblem) -> dict[str, FieldPath]:
    """Check the parameters; return each with the first place that names it."""
    parameters, sources = sweep.parameters, _list_sweep_setting_sources(sweep)
    at: FieldPath = ("parameters",)
    if not sources:
        help = "Write parameters: {grid: {lr: [1e-4, 3e-4]}}; list or random in place of grid."
        report(PARAMETER_VALUES, at, "there is nothing to try", help)
        return {}
    if count_trials(sweep) > MAX_TRIALS:
        message = f"the parameters make {count_trials(sweep)} trials; {MAX_TRIALS} is the most of any sweep"
        report(PARAMETER_VALUES, at, message, "Try fewer values, or draw some with random.")
        return sources[0][1]
    first, known = sources[0]
    for path, names in sources[1:]:
        for name in names.keys() ^ known.keys():
            has, lacks = (path, first) if name in names else (first, path)
            message = f"parameter '{name}' of {'.'.join(map(str, has[1:]))} has no value in {'.'.join(map(str, lacks[1:]))}"
            help = "Every trial has a value for each parameter: add it there, or remove it here."
            report(PARAMETER_VALUES, names.get(name, path), message, help, key=True)
    for name, values in parameters.grid.items():
        _check_repeated_sweep_values(document, ("parameters", "grid", name), values, report)
    if parameters.random is not None:
        for name, of in parameters.random.of.items():
            place: FieldPath = ("parameters", "random", "of", name)
            if isinstance(of, Range):
                _check_sweep_range(of, place, report)
            else:
                _check_repeated_sweep_values(document, place, of, report)
    return known


def _list_sweep_setting_sources(sweep: Sweep) -> list[tuple[FieldPath, dict[str, FieldPath]]]:
    """Return everything that gives settings, with its parameters and their places."""
    parameters, found = sweep.parameters, list[tuple[FieldPath, dict[str, FieldPath]]]()
    if parameters.grid:
        at: FieldPath = ("parameters", "grid")
        found.append((at, {name: (*at, name) for name in parameters.grid}))
    for index, entry in enumerate(parameters.list):
        at = ("parameters", "list", index)
        found.append((at, {name: (*at, name) for name in entry}))
    if parameters.random is not None:
        at = ("parameters", "random", "of")
        found.append((at, {name: (*at, name) for name in parameters.random.of}))
    return found


def _check_repeated_sweep_values(
    document: Document, at: FieldPath, values: Sequence[object], report: ReportProblem
) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for index, value in enumerate(values):
        text = read_given_value(document, (*at, index), value).text
        number, first = seen.setdefault(fold_sweep_number_text(text), (index, text))
        if number != index:
            words = f"{text} is there twice" if first == text else f"{text} is the same value as {first}"
            report(PARAMETER_TWICE, (*at, index), words, "Remove one of them.")


def _check_sweep_range(of: Range, at: FieldPath, report: ReportProblem) -> None:
    if of.min >= of.max:
        message = f"the range begins at {of.min} and ends at {of.max}"
        report(PARAMETER_VALUES, at, message, "Write min: below max:.")
    elif of.scale == "log" and of.min <= 0:
        help = "Begin above zero, or write scale: linear."
        report(PARAMETER_VALUES, (*at, "min"), f"a logarithmic scale has no place for {of.min}", help)


def _check_sweep_placeholders(document: Document, names: dict[str, FieldPath], found: list[Finding]) -> None:
    used: set[str] = set()
    for one in find_template_placeholders(document.value["template"]):
        where = document.inside(("template", *one.path), one.offset)
        if one.name == TRIAL_NAME:
            continue
        if one.name.startswith(PARAMETER_PREFIX) and (name := one.name[len(PARAMETER_PREFIX) :]) in names:
            used.add(name)
            continue
        message, help = _explain_unknown_sweep_placeholder(one.name, names)
        found.append(Finding(PARAMETER_UNKNOWN, where, message, help))
    for written, one in find_miswritten_placeholders(document.value["template"]):
        name = one.name.removeprefix(PARAMETER_PREFIX)
        if name in names or name == TRIAL_NAME:
            used.add(name)
            where = document.inside(("template", *one.path), one.offset)
            found.append(
                Finding(PARAMETER_UNKNOWN, where, *explain_miswritten_placeholder(written, one.name))
            )
    for name in names:
        if name not in used:
            message = f"nothing in the template uses parameter '{name}'"
            help = f'Pass it to the program, such as "--{name}=${{{{ parameters.{name} }}}}", or remove it.'
            found.append(Finding(PARAMETER_UNUSED, document.where(names[name], key=True), message, help))


def _explain_unknown_sweep_placeholder(name: str, names: dict[str, FieldPath]) -> tuple[str, str]:
    if not name:
        return (
            "'${{' is never closed",
            "Write ${{ parameters.NAME }}, and put it in quotes inside a list in brackets.",
        )
    if name.startswith(PARAMETER_PREFIX):
        return f"there is no parameter '{name[len(PARAMETER_PREFIX) :]}'", suggest_nearest(
            name[len(PARAMETER_PREFIX) :], names
        )
    if name in names:
        return f"'{name}' names nothing", f"Write ${{{{ parameters.{name} }}}}."
    return f"'{name}' names nothing", "Write ${{ parameters.NAME }} or ${{ trial.name }}."


def _check_sweep_trial_lists(sweep: Sweep, document: Document, name: str, report: ReportProblem) -> None:
    """Check for trials that are listed twice, and for listed names that are not trials."""
    seen: dict[tuple[str, ...], int] = {}
    for index, entry in enumerate(sweep.parameters.list):
        at: FieldPath = ("parameters", "list", index)
        key = tuple(
            fold_sweep_number_text(read_given_value(document, (*at, one), entry[one]).text)
            for one in sorted(entry)
        )
        first = seen.setdefault(key, index)
        if first != index:
            report(PARAMETER_TWICE, at, f"trial {index + 1} is the same as trial {first + 1}", "Remove one.")
    names = [format_trial_name(one) for one in list_sweep_trial_settings(sweep, document)]
    _check_number_of_samples(sweep, report)
    known = set(names)
    if len(known) != len(names):  # happens once in a million times with ten thousand trials
        help = "Add a parameter with one value that the template uses: all names follow from it, too."
        report(PARAMETER_TWICE, ("parameters",), "two trials would have the same name", help)
    earlier = tuple(run[len(name) + 1 :].rpartition("-")[0] for run in sweep.retired)
    listed = {"stopped": sweep.stopped, "removed": sweep.removed, "retired": earlier}
    for field, found in listed.items():
        for index, one in _find_unknown_trials(found, known):
            help = f"{suggest_nearest(one, known)} gangplan plan lists the trials."
            report(TRIAL_UNKNOWN, (field, index), f"the sweep has no trial '{one}'", help)


def _check_number_of_samples(sweep: Sweep, report: ReportProblem) -> None:
    """Report more samples than there are settings to draw: equal ones are one trial."""
    drawn = sweep.parameters.random
    if drawn is None or any(isinstance(of, Range) for of in drawn.of.values()):
        return
    most = prod(len(of) for of in drawn.of.values())
    if drawn.samples > most:
        message = f"{drawn.samples} samples are drawn of {most} settings, and equal ones are one trial"
        help = "Write grid: with the same values for all of them, or fewer samples."
        report(PARAMETER_VALUES, ("parameters", "random", "samples"), message, help, level=NOTE)


def _find_unknown_trials(names: Sequence[str], known: set[str]) -> Iterator[tuple[int, str]]:
    return ((index, name) for index, name in enumerate(names) if name not in known)
