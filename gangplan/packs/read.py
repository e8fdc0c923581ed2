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
from gangplan.objects import POLICY
from gangplan.packs.model import Pack
from gangplan.records import dataclass
from gangplan.rules.policy import PACK_INVALID
from gangplan.source import Document, load_file
from gangplan.spec.load import parse

POLICIES = "policies"
NOT_PACKS = ("waivers", "tests")


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
    return sorted({*shipped.PACKS, *own_names(root)})


def own_names(root: Path) -> list[str]:
    """Return the packs of the workspace itself, sorted."""
    found = {file.parent.name for file in (root / POLICIES).glob("*/pack.yaml")}
    return sorted(found - {*shipped.PACKS, *NOT_PACKS})


@cache
def shipped_pack(name: str) -> tuple[PackFolder | None, list[Finding]]:
    """Return a pack that comes with gangplan, and findings about it."""
    return read_pack(shipped_folder() / name)


def policy_files(root: Path) -> list[Path]:
    """Return the policy files of all packs that a workspace can name, readable or not."""
    folders = [folder for name in names(root) if (folder := _folder(root, name)) is not None]
    return [path for folder in folders for path in sorted(folder.glob("*.yaml")) if path.stem != "pack"]


def _folder(root: Path, name: str) -> Path | None:
    """Return the folder of a pack, if there is one.

    A folder of the workspace never replaces a pack that comes with gangplan (files.py reports it).
    """
    if name in shipped.PACKS:
        return shipped_folder() / name
    return root / POLICIES / name if name in own_names(root) else None


def own_files(root: Path) -> list[Path]:
    """Return the workspace's own policy files: policies/*.yaml."""
    found = (root / POLICIES).glob("*.yaml")
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


@cache
def shipped_folder() -> Path:
    """Return the folder of the packs that come with gangplan. Raises InternalError when they are not
    installed."""
    if shipped.__file__ is None:
        raise InternalError("the packs of gangplan are not installed")
    return Path(shipped.__file__).parent


@cache
def shipped_packs() -> dict[str, Pack]:
    """Return the pack.yaml of each pack that comes with gangplan, without its policies."""
    found: dict[str, Pack] = {}
    for name in shipped.PACKS:
        document, _ = load_file(shipped_folder() / name / "pack.yaml", f"{POLICIES}/{name}/pack.yaml")
        pack = parse(Pack, document)[0] if document is not None else None
        if pack is None:
            raise InternalError(f"the pack '{name}' of gangplan cannot be read")
        found[name] = pack
    return found


def read_pack(folder: Path) -> tuple[PackFolder | None, list[Finding]]:
    """Read the pack in a folder. Return None and findings if its pack.yaml is invalid."""
    name = f"{POLICIES}/{folder.name}"
    document, findings = load_file(folder / "pack.yaml", f"{name}/pack.yaml")
    if document is None:
        return None, findings
    pack, more = parse(Pack, document)
    if pack is None or more:
        return None, [*findings, *more]
    sources: dict[str, PolicySource] = {}
    for policy in pack.policies:
        file = f"{name}/{policy}.yaml"
        where = document.where((POLICIES, policy), key=True)
        if not (folder / f"{policy}.yaml").is_file():
            help = f"Write the {POLICY} into {file}, or remove the entry."
            findings = [
                *findings,
                Finding(PACK_INVALID, where, f"policy '{policy}' has no file {file}", help),
            ]
            continue
        read, more = load_file(folder / f"{policy}.yaml", file)
        findings = [*findings, *more]
        if read is not None:
            findings = [*findings, *_named(read, policy)]
            is_shipped = folder.parent == shipped_folder() and folder.name in shipped.PACKS
            sources[policy] = PolicySource(body_of(read), read, file, is_shipped)
    for file in sorted(path.stem for path in folder.glob("*.yaml")):
        if file != "pack" and file not in pack.policies:
            where = Location(f"{name}/{file}.yaml", 1, 1)
            help = f"Add '{file}' to policies: in {name}/pack.yaml, or remove the file."
            findings = [
                *findings,
                Finding(PACK_INVALID, where, f"pack '{folder.name}' does not know this file", help),
            ]
    return PackFolder(folder.name, pack, document, folder, sources), findings


def body_of(document: Document) -> dict[str, Any]:
    """Return the object of a document; empty if it holds something else."""
    return document.value if isinstance(document.value, dict) else {}


def name_of(body: Mapping[str, Any]) -> str:
    """Return metadata.name of an object as written; empty if it has no such text."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _named(document: Document, policy: str) -> list[Finding]:
    """Check that the file of a policy holds that policy and nothing else."""
    body = body_of(document)
    kind, name = body.get("kind"), name_of(body)
    if kind == POLICY and name == policy:
        return []
    return [
        Finding(
            PACK_INVALID,
            document.where(("metadata", "name")),
            f"the file holds {kind} '{name}'; it is read as {POLICY} '{policy}'",
            f"Set kind: {POLICY} and metadata.name: {policy}.",
        )
    ]
