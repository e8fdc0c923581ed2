"""`gangplan images inspect`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gangplan.commands.absent import no_cluster, no_image
from gangplan.commands.common import exit_code, print_findings
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, in_order
from gangplan.oci.compare import also_read, compare
from gangplan.oci.image import Looked, from_layout, from_registry
from gangplan.oci.layout import open_layout
from gangplan.oci.names import parse_reference
from gangplan.oci.registry import Registry
from gangplan.records import dataclass
from gangplan.reference.one_policy import workspace_of
from gangplan.report.escape import own_line
from gangplan.resolve.image import reference
from gangplan.rules.model import Severity
from gangplan.spec.catalog import Image
from gangplan.workspace import Workspace as World
from gangplan.workspace import load_workspace

_LAYOUTS = ("oci:", "oci-archive:")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line selects: an image, its entry in the catalog, a cluster, an architecture."""

    image: str
    entry: str | None
    cluster: str | None
    architecture: str | None
    with_layers: bool


def inspect_image(asked: Asked, workspace: Path | None, format: str) -> Exit:
    """Show what is inside an image, and where the catalog differs from it.

    Raises UserError for unknown names, ToolError for an image that cannot be read.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    root = workspace_of(workspace)
    world = load_workspace(root) if root is not None else None
    images = dict(world.catalog.images) if world is not None and world.catalog is not None else {}
    name, entry = _entry(asked, world, images)
    looked = _looked(asked, world, entry)
    document = world.catalog_document if world is not None else None
    findings: list[Finding] = []
    if entry is not None and document is not None:
        findings = in_order(compare(name, entry, looked, document))
    facts = facts_of(looked)
    if format == "json":
        told = [
            {"rule": one.rule, "severity": one.severity.word, "place": str(one.where), "message": one.message}
            for one in findings
        ]
        body = {**facts, "image": name or None, "findings": told}
        sys.stdout.write(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("".join(f"{own_line(line)}\n" for line in _lines(facts)))
        if entry is None:
            sys.stderr.write("note: it is compared with no image of the catalog; name one with --image\n")
    print_findings(findings)
    return exit_code(findings, Severity.ERROR)


def _entry(asked: Asked, world: World | None, images: dict[str, Image]) -> tuple[str, Image | None]:
    """Return the entry of the catalog: by name, else the only one with that repository."""
    name = asked.entry or (asked.image if asked.image in images else "")
    if not name and not asked.image.startswith(_LAYOUTS) and "/" in asked.image:
        repository = parse_reference(asked.image).repository
        fitting = [one for one, entry in images.items() if entry.repository == repository]
        name = fitting[0] if len(fitting) == 1 else ""
    if name and name not in images:
        raise no_image(name, world)
    return name, images.get(name)


def _looked(asked: Asked, world: World | None, entry: Image | None) -> Looked:
    also = also_read(entry)
    architecture = asked.architecture or (entry.architectures[0] if entry else "amd64")
    if asked.image.startswith(_LAYOUTS):
        path, tag = _layout(asked.image.partition(":")[2])
        return from_layout(open_layout(Path(path), asked.image), tag, architecture, also)
    text = asked.image
    if "/" not in text:
        if entry is None or asked.entry not in (None, text):
            raise no_image(text, world)
        text = f"{entry.repository}@{entry.digest}"
        if asked.cluster is not None:
            if world is None or asked.cluster not in world.clusters:
                raise no_cluster(asked.cluster, world)
            text = reference(entry, world.clusters[asked.cluster].spec, asked.cluster)
    return from_registry(parse_reference(text), architecture, Registry(os.environ), asked.with_layers, also)


def _layout(text: str) -> tuple[str, str | None]:
    """Return the path and the tag of oci:PATH:TAG; an existing path may contain a colon itself."""
    path, colon, tag = text.rpartition(":")
    return (path, tag) if colon and not Path(text).exists() else (text, None)


def facts_of(looked: Looked) -> dict[str, Any]:
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


def _lines(facts: dict[str, Any]) -> Iterator[str]:
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
