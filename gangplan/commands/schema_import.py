"""`gangplan schema import`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gangplan.errors import Exit, UserError
from gangplan.findings import Location
from gangplan.model.version import parse_version
from gangplan.pipeline import Request
from gangplan.source import Limits, ManifestError, load_objects, load_several
from gangplan.spec.crd_files import SCHEMAS
from gangplan.validate.cel.errors import CompileError
from gangplan.validate.crdrules.imported import schema_rules
from gangplan.validate.crdrules.registry import stored
from gangplan.workspace import load, nearest


def import_crds(request: Request, files: Sequence[Path], cluster: str | None) -> Exit:
    """Take CRDs into the workspace, for all clusters or for one. UserError: a file holds none, or a bad one."""
    workspace, _ = load(request.root)
    if cluster is not None and cluster not in workspace.clusters:
        raise UserError(f"there is no cluster '{cluster}'", nearest(cluster, workspace.clusters))
    base = request.root / (f"overlays/{cluster}/{SCHEMAS}" if cluster else SCHEMAS)
    chosen = [cluster] if cluster else list(workspace.clusters)
    minors = [parse_version(workspace.clusters[name].spec.versions.kubernetes).minor for name in chosen]
    taken = [(file, crd) for file in files for crd in _crds(file)]
    for file, crd in taken:
        _check(file, crd, min(minors, default=34))
    for _, crd in taken:
        path = base / crd["group"] / f"{crd['plural']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(
            json.dumps(crd, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        fresh.replace(path)
        versions = ", ".join(crd["versions"])
        sys.stdout.write(f"{path.relative_to(request.root).as_posix()}: {crd['kind']} ({versions})\n")
    return Exit.CLEAN


def _crds(file: Path) -> list[dict[str, Any]]:
    """The CRDs of a file; other objects in it are left alone."""
    try:
        bodies = load_objects(file.read_bytes())
    except OSError as bad:
        raise UserError(f"{file} cannot be read: {bad.strerror}", "Name a file with CRDs.") from None
    except ManifestError as bad:
        raise UserError(
            f"{file} is not YAML of Kubernetes objects: {bad}", "Name a file with CRDs."
        ) from None
    items = [item for body in bodies for item in (body.get("items") or [body])]
    found = [item for item in items if item.get("kind") == "CustomResourceDefinition"]
    if not found:
        help = "Get them with: kubectl get crd NAME... -o yaml."
        raise UserError(f"{file} holds no CustomResourceDefinition", help)
    try:
        return [stored(crd) for crd in found]
    except (KeyError, TypeError) as bad:
        help = "Versions need a schema (apiextensions.k8s.io/v1)."
        raise UserError(f"{file} holds a CRD that is not complete: {bad} is missing", help) from None


def _check(file: Path, crd: dict[str, Any], minor: int) -> None:
    """Its rules must compile, as in the API server."""
    for version, schema in crd["versions"].items():
        try:
            schema_rules(schema, minor)
        except CompileError as wrong:
            name = f"{crd['kind']} {crd['group']}/{version}"
            help = f"Kubernetes 1.{minor} would refuse the CRD: correct the rule."
            where = _where(file, crd, version, wrong)
            raise UserError(f"{where}: a rule of {name} does not compile: {wrong}", help) from None


def _where(file: Path, crd: dict[str, Any], version: str, wrong: CompileError) -> Location:
    """The place of the mistake in the file that was taken in."""
    documents, _ = load_several(file.read_bytes(), str(file), Limits(1 << 26, 180, 1 << 24))
    for document in documents:
        body = document.value if isinstance(document.value, dict) else {}
        items = body.get("items")
        for prefix, item in [((), body), *((("items", at), one) for at, one in enumerate(items or ()))]:
            spec = item.get("spec") if item.get("kind") == "CustomResourceDefinition" else None
            if not spec or (spec["group"], spec["names"]["plural"]) != (crd["group"], crd["plural"]):
                continue
            at = [one["name"] for one in spec["versions"]].index(version)
            place = (*prefix, "spec", "versions", at, "schema", "openAPIV3Schema", *wrong.place)
            return document.inside(place, wrong.issues[0].offset)
    return Location(str(file))
