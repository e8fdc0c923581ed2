"""`gangplan gitops argocd`."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.commands.common import print_findings
from gangplan.errors import Exit, UserError
from gangplan.gitops.argocd import RepositorySource, argocd_objects
from gangplan.model.support import TRAINER
from gangplan.model.version import parse_version
from gangplan.objects import dump_all
from gangplan.pipeline.request import Request
from gangplan.rules.model import Severity
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import RENDERED, Workspace, load_workspace

PARTS = ("platform", "tenants", "runs")
_HEADER = ("Made by `gangplan gitops argocd`; see docs/gitops.md.",)


def argocd(request: Request, source: RepositorySource, output: str | None) -> Exit:
    """Print, or write to a folder, one file per cluster."""
    workspace = load_workspace(request.root)
    findings = workspace.findings
    print_findings(findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        return Exit.INPUT
    for name in request.clusters:
        if name not in workspace.clusters:
            raise UserError(f"there is no cluster '{name}'", f"Known: {', '.join(workspace.clusters)}.")
    texts = {name: _text(workspace, name, source) for name in request.clusters or workspace.clusters}
    if output in (None, "-"):
        sys.stdout.write("---\n".join(texts.values()))
        return Exit.CLEAN
    folder = Path(str(output))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {folder / name}.yaml\n")
    return Exit.CLEAN


def _text(workspace: Workspace, cluster: str, source: RepositorySource) -> str:
    rendered = workspace.root / RENDERED / cluster
    parts = [part for part in PARTS if (rendered / part).is_dir()]
    if not parts:
        raise UserError(f"nothing is rendered for cluster {cluster}", "Run `gangplan render` first.")
    spec = workspace.clusters[cluster].spec
    trainer = TRAINER.get(parse_version(spec.versions.trainer).line)
    if trainer is None:
        raise UserError(
            f"cluster {cluster} has a Trainer that gangplan does not know", "Run `gangplan cluster check`."
        )
    namespaces = sorted(namespace_of(spec, team, workspace.teams[team].spec) for team in spec.teams)
    others = [spec.monitoring.namespace] if spec.monitoring else []
    return dump_all(
        argocd_objects(cluster, namespaces, source, parts, trainer.override_field, others), _HEADER
    )
