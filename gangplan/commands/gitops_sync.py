"""`gangplan gitops sync`: applies rendered/ of this commit to a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from gangplan.api.checks import write_or_compare_rendered_tree
from gangplan.commands.common import choose_exit_code, format_plural, print_findings_to_stderr
from gangplan.commands.connecting import ConnectionFlags, build_context_choice_from_flags
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, Location, sort_findings
from gangplan.live.access import ApiRefusedError, connect_to_cluster
from gangplan.live.ask import DryRunQuestion, DryRunVerdict, report_dry_run_verdicts
from gangplan.live.refusals import parse_server_refusals
from gangplan.objects import Ref
from gangplan.pipeline.request import Request, Result
from gangplan.provenance.lines import (
    RenderedFile,
    render_cluster_files_with_line_origins,
    render_run_files_with_line_origins,
)
from gangplan.rules.live import SERVER_SCHEMA
from gangplan.sync import inventory
from gangplan.sync.sync import RefusedObject, SyncOutcome
from gangplan.sync.sync import sync_cluster as carry_out
from gangplan.sync.tree import TREE_PARTS, find_prune_unit, read_sync_groups
from gangplan.sync.writer import ClusterWriter
from gangplan.tools.git import commit_of, is_before, list_uncommitted
from gangplan.workspace import READ_FOLDERS, RENDERED

_WORDS = {
    "created": "created",
    "applied": "applied",
    "replaced": "replaced by records",
    "left": "left to their controllers",
}


def run_gitops_sync_command(
    request: Request, asked: ConnectionFlags, namespace: str, is_confirmed: bool
) -> Exit:
    """Compare rendered/ with its sources, apply what is fresh, and prune. Raises UserError and ToolError.

    A file that bypassed CI is not applied, and nothing is pruned from its unit.
    """
    (name,) = request.clusters
    if asked.is_in_cluster and (asked.context is not None or asked.kubeconfig is not None):
        raise UserError("--in-cluster uses no kubeconfig", "Leave out --context and --kubeconfig.")
    revision = _require_clean_commit_for_sync_command(request)
    result, is_done = write_or_compare_rendered_tree(request, None, check=True)
    if not is_done:
        print_findings_to_stderr(result.findings)
        sys.stderr.write("nothing was applied: the workspace has errors\n")
        return choose_exit_code(result.findings)
    without = _find_stale_rendered_files(result, name)
    elsewhere = [one for one in result.strangers if not _is_here(one.where.file, name)]
    wrong = [finding for finding in result.findings if finding.is_error and finding not in elsewhere]
    cluster = result.workspace.clusters[name]
    writer = connect_to_cluster(
        build_context_choice_from_flags(name, cluster.spec.context, asked, "gitops sync", ()), ClusterWriter
    )
    before = inventory.read_inventory(writer, name, namespace)
    if before.revision != revision and before.revision and is_before(request.root, revision, before.revision):
        sys.stdout.write(f"{name}: a later commit is synced already, {before.revision[:12]}\n")
        return Exit.CLEAN
    groups = read_sync_groups(request.root, name, without)
    outcome = carry_out(
        writer, before, groups, revision, is_confirmed, {find_prune_unit(one) for one in without}
    )
    found = [*wrong, *_report_api_refusals_in_sync_command(request, result, outcome.refused)]
    print_findings_to_stderr(sort_findings(found))
    sys.stdout.write("".join(f"{line}\n" for line in _describe_sync_command_outcome(name, revision, outcome)))
    # What `validate --server` reports as a warning was not applied here.
    is_whole = not outcome.refused and not outcome.untried
    return max(choose_exit_code(found), Exit.CLEAN if is_whole else Exit.FINDINGS)


def _require_clean_commit_for_sync_command(request: Request) -> str:
    """Return the commit that is applied. Raises UserError if files differ from it."""
    revision = commit_of(request.root, "HEAD")
    changed = list_uncommitted(request.root, (*READ_FOLDERS, RENDERED))
    if changed:
        raise UserError(
            f"nothing was applied: not committed yet: {format_plural(len(changed), 'file')}, first {changed[0][3:]}",
            "Commit and merge it, or put it away (git stash -u): what runs is what Git has.",
        )
    return revision


def _find_stale_rendered_files(result: Result, name: str) -> set[str]:
    """Return the files of a cluster, below rendered/, that are not what is rendered now."""
    stale = {change.path for change in result.differences}
    foreign = {one.where.file.removeprefix(f"{RENDERED}/") for one in result.strangers}
    return {path for path in (*stale, *foreign) if _is_here(f"{RENDERED}/{path}", name)}


def _is_here(file: str, name: str) -> bool:
    """Return whether a file is in a part of a cluster's tree; nothing else is applied."""
    return any(file.startswith(f"{RENDERED}/{name}/{part}/") for part in TREE_PARTS)


