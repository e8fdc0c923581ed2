"""overlays/<cluster>/kustomization.yaml: a Component of JSON6902 patches, read and checked before kustomize sees it.

Other transformers are refused with their reason: on custom resources they break references or replace
lists without a word (decision 0005).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from gangplan.findings import Finding, Location, error
from gangplan.overlay.target import Target, TargetError, parse_target
from gangplan.source import Document, Path, load, load_file
from gangplan.workspace import OVERLAYS

API_VERSION, KIND = "kustomize.config.k8s.io/v1alpha1", "Component"
_KNOWN = {"apiVersion", "kind", "patches"}
_OPS = {"add", "remove", "replace", "move", "copy", "test"}
# Operations whose outcome hangs on what stands in the object, beyond the keys on their own path.
_LOOKING = ("test", "copy", "move")
_IDENTITY = ("/apiVersion", "/kind", "/metadata/name", "/metadata/namespace")
# Whole maps that hold what references, queues and gangplan itself rely on.
_HOLDING = ("", "/", "/metadata", "/metadata/annotations", "/metadata/labels")
_REASONS = {
    "namespace": "it also stamps a namespace on cluster-scoped objects",
    "namePrefix": "it renames runs but not the references to them",
    "nameSuffix": "it renames runs but not the references to them",
    "labels": "label selectors of network policies would stop matching pods",
    "commonLabels": "label selectors of network policies would stop matching pods",
    "commonAnnotations": "patch what you mean instead",
    "images": "it does not reach every image; use images/catalog.yaml",
    "patchesStrategicMerge": "strategic merges replace whole lists of custom resources",
    "patchesJson6902": "it is an old spelling of patches",
    "resources": "objects of this cluster come from gangplan",
    "configMapGenerator": "references to generated names are not rewritten in runs",
    "secretGenerator": "secrets never stand in Git",
    "replacements": "a replacement that matches nothing is not noticed",
}


@dataclass(frozen=True, slots=True)
class Patch:
    """One entry of `patches`: what it is aimed at, whether its outcome hangs on values, and its line.

    `replaced` are the paths that must exist before; `added` those that the patch may bring; `paths` are all.
    """

    target: Target
    looks_at_values: bool
    replaced: tuple[str, ...]
    added: tuple[str, ...]
    where: Location
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """A cluster's component: its patches, and the files that kustomize needs, by name."""

    file: str
    patches: tuple[Patch, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)

    def place_of(self, path: Path) -> Location:
        """The patch that writes at a path of an object or around it, else inside; the file when none can be told."""
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        fitting = [
            (len(written), patch.where)
            for patch in self.patches
            for written in patch.paths
            if f"{pointer}/".startswith(f"{written.removesuffix('/-')}/")
        ] or [
            (len(written), patch.where)
            for patch in self.patches
            for written in patch.paths
            if pointer and written.startswith(f"{pointer}/")
        ]
        return max(fitting, key=lambda item: item[0])[1] if fitting else Location(self.file, 1, 1)


def load_component(root: FilePath, cluster: str) -> tuple[Component, list[Finding]]:
    """The component of a cluster; a cluster without a kustomization.yaml has an empty one."""
    file = f"{OVERLAYS}/{cluster}/kustomization.yaml"
    if not os.path.lexists(root / file):
        return Component(file), []
    document, findings = load_file(root / file, file)
    if document is None:
        return Component(file), findings
    findings = _check_fields(document)
    if findings:
        return Component(file), findings
    files = {"kustomization.yaml": (root / file).read_bytes()}
    patches = [
        _patch(root / OVERLAYS / cluster, document, index, files, findings)
        for index in range(len(document.value.get("patches") or []))
    ]
    return Component(file, tuple(patch for patch in patches if patch), files), findings


def _check_fields(document: Document) -> list[Finding]:
    value = document.value
    if not isinstance(value, dict) or value.get("apiVersion") != API_VERSION or value.get("kind") != KIND:
        return [
            error(
                "overlay-kind",
                document.where(("kind",)),
                "this is not a kustomize Component",
                f"Write apiVersion: {API_VERSION} and kind: {KIND}.",
            )
        ]
    findings = []
    for key in value:
        if key not in _KNOWN:
            reason = _REASONS.get(key, "only JSON6902 patches are safe on the objects of a run")
            findings.append(
                error(
                    "overlay-transformer",
                    document.where((key,), key=True),
                    f"'{key}' cannot be used here: {reason}",
                    "Use patches with JSON6902 operations.",
                )
            )
    patches = value.get("patches") or []
    if not isinstance(patches, list) or not all(isinstance(patch, dict) for patch in patches):
        findings.append(
            error(
                "overlay-patch",
                document.where(("patches",)),
                "patches is not a list of patches",
                "Write a list of {target, patch}.",
            )
        )
    return findings


