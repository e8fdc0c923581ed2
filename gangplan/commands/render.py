"""`gangplan render`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gangplan.api.checks import write_or_compare_rendered_tree
from gangplan.commands.common import choose_exit_code, format_plural, report_nothing_written
from gangplan.commands.reports import Outputs, find_report_folder, parse_format_flags, publish_reports
from gangplan.commands.since import add_findings_for_base_flag, build_tree_after_render_check, check_base_flag
from gangplan.emit import FileOutcome
from gangplan.errors import Exit, UserError
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result, require_objects_in_scope
from gangplan.report.difference import render_unified_difference
from gangplan.report.model import Report
from gangplan.tools.kustomize import find_kustomize_engine
from gangplan.workspace import RENDERED


def run_render_command(
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
    check_base_flag(request, base)
    if base and not check:
        raise UserError("--base works with --check, and with gangplan validate")
    if check and output:
        raise UserError("--check compares with rendered/; it cannot be used with --output")
    wanted = replace(parse_format_flags(formats, request.root, colour, is_quiet), is_verbose=is_verbose)
    if output == "-":
        return _print_rendered_manifests(request, wanted)
    tree = Path(os.path.abspath(output)) if output else None
    request = replace(request, in_sums=wanted.is_for_people and base is None)
    result, is_done = write_or_compare_rendered_tree(
        request, tree, check, partial(_add_findings_since_base, request, base) if base else None
    )
    if check and is_done:
        if not result.differences:  # a run that left the cluster is one, and no object
            require_objects_in_scope(request, result, "compared")
        _publish_render_report(request, result, wanted)
        return max(choose_exit_code(result.findings), _print_render_check_outcome(request, result, wanted))
    _publish_render_report(request, result, wanted)
    if result.has_errors:
        return report_nothing_written(result.findings)
    return _print_render_summary(result, output or RENDERED, wanted)


def _add_findings_since_base(request: Request, base: str, result: Result) -> None:
    add_findings_for_base_flag(request, result, base, build_tree_after_render_check(request, result))


def _print_rendered_manifests(request: Request, wanted: Outputs) -> Exit:
    if wanted.machine:
        raise UserError(
            "manifests and a report cannot both go to standard output",
            "Write the report to a file: --format FORMAT=FILE.",
        )
    result = preview_render(request)
    _publish_render_report(request, result, wanted)
    if not result.has_errors:
        # Launch scripts before the runs that mount them.
        paths = sorted(result.texts, key=lambda path: (path.split("/")[:2], "/launch." not in path, path))
        sys.stdout.write("---\n".join(result.texts[path] for path in paths))
    return choose_exit_code(result.findings)


def _publish_render_report(request: Request, result: Result, wanted: Outputs) -> None:
    """Publish the findings in every requested format; the JSON document has the outcome of each file."""
    files = {
        outcome.value: [change.path for change in result.changes if change.outcome is outcome]
        for outcome in FileOutcome
        if not wanted.is_for_people
        if result.strangers or not result.has_errors  # else nothing was written
    }
    checked = {"specs": result.specs, "objects": result.objects}
    report = Report(
        tuple(result.findings),
        checked,
        ("embedded validator",),
        result.files,
        find_report_folder(request.root),
        command="render",
        facts={"files": files},
    )
    publish_reports(report, wanted, request.root, with_summary=False)


def _print_render_summary(result: Result, folder: str, wanted: Outputs) -> Exit:
    counts = {outcome: count for outcome in FileOutcome if (count := result.count(outcome))}
    parts = [f"{count} {outcome.value}" for outcome, count in counts.items()]
    builder = find_kustomize_engine()
    for change in result.changes if wanted.is_verbose else ():
        wanted.words.write(f"  {change.outcome.value:<7} {folder}/{change.path}\n")
    wanted.words.write(
        f"{format_plural(result.run_files, 'run')} of {format_plural(result.specs, 'spec')}, {format_plural(result.objects, 'object')} in {folder}/: {', '.join(parts)} files "
        f"({builder.label if builder else 'no overlay engine'}, embedded validator)\n"
    )
    if wanted.words.isatty() and folder == RENDERED and set(counts) - {FileOutcome.SAME}:
        wanted.words.write("next: gangplan validate, then commit specs/ and rendered/ together\n")
    return choose_exit_code(result.findings)


def _print_render_check_outcome(request: Request, result: Result, wanted: Outputs) -> Exit:
    words = wanted.words
    if not result.differences:
        if result.strangers:
            words.write(f"{RENDERED}/ contains files that gangplan did not write\n")
            return choose_exit_code(result.findings)
        words.write(
            f"{RENDERED}/ is fresh: {format_plural(sum(map(result.count, FileOutcome)), 'file')} of {format_plural(result.specs, 'spec')}\n"
        )
        return choose_exit_code(result.findings)
    for change in result.differences:
        words.write(
            render_unified_difference(request.root / RENDERED, change, result.texts.get(change.path, ""))
        )
    words.write(
        f"{RENDERED}/ is stale: {format_plural(len(result.differences), 'file')} differ; run `gangplan render` and commit\n"
    )
    return Exit.FINDINGS
