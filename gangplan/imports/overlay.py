"""Convert patches of a team's own kustomize overlay to patches of a cluster's overlay in gangplan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.component.target import Target, TargetError, parse_patch_target
from gangplan.findings import Finding, Location
from gangplan.imports.merge import JsonPatchOperation, UnclearMergeError, convert_strategic_merge_to_json6902
from gangplan.objects import Body, format_scalar
from gangplan.records import dataclass
from gangplan.rules.imports import IMPORT_PATCH, IMPORT_SOURCE
from gangplan.rules.model import Severity
from gangplan.source import Document, load_all_documents
from gangplan.starter.values import format_flow_yaml

_JOB, _RUN = "gangplan.dev/job", "gangplan.dev/run"
# Fields of a kustomization that change objects, and what does so here.
_PREFIXES = "Names are gangplan's: runs find each other by them."
_CHANGING = {
    "components": "Import each component, too: name its folder.",
    "images": "Images are in images/catalog.yaml, and mirrors in the cluster's file (mirrors:).",
    "namespace": "Write namespace: at the team in the cluster's file.",
    **dict.fromkeys(("namePrefix", "nameSuffix"), _PREFIXES),
    **dict.fromkeys(
        (
            *("commonAnnotations", "commonLabels", "labels", "replacements", "replicas"),
            *("configMapGenerator", "secretGenerator", "generators", "transformers", "vars", "helmCharts"),
        ),
        "Write it as JSON6902 operations into the cluster's overlay.",
    ),
}
_KUSTOMIZATIONS = ("Kustomization", "Component")


@dataclass(frozen=True, slots=True)
class MergePatch:
    """A strategic merge: its value, where it begins, and its explicit target if it has one.

    `operations` are those of a JSON6902 patch, which stays as it is.
    """

    value: Mapping[str, Any]
    where: Location
    target: Mapping[str, Any] | None = None
    operations: tuple[JsonPatchOperation, ...] = ()

    @property
    def name(self) -> str:
        """What the patch is about, for people."""
        if self.operations and self.target is not None:
            return " ".join(f"{key} {value}" for key, value in self.target.items())
        meta = self.value.get("metadata")
        name = meta.get("name", "") if isinstance(meta, dict) else ""
        return f"{self.value.get('kind', 'patch')} {name}".strip()


@dataclass(frozen=True, slots=True)
class ConvertedPatch:
    """An entry of `patches` of the cluster's kustomization, and its source."""

    target: dict[str, str]
    operations: tuple[JsonPatchOperation, ...]
    source: MergePatch

    def text(self) -> str:
        """Return the entry as YAML."""
        lines = [f"- target: {format_flow_yaml(self.target)}", "  patch: |-"]
        lines += [f"    - {format_flow_yaml(one)}" for one in self.operations]
        return "".join(f"{line}\n" for line in lines)


def read_imported_patches(files: Iterable[Path]) -> tuple[list[MergePatch], list[Finding]]:
    """Read the strategic merges in files: as documents, and in or named by kustomizations."""
    found: list[MergePatch] = []
    findings: list[Finding] = []
    named: set[Path] = set()
    for path in files:
        if path.resolve() in named:
            continue
        documents, wrong = _load_patches_to_import(path)
        findings += wrong
        for document in documents:
            if isinstance(document.value, list):
                findings.append(_report_lost(document.where(()), "a list of operations has no target here"))
            elif document.value.get("kind") in _KUSTOMIZATIONS or "patchesStrategicMerge" in document.value:
                for one, problem in _read_imported_kustomization_patches(document, path.parent, named):
                    found += [one] if one else []
                    findings += [problem] if problem else []
            elif "kind" in document.value:
                found.append(MergePatch(document.value, document.where(())))
    return found, findings


def _report_lost(
    where: Location, said: str, help: str = "Write it into the cluster's overlay yourself."
) -> Finding:
    return Finding(IMPORT_PATCH, where, said, help, level=Severity.WARNING)


