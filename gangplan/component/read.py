"""Read and check a cluster's kustomization.yaml, a Component of JSON6902 patches, before kustomize runs.

The file is overlays/<cluster>/kustomization.yaml. Other transformers are refused with a reason: on custom
resources they break references or silently replace lists (decision 0005).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path as FilePath
from typing import Any

from gangplan.component.operations import (
    STRATEGIC_MERGE,
    OperationsText,
    PatchOperation,
    find_patch_operations_problem,
    locate_embedded_patch_text,
)
from gangplan.component.target import Target, TargetError, parse_patch_target
from gangplan.findings import FieldPath, Finding, Location
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.rules.objects import OVERLAY_KIND, OVERLAY_NO_MATCH, OVERLAY_PATCH, OVERLAY_TRANSFORMER
from gangplan.source import Document, load_document, load_file

OVERLAYS_FOLDER = "overlays"
API_VERSION, KIND = "kustomize.config.k8s.io/v1alpha1", "Component"
_KNOWN = {"apiVersion", "kind", "patches"}
# Operations whose outcome depends on values in the object, not only on the keys along their own path.
_LOOKING = ("test", "copy", "move")
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
    "secretGenerator": "secrets never belong in Git",
    "replacements": "a replacement that matches nothing is not noticed",
}
_HELPS = {"images": "Change images/catalog.yaml, or mirrors: in the cluster's file."}


@dataclass(frozen=True, slots=True)
class Patch:
    """An entry of `patches`: its target, whether its outcome depends on values, and its line.

    `replaced` are the paths that must already exist, `added` those that the patch may add, and `paths` all of
    them. `operations` know where each path is written.
    """

    target: Target
    looks_at_values: bool
    replaced: tuple[str, ...]
    added: tuple[str, ...]
    where: Location
    paths: tuple[str, ...] = ()
    operations: tuple[PatchOperation, ...] = ()
    aimed: Location | None = None  # the place of the name in the target

    def where_of(self, path: str) -> Location:
        """Return the place of the operation with this path, else of the patch."""
        return next((one.where() for one in self.operations if one.path == path), self.where)


@dataclass(frozen=True, slots=True)
class Component:
    """A cluster's component: its patches, and the files that kustomize needs, by name."""

    file: str
    patches: tuple[Patch, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)

    def place_of(self, path: FieldPath, body: Body | None = None, built: Body | None = None) -> Location:
        """Return the place of what patches write at a path of an object or around it, else below it.

        The fallback is the file. With `body`, only patches whose target matches it count. If several do, the
        last wins, as in kustomize. `built` is the object with all patches, if `body` is not: of several
        operations that append to a list, it shows which one wrote an entry.
        """
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        patches = [patch for patch in self.patches if body is None or patch.target.matches(body)]
        operations = [operation for patch in patches for operation in patch.operations]
        around = [one for one in operations if f"{pointer}/".startswith(f"{one.path.removesuffix('/-')}/")]
        if around:
            best = max(enumerate(around), key=lambda item: (len(item[1].path), item[0]))[1]
            whole = built or body
            if best.path.endswith("/-") and whole is not None:
                best = _find_appending_patch_operation(around, best, whole, path)
            return best.where_written(pointer)
        # For an object as a whole (an empty path), only patches that match it are known to be relevant.
        inside = [
            one for one in operations if (pointer or body is not None) and one.path.startswith(f"{pointer}/")
        ]
        return inside[-1].where_written(inside[-1].path) if inside else Location(self.file, 1, 1)


def _find_appending_patch_operation(
    operations: Sequence[PatchOperation], last: PatchOperation, body: Body, path: FieldPath
) -> PatchOperation:
    """Return the operation that appended an entry of a built object, of several that append to its list."""
    depth = last.path.count("/")
    try:
        entry: Any = body
        for step in path[:depth]:
            entry = entry[step]
    except (LookupError, TypeError):
        return last
    appended = [one for one in operations if one.path == last.path]
    for is_same in (
        lambda value: value == entry,
        lambda value: _matches_entry_of_component_patch(value, entry),
    ):
        found = [one for one in appended if is_same(one.written.get("value"))]
        if found:
            return found[-1]
    return last


