"""A small workspace, one run and the patches of a site on it, with the findings of `validate`.

`verdict` is also for tests that start runs without errors under a real MPI: it takes operations and
returns the findings and the built objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gangplan.emit import is_run_file
from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests import workspaces

OVERLAY = "overlays/lab/kustomization.yaml"
ENTRY = "/spec/template/spec/replicatedJobs/{}"
POD = ENTRY + "/template/spec/template/spec"
# Short names of the places that patches go to; the longer name comes first.
PLACES = {
    "LAUNCHERS/": f"{ENTRY.format(1)}/",
    "WORKERS/": f"{ENTRY.format(0)}/",
    "LAUNCHER/": f"{POD.format(1)}/",
    "NODE/": f"{POD.format(0)}/",
}
HEAD = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
Operation = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """The findings about a patched run, and its built objects."""

    findings: tuple[Finding, ...]
    objects: tuple[dict[str, Any], ...]

    @property
    def is_green(self) -> bool:
        """Whether there are no errors."""
        return not any(finding.is_error for finding in self.findings)


def spec_of(fields: dict[str, Any]) -> str:
    """Return the text of a spec."""
    whole = {"apiVersion": "gangplan.dev/v1", "kind": "TrainingJob", "command": ["python", "train.py"]}
    return yaml.safe_dump({**whole, **fields}, sort_keys=False)


def workspace(root: Path, fields: dict[str, Any], changes: Mapping[str, str] | None = None) -> Path:
    """Write the stock workspace with one spec of these fields, and with `changes` in its cluster.yaml."""
    workspaces.stock(root)
    cluster = workspaces.CLUSTER
    for old, new in (changes or {}).items():
        assert old in cluster
        cluster = cluster.replace(old, new)
    team = f"{workspaces.TEAM}configMaps: [tuning]\n"
    if "workloadIdentity" in cluster:
        bucket = "  scans: {type: gcs, bucket: example-scans, mount: gcsfuse, egress: s3}\n"
        team = team.replace("connections:\n", f"connections:\n{bucket}")
        team += "identity:\n  azure: {clientId: 11111111-2222-3333-4444-555555555555}\n"
        team += "  gcp: {serviceAccount: team-nlp@example-project.iam.gserviceaccount.com}\n"
    files = {"specs/nlp/filings.yaml": spec_of(fields), "overlays/lab/cluster.yaml": cluster}
    if fields.get("preflight"):
        version = 'version: "5.0.8"}\n'
        looks = f"{version}    preflight: /usr/local/bin/gangplan-preflight\n"
        files["images/catalog.yaml"] = workspaces.CATALOG.replace(version, looks)
    return workspaces.write(root, {**files, "specs/nlp/team.yaml": team, "specs/nlp/ds.json": "{}\n"})


def component(kind: str, operations: list[Operation]) -> str:
    """Return the overlay with one patch; each operation is one line, the first of them line 6."""
    return HEAD + entry(f"{{kind: {kind}}}", operations)


def entry(target: str, operations: list[Operation]) -> str:
    """Return one patch of an overlay; each operation is one line."""
    lines = []
    for operation in operations:
        path = str(operation["path"])
        for name, place in PLACES.items():
            path = path.replace(name, place, 1) if path.startswith(name) else path
        whole = {**operation, "path": path}
        lines.append(
            f"    - {yaml.safe_dump(whole, default_flow_style=True, sort_keys=False, width=10**6).strip()}\n"
        )
    return f"- target: {target}\n  patch: |-\n{''.join(lines)}"


def verdict(root: Path, kind: str, operations: list[Operation]) -> Verdict:
    """Run `validate` on the workspace with one patch, which stays in its overlay."""
    if any("LAST" in operation["path"] for operation in operations):
        workspaces.write(root, {OVERLAY: HEAD.replace("patches:\n", "")})
        plain = [body for body in _built(root).objects if body["kind"] == kind]
        operations = [
            {**one, "path": _last(plain[0], one["path"])} if "LAST" in one["path"] else one
            for one in operations
        ]
    workspaces.write(root, {OVERLAY: component(kind, operations)})
    return _built(root)


def _last(body: dict[str, Any], path: str) -> str:
    """Return the path with LAST replaced by the index of the last entry."""
    whole = path
    for name, place in PLACES.items():
        whole = whole.replace(name, place, 1) if whole.startswith(name) else whole
    value: Any = body
    for step in whole.split("/LAST")[0].split("/")[1:]:
        value = value[int(step) if isinstance(value, list) else step]
    return whole.replace("LAST", str(len(value) - 1))


def _built(root: Path) -> Verdict:
    result = preview_render(Request(root, engine="serial"))
    texts = [text for path, text in sorted(result.texts.items()) if is_run_file(path)]
    objects = tuple(body for text in texts for body in load_objects(text))
    return Verdict(tuple(result.findings), objects)