def _describe_sync_command_outcome(name: str, revision: str, outcome: SyncOutcome) -> Sequence[str]:
    done = [f"{outcome.counts[one]} {word}" for one, word in _WORDS.items() if outcome.counts[one]]
    done += [f"{len(outcome.pruned)} pruned"] if outcome.pruned else []
    lines = [f"{name} at {revision[:12]}: {', '.join(done) or 'nothing to do'}"]
    lines += [f"  pruned {ref}" for ref in outcome.pruned]
    lines += [f"  not tried: {unit}, because what it needs is not there" for unit in outcome.untried]
    lines += _describe_kept_objects(outcome.kept, "kept, to be deleted by hand once nobody needs it")
    lines += _describe_kept_objects(outcome.unconfirmed, "kept without --confirmed")
    return lines


def _describe_kept_objects(refs: Sequence[Ref], what: str) -> list[str]:
    """Format what is no longer in Git, with up to ten names."""
    more = f" and {len(refs) - 10} more" if len(refs) > 10 else ""
    names = ", ".join(map(str, refs[:10]))
    return [f"  not in Git any more, {what}: {names}{more}"] if refs else []


def _report_api_refusals_in_sync_command(
    request: Request, result: Result, refused: Sequence[RefusedObject]
) -> list[Finding]:
    """Report what the API server said, at the lines that cause it."""
    if not refused:
        return []
    (name,) = request.clusters
    files = _render_refused_files(request, result, {one.item.path for one in refused})
    verdicts, others = [], []
    for one in refused:
        file = files.get(one.item.path)
        if file is None:
            others.append(_report_refused_run_record(name, one))
            continue
        given = one.error
        verdicts.append(
            DryRunVerdict(
                DryRunQuestion(file, one.item.index, one.item.body), tuple(parse_server_refusals(given))
            )
        )
    return [*report_dry_run_verdicts(result.workspace.clusters[name], verdicts), *others]


def _render_refused_files(request: Request, result: Result, paths: set[str]) -> dict[str, RenderedFile]:
    """Return the files with these paths as rendered now, with the origins of their fields."""
    (name,) = request.clusters
    plain = replace(request, looked=None, progress=None, uses_cache=False)
    made = list(render_run_files_with_line_origins(result.workspace, plain)[0])
    if any(find_prune_unit(path).partition("/")[0] != "runs" for path in paths):
        made += render_cluster_files_with_line_origins(result.workspace, plain, name)[0]
    return {one.path: one for one in made if one.path in paths}


def _report_refused_run_record(name: str, refused: RefusedObject) -> Finding:
    """Report the refusal of a run that Git keeps, which is no longer rendered from a spec."""
    error: ApiRefusedError = refused.error
    item = refused.item
    message = f"the API server of {name} refuses it: {error.words or error.message}"
    where = Location(f"{RENDERED}/{item.path}", 1, 1)
    return Finding(SERVER_SCHEMA, where, message, "Retire the run.", str(item.ref), clusters=(name,))
