"""Folders of packs in, packs with their policy files out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gangplan import policies as shipped
from gangplan.errors import InternalError
from gangplan.findings import Finding, Location, error
from gangplan.packs.model import Pack
from gangplan.source import Document, load_file
from gangplan.spec.load import parse

POLICIES = "policies"
NOT_PACKS = ("waivers",)
RULE = "pack-invalid"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """An object, the document it was read from (None: gangplan made it), and the file to blame."""

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
    policies: Mapping[str, Source] = field(default_factory=dict)


def names(root: Path) -> list[str]:
    """The packs that a workspace can name, sorted."""
    return sorted(
        {file.parent.name for base in _bases(root) for file in base.glob("*/pack.yaml")} - set(NOT_PACKS)
    )


def find(root: Path, name: str) -> tuple[PackFolder | None, list[Finding]]:
    """A pack by name, or what is wrong with it; neither when there is none."""
    for base in _bases(root):
        if (base / name / "pack.yaml").is_file():
            return _read(base / name)
    return None, []


def own_files(root: Path) -> list[Path]:
    """The workspace's own policy files: policies/*.yaml."""
    return sorted((root / POLICIES).glob("*.yaml"))


def _bases(root: Path) -> tuple[Path, ...]:
    own = root / POLICIES
    return (own, shipped_folder()) if own.is_dir() else (shipped_folder(),)


@cache
def shipped_folder() -> Path:
    """Where the packs are that come with gangplan. Raises InternalError when they were not installed."""
    if shipped.__file__ is None:
        raise InternalError("the packs of gangplan are not installed")
    return Path(shipped.__file__).parent


@cache
def _read(folder: Path) -> tuple[PackFolder | None, list[Finding]]:
    name = f"{POLICIES}/{folder.name}"
    document, findings = load_file(folder / "pack.yaml", f"{name}/pack.yaml")
    if document is None:
        return None, findings
    pack, more = parse(Pack, document)
    if pack is None or more:
        return None, [*findings, *more]
    sources: dict[str, Source] = {}
    for policy in pack.policies:
        file = f"{name}/{policy}.yaml"
        where = document.where((POLICIES, policy), key=True)
        if not (folder / f"{policy}.yaml").is_file():
            help = f"Write the ValidatingAdmissionPolicy into {file}, or remove the entry."
            findings = [*findings, error(RULE, where, f"policy '{policy}' has no file {file}", help)]
            continue
        read, more = load_file(folder / f"{policy}.yaml", file)
        findings = [*findings, *more]
        if read is not None:
            findings = [*findings, *_named(read, policy)]
            sources[policy] = Source(read.value, read, file, _is_shipped(folder / f"{policy}.yaml"))
    for file in sorted(path.stem for path in folder.glob("*.yaml")):
        if file != "pack" and file not in pack.policies:
            where = Location(f"{name}/{file}.yaml", 1, 1)
            help = f"Add '{file}' to policies: in {name}/pack.yaml, or remove the file."
            findings = [*findings, error(RULE, where, f"pack '{folder.name}' does not know this file", help)]
    return PackFolder(folder.name, pack, document, folder, sources), findings


def _is_shipped(file: Path) -> bool:
    theirs = shipped_folder() / file.parent.name / file.name
    return theirs.is_file() and theirs.read_bytes() == file.read_bytes()


def _named(document: Document, policy: str) -> list[Finding]:
    """The file of a policy holds that policy and nothing else."""
    body = document.value if isinstance(document.value, dict) else {}
    kind, name = body.get("kind"), (body.get("metadata") or {}).get("name")
    if kind == "ValidatingAdmissionPolicy" and name == policy:
        return []
    return [
        error(
            RULE,
            document.where(("metadata", "name")),
            f"the file holds {kind} '{name}'; it is read as ValidatingAdmissionPolicy '{policy}'",
            f"Set kind: ValidatingAdmissionPolicy and metadata.name: {policy}.",
        )
    ]
