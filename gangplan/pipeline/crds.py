"""CRDs as a cluster or a chart has them, read and written for `schema import`."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from gangplan.cel.errors import CompileError
from gangplan.errors import UserError, build_os_refusal_error
from gangplan.findings import Location
from gangplan.source import FieldPath as Steps
from gangplan.source import FileLimits, ManifestError, load_all_documents, load_objects
from gangplan.validate.apiserver.crdrules.compiled import check_schema_rules
from gangplan.validate.apiserver.crdrules.manifest import find_crd_problem
from gangplan.validate.apiserver.crdrules.registry import reduce_crd

# CRDs are larger and more deeply nested than what people write.
_LIMITS = FileLimits(1 << 26, 180, 1 << 24)


def write_crd(root: Path, path: Path, crd: dict[str, Any]) -> str:
    """Write a CRD to its place in the workspace, and return that path.

    Raises UserError if a link leads out of the workspace, ToolError if the machine refuses.
    """
    file = path.relative_to(root).as_posix()
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise UserError(
            f"{file} would be written outside of the workspace", "Replace the link with a folder."
        )
    text = json.dumps(crd, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    fresh = path.with_name(f".gangplan.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
        finally:
            with suppress(OSError):
                fresh.unlink()
    except OSError as bad:
        raise build_os_refusal_error(f"{file} was not written", bad) from None
    return file


def read_crds_for_schema_import(file: Path) -> list[dict[str, Any]]:
    """Return the CRDs of a file, without its other objects. Raises UserError if it has none or a bad one."""
    try:
        data = file.read_bytes()
        bodies = load_objects(data)
    except OSError as bad:
        raise UserError(f"{file} cannot be read: {bad.strerror}", "Name a file with CRDs.") from None
    except ManifestError as bad:
        raise UserError(
            f"{file} is not YAML of Kubernetes objects: {bad}", "Name a file with CRDs."
        ) from None
    found = [
        (number, path, item)
        for number, body in enumerate(bodies)
        for path, item in _list_objects_in_body(body)
        if item.get("kind") == "CustomResourceDefinition"
    ]
    if not found:
        help = "Get them with: kubectl get crd NAME... -o yaml."
        raise UserError(f"{file} holds no CustomResourceDefinition", help)
    for number, path, item in found:
        wrong = find_crd_problem(item)
        if wrong is not None:
            place = _format_crd_document_place(data, str(file), number, (*path, *wrong.path))
            raise UserError(f"{place}: {wrong.message}", wrong.help)
    return [reduce_crd(item) for _, _, item in found]


def _list_objects_in_body(body: dict[str, Any]) -> list[tuple[Steps, dict[str, Any]]]:
    """Return an object, or those of a List, with their paths in the document."""
    items = body.get("items")
    if not isinstance(items, list):
        return [((), body)]
    return [(("items", index), item) for index, item in enumerate(items) if isinstance(item, dict)]


def _format_crd_document_place(data: bytes, file: str, number: int, path: Steps) -> str:
    """Return `file:line:column` of a part of the document with this number, or the file alone."""
    documents, findings = load_all_documents(data, file, _LIMITS)
    if findings or number >= len(documents):
        return file
    return str(documents[number].where(path))


def check_crd_file(file: Path, crd: dict[str, Any], minor: int) -> None:
    """Check the rules and defaults of a CRD as an API server of Kubernetes 1.`minor` does.

    Raises UserError if a rule does not compile, or a default does not fit its field.
    """
    for version, schema in crd["versions"].items():
        name = f"{crd['kind']} {crd['group']}/{version}"
        try:
            for place, message in check_schema_rules(schema, minor):
                help = f"Kubernetes 1.{minor} would refuse the CRD: correct it."
                raise UserError(
                    f"{_find_crd_mistake_place(file, crd, version, place)}: {name}: {message}", help
                )
        except CompileError as wrong:
            help = f"Kubernetes 1.{minor} would refuse the CRD: correct the rule."
            where = _find_crd_mistake_place(file, crd, version, wrong.place, wrong.issues[0].offset)
            raise UserError(f"{where}: a rule of {name} does not compile: {wrong}", help) from None


def _find_crd_mistake_place(
    file: Path, crd: dict[str, Any], version: str, steps: Steps, offset: int = 0
) -> Location:
    """Return the place of a mistake in the imported file; `offset` is one in the text at that place."""
    documents, _ = load_all_documents(file.read_bytes(), str(file), _LIMITS)
    for document in documents:
        body = document.value if isinstance(document.value, dict) else {}
        for prefix, item in _list_objects_in_body(body):
            spec = item.get("spec") if item.get("kind") == "CustomResourceDefinition" else None
            if not spec or (spec["group"], spec["names"]["plural"]) != (crd["group"], crd["plural"]):
                continue
            at = [one["name"] for one in spec["versions"]].index(version)
            place = (*prefix, "spec", "versions", at, "schema", "openAPIV3Schema", *steps)
            return document.inside(place, offset) if offset else document.where(place)
    return Location(str(file))
