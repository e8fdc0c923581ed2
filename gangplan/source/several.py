"""Loading a YAML file with several documents, each with its lines in the file."""

from __future__ import annotations

import yaml

from gangplan.findings import Finding
from gangplan.source.document import Document, FileLimits, load_document


def load_all_documents(
    data: bytes, file: str, limits: FileLimits | None = None
) -> tuple[list[Document], list[Finding]]:
    """Return the documents of a file in order, without empty ones, and the findings of those that cannot be
    loaded.

    Each document is read by `load_document`: strictly, and with its places in the whole file. Never raises.
    """
    starts = _find_yaml_document_starts(data)
    if len(starts) < 2:
        document, findings = load_document(data, file, limits)
        return ([document] if document else []), findings
    lines = data.decode().removeprefix("\ufeff").split("\n")
    documents: list[Document] = []
    problems: list[Finding] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        own = lines[start:end]
        # Replace the lines before the document with blank ones, so that every place is one in the file.
        text = "\n" * start + "\n".join(own) + ("\n" if end < len(lines) else "")
        if not any(line.strip() and not line.lstrip().startswith(("#", "---")) for line in own):
            continue
        document, findings = load_document(text.encode(), file, limits)
        problems += findings
        if document is not None:
            documents.append(document)
    return documents, problems


def _find_yaml_document_starts(data: bytes) -> list[int]:
    """Return the line where each document begins (its `---`, if it has one); empty if the text can't be
    read."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = data.decode().removeprefix("\ufeff")
        marks = [
            event.start_mark.line
            for event in yaml.parse(text, loader)
            if isinstance(event, yaml.DocumentStartEvent) and event.start_mark is not None
        ]
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return []
    return [0, *marks[1:]]
