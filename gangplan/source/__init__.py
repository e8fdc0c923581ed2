"""Bytes of a YAML file in; a document whose every value knows its line and column, or findings, out.

Scalars are read as Kubernetes reads them. `load` is for what people write (strict, with positions),
`load_objects` for what programs write (fast, without), `load_blocks` for what templates write (faster).
"""

from gangplan.source.blocks import load_blocks
from gangplan.source.document import MOST_BYTES, Document, FileLimits, Path, load
from gangplan.source.files import load_file
from gangplan.source.manifests import ManifestError, load_objects
from gangplan.source.plain import unplain
from gangplan.source.several import load_several

__all__ = [
    "MOST_BYTES",
    "Document",
    "FileLimits",
    "ManifestError",
    "Path",
    "load",
    "load_blocks",
    "load_file",
    "load_objects",
    "load_several",
    "unplain",
]
