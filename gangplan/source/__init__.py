"""Reading YAML: bytes of a file to a document whose every value has a line and column, or to findings.

Scalars are read as Kubernetes reads them. `load` is for files that people write (strict, with positions),
`load_objects` for files that programs write (fast, without positions), `load_blocks` for the output of
templates (faster).
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
