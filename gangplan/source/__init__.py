"""Reading YAML: bytes of a file to a document whose every value has a line and column, or to findings.

Scalars are read as Kubernetes reads them. `load_document` is for files that people write (strict, with
positions), `load_objects` for files that programs write (fast, without positions), `load_blocks` for the
output of templates (faster).
"""

from gangplan.findings import FieldPath
from gangplan.source.blocks import load_blocks
from gangplan.source.document import MAX_DOCUMENT_BYTES, Document, FileLimits, load_document
from gangplan.source.files import load_file
from gangplan.source.manifests import ManifestError, load_objects
from gangplan.source.plain import find_special_files
from gangplan.source.several import load_all_documents

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "Document",
    "FieldPath",
    "FileLimits",
    "ManifestError",
    "find_special_files",
    "load_all_documents",
    "load_blocks",
    "load_document",
    "load_file",
    "load_objects",
]