def _load_patches_to_import(path: Path) -> tuple[list[Document], list[Finding]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        where = Location(path.as_posix())
        return [], [
            Finding(
                IMPORT_SOURCE, where, f"it cannot be read: {error.strerror}", "Name a file that is there."
            )
        ]
    documents, findings = load_all_documents(data, path.as_posix())
    return [one for one in documents if isinstance(one.value, (dict, list))], findings


def _read_imported_kustomization_patches(
    document: Document, folder: Path, named: set[Path]
) -> Iterator[tuple[MergePatch | None, Finding | None]]:
    """Yield the patches of a kustomization: inline texts, and files that it names; then what else it changes."""
    entries = [
        ((key, at), one)
        for key in ("patches", "patchesStrategicMerge", "patchesJson6902")
        for at, one in _list_kustomization_entries(document, key)
    ]
    for way, entry in entries:
        is_entry = isinstance(entry, dict)
        text, target = (entry.get("patch"), entry.get("target")) if is_entry else (entry, None)
        where = document.where(way)
        inline = text if isinstance(text, str) and "\n" in text.strip() else None
        file = entry.get("path") if is_entry else (text if inline is None else None)
        if inline is None and isinstance(text, str) and is_entry:
            inline = text
        if inline is not None:
            documents, findings = load_all_documents(inline.encode(), where.file)
        elif isinstance(file, str):
            named.add((folder / file).resolve())
            documents, findings = _load_patches_to_import(folder / file)
        else:
            continue
        yield from ((None, one) for one in findings)
        for one in documents:
            place = where if inline is not None else one.where(())
            if isinstance(one.value, dict):
                yield MergePatch(one.value, place, target if isinstance(target, dict) else None), None
            elif isinstance(one.value, list) and isinstance(target, dict):
                yield MergePatch({}, place, target, tuple(one.value)), None
            else:
                yield None, _report_lost(place, "this patch has no target")
    for key in document.value:
        if key in _CHANGING:
            where = document.where((key,), key=True)
            yield None, _report_lost(where, f"{key} is not taken over", _CHANGING[key])


def _list_kustomization_entries(document: Document, key: str) -> Iterator[tuple[int, Any]]:
    value = document.value.get(key)
    return enumerate(value) if isinstance(value, list) else iter(())


def convert_imported_patches(
    patches: Sequence[MergePatch], objects: Sequence[Body], cluster: str
) -> tuple[list[ConvertedPatch], list[Finding]]:
    """Convert patches to fit rendered objects; report those that cannot be converted."""
    found: list[ConvertedPatch] = []
    findings: list[Finding] = []
    for patch in patches:
        try:
            matching = _select_objects_of_imported_patch(patch, objects)
        except TargetError as error:
            findings.append(Finding(IMPORT_PATCH, patch.where, f"its target: {error}", "Correct the target."))
            continue
        if not matching:
            kinds = ", ".join(sorted({one["kind"] for one in objects}))
            findings.append(
                Finding(
                    IMPORT_PATCH,
                    patch.where,
                    f"nothing that gangplan renders for {cluster} is {patch.name}; it renders {kinds}",
                    "For a job of another system, build the overlay (kustomize build FOLDER > jobs.yaml) and import what comes out.",
                )
            )
            continue
        try:
            found += _convert_imported_patch_for_objects(patch, matching)
        except UnclearMergeError as error:
            findings.append(
                Finding(
                    IMPORT_PATCH,
                    patch.where,
                    f"{'.'.join(error.path)}: {error}",
                    "Write the operations yourself (docs/overlays.md).",
                )
            )
    return found, findings


def _select_objects_of_imported_patch(patch: MergePatch, objects: Sequence[Body]) -> list[Body]:
    """Return the objects that a patch selects: by its target, else by kind and name.

    The name of a job selects its runs.
    """
    if patch.target is not None:
        target: Target = parse_patch_target(dict(patch.target))
        return [one for one in objects if target.matches(one)]
    meta = patch.value.get("metadata")
    name = str(meta.get("name", "")) if isinstance(meta, dict) else ""
    group = str(patch.value.get("apiVersion", "")).rpartition("/")[0]
    return [
        one
        for one in objects
        if one["kind"] == patch.value.get("kind")
        and str(one["apiVersion"]).rpartition("/")[0] == group
        and name in (one["metadata"].get("name"), one["metadata"].get("labels", {}).get(_JOB))
    ]


def _convert_imported_patch_for_objects(
    patch: MergePatch, matching: Sequence[Body]
) -> Iterator[ConvertedPatch]:
    """Yield one entry if the operations are the same for all objects, else one for each job or object."""
    if patch.operations and patch.target is not None:
        yield ConvertedPatch(
            {key: str(value) for key, value in patch.target.items()}, patch.operations, patch
        )
        return
    each = [(one, tuple(convert_strategic_merge_to_json6902(one, patch.value))) for one in matching]
    each = [(one, made) for one, made in each if made]
    if patch.target is not None and len({repr(made) for _, made in each}) == 1 and len(each) == len(matching):
        yield ConvertedPatch({key: str(value) for key, value in patch.target.items()}, each[0][1], patch)
        return
    told: set[str] = set()
    for body, made in each:
        target = _build_target_of_imported_patch(body)
        if repr((target, made)) not in told:
            told.add(repr((target, made)))
            yield ConvertedPatch(target, made, patch)


def _build_target_of_imported_patch(body: Body) -> dict[str, str]:
    labels = body["metadata"].get("labels", {})
    kind = {"kind": str(body["kind"])}
    if _JOB in labels and _RUN in labels:
        return {**kind, "labelSelector": f"{_JOB}={labels[_JOB]}"}
    target = {**kind, "name": str(body["metadata"]["name"])}
    if "namespace" in body["metadata"]:
        target["namespace"] = str(body["metadata"]["namespace"])
    return target


def append_imported_patches(before: str | None, patches: Sequence[ConvertedPatch]) -> str | None:
    """Return the cluster's kustomization with the patches after its own.

    Return None if they cannot be appended to the file as it is written.
    """
    added = "".join(one.text() for one in patches)
    if before is None:
        return f"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n{added}"
    documents, _ = load_all_documents(before.encode(), "kustomization.yaml")
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        return None
    value = documents[0].value
    text = before if before.endswith("\n") else f"{before}\n"
    lead = _find_indentation_for_imported_patches(documents[0], text)
    block = "".join(f"{lead}{line}\n" if line else "\n" for line in added.splitlines())
    after = f"{text}{block}" if value.get("patches") else f"{text}{format_scalar('patches')}:\n{added}"
    again, findings = load_all_documents(after.encode(), "kustomization.yaml")
    wanted = [*(value.get("patches") or []), *(_build_patch_entry(one) for one in patches)]
    is_right = not findings and len(again) == 1 and again[0].value == {**value, "patches": wanted}
    return after if is_right else None


def _build_patch_entry(one: ConvertedPatch) -> dict[str, Any]:
    return {
        "target": one.target,
        "patch": "\n".join(f"- {format_flow_yaml(each)}" for each in one.operations),
    }


def _find_indentation_for_imported_patches(document: Document, text: str) -> str:
    """Return the indentation of the entries of `patches`."""
    if not document.value.get("patches"):
        return ""
    line = text.splitlines()[(document.where(("patches", 0)).line or 1) - 1]
    return line[: len(line) - len(line.lstrip())]
