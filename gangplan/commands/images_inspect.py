"""`gangplan images inspect`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gangplan.commands.absent import build_missing_cluster_error, build_missing_image_error
from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, sort_findings
from gangplan.oci.compare import compare_with_catalog, list_catalog_files_in_image
from gangplan.oci.image import InspectedImage, inspect_oci_layout_image, inspect_registry_image
from gangplan.oci.layout import open_oci_layout
from gangplan.oci.names import parse_registry_image_reference
from gangplan.oci.registry import RegistryClient
from gangplan.records import dataclass
from gangplan.reference.one_policy import find_workspace_to_explain
from gangplan.report.escape import escape_own_line
from gangplan.resolve.image import resolve_image_reference
from gangplan.rules.model import Severity
from gangplan.spec.catalog import Image
from gangplan.workspace import Workspace as World
from gangplan.workspace import load_workspace

_LAYOUTS = ("oci:", "oci-archive:")


@dataclass(frozen=True, slots=True)
class InspectFlags:
    """What a command line selects: an image, its entry in the catalog, a cluster, an architecture."""

    image: str
    entry: str | None
    cluster: str | None
    architecture: str | None
    with_layers: bool


def run_images_inspect_command(asked: InspectFlags, workspace: Path | None, format: str) -> Exit:
    """Show what is inside an image, and where the catalog differs from it.

    Raises UserError for unknown names, ToolError for an image that cannot be read.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    root = find_workspace_to_explain(workspace)
    world = load_workspace(root) if root is not None else None
    images = dict(world.catalog.images) if world is not None and world.catalog is not None else {}
    name, entry = _find_catalog_entry_named_by_flags(asked, world, images)
    looked = _inspect_image_argument(asked, world, entry)
    document = world.catalog_document if world is not None else None
    findings: list[Finding] = []
    if entry is not None and document is not None:
        findings = sort_findings(compare_with_catalog(name, entry, looked, document))
    facts = build_facts_for_images_inspect_command(looked)
    if format == "json":
        told = [
            {"rule": one.rule, "severity": one.severity.word, "place": str(one.where), "message": one.message}
            for one in findings
        ]
        body = {**facts, "image": name or None, "findings": told}
        sys.stdout.write(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(
            "".join(f"{escape_own_line(line)}\n" for line in _format_images_inspect_output(facts))
        )
        if entry is None:
            sys.stderr.write("note: it is compared with no image of the catalog; name one with --image\n")
    print_findings_to_stderr(findings)
    return choose_exit_code(findings, Severity.ERROR)


def _find_catalog_entry_named_by_flags(
    asked: InspectFlags, world: World | None, images: dict[str, Image]
) -> tuple[str, Image | None]:
    """Return the entry of the catalog: by name, else the only one with that repository."""
    name = asked.entry or (asked.image if asked.image in images else "")
    if not name and not asked.image.startswith(_LAYOUTS) and "/" in asked.image:
        repository = parse_registry_image_reference(asked.image).repository
        fitting = [one for one, entry in images.items() if entry.repository == repository]
        name = fitting[0] if len(fitting) == 1 else ""
    if name and name not in images:
        raise build_missing_image_error(name, world)
    return name, images.get(name)


def _inspect_image_argument(asked: InspectFlags, world: World | None, entry: Image | None) -> InspectedImage:
    also = list_catalog_files_in_image(entry)
    architecture = asked.architecture or (entry.architectures[0] if entry else "amd64")
    if asked.image.startswith(_LAYOUTS):
        path, tag = _split_oci_layout_path(asked.image.partition(":")[2])
        return inspect_oci_layout_image(open_oci_layout(Path(path), asked.image), tag, architecture, also)
    text = asked.image
    if "/" not in text:
        if entry is None or asked.entry not in (None, text):
            raise build_missing_image_error(text, world)
        text = f"{entry.repository}@{entry.digest}"
        if asked.cluster is not None:
            if world is None or asked.cluster not in world.clusters:
                raise build_missing_cluster_error(asked.cluster, world)
            text = resolve_image_reference(entry, world.clusters[asked.cluster].spec, asked.cluster)
    return inspect_registry_image(
        parse_registry_image_reference(text),
        architecture,
        RegistryClient(os.environ),
        asked.with_layers,
        also,
    )


def _split_oci_layout_path(text: str) -> tuple[str, str | None]:
    """Return the path and the tag of oci:PATH:TAG; an existing path may contain a colon itself."""
    path, colon, tag = text.rpartition(":")
    return (path, tag) if colon and not Path(text).exists() else (text, None)


def build_facts_for_images_inspect_command(looked: InspectedImage) -> dict[str, Any]:
    """Return the facts about an image as JSON shows them: no time, no path of this machine."""
    config, found = looked.config, looked.found
    facts: dict[str, Any] = {
        "reference": looked.name,
        "digest": found.digest,
        "manifest": found.manifest_digest,
        "architecture": config.architecture,
        "architectures": list(looked.architectures),
        "os": config.os,
        "user": config.user,
        "entrypoint": list(config.entrypoint),
        "command": list(config.command),
        "workdir": config.folder,
        "ports": list(config.ports),
        "env": dict(config.env),
        "labels": dict(config.labels),
        "size": looked.size,
        "layers": [{"digest": one.digest, "size": one.size} for one in found.layers],
    }
    if looked.contents is not None and looked.files is not None:
        inside = looked.contents
        facts["inside"] = {
            "mpi": [
                {"family": one.family, "version": one.version, "by": f"/{one.by}"} for one in inside.mpis
            ],
            "frameworks": dict(inside.frameworks),
            "cuda": inside.cuda,
            "cudaCompat": inside.has_compat,
            "rocm": inside.rocm,
            "users": {str(uid): name for uid, name in sorted(inside.users.items())},
            "unread": list(looked.files.unread),
        }
    return facts


def _format_images_inspect_output(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the same for people, a word and its value per line.

    Images are not expected to contain secrets, and are not searched for them.
    """
    for name in ("reference", "digest", "architectures", "user", "entrypoint", "command", "workdir", "ports"):
        value = facts[name]
        yield f"{name:14}{(' '.join(value) if isinstance(value, list) else value) or '-'}"
    yield f"{'size':14}{facts['size'] / 1e6:.1f} MB in {len(facts['layers'])} layers"
    for kind in ("env", "labels"):
        for key, value in facts[kind].items():
            yield f"{kind:14}{key}={value}"
    inside = facts.get("inside")
    if inside is None:
        yield f"{'inside':14}not looked into: --layers downloads the layers"
        return
    for one in inside["mpi"]:
        yield f"{'mpi':14}{one['family']} {one['version'] or '(version not known)'} by {one['by']}"
    for key, value in inside["frameworks"].items():
        yield f"{'framework':14}{key} {value}"
    for key in ("cuda", "rocm"):
        if inside[key]:
            yield f"{key:14}{inside[key]}{' with cuda-compat' if key == 'cuda' and inside['cudaCompat'] else ''}"
    people = [f"{name} ({uid})" for uid, name in inside["users"].items() if int(uid) == 0 or int(uid) >= 1000]
    yield f"{'users':14}{', '.join(people) or '-'}"
    for reason in inside["unread"]:
        yield f"{'not read':14}{reason}"
