"""`gangplan render`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gangplan.api.checks import rendered
from gangplan.commands.common import exit_code, plural
from gangplan.commands.reports import Outputs, outputs, publish, repository_folder
from gangplan.commands.since import add_since, check_base, checked_tree
from gangplan.emit import FileOutcome
from gangplan.errors import Exit, UserError
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request, Result
from gangplan.report.difference import difference
from gangplan.report.model import Report
from gangplan.tools.kustomize import engine
from gangplan.workspace import RENDERED


def render(
    request: Request,
    check: bool,
    output: str | None,
    base: str | None = None,
    formats: Sequence[str] | None = None,
    colour: str = "auto",
    is_quiet: bool = False,
    is_verbose: bool = False,
) -> Exit:
    """Write the tree, print it, or compare it; with `base`, also compare it with that of a Git revision."""
    check_base(request, base)
    if base and not check:
        raise UserError("--base works with --check, and with gangplan validate")
    if check and output:
        raise UserError("--check compares with rendered/; it cannot be used with --output")
    wanted = replace(outputs(formats, request.root, colour, is_quiet), is_verbose=is_verbose)
    if output == "-":
        return _print(request, wanted)
    tree = Path(output).absolute() if output else None
    request = replace(request, in_sums=wanted.is_for_people and base is None)
    result, is_done = rendered(request, tree, check, partial(_since, request, base) if base else None)
    if check and is_done:
        _publish(request, result, wanted)
        return max(exit_code(result.findings), _report_check(request, result, wanted))
    _publish(request, result, wanted)
    if result.has_errors:
        sys.stderr.write(
            f"nothing was written: {plural(sum(1 for f in result.findings if f.is_error), 'error')}\n"
        )
        return exit_code(result.findings)
    return _report(result, output or RENDERED, wanted)


def _since(request: Request, base: str, result: Result) -> None:
    add_since(request, result, base, checked_tree(request, result))


def _print(request: Request, wanted: Outputs) -> Exit:
    if wanted.machine:
        raise UserError(
            "manifests and a report cannot both go to standard output",
            "Write the report to a file: --format FORMAT=FILE.",
        )
    result = preview(request)
    _publish(request, result, wanted)
    if not result.has_errors:
        # Launch scripts before the runs that mount them.
        paths = sorted(result.texts, key=lambda path: (path.split("/")[:2], "/launch." not in path, path))
        sys.stdout.write("---\n".join(result.texts[path] for path in paths))
    return exit_code(result.findings)


def _publish(request: Request, result: Result, wanted: Outputs) -> None:
    """Publish the findings in every requested format; the JSON document has the outcome of each file."""
    files = {
        outcome.value: [change.path for change in result.changes if change.outcome is outcome]
        for outcome in FileOutcome
        if result.strangers or not result.has_errors  # else nothing was written
        if not wanted.is_for_people
    }
    checked = {"specs": result.specs, "objects": result.objects}
    report = Report(
        tuple(result.findings),
        checked,
        ("embedded validator",),
        result.files,
        repository_folder(request.root),
        command="render",
        facts={"files": files},
    )
    publish(report, wanted, request.root, with_summary=False)


def _report(result: Result, folder: str, wanted: Outputs) -> Exit:
    counts = {outcome: count for outcome in FileOutcome if (count := result.count(outcome))}
    parts = [f"{count} {outcome.value}" for outcome, count in counts.items()]
    builder = engine()
    for change in result.changes if wanted.is_verbose else ():
        wanted.words.write(f"  {change.outcome.value:<7} {folder}/{change.path}\n")
    wanted.words.write(
        f"{plural(result.run_files, 'run')} of {plural(result.specs, 'spec')}, {plural(result.objects, 'object')} in {folder}/: {', '.join(parts)} files "
        f"({builder.label if builder else 'no overlay engine'}, embedded validator)\n"
    )
    if wanted.words.isatty() and folder == RENDERED and set(counts) - {FileOutcome.SAME}:
        wanted.words.write("next: gangplan validate, then commit specs/ and rendered/ together\n")
    return exit_code(result.findings)


def _report_check(request: Request, result: Result, wanted: Outputs) -> Exit:
    words = wanted.words
    if not result.differences:
        if result.strangers:
            words.write(f"{RENDERED}/ contains files that gangplan did not write\n")
            return exit_code(result.findings)
        words.write(
            f"{RENDERED}/ is fresh: {plural(sum(map(result.count, FileOutcome)), 'file')} of {plural(result.specs, 'spec')}\n"
        )
        return exit_code(result.findings)
    for change in result.differences:
        words.write(difference(request.root / RENDERED, change, result.texts.get(change.path, "")))
    words.write(
        f"{RENDERED}/ is stale: {plural(len(result.differences), 'file')} differ; run `gangplan render` and commit\n"
    )
    return Exit.FINDINGS
