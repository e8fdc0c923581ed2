"""`gangplan provenance` and `gangplan verify`: what rendered/ was made from, and whether it still matches."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.absent import no_cluster
from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.outfile import out_file
from gangplan.errors import Exit, UserError, refusal
from gangplan.findings import in_order
from gangplan.pipeline.render import rendered_aside, save, stale_files, strangers
from gangplan.pipeline.request import Request, Result
from gangplan.provenance.render import Difference, made_of, statement_differences, tree_differences
from gangplan.provenance.statement import RenderStatement, statements_in, written
from gangplan.report.escape import own_line, whole
from gangplan.review.stale import stale_findings
from gangplan.rules.model import Severity
from gangplan.workspace import READ, RENDERED


def provenance(request: Request, clusters: Sequence[str], output: str, builder: str) -> Exit:
    """Print a statement per cluster, or write the statements into a folder. Raises UserError.

    A stale tree gets none, because the statement would describe another one.
    """
    with rendered_aside(replace(request, with_facts=True), is_whole=False) as (result, folder):
        names = _chosen(result, clusters)
        stale = stale_findings(request.root, stale_files(request, result, folder), Severity.ERROR)
        save(result)
        findings = in_order([*result.findings, *strangers(request, result, folder), *stale])
        print_findings(findings)
        if any(one.is_error for one in findings):
            return exit_code(findings)
        texts = {name: written(made_of(request.root, result, name), builder) for name in names}
    if output == "-":
        sys.stdout.write("".join(texts.values()))
        return Exit.CLEAN
    target = _folder(request.root, output)
    for name, text in texts.items():
        out_file(str(target / f"{name}.intoto.jsonl"), request.root, "the statement").write(text)
    sys.stdout.write(f"{plural(len(texts), 'statement')} in {output}\n")
    return Exit.CLEAN


def _folder(root: Path, output: str) -> Path:
    """Return the folder of --output.

    Raises UserError for one whose files gangplan reads or an engine applies, ToolError if it cannot be
    created.
    """
    target = Path(output).resolve()
    if target.is_relative_to(root) and target.relative_to(root).parts[:1] in [
        (one,) for one in (*READ, RENDERED)
    ]:
        help = "Name a folder of CI, such as provenance/, and publish it with the build."
        raise UserError(f"{output} is part of the workspace: statements are not committed", help)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as failed:
        raise refusal(f"{output} cannot be made", failed) from None
    return target


def verify(request: Request, clusters: Sequence[str], files: Sequence[Path], format: str) -> Exit:
    """Render again, and list every difference from the tree and from statements. Raises UserError."""
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    said = [(file, one) for file in files for one in statements_in(file)]
    with rendered_aside(replace(request, with_facts=True), is_whole=False) as (result, folder):
        names = _chosen(result, clusters)
        stale = [one for one in stale_files(request, result, folder) if one.path.split("/")[0] in names]
        findings = in_order([*result.findings, *strangers(request, result, folder)])
        save(result)
        if any(one.is_error for one in findings):
            print_findings(findings)
            return exit_code(findings)
        found = tree_differences(stale)
        told = [(file, one) for file, one in said if one.cluster in names or not clusters]
        for file, one in told:
            found += [
                replace(each, what=f"{file.name}: {each.what}") for each in _compared(request, result, one)
            ]
    _print(found, len(names), len(told), format)
    if said and not told:
        raise UserError("no statement is about the clusters that are named", "Leave --cluster out.")
    return Exit.FINDINGS if found else Exit.CLEAN


def _compared(request: Request, result: Result, said: RenderStatement) -> list[Difference]:
    if said.cluster not in result.workspace.clusters:
        return [Difference(said.cluster, "a cluster that the workspace no longer has")]
    return statement_differences(request.root, said, made_of(request.root, result, said.cluster))


def _print(found: Sequence[Difference], clusters: int, statements: int, format: str) -> None:
    if format == "json":
        differences = [{"what": whole(one.what), "words": whole(one.words)} for one in found]
        document = {"version": 1, "command": "verify", "clusters": clusters, "statements": statements}
        sys.stdout.write(
            json.dumps(document | {"differences": differences}, indent=2, ensure_ascii=False) + "\n"
        )
        return
    for one in found:
        sys.stdout.write(own_line(f"{one.what}: {one.words}") + "\n")
    against = f"{RENDERED}/ on {plural(clusters, 'cluster')}"
    against += f" and {plural(statements, 'statement')}" if statements else ""
    words = plural(len(found), "difference") if found else "no difference"
    sys.stdout.write(f"{words} from what is rendered now: {against}\n")


def _chosen(result: Result, clusters: Sequence[str]) -> list[str]:
    """Return the named clusters, or all. Raises UserError for one that does not exist."""
    known = result.workspace.clusters
    for name in clusters:
        if name not in known:
            raise no_cluster(name, result.workspace)
    return sorted(set(clusters) or known)
