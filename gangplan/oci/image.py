"""Look into an image from a registry or a layout, for one architecture."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import IO, cast

from gangplan.errors import ToolError
from gangplan.oci.inside import ImageConfig, ImageContents, find_image_contents, parse_oci_image_config
from gangplan.oci.layers import ImageFiles
from gangplan.oci.layout import ImageLayout
from gangplan.oci.manifests import (
    Descriptor,
    FoundImage,
    find_image_in_manifest,
    parse_manifest_or_config_json,
)
from gangplan.oci.names import Reference
from gangplan.oci.registry import RegistryClient
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class InspectedImage:
    """An image and what is in it; `contents` and `files` are None where layers were not read."""

    name: str
    found: FoundImage
    config: ImageConfig
    files: ImageFiles | None = None
    contents: ImageContents | None = None

    @property
    def size(self) -> int:
        """The compressed size of the layers in bytes, which a node downloads."""
        return sum(one.size for one in self.found.layers)

    @property
    def architectures(self) -> tuple[str, ...]:
        """The architectures of the index, or else of the image itself."""
        return self.found.architectures or (self.config.architecture,)


def inspect_registry_image(
    reference: Reference, architecture: str, registry: RegistryClient, with_layers: bool, also: frozenset[str]
) -> InspectedImage:
    """Look into an image in a registry; download its layers only if asked to. Raises ToolError."""
    what = str(reference)

    def manifest(one: Descriptor) -> object:
        return registry.manifest(Reference(reference.host, reference.path, None, one.digest))

    found = find_image_in_manifest(registry.manifest(reference), architecture, manifest, what)  # type: ignore[arg-type]
    config = parse_oci_image_config(
        parse_manifest_or_config_json(
            registry.blob(reference, found.config.digest, found.config.size), f"{what}: configuration"
        )
    )
    if not with_layers:
        return InspectedImage(what, found, config)

    def layer(one: Descriptor) -> IO[bytes]:
        stream = cast("IO[bytes]", tempfile.TemporaryFile())  # noqa: SIM115  closed by whoever reads it
        try:
            registry.blob(reference, one.digest, one.size, stream)
        except BaseException:
            stream.close()
            raise
        stream.seek(0)
        return stream

    return _inspect_image_layers(what, found, config, layer, also)


def inspect_oci_layout_image(
    layout: ImageLayout, tag: str | None, architecture: str, also: frozenset[str]
) -> InspectedImage:
    """Look into an image in a layout, including its layers. Raises UserError and ToolError."""
    found = find_image_in_manifest(layout.top(tag), architecture, layout.manifest, layout.name)
    with layout.blob(found.config) as stream:
        config = parse_oci_image_config(
            parse_manifest_or_config_json(stream.read(found.config.size), f"{layout.name}: configuration")
        )
    return _inspect_image_layers(layout.name, found, config, layout.blob, also)


def _inspect_image_layers(
    name: str,
    found: FoundImage,
    config: ImageConfig,
    open: Callable[[Descriptor], IO[bytes]],
    also: frozenset[str],
) -> InspectedImage:
    files = ImageFiles()
    for number, one in enumerate(found.layers, 1):
        try:
            stream = open(one)
        except ToolError as bad:
            files.unread.append(f"layer {number}: {bad.message}")
            continue
        with stream:
            files.lay(number, stream, one.size, also)
    return InspectedImage(name, found, config, files, find_image_contents(files, config))
