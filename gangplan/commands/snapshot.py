"""`gangplan cluster snapshot`."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan import clock
from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import choose_exit_code, format_plural, print_findings_to_stderr
from gangplan.commands.connecting import ConnectionFlags, connect_with_flags
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.commands.reports import find_report_folder
from gangplan.errors import Exit, UserError, build_os_refusal_error
from gangplan.findings import Finding, sort_findings
from gangplan.live.differences import compare_snapshot_with_cluster_file
from gangplan.live.observe import OBSERVE_RIGHTS, observe_cluster
from gangplan.live.snapshot import SNAPSHOT_FOLDER, Snapshot, format_snapshot
from gangplan.model.backend import TRAINJOB
from gangplan.pipeline.request import Request
from gangplan.report.json import json_report
from gangplan.rules.model import Severity
from gangplan.workspace import load_workspace

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def run_cluster_snapshot_command(
    request: Request, asked: ConnectionFlags, observed: str | None, output: str | None, format: str
) -> Exit:
    """Read one cluster, write the snapshot, and report where the cluster's file differs from it.

    Raises UserError and ToolError before anything is written.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    if format == "json" and output == "-":
        raise UserError(
            "standard output cannot hold both", "Name a file with --output, or leave out --format."
        )
    when = _parse_observed_flag(observed)
    workspace = load_workspace(request.root)
    (name,) = request.clusters
    wrong = [finding for finding in workspace.findings if finding.severity is Severity.ERROR]
    if name not in workspace.clusters:
        if wrong:
            print_findings_to_stderr(sort_findings(wrong))
            return Exit.INPUT
        raise build_missing_cluster_error(name, workspace)
    file = workspace.clusters[name]
    access = connect_with_flags(file, asked, "snapshot", OBSERVE_RIGHTS)
    found = observe_cluster(access, name, file.spec, when)
    written = _write_snapshot_for_output_flag(request.root, name, output, format_snapshot(found))
    findings = sort_findings(compare_snapshot_with_cluster_file(file, found))
    if format == "json":
        facts = {"snapshot": {"file": written, "cluster": name, "unseen": list(found.unseen)}}
        sys.stdout.write(json_report(findings, facts, find_report_folder(request.root)))
    else:
        print_findings_to_stderr(findings)
        sys.stderr.write(_describe_snapshot_command_outcome(found, written, findings))
    return choose_exit_code(findings)


def _parse_observed_flag(text: str | None) -> str:
    if text is None:
        return datetime.datetime.fromtimestamp(clock.read_unix_time(), datetime.UTC).strftime(_FORM)
    try:
        return datetime.datetime.strptime(text, _FORM).strftime(_FORM)
    except ValueError:
        raise UserError(f"'{text}' is not a time", "Write --observed 2026-12-31T08:00:00Z.") from None


def _write_snapshot_for_output_flag(root: Path, name: str, output: str | None, text: str) -> str:
    """Write the snapshot, and return the name of its file as people see it."""
    if output == "-":
        sys.stdout.write(text)
        return "standard output"
    if output is not None:
        resolve_output_file_flag(output, root, "the snapshot").write(text)
        return output
    own = f"{SNAPSHOT_FOLDER}/{name}.json"
    try:
        (root / SNAPSHOT_FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise build_os_refusal_error(
            f"{SNAPSHOT_FOLDER}/ cannot be made for the snapshot; --output names a file", error
        ) from None
    resolve_output_file_flag(str(root / own), root, "the snapshot").write(text)
    return own


def _describe_snapshot_command_outcome(found: Snapshot, written: str, findings: Sequence[Finding]) -> str:
    nodes = sum(one["count"] for one in found.nodes)
    runs = sum(sum(words.values()) for words in found.train_jobs.values())
    lines = [
        f"{written}: Kubernetes {found.versions['kubernetes']}, {format_plural(nodes, 'node')}, {format_plural(runs, TRAINJOB.kind)}"
    ]
    lines += [f"  not seen: you may not {right}" for right in found.unseen]
    if found.refusal is not None and found.refusal.help:
        lines.append(f"  help: {found.refusal.help}")
    if not findings:
        lines.append("  the cluster file agrees with what was seen")
    return "\n".join(lines) + "\n"
