"""`gangplan render`."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.since import add_since, check_base, checked_tree
from gangplan.emit import Outcome
from gangplan.errors import Exit, UserError
from gangplan.pipeline import Request, Result, preview
from gangplan.pipeline import render as run_render
from gangplan.report.difference import difference
from gangplan.tools.kustomize import engine
from gangplan.workspace import RENDERED


def render(request: Request, check: bool, output: str | None, base: str | None = None) -> Exit:
    """Write the tree, show it, or compare it; with `base`, also with that of a Git revision."""
    check_base(request, base)
    if base and not check:
        raise UserError("--base goes with --check, and with gangplan validate")
    if check and output:
        raise UserError("--check compares with rendered/; it cannot be used with --output")
    if output == "-":
        return _print(request)
    tree = Path(output).absolute() if output else None
    result = run_render(request, tree, check)
    if base and not result.has_errors:
        add_since(request, result, base, checked_tree(request, result))
        print_findings(result.findings)
        return max(exit_code(result), _report_check(request, result))
    print_findings(result.findings)
    if result.has_errors:
        sys.stderr.write(
            f"nothing was written: {plural(sum(1 for f in result.findings if f.severity.word == 'error'), 'error')}\n"
        )
        return exit_code(result)
    return _report_check(request, result) if check else _report(result, output or RENDERED)


def _print(request: Request) -> Exit:
    result = preview(request)
    print_findings(result.findings)
    if not result.has_errors:
        sys.stdout.write("---\n".join(result.texts[path] for path in sorted(result.texts)))
    return exit_code(result)


def _report(result: Result, folder: str) -> Exit:
    counts = {
        outcome: sum(1 for change in result.changes if change.outcome is outcome) for outcome in Outcome
    }
    parts = [f"{count} {outcome.value}" for outcome, count in counts.items() if count]
    runs = sum(
        1 for change in result.changes if "/runs/" in change.path and change.outcome is not Outcome.REMOVED
    )
    builder = engine()
    sys.stdout.write(
        f"{plural(runs, 'run')} of {plural(result.specs, 'spec')}, {plural(result.objects, 'object')} in {folder}/: {', '.join(parts)} files "
        f"({builder.label if builder else 'no overlay engine'}, embedded validator)\n"
    )
    return exit_code(result)


def _report_check(request: Request, result: Result) -> Exit:
    if not result.differences:
        sys.stdout.write(
            f"{RENDERED}/ is fresh: {plural(len(result.changes), 'file')} of {plural(result.specs, 'spec')}\n"
        )
        return exit_code(result)
    for change in result.differences:
        sys.stdout.write(difference(request.root / RENDERED, change, result.texts.get(change.path, "")))
    sys.stdout.write(
        f"{RENDERED}/ is stale: {plural(len(result.differences), 'file')} differ; run `gangplan render` and commit\n"
    )
    return Exit.FINDINGS
