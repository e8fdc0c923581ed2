"""`gangplan gitops sync`: applies rendered/ of this commit to a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from gangplan.api.checks import rendered
from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.connecting import Asked, wanted_of
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, Location, in_order
from gangplan.live.access import RefusedError, connect
from gangplan.live.ask import Question, Verdict, findings
from gangplan.live.refusals import refusals
from gangplan.objects import Ref
from gangplan.pipeline.request import Request, Result
from gangplan.provenance.lines import Rendered, runs_of, standing_on
from gangplan.rules.live import SERVER_SCHEMA
from gangplan.sync import inventory
from gangplan.sync.sync import Outcome, Refused
from gangplan.sync.sync import sync as carry_out
from gangplan.sync.tree import PARTS, groups_of, unit_of
from gangplan.sync.writer import Writer
from gangplan.tools.git import commit_of, is_before, uncommitted
from gangplan.workspace import READ, RENDERED

_WORDS = {
    "created": "created",
    "applied": "applied",
    "replaced": "replaced by records",
    "left": "left to their controllers",
}


def sync(request: Request, asked: Asked, namespace: str, is_confirmed: bool) -> Exit:
    """Compare rendered/ with its sources, apply what is fresh, and prune. Raises UserError and ToolError.

    A file that bypassed CI is not applied, and nothing is pruned from its unit.
    """
    (name,) = request.clusters
    if asked.is_in_cluster and (asked.context is not None or asked.kubeconfig is not None):
        raise UserError("--in-cluster uses no kubeconfig", "Leave out --context and --kubeconfig.")
    revision = _commit(request)
    result, is_done = rendered(request, None, check=True)
    if not is_done:
        print_findings(result.findings)
        sys.stderr.write("nothing was applied: the workspace has errors\n")
        return exit_code(result.findings)
    without = _past_ci(result, name)
    elsewhere = [one for one in result.strangers if not _is_here(one.where.file, name)]
    wrong = [finding for finding in result.findings if finding.is_error and finding not in elsewhere]
    cluster = result.workspace.clusters[name]
    writer = connect(wanted_of(name, cluster.spec.context, asked, "gitops sync", ()), Writer)
    before = inventory.read(writer, name, namespace)
    if before.revision != revision and before.revision and is_before(request.root, revision, before.revision):
        sys.stdout.write(f"{name}: a later commit is synced already, {before.revision[:12]}\n")
        return Exit.CLEAN
    groups = groups_of(request.root, name, without)
    outcome = carry_out(writer, before, groups, revision, is_confirmed, {unit_of(one) for one in without})
    found = [*wrong, *_refusals(request, result, outcome.refused)]
    print_findings(in_order(found))
    sys.stdout.write("".join(f"{line}\n" for line in _said(name, revision, outcome)))
    # What `validate --server` reports as a warning was not applied here.
    is_whole = not outcome.refused and not outcome.untried
    return max(exit_code(found), Exit.CLEAN if is_whole else Exit.FINDINGS)


def _commit(request: Request) -> str:
    """Return the commit that is applied. Raises UserError if files differ from it."""
    revision = commit_of(request.root, "HEAD")
    changed = uncommitted(request.root, (*READ, RENDERED))
    if changed:
        raise UserError(
            f"nothing was applied: not committed yet: {plural(len(changed), 'file')}, first {changed[0][3:]}",
            "Commit and merge it, or put it away (git stash -u): what runs is what Git has.",
        )
    return revision


def _past_ci(result: Result, name: str) -> set[str]:
    """Return the files of a cluster, below rendered/, that are not what is rendered now."""
    stale = {change.path for change in result.differences}
    foreign = {one.where.file.removeprefix(f"{RENDERED}/") for one in result.strangers}
    return {path for path in (*stale, *foreign) if _is_here(f"{RENDERED}/{path}", name)}


def _is_here(file: str, name: str) -> bool:
    """Return whether a file is in a part of a cluster's tree; nothing else is applied."""
    return any(file.startswith(f"{RENDERED}/{name}/{part}/") for part in PARTS)


def _said(name: str, revision: str, outcome: Outcome) -> Sequence[str]:
    done = [f"{outcome.counts[one]} {word}" for one, word in _WORDS.items() if outcome.counts[one]]
    done += [f"{len(outcome.pruned)} pruned"] if outcome.pruned else []
    lines = [f"{name} at {revision[:12]}: {', '.join(done) or 'nothing to do'}"]
    lines += [f"  pruned {ref}" for ref in outcome.pruned]
    lines += [f"  not tried: {unit}, because what it needs is not there" for unit in outcome.untried]
    lines += _listed(outcome.kept, "kept, to be deleted by hand once nobody needs it")
    lines += _listed(outcome.unconfirmed, "kept without --confirmed")
    return lines


def _listed(refs: Sequence[Ref], what: str) -> list[str]:
    """Format what is no longer in Git, with up to ten names."""
    more = f" and {len(refs) - 10} more" if len(refs) > 10 else ""
    names = ", ".join(map(str, refs[:10]))
    return [f"  not in Git any more, {what}: {names}{more}"] if refs else []


def _refusals(request: Request, result: Result, refused: Sequence[Refused]) -> list[Finding]:
    """Report what the API server said, at the lines that cause it."""
    if not refused:
        return []
    (name,) = request.clusters
    files = _files(request, result, {one.item.path for one in refused})
    verdicts, others = [], []
    for one in refused:
        file = files.get(one.item.path)
        if file is None:
            others.append(_plain(name, one))
            continue
        given = one.error
        verdicts.append(Verdict(Question(file, one.item.index, one.item.body), tuple(refusals(given))))
    return [*findings(result.workspace.clusters[name], verdicts), *others]


def _files(request: Request, result: Result, paths: set[str]) -> dict[str, Rendered]:
    """Return the files with these paths as rendered now, with the origins of their fields."""
    (name,) = request.clusters
    plain = replace(request, looked=None, progress=None, uses_cache=False)
    made = list(runs_of(result.workspace, plain)[0])
    if any(unit_of(path).partition("/")[0] != "runs" for path in paths):
        made += standing_on(result.workspace, plain, name)[0]
    return {one.path: one for one in made if one.path in paths}


def _plain(name: str, refused: Refused) -> Finding:
    """Report the refusal of a run that Git keeps, which is no longer rendered from a spec."""
    error: RefusedError = refused.error
    item = refused.item
    message = f"the API server of {name} refuses it: {error.words or error.message}"
    where = Location(f"{RENDERED}/{item.path}", 1, 1)
    return Finding(SERVER_SCHEMA, where, message, "Retire the run.", str(item.ref), clusters=(name,))