def _patch(
    folder: FilePath, document: Document, index: int, files: dict[str, bytes], findings: list[Finding]
) -> Patch | None:
    entry, at = document.value["patches"][index], ("patches", index)
    for key in entry:
        if key not in {"target", "patch", "path"}:
            findings.append(
                error(
                    "overlay-patch",
                    document.where((*at, key), key=True),
                    f"unknown field '{key}' of a patch",
                    "Known fields: target, patch, path.",
                )
            )
            return None
    try:
        target = parse_target(entry.get("target"))
    except TargetError as bad:
        findings.append(
            error(
                "overlay-patch",
                document.where((*at, "target", *bad.path)),
                str(bad),
                "Write target: {kind: TrainingRuntime}.",
            )
        )
        return None
    operations = _operations(folder, document, index, files, findings)
    if operations is None:
        return None
    return Patch(
        target,
        any(operation["op"] in _LOOKING for operation in operations),
        tuple(operation["path"] for operation in operations if operation["op"] == "replace"),
        tuple(operation["path"] for operation in operations if operation["op"] in ("add", "move", "copy")),
        document.where(at),
        tuple(operation["path"] for operation in operations),
    )


def _operations(
    folder: FilePath, document: Document, index: int, files: dict[str, bytes], findings: list[Finding]
) -> list[dict[str, Any]] | None:
    """The operations of a patch, inline or in a file of the same folder."""
    entry, at = document.value["patches"][index], ("patches", index)
    inline, path = entry.get("patch"), entry.get("path")
    if isinstance(inline, str) and path is None:
        where, (parsed, found) = document.where((*at, "patch")), load(inline.encode(), document.file)
        found = [
            error(item.rule, where, f"the patch is not YAML: {item.message}", item.help) for item in found
        ]
    elif isinstance(path, str) and inline is None and path == os.path.basename(path):
        file = f"{os.path.dirname(document.file)}/{path}"
        where, (parsed, found) = Location(file, 1, 1), load_file(folder / path, file)
        if parsed is not None:
            files[path] = (folder / path).read_bytes()
    else:
        findings.append(
            error(
                "overlay-patch",
                document.where(at),
                "a patch has either `patch` (text) or `path` (a file in this folder)",
                "Keep one of them.",
            )
        )
        return None
    findings.extend(found)
    if parsed is None:
        return None
    problem = _bad_operations(parsed.value)
    if problem:
        help = (
            "Remove the operation; names and namespaces come from the workspace's own files."
            if "identity" in problem
            else "Write a list of {op, path, value}."
        )
        findings.append(error("overlay-patch", where, problem, help))
        return None
    operations: list[dict[str, Any]] = parsed.value
    return operations


def _bad_operations(value: Any) -> str:
    if isinstance(value, dict):
        return "this is a strategic merge; on custom resources it replaces whole lists"
    if not isinstance(value, list) or not value:
        return "this is not a list of operations"
    for operation in value:
        if (
            not isinstance(operation, dict)
            or operation.get("op") not in _OPS
            or not isinstance(operation.get("path"), str)
        ):
            return f"each operation needs an op ({', '.join(sorted(_OPS))}) and a path"
        op, source = operation["op"], operation.get("from")
        if op in ("copy", "move") and f"{operation['path']}/".startswith(f"{source}/"):
            return f"'{source}' cannot be put into itself"
        for path in (source, operation["path"] if op != "test" else None):
            if op == "copy" and path == source:
                if path in _HOLDING and path != "/metadata/labels":
                    return (
                        f"'{path}' cannot be copied: kustomize keeps notes of its own there while it builds"
                    )
                continue  # only read
            if path in _IDENTITY:
                return f"{path} is the object's identity, which references rely on"
            if path in _HOLDING:
                return f"'{path}' holds the object's identity or the labels that it is queued and found by; patch a key inside it"
    return ""
