"""Parse untrusted manifests and indexes: sizes, digests and platforms are checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from gangplan.errors import ToolError
from gangplan.oci.names import INDEX_TYPES, MANIFEST_TYPES, is_digest
from gangplan.oci.registry import MAX_MANIFEST_BYTES, Manifest
from gangplan.records import dataclass

#: How deep indexes may nest: real ones do not go deeper.
_DEEPEST = 3
#: Most entries of an index, and most layers of an image.
_MOST_ENTRIES = 1000
#: Largest configuration in bytes, which holds the history of a build.
MOST_CONFIG = 8 << 20
#: Largest layer in bytes.
MOST_LAYER = 64 << 30


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A piece of an image: its digest, its size in bytes, its media type."""

    digest: str
    size: int
    media_type: str


@dataclass(frozen=True, slots=True)
class ImagePlatform:
    """One entry of an index: its operating system and processor architecture, by Go's names."""

    os: str
    architecture: str
    variant: str
    entry: Descriptor

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image for one architecture.

    `digest` is that of the reference: of the index, if there is one. `architectures` are those of the index,
    empty where only the configuration has one.
    """

    digest: str
    architectures: tuple[str, ...]
    manifest_digest: str
    config: Descriptor
    layers: tuple[Descriptor, ...]


# Returns the manifest of a digest, verified.
Fetch = Callable[[Descriptor], Manifest]


def find_image_in_manifest(top: Manifest, architecture: str, fetch: Fetch, what: str) -> FoundImage:
    """Return the image for an architecture. Raises ToolError if there is no such image, or if it is not an
    image."""
    body = _parse_manifest_json(top, what)
    names: tuple[str, ...] = ()
    manifest, seen = top, {top.digest}
    for _ in range(_DEEPEST):
        if not is_oci_image_index(manifest, body):
            config, layers = _parse_manifest_config_and_layers(body, what)
            return FoundImage(top.digest, names, manifest.digest, config, layers)
        platforms = image_index_platforms_of(body, what)
        names = names or _list_linux_architectures(platforms)
        entry = _select_image_manifest_for_platform(platforms, architecture, what)
        if entry.digest in seen:
            raise ToolError(f"{what}: its index leads back to itself")
        seen.add(entry.digest)
        manifest = fetch(entry)
        body = _parse_manifest_json(manifest, what)
    raise ToolError(f"{what}: its index is nested more than {_DEEPEST} deep")


def architectures_of(top: Manifest, what: str) -> tuple[str, ...]:
    """Return the Linux architectures that an index lists; empty for a single image, and if the index names
    none."""
    body = _parse_manifest_json(top, what)
    return (
        _list_linux_architectures(image_index_platforms_of(body, what))
        if is_oci_image_index(top, body)
        else ()
    )


def _list_linux_architectures(platforms: Sequence[ImagePlatform]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(one.architecture for one in platforms if one.os == "linux" and one.architecture)
    )


def is_oci_image_index(manifest: Manifest, body: dict[str, Any]) -> bool:
    """Return whether a manifest is an index, by its own media type, else by the header's, else by its fields.

    Raises ToolError for one that is both an index and an image.
    """
    kind = body.get("mediaType") or manifest.media_type
    if "manifests" in body and "layers" in body:
        raise ToolError(f"{manifest.digest} is both an index and an image: readers would not agree")
    return kind in INDEX_TYPES or ("manifests" in body and kind not in MANIFEST_TYPES)


def image_index_platforms_of(body: dict[str, Any], what: str) -> tuple[ImagePlatform, ...]:
    """Return the images of an index, without attestations and the like, whose platform is unknown."""
    entries = body.get("manifests")
    if not isinstance(entries, list) or len(entries) > _MOST_ENTRIES:
        raise ToolError(f"{what}: its index lists nothing that can be read")
    found = []
    for one in entries:
        platform = one.get("platform") if isinstance(one, dict) else None
        facts = platform if isinstance(platform, dict) else {}
        os, architecture = str(facts.get("os", "linux")), str(facts.get("architecture", ""))
        if architecture != "unknown":
            entry = _parse_oci_descriptor(one, MAX_MANIFEST_BYTES, what)
            found.append(ImagePlatform(os, architecture, str(facts.get("variant", "")), entry))
    return tuple(found)


def _select_image_manifest_for_platform(
    platforms: Sequence[ImagePlatform], architecture: str, what: str
) -> Descriptor:
    fitting = [one for one in platforms if one.os == "linux" and one.architecture == architecture]
    if not fitting and len(platforms) == 1 and not platforms[0].architecture:
        fitting = list(platforms)  # the index of a layout need not name a platform
    if not fitting:
        has = ", ".join(map(str, platforms)) or "nothing"
        raise ToolError(f"{what} has nothing for linux/{architecture}: its index has {has[:500]}")
    return fitting[0].entry


def _parse_manifest_config_and_layers(
    body: dict[str, Any], what: str
) -> tuple[Descriptor, tuple[Descriptor, ...]]:
    layers = body.get("layers")
    if not isinstance(body.get("config"), dict) or not isinstance(layers, list):
        raise ToolError(f"{what} is not an image: it has no configuration and layers")
    if len(layers) > _MOST_ENTRIES:
        raise ToolError(f"{what} has {len(layers)} layers")
    config = _parse_oci_descriptor(body["config"], MOST_CONFIG, what)
    return config, tuple(_parse_oci_descriptor(one, MOST_LAYER, what) for one in layers)


def _parse_oci_descriptor(value: Any, most: int, what: str) -> Descriptor:
    facts = value if isinstance(value, dict) else {}
    digest, size = facts.get("digest"), facts.get("size")
    if not isinstance(digest, str) or not is_digest(digest):
        raise ToolError(f"{what} names a piece by '{str(digest)[:80]}', which is not a SHA-256 digest")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= most:
        raise ToolError(f"{what} has a piece of {str(size)[:40]} bytes; at most {most} are read")
    return Descriptor(digest, size, str(facts.get("mediaType", "")))


def _parse_manifest_json(manifest: Manifest, what: str) -> dict[str, Any]:
    return parse_manifest_or_config_json(manifest.data, f"{what}: manifest {manifest.digest}")


def parse_manifest_or_config_json(data: bytes, what: str) -> dict[str, Any]:
    """Parse bytes as a JSON object. Raises ToolError for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ToolError(f"{what} is not a JSON object")
    return value
