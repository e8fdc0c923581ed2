"""kubeconform's verdict on a rendered tree, where it is present: a second judge of the same schemas."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from gangplan.emit import source_of
from gangplan.findings import Finding, Location, about
from gangplan.resolve.platform import resolve_platform
from gangplan.rules.objects import KUBECONFORM
from gangplan.tools.kubeconform import Kubeconform, KubeconformVerdict, pick
from gangplan.validate.apiserver.schema import materialise
from gangplan.validate.versions import versions_of
from gangplan.workspace import Workspace

# Every file here is one that gangplan has just written: an object's kind stands alone on its line.
_KIND = re.compile(r'^kind: "?([A-Za-z]+)"?$', re.MULTILINE)


def second_opinion(
    workspace: Workspace, tree: Path, passed_over: list[str] | None = None
) -> tuple[str, list[Finding]]:
    """The judge's name and its findings; an empty name when kubeconform is absent.

    A program of that name that cannot be used is named in `passed_over`: who counts on a second opinion must
    know that there was none.
    """
    judge = pick(passed_over)
    if judge is None:
        return "", []
    findings = []
    for folder in sorted(path for path in tree.iterdir() if path.is_dir()):
        findings += _judge_cluster(judge, workspace, folder)
    return judge.label, findings


def _judge_cluster(judge: Kubeconform, workspace: Workspace, folder: Path) -> list[Finding]:
    versions = versions_of(resolve_platform(workspace.clusters[folder.name]))
    files = sorted(folder.rglob("*.yaml"))
    kinds = {kind for file in files for kind in _KIND.findall(file.read_text(encoding="utf-8"))}
    with tempfile.TemporaryDirectory(prefix="gangplan-") as schemas:
        verdicts = judge.check(files, materialise(versions, Path(schemas), kinds))
    return about(folder.name, (_finding(verdict) for verdict in verdicts if verdict.status != "valid"))


def _finding(verdict: KubeconformVerdict) -> Finding:
    source = source_of(verdict.file) or verdict.file.name
    message = f"kubeconform: {verdict.message}"
    return Finding(
        KUBECONFORM,
        Location(source, 1, 1),
        message,
        "",
        f"{verdict.kind}/{verdict.name}",
        verdict.path,
    )