def _matches_entry_of_component_patch(one: Any, other: Any) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(other, dict)
        and "name" in one
        and one["name"] == other.get("name")
    )


# Further names under which kustomize 5 looks for a kustomization (api/konfig, RecognizedKustomizationFileNames).
_OTHER_NAMES = ("kustomization.yml", "Kustomization")


def load_component(root: FilePath, cluster: str) -> tuple[Component, list[Finding]]:
    """Load the component of a cluster; without a kustomization.yaml it is empty."""
    file = f"{OVERLAYS_FOLDER}/{cluster}/kustomization.yaml"
    others = [f"{OVERLAYS_FOLDER}/{cluster}/{name}" for name in _OTHER_NAMES]
    message = "kustomize would read this file, but gangplan reads kustomization.yaml alone"
    unread = [
        Finding(SPEC_FILE_NAME, Location(one), message, "Rename it to kustomization.yaml.")
        for one in others
        if os.path.lexists(root / one)
    ]
    if unread or not os.path.lexists(root / file):
        return Component(file), unread
    document, findings = load_file(root / file, file)
    if document is None:
        return Component(file), findings
    findings = _check_kustomize_component_fields(document)
    if findings:
        return Component(file), findings
    files = {"kustomization.yaml": (root / file).read_bytes()}
    patches = [
        _read_component_patch(root / OVERLAYS_FOLDER / cluster, document, index, files, findings)
        for index in range(len(document.value.get("patches") or []))
    ]
    return Component(file, tuple(patch for patch in patches if patch), files), findings


def build_no_match_finding(cluster: str, patch: Patch, jobs: Iterable[str]) -> Finding:
    """Return the finding for a patch that matches nothing.

    `jobs` are those with runs on the cluster; the names of runs end in a hash.
    """
    rule, message = OVERLAY_NO_MATCH, f"the patch matches no object of cluster {cluster}"
    job = patch.target.job_of(jobs)
    if not job or patch.aimed is None:
        return Finding(rule, patch.where, message, "Correct its target, or remove it.")
    why = f"runs of job '{job}' are called {job}-<hash>, and the hash changes with what they contain"
    if patch.target.name != job:
        why = f"the end of a run's name is a hash of what it contains, and this patch is part of that: it cannot name a run of job '{job}' in full"
    help = f"Write labelSelector: gangplan.dev/job={job} in its target, without name."
    return Finding(rule, patch.aimed, f"{message}: {why}", help)


