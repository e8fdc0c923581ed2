"""`gangplan policy list|test|export`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from gangplan.commands.common import format_plural, print_findings_to_stderr
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, sort_findings
from gangplan.objects import POLICY_KIND, dump_all
from gangplan.pipeline.request import Request
from gangplan.policy.cases import build_policy_case_suites, judge_policy_cases
from gangplan.policy.checks import check_own_policies, check_policies
from gangplan.policy.choose import choose_policies
from gangplan.policy.export import choose_server_action, export_objects
from gangplan.report.escape import escape_own_line
from gangplan.resolve.facts import resolve_cluster_facts_for_policies
from gangplan.rules.model import Severity
from gangplan.rules.policy import POLICY_UNTESTED
from gangplan.workspace import Workspace, load_workspace, suggest_nearest

# By policy and cluster: what `validate` and the API server do about a breach.
Actions = dict[str, dict[str, tuple[str, str]]]


def _load_workspace_for_policy_command(request: Request) -> tuple[Workspace, list[Finding]]:
    """Return the workspace.

    Raises UserError for a cluster that does not exist, but not for one whose file cannot be read.
    """
    workspace = load_workspace(request.root)
    findings = list(workspace.findings)
    if workspace.is_refused:
        raise UserError(f"{findings[0].where}: {findings[0].message}", findings[0].help)
    for name in request.clusters:
        if name not in workspace.clusters and name not in workspace.unread:
            raise UserError(
                f"there is no cluster '{name}'",
                suggest_nearest(name, {*workspace.clusters, *workspace.unread}),
            )
    return workspace, findings


def run_policy_list_command(request: Request, format: str) -> Exit:
    """Print every policy: its pack, its title, and its action per cluster."""
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    workspace, findings = _load_workspace_for_policy_command(request)
    findings = [*findings, *check_own_policies(workspace)]
    clusters = [name for name in request.clusters or sorted(workspace.clusters) if name in workspace.clusters]
    actions, wrong = resolve_policy_actions(workspace, clusters)
    findings = [*findings, *wrong]
    rows = list_policy_rows(workspace, actions)
    if format == "json":
        sys.stdout.write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_format_policy_list_output(rows, clusters))
    print_findings_to_stderr(sort_findings(findings))
    return Exit.INPUT if any(one.severity is Severity.ERROR for one in findings) else Exit.CLEAN


def resolve_policy_actions(workspace: Workspace, clusters: Sequence[str]) -> tuple[Actions, list[Finding]]:
    """Return what a breach leads to, by policy and cluster, and findings about the clusters' choice.

    An action has two words: for `validate`, and for the API server (empty: nothing).
    """
    actions: Actions = {}
    findings: list[Finding] = []
    for cluster in clusters:
        file = workspace.clusters[cluster]
        taken, wrong = choose_policies(
            workspace.policies, file, resolve_cluster_facts_for_policies(workspace, cluster)
        )
        findings += wrong
        for one in taken:
            server = choose_server_action(one.action, file.spec.policies.enforcement)
            actions.setdefault(one.policy, {})[cluster] = (one.action, "" if one.page.ci_only else server)
    return actions, findings


def format_enforcement_column(action: tuple[str, str]) -> str:
    """Format what a breach leads to in `validate`, and at the API server if that differs."""
    ci, server = action
    return ci if ci == server else f"{ci}, server {server}" if server else f"{ci}, CI only"


def list_policy_rows(workspace: Workspace, actions: Actions) -> list[dict[str, object]]:
    """Return every policy with its pack (empty outside packs), its title, and its action per cluster."""
    rows: list[dict[str, object]] = []
    for name in workspace.policies.names:
        folder, _ = workspace.policies.find(name)
        for policy, page in folder.pack.policies.items() if folder else ():
            on = actions.get(policy, {})
            row = {"policy": policy, "pack": name, "title": page.title}
            words = {"actions": {one: both[0] for one, both in on.items()}}
            words["server"] = {one: both[1] for one, both in on.items()}
            rows.append({**row, **words, "ciOnly": page.ci_only})
    for source in workspace.policies.sources:
        if source.body.get("kind") == POLICY_KIND:
            policy = str((source.body.get("metadata") or {}).get("name"))
            row = {"policy": policy, "pack": "", "title": source.file}
            rows.append({**row, "actions": {}, "server": {}, "ciOnly": ""})
    return rows


def format_policy_action_column(row: dict[str, object], cluster: str) -> str:
    """Format what a policy does on a cluster; empty if it is not in force there."""
    ci, server = row["actions"], row["server"]
    assert isinstance(ci, dict)
    assert isinstance(server, dict)
    return format_enforcement_column((ci[cluster], server[cluster])) if cluster in ci else ""


def _format_policy_list_output(rows: Sequence[dict[str, object]], clusters: Sequence[str]) -> str:
    """Format a table with the columns policy, pack, one per cluster, and title."""
    header = ["policy", "pack", *clusters, ""]
    table = [header]
    for row in rows:
        own = row["pack"] == ""
        cells = ["own" if own else format_policy_action_column(row, cluster) or "-" for cluster in clusters]
        table.append([str(row["policy"]), "(own)" if own else str(row["pack"]), *cells, str(row["title"])])
    widths = [max(len(line[column]) for line in table) for column in range(len(header) - 1)]
    return "".join(
        escape_own_line(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(line, [*widths, 0], strict=True)).rstrip()
        )
        + "\n"
        for line in table
    )


def run_policy_test_command(request: Request, wanted: Sequence[str]) -> Exit:
    """Run the cases of packs and policies. Raises UserError if nothing was checked."""
    workspace, _ = _load_workspace_for_policy_command(request)
    wrong = sort_findings(check_own_policies(workspace))
    if any(one.severity is Severity.ERROR for one in wrong):
        print_findings_to_stderr(wrong)
        return Exit.INPUT
    found = build_policy_case_suites(workspace)
    known = {name for suite in found for name in (suite.pack, *suite.policies)} - {""}
    for name in wanted:
        if name not in known:
            raise UserError(f"there is no pack or policy '{name}'", suggest_nearest(name, known))
    findings: list[Finding] = []
    cases = policies = 0
    for suite in found:
        chosen_names = (
            set(suite.policies) if not wanted or suite.pack in wanted else set(suite.policies) & set(wanted)
        )
        if chosen_names:
            policies += len(chosen_names)
            count, wrong = judge_policy_cases(suite, chosen_names)
            cases += count
            findings += wrong
    if not policies:
        raise UserError(
            "nothing was checked: there is no policy", "Write policies/<pack>/pack.yaml and its policies."
        )
    findings = sort_findings(findings)
    print_findings_to_stderr(findings)
    failed = sum(one.severity is Severity.ERROR for one in findings)
    bare = sum(one.rule == POLICY_UNTESTED for one in findings)
    if not cases and not failed:
        whose = "the policy has" if policies == 1 else f"none of {_format_policy_count(policies)} has"
        raise UserError(
            f"nothing was checked: {whose} {'no' if policies == 1 else 'a'} case",
            "Add <policy>.<case>.allow.yaml and <policy>.<case>.deny.yaml to tests/ next to it.",
        )
    said = f"{failed} failed" if failed else "all as they should be"
    rest = f"; {_format_policy_count(bare)} without a case: not checked" if bare else ""
    sys.stdout.write(
        f"checked {_format_policy_count(policies - bare)}, {format_plural(cases, 'case')}: {said}{rest}\n"
    )
    return Exit.FINDINGS if failed else Exit.CLEAN


def _format_policy_count(count: int) -> str:
    return f"{count} {'policy' if count == 1 else 'policies'}"


def run_policy_export_command(request: Request, cluster: str, output: str) -> Exit:
    """Write the objects of a cluster's policies. Nothing is written if anything is wrong with them.

    Raises UserError for a cluster without policies.
    """
    file = None if output == "-" else resolve_output_file_flag(output, request.root, "the export")
    workspace, findings = _load_workspace_for_policy_command(request)
    if cluster in workspace.clusters:
        findings = sort_findings([*findings, *check_policies(workspace, (cluster,))])
    print_findings_to_stderr(findings)
    if any(one.severity is Severity.ERROR for one in findings):
        return Exit.INPUT
    bodies = export_objects(workspace, cluster)
    if not bodies:
        where = workspace.clusters[cluster].document.file
        raise UserError(
            f"cluster '{cluster}' has no policies", f"Name packs in {where}: policies: {{packs: [baseline]}}."
        )
    header = (f"policies of cluster {cluster}, made by gangplan policy export; apply the whole file",)
    text = dump_all(bodies, header)
    if file is None:
        sys.stdout.write(text)
    else:
        file.write(text)
    return Exit.CLEAN
