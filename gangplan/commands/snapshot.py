"""`gangplan cluster snapshot`."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan import clock
from gangplan.commands.absent import no_cluster
from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.connecting import Asked, connected
from gangplan.commands.outfile import out_file
from gangplan.commands.reports import repository_folder
from gangplan.errors import Exit, UserError, refusal
from gangplan.findings import Finding, in_order
from gangplan.live.differences import differences
from gangplan.live.observe import RIGHTS, observe
from gangplan.live.snapshot import FOLDER, Snapshot, text_of
from gangplan.model.backend import TRAINJOB
from gangplan.pipeline.request import Request
from gangplan.report.json import json_report
from gangplan.rules.model import Severity
from gangplan.workspace import load_workspace

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def snapshot(request: Request, asked: Asked, observed: str | None, output: str | None, format: str) -> Exit:
    """Read one cluster, write the snapshot, and report where the cluster's file differs from it.

    Raises UserError and ToolError before anything is written.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    if format == "json" and output == "-":
        raise UserError(
            "standard output cannot hold both", "Name a file with --output, or leave out --format."
        )
    when = _time(observed)
    workspace = load_workspace(request.root)
    (name,) = request.clusters
    wrong = [finding for finding in workspace.findings if finding.severity is Severity.ERROR]
    if name not in workspace.clusters:
        if wrong:
            print_findings(in_order(wrong))
            return Exit.INPUT
        raise no_cluster(name, workspace)
    file = workspace.clusters[name]
    access = connected(file, asked, "snapshot", RIGHTS)
    found = observe(access, name, file.spec, when)
    written = _write(request.root, name, output, text_of(found))
    findings = in_order(differences(file, found))
    if format == "json":
        facts = {"snapshot": {"file": written, "cluster": name, "unseen": list(found.unseen)}}
        sys.stdout.write(json_report(findings, facts, repository_folder(request.root)))
    else:
        print_findings(findings)
        sys.stderr.write(_summary(found, written, findings))
    return exit_code(findings)


def _time(text: str | None) -> str:
    if text is None:
        return datetime.datetime.fromtimestamp(clock.now(), datetime.UTC).strftime(_FORM)
    try:
        return datetime.datetime.strptime(text, _FORM).strftime(_FORM)
    except ValueError:
        raise UserError(f"'{text}' is not a time", "Write --observed 2026-12-31T08:00:00Z.") from None


def _write(root: Path, name: str, output: str | None, text: str) -> str:
    """Write the snapshot, and return the name of its file as people see it."""
    if output == "-":
        sys.stdout.write(text)
        return "standard output"
    if output is not None:
        out_file(output, root, "the snapshot").write(text)
        return output
    own = f"{FOLDER}/{name}.json"
    try:
        (root / FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise refusal(f"{FOLDER}/ cannot be made for the snapshot; --output names a file", error) from None
    out_file(str(root / own), root, "the snapshot").write(text)
    return own


def _summary(found: Snapshot, written: str, findings: Sequence[Finding]) -> str:
    nodes = sum(one["count"] for one in found.nodes)
    runs = sum(sum(words.values()) for words in found.train_jobs.values())
    lines = [
        f"{written}: Kubernetes {found.versions['kubernetes']}, {plural(nodes, 'node')}, {plural(runs, TRAINJOB.kind)}"
    ]
    lines += [f"  not seen: you may not {right}" for right in found.unseen]
    if found.refusal is not None and found.refusal.help:
        lines.append(f"  help: {found.refusal.help}")
    if not findings:
        lines.append("  the cluster file agrees with what was seen")
    return "\n".join(lines) + "\n"
