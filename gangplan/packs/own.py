"""A workspace's policies/: its own packs, and objects that apply to every cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from gangplan import policies as shipped
from gangplan.findings import Finding
from gangplan.packs.read import (
    POLICIES_FOLDER,
    PackFolder,
    PolicySource,
    list_own_packs,
    list_own_policy_files,
    read_document_body,
    read_pack,
    read_shipped_pack,
)
from gangplan.records import dataclass
from gangplan.rules.policy import POLICY_INVALID
from gangplan.source import Document, load_all_documents


@dataclass(frozen=True, slots=True, eq=False)
class OwnPolicies:
    """A workspace's policies: its packs, each with its findings, and its objects outside packs.

    The packs that come with gangplan are always available, and a folder of the workspace never replaces one
    (files.py reports it).
    """

    own: Mapping[str, tuple[PackFolder | None, Sequence[Finding]]] = field(default_factory=dict)
    sources: tuple[PolicySource, ...] = ()
    findings: tuple[Finding, ...] = ()  # about the files of `sources`

    @property
    def names(self) -> list[str]:
        """The packs that the workspace can name, sorted."""
        return sorted({*shipped.BUILTIN_PACKS, *self.own})

    def find(self, name: str) -> tuple[PackFolder | None, Sequence[Finding]]:
        """Return a pack by name and its findings; (None, ()) for an unknown name."""
        return read_shipped_pack(name) if name in shipped.BUILTIN_PACKS else self.own.get(name, (None, ()))


def load_policies(root: Path) -> OwnPolicies:
    """Read everything in policies/ but the waivers."""
    own = {name: read_pack(root / POLICIES_FOLDER / name) for name in list_own_packs(root)}
    sources: list[PolicySource] = []
    findings: list[Finding] = []
    for path in list_own_policy_files(root):
        read, wrong = _load_objects_of_policy_file(path.read_bytes(), f"{POLICIES_FOLDER}/{path.name}")
        sources += read
        findings += wrong
    return OwnPolicies(own, tuple(sources), tuple(findings))


def _load_objects_of_policy_file(data: bytes, name: str) -> tuple[list[PolicySource], list[Finding]]:
    """Return the objects of one file, and findings about it."""
    documents, findings = load_all_documents(data, name)
    sources: list[PolicySource] = []
    for document in documents:
        shapeless = _check_object_in_policy_file(document)
        findings = [*findings, *shapeless]
        if not shapeless:
            sources.append(PolicySource(read_document_body(document), document, name))
    return sources, findings


def _check_object_in_policy_file(document: Document) -> list[Finding]:
    """Return a finding if a document is not a Kubernetes object."""
    body = read_document_body(document)
    metadata = body.get("metadata")
    path: tuple[str, ...] = ()
    missing = [name for name in ("apiVersion", "kind") if not isinstance(body.get(name), str)]
    if missing:
        path, message = (missing[0],), f"the document is not a Kubernetes object: it has no {missing[0]}"
    elif not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        path, message = ("metadata", "name"), f"the {body['kind']} has no metadata.name"
    elif not isinstance(metadata.get("labels") or {}, dict):
        path, message = ("metadata", "labels"), "metadata.labels is a mapping"
    elif not isinstance(metadata.get("namespace") or "", str):
        path, message = ("metadata", "namespace"), "metadata.namespace is a text"
    else:
        return []
    help = "Write the object as kubectl would apply it, or remove the document."
    return [Finding(POLICY_INVALID, document.where(path), message, help)]
