"""Look into an image from a registry or a layout, for one architecture."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import IO, cast

from gangplan.errors import ToolError
from gangplan.oci.inside import Config, Contents, config_of, contents_of
from gangplan.oci.layers import Files
from gangplan.oci.layout import Layout
from gangplan.oci.manifests import Descriptor, Found, find, json_object
from gangplan.oci.names import Reference
from gangplan.oci.registry import Registry
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Looked:
    """An image and what is in it; `contents` and `files` are None where layers were not read."""

    name: str
    found: Found
    config: Config
    files: Files | None = None
    contents: Contents | None = None

    @property
    def size(self) -> int:
        """The compressed size of the layers in bytes, which a node downloads."""
        return sum(one.size for one in self.found.layers)

    @property
    def architectures(self) -> tuple[str, ...]:
        """The architectures of the index, or else of the image itself."""
        return self.found.architectures or (self.config.architecture,)


def from_registry(
    reference: Reference, architecture: str, registry: Registry, with_layers: bool, also: frozenset[str]
) -> Looked:
    """Look into an image in a registry; download its layers only if asked to. Raises ToolError."""
    what = str(reference)

    def manifest(one: Descriptor) -> object:
        return registry.manifest(Reference(reference.host, reference.path, None, one.digest))

    found = find(registry.manifest(reference), architecture, manifest, what)  # type: ignore[arg-type]
    config = config_of(
        json_object(
            registry.blob(reference, found.config.digest, found.config.size), f"{what}: configuration"
        )
    )
    if not with_layers:
        return Looked(what, found, config)

    def layer(one: Descriptor) -> IO[bytes]:
        stream = cast("IO[bytes]", tempfile.TemporaryFile())  # noqa: SIM115  closed by whoever reads it
        try:
            registry.blob(reference, one.digest, one.size, stream)
        except BaseException:
            stream.close()
            raise
        stream.seek(0)
        return stream

    return _with_files(what, found, config, layer, also)


def from_layout(layout: Layout, tag: str | None, architecture: str, also: frozenset[str]) -> Looked:
    """Look into an image in a layout, including its layers. Raises UserError and ToolError."""
    found = find(layout.top(tag), architecture, layout.manifest, layout.name)
    with layout.blob(found.config) as stream:
        config = config_of(json_object(stream.read(found.config.size), f"{layout.name}: configuration"))
    return _with_files(layout.name, found, config, layout.blob, also)


def _with_files(
    name: str,
    found: Found,
    config: Config,
    open: Callable[[Descriptor], IO[bytes]],
    also: frozenset[str],
) -> Looked:
    files = Files()
    for number, one in enumerate(found.layers, 1):
        try:
            stream = open(one)
        except ToolError as bad:
            files.unread.append(f"layer {number}: {bad.message}")
            continue
        with stream:
            files.lay(number, stream, one.size, also)
    return Looked(name, found, config, files, contents_of(files, config))
