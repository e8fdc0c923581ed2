"""`gangplan provenance` and `gangplan verify`: what rendered/ was made from, and whether it still matches."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import choose_exit_code, format_plural, print_findings_to_stderr
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.errors import Exit, UserError, build_os_refusal_error
from gangplan.findings import sort_findings
from gangplan.pipeline.render import (
    find_stale_rendered_files,
    render_into_temporary_folder,
    report_unmanaged_rendered_files,
    save_results,
)
from gangplan.pipeline.request import Request, Result
from gangplan.provenance.render import (
    StatementDifference,
    build_provenance_statement,
    compare_provenance_statements,
    list_tree_differences,
)
from gangplan.provenance.statement import (
    RenderStatement,
    format_provenance_statement,
    read_provenance_statements,
)
from gangplan.report.escape import escape_own_line, replace_surrogates
from gangplan.review.stale import check_stale_files
from gangplan.rules.model import Severity
from gangplan.workspace import READ_FOLDERS, RENDERED


def run_provenance_command(request: Request, clusters: Sequence[str], output: str, builder: str) -> Exit:
    """Print a statement per cluster, or write the statements into a folder. Raises UserError.

    A stale tree gets none, because the statement would describe another one.
    """
    with render_into_temporary_folder(replace(request, with_facts=True), is_whole=False) as (result, folder):
        names = _select_statement_clusters_from_flags(result, clusters)
        stale = check_stale_files(
            request.root, find_stale_rendered_files(request, result, folder), Severity.ERROR
        )
        save_results(result)
        findings = sort_findings(
            [*result.findings, *report_unmanaged_rendered_files(request, result, folder), *stale]
        )
        print_findings_to_stderr(findings)
        if any(one.is_error for one in findings):
            return choose_exit_code(findings)
        texts = {
            name: format_provenance_statement(build_provenance_statement(request.root, result, name), builder)
            for name in names
        }
    if output == "-":
        sys.stdout.write("".join(texts.values()))
        return Exit.CLEAN
    target = _prepare_folder_of_output_flag(request.root, output)
    for name, text in texts.items():
        resolve_output_file_flag(str(target / f"{name}.intoto.jsonl"), request.root, "the statement").write(
            text
        )
    sys.stdout.write(f"{format_plural(len(texts), 'statement')} in {output}\n")
    return Exit.CLEAN


def _prepare_folder_of_output_flag(root: Path, output: str) -> Path:
    """Return the folder of --output.

    Raises UserError for one whose files gangplan reads or an engine applies, ToolError if it cannot be
    created.
    """
    target = Path(output).resolve()
    if target.is_relative_to(root) and target.relative_to(root).parts[:1] in [
        (one,) for one in (*READ_FOLDERS, RENDERED)
    ]:
        help = "Name a folder of CI, such as provenance/, and publish it with the build."
        raise UserError(f"{output} is part of the workspace: statements are not committed", help)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as failed:
        raise build_os_refusal_error(f"{output} cannot be made", failed) from None
    return target


def run_verify_command(request: Request, clusters: Sequence[str], files: Sequence[Path], format: str) -> Exit:
    """Render again, and list every difference from the tree and from statements. Raises UserError."""
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    said = [(file, one) for file in files for one in read_provenance_statements(file)]
    with render_into_temporary_folder(replace(request, with_facts=True), is_whole=False) as (result, folder):
        names = _select_statement_clusters_from_flags(result, clusters)
        stale = [
            one
            for one in find_stale_rendered_files(request, result, folder)
            if one.path.split("/")[0] in names
        ]
        findings = sort_findings(
            [*result.findings, *report_unmanaged_rendered_files(request, result, folder)]
        )
        save_results(result)
        if any(one.is_error for one in findings):
            print_findings_to_stderr(findings)
            return choose_exit_code(findings)
        found = list_tree_differences(stale)
        told = [(file, one) for file, one in said if one.cluster in names or not clusters]
        for file, one in told:
            found += [
                replace(each, what=f"{file.name}: {each.what}")
                for each in _compare_statement_for_verify_command(request, result, one)
            ]
    _print_statement_differences(found, len(names), len(told), format)
    if said and not told:
        raise UserError("no statement is about the clusters that are named", "Leave --cluster out.")
    return Exit.FINDINGS if found else Exit.CLEAN


def _compare_statement_for_verify_command(
    request: Request, result: Result, said: RenderStatement
) -> list[StatementDifference]:
    if said.cluster not in result.workspace.clusters:
        return [StatementDifference(said.cluster, "a cluster that the workspace no longer has")]
    return compare_provenance_statements(
        request.root, said, build_provenance_statement(request.root, result, said.cluster)
    )


def _print_statement_differences(
    found: Sequence[StatementDifference], clusters: int, statements: int, format: str
) -> None:
    if format == "json":
        differences = [
            {"what": replace_surrogates(one.what), "words": replace_surrogates(one.words)} for one in found
        ]
        document = {"version": 1, "command": "verify", "clusters": clusters, "statements": statements}
        sys.stdout.write(
            json.dumps(document | {"differences": differences}, indent=2, ensure_ascii=False) + "\n"
        )
        return
    for one in found:
        sys.stdout.write(escape_own_line(f"{one.what}: {one.words}") + "\n")
    against = f"{RENDERED}/ on {format_plural(clusters, 'cluster')}"
    against += f" and {format_plural(statements, 'statement')}" if statements else ""
    words = format_plural(len(found), "difference") if found else "no difference"
    sys.stdout.write(f"{words} from what is rendered now: {against}\n")


def _select_statement_clusters_from_flags(result: Result, clusters: Sequence[str]) -> list[str]:
    """Return the named clusters, or all. Raises UserError for one that does not exist."""
    known = result.workspace.clusters
    for name in clusters:
        if name not in known:
            raise build_missing_cluster_error(name, result.workspace)
    return sorted(set(clusters) or known)
