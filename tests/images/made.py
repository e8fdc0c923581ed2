"""Images that tests build: layers, configurations, manifests and indexes, as registries and layouts store
them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.oci.names import OCI_INDEX, OCI_MANIFEST, compute_blob_digest
from tests.images.registry import Store

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"


def layer(files: Mapping[str, str | bytes | None]) -> bytes:
    """Return a tar with these files: None is a folder, '-> NAME' a symbolic link, '=> NAME' a hard link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            elif isinstance(content, str) and content.startswith("-> "):
                entry.type, entry.linkname = tarfile.SYMTYPE, content[3:]
                archive.addfile(entry)
            elif isinstance(content, str) and content.startswith("=> "):
                entry.type, entry.linkname = tarfile.LNKTYPE, content[3:]
                archive.addfile(entry)
            else:
                data = content.encode() if isinstance(content, str) else content
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def image(
    store: Store,
    layers: list[bytes] | None = None,
    config: Mapping[str, Any] | None = None,
    architecture: str = "amd64",
    compress: bool = True,
) -> dict[str, Any]:
    """Add the blobs of an image to a store and return the body of its manifest."""
    entries = []
    for data in layers or []:
        packed = gzip.compress(data, mtime=0) if compress else data
        entries.append(store.blob(packed) | {"mediaType": LAYER + ("+gzip" if compress else "")})
    body = {
        "architecture": architecture,
        "os": "linux",
        "config": dict(config or {}),
        "rootfs": {"type": "layers"},
    }
    described = store.blob(json.dumps(body).encode()) | {"mediaType": CONFIG}
    return {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described, "layers": entries}


def index(
    store: Store, repository: str, images: Mapping[str, dict[str, Any]], tag: str = "", is_signed: bool = True
) -> str:
    """Push images by architecture with an index of them, and return the digest of the index."""
    entries: list[dict[str, Any]] = []
    for architecture, body in images.items():
        data = json.dumps(body).encode()
        digest = store.push(repository, "", data)
        platform = {"os": "linux", "architecture": architecture}
        entries.append(
            {"mediaType": body["mediaType"], "digest": digest, "size": len(data), "platform": platform}
        )
    if is_signed:  # an attestation, as buildx adds them; its manifest does not exist
        unknown = {"os": "unknown", "architecture": "unknown"}
        signed = {
            "mediaType": OCI_MANIFEST,
            "digest": compute_blob_digest(b"signed"),
            "size": 6,
            "platform": unknown,
        }
        entries.append(signed)
    return store.push(repository, tag, {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries})


def layout(folder: Path, store: Store, top: dict[str, Any], name: str = "latest") -> Path:
    """Write an OCI layout with one image of a store and return its folder."""
    data = json.dumps(top).encode()
    blobs = {**store.blobs, compute_blob_digest(data): data}
    blobs |= {key[1]: value[1] for key, value in store.manifests.items() if key[1].startswith("sha256:")}
    (folder / "blobs/sha256").mkdir(parents=True)
    for digest, content in blobs.items():
        (folder / "blobs/sha256" / digest.removeprefix("sha256:")).write_bytes(content)
    entry = {"mediaType": top["mediaType"], "digest": compute_blob_digest(data), "size": len(data)}
    entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    body = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}
    (folder / "index.json").write_text(json.dumps(body))
    return folder