def _check_kustomize_component_fields(document: Document) -> list[Finding]:
    value = document.value
    if not isinstance(value, dict) or value.get("apiVersion") != API_VERSION or value.get("kind") != KIND:
        return [
            Finding(
                OVERLAY_KIND,
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
                Finding(
                    OVERLAY_TRANSFORMER,
                    document.where((key,), key=True),
                    f"'{key}' cannot be used here: {reason}",
                    _HELPS.get(key, "Use patches with JSON6902 operations."),
                )
            )
    patches = value.get("patches") or []
    if not isinstance(patches, list) or not all(isinstance(patch, dict) for patch in patches):
        findings.append(
            Finding(
                OVERLAY_PATCH,
                document.where(("patches",)),
                "patches is not a list of patches",
                "Write a list of {target, patch}.",
            )
        )
    return findings


def _read_component_patch(
    folder: FilePath, document: Document, index: int, files: dict[str, bytes], findings: list[Finding]
) -> Patch | None:
    entry, at = document.value["patches"][index], ("patches", index)
    for key in entry:
        if key not in {"target", "patch", "path"}:
            findings.append(
                Finding(
                    OVERLAY_PATCH,
                    document.where((*at, key), key=True),
                    f"unknown field '{key}' of a patch",
                    "Known fields: target, patch, path.",
                )
            )
            return None
    try:
        target = parse_patch_target(entry.get("target"))
    except TargetError as bad:
        kind = "" if entry.get("target") else _read_kind_of_merge(entry.get("patch"))
        message = f"this is a strategic merge of {kind}; {STRATEGIC_MERGE}" if kind else str(bad)
        help = _CONVERT if kind else "Write target: {kind: TrainingRuntime}."
        findings.append(Finding(OVERLAY_PATCH, document.where((*at, "target", *bad.path)), message, help))
        return None
    text = _read_patch_operations(folder, document, index, files, findings)
    if text is None:
        return None
    operations = text.document.value
    return Patch(
        target,
        any(operation["op"] in _LOOKING for operation in operations),
        tuple(operation["path"] for operation in operations if operation["op"] == "replace"),
        tuple(operation["path"] for operation in operations if operation["op"] in ("add", "move", "copy")),
        document.where(at),
        tuple(operation["path"] for operation in operations),
        tuple(PatchOperation(one["op"], one["path"], number, text) for number, one in enumerate(operations)),
        document.where((*at, "target", "name" if target.name else "labelSelector")),
    )


# What turns plain patches of kustomize into those of a component.
_CONVERT = "Convert it: gangplan import overlay FOLDER --cluster NAME; or write target: and a list of {op, path, value}."


def _read_kind_of_merge(patch: Any) -> str:
    """Return the kind of the object that a strategic merge names itself; empty for any other text."""
    parsed = load_document(patch.encode(), "")[0] if isinstance(patch, str) else None
    value = parsed.value if parsed else None
    return str(value.get("kind") or "") if isinstance(value, dict) else ""


def _read_patch_operations(
    folder: FilePath, document: Document, index: int, files: dict[str, bytes], findings: list[Finding]
) -> OperationsText | None:
    """Read the operations of a patch, inline or from a file in the same folder."""
    entry, at = document.value["patches"][index], ("patches", index)
    inline, path = entry.get("patch"), entry.get("path")
    text = None
    if isinstance(inline, str) and path is None:
        parsed, found = load_document(inline.encode(), document.file)
        at_text = (*at, "patch")
        found = [
            Finding(
                item.rule,
                locate_embedded_patch_text(document, at_text, inline, item.where),
                f"the patch is not YAML: {item.message}",
                item.help,
            )
            for item in found
        ]
        text = OperationsText(parsed, document, at_text, inline) if parsed else None
    elif isinstance(path, str) and inline is None and path == os.path.basename(path):
        file = f"{os.path.dirname(document.file)}/{path}"
        parsed, found = load_file(folder / path, file)
        if parsed is not None:
            files[path] = (folder / path).read_bytes()
            text = OperationsText(parsed)
    else:
        message, help = (
            "a patch has either `patch` (text) or `path` (a file in this folder)",
            "Write one of them.",
        )
        if inline is not None and path is not None:
            help = "Keep one of them."
        elif isinstance(path, str):
            message = f"path names a file outside of this folder: {path}"
            help = f"Move it here, and write path: {os.path.basename(path) or 'NAME'}."
        findings.append(Finding(OVERLAY_PATCH, document.where(at), message, help))
        return None
    findings.extend(found)
    return text if text is not None and _can_kustomize_apply_operations(text, findings) else None


def _can_kustomize_apply_operations(text: OperationsText, findings: list[Finding]) -> bool:
    """Return whether kustomize can be given the operations; otherwise add a finding that says why not."""
    problem, place = find_patch_operations_problem(text.document.value)
    if problem:
        help = (
            "Remove the operation; names and namespaces come from the workspace's own files."
            if "identity" in problem
            else _CONVERT
            if isinstance(text.document.value, dict)
            else "Write a list of {op, path, value}."
        )
        findings.append(Finding(OVERLAY_PATCH, text.where(place), problem, help))
    return not problem
