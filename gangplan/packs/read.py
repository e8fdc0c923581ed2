"""Read the folders of packs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from gangplan import policies as shipped
from gangplan.errors import InternalError
from gangplan.findings import Finding, Location
from gangplan.objects import POLICY_KIND
from gangplan.packs.model import Pack
from gangplan.records import dataclass
from gangplan.rules.policy import PACK_INVALID
from gangplan.source import Document, load_file
from gangplan.spec.load import parse_spec_document

POLICIES_FOLDER = "policies"
NON_PACK_FOLDERS = ("waivers", "tests")


@dataclass(frozen=True, slots=True, eq=False)
class PolicySource:
    """An object, its document (None if gangplan made the object), and the file at which findings are
    reported."""

    body: dict[str, Any]
    document: Document | None
    file: str
    is_shipped: bool = False  # comes with gangplan, unchanged


@dataclass(frozen=True, slots=True, eq=False)
class PackFolder:
    """A pack: its name, its pack.yaml, and its policies by name."""

    name: str
    pack: Pack
    document: Document
    folder: Path
    policies: Mapping[str, PolicySource] = field(default_factory=dict)


def names(root: Path) -> list[str]:
    """Return the packs that a workspace can name, sorted."""
    return sorted({*shipped.BUILTIN_PACKS, *list_own_packs(root)})


def list_own_packs(root: Path) -> list[str]:
    """Return the packs of the workspace itself, sorted."""
    found = {file.parent.name for file in (root / POLICIES_FOLDER).glob("*/pack.yaml")}
    return sorted(found - {*shipped.BUILTIN_PACKS, *NON_PACK_FOLDERS})


@cache
def read_shipped_pack(name: str) -> tuple[PackFolder | None, list[Finding]]:
    """Return a pack that comes with gangplan, and findings about it."""
    return read_pack(find_shipped_packs_folder() / name)


def list_pack_policy_files(root: Path) -> list[Path]:
    """Return the policy files of all packs that a workspace can name, readable or not."""
    folders = [folder for name in names(root) if (folder := _find_pack_folder(root, name)) is not None]
    return [path for folder in folders for path in sorted(folder.glob("*.yaml")) if path.stem != "pack"]


def _find_pack_folder(root: Path, name: str) -> Path | None:
    """Return the folder of a pack, if there is one.

    A folder of the workspace never replaces a pack that comes with gangplan (files.py reports it).
    """
    if name in shipped.BUILTIN_PACKS:
        return find_shipped_packs_folder() / name
    return root / POLICIES_FOLDER / name if name in list_own_packs(root) else None


def list_own_policy_files(root: Path) -> list[Path]:
    """Return the workspace's own policy files: policies/*.yaml."""
    found = (root / POLICIES_FOLDER).glob("*.yaml")
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


@cache
def find_shipped_packs_folder() -> Path:
    """Return the folder of the packs that come with gangplan. Raises InternalError when they are not
    installed."""
    if shipped.__file__ is None:
        raise InternalError("the packs of gangplan are not installed")
    return Path(shipped.__file__).parent


@cache
def list_shipped_packs() -> dict[str, Pack]:
    """Return the pack.yaml of each pack that comes with gangplan, without its policies."""
    found: dict[str, Pack] = {}
    for name in shipped.BUILTIN_PACKS:
        document, _ = load_file(
            find_shipped_packs_folder() / name / "pack.yaml", f"{POLICIES_FOLDER}/{name}/pack.yaml"
        )
        pack = parse_spec_document(Pack, document)[0] if document is not None else None
        if pack is None:
            raise InternalError(f"the pack '{name}' of gangplan cannot be read")
        found[name] = pack
    return found


def read_pack(folder: Path) -> tuple[PackFolder | None, list[Finding]]:
    """Read the pack in a folder. Return None and findings if its pack.yaml is invalid."""
    name = f"{POLICIES_FOLDER}/{folder.name}"
    document, findings = load_file(folder / "pack.yaml", f"{name}/pack.yaml")
    if document is None:
        return None, findings
    pack, more = parse_spec_document(Pack, document)
    if pack is None or more:
        return None, [*findings, *more]
    sources: dict[str, PolicySource] = {}
    for policy in pack.policies:
        file = f"{name}/{policy}.yaml"
        where = document.where((POLICIES_FOLDER, policy), key=True)
        if not (folder / f"{policy}.yaml").is_file():
            help = f"Write the {POLICY_KIND} into {file}, or remove the entry."
            findings = [
                *findings,
                Finding(PACK_INVALID, where, f"policy '{policy}' has no file {file}", help),
            ]
            continue
        read, more = load_file(folder / f"{policy}.yaml", file)
        findings = [*findings, *more]
        if read is not None:
            findings = [*findings, *_check_pack_file_holds_its_policy(read, policy)]
            is_shipped = folder.parent == find_shipped_packs_folder() and folder.name in shipped.BUILTIN_PACKS
            sources[policy] = PolicySource(read_document_body(read), read, file, is_shipped)
    for file in sorted(path.stem for path in folder.glob("*.yaml")):
        if file != "pack" and file not in pack.policies:
            where = Location(f"{name}/{file}.yaml", 1, 1)
            help = f"Add '{file}' to policies: in {name}/pack.yaml, or remove the file."
            findings = [
                *findings,
                Finding(PACK_INVALID, where, f"pack '{folder.name}' does not know this file", help),
            ]
    return PackFolder(folder.name, pack, document, folder, sources), findings


def read_document_body(document: Document) -> dict[str, Any]:
    """Return the object of a document; empty if it holds something else."""
    return document.value if isinstance(document.value, dict) else {}


def read_object_name(body: Mapping[str, Any]) -> str:
    """Return metadata.name of an object as written; empty if it has no such text."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _check_pack_file_holds_its_policy(document: Document, policy: str) -> list[Finding]:
    """Check that the file of a policy holds that policy and nothing else."""
    body = read_document_body(document)
    kind, name = body.get("kind"), read_object_name(body)
    if kind == POLICY_KIND and name == policy:
        return []
    return [
        Finding(
            PACK_INVALID,
            document.where(("metadata", "name")),
            f"the file holds {kind} '{name}'; it is read as {POLICY_KIND} '{policy}'",
            f"Set kind: {POLICY_KIND} and metadata.name: {policy}.",
        )
    ]
