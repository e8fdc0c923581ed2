"""Adding an entry to images/catalog.yaml: every existing byte of the file is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.errors import UserError
from gangplan.source import Document, load_document
from gangplan.starter.text import render_block_text
from gangplan.workspace import CATALOG


def add_new_image_to_catalog(data: bytes, name: str, values: Mapping[str, Any]) -> bytes:
    """Return the catalog with one more image after the others.

    Raises UserError if the file cannot be read, already has the image, or is written so that a new entry
    cannot be inserted.
    """
    document, _ = load_document(data, CATALOG)
    images = document.value.get("images") if document and isinstance(document.value, dict) else None
    if document is None or not isinstance(images, dict) or not images:
        raise UserError(f"{CATALOG} cannot be read", "Run gangplan validate, and correct it first.")
    if name in images:
        place = document.where(("images", name), key=True)
        raise UserError(
            f"{place}: there is an image '{name}' already", "Change that one, or take another name."
        )
    added = _insert_entry_of_new_image(data, document, name, values)
    found, _ = load_document(added, CATALOG)
    if found is None or found.value != {**document.value, "images": {**images, name: dict(values)}}:
        entry = render_block_text({name: dict(values)}, "  ")
        raise UserError(
            f"{CATALOG} is written so that an entry cannot be added", f"Add it yourself:\n{entry.rstrip()}"
        )
    return added


def _insert_entry_of_new_image(
    data: bytes, document: Document, name: str, values: Mapping[str, Any]
) -> bytes:
    """Insert the entry before the field that follows the images, or at the end."""
    images = document.value["images"]
    first = document.where(("images", next(iter(images))), key=True)
    start = document.where(("images",), key=True).line or 1
    later = [document.where((key,), key=True).line or 0 for key in document.value]
    ends = [line for line in later if line > start]
    lines = data.decode().splitlines(keepends=True)
    at = min(ends) - 1 if ends else len(lines)
    while ends and at > 0 and (not lines[at - 1].strip() or lines[at - 1].startswith("#")):
        at -= 1  # a comment above a field belongs to it
    if lines and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    entry = render_block_text({name: dict(values)}, " " * max((first.column or 1) - 1, 0))
    if any(line.endswith("\r\n") for line in lines):
        entry = entry.replace("\n", "\r\n")
    return "".join([*lines[:at], entry, *lines[at:]]).encode()
