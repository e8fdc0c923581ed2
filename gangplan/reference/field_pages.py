"""The page of a field for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.reference.fields import FORMAT_FILES, FormatField, find_rules_about
from gangplan.reference.words import format_name_list, wrap_paragraph

# If more fields than this have one name, only the paths of the others are listed.
MOST_PAGES = 3
_FACTS = ("type", "default", "example")


def render_fields_reference(found: Sequence[FormatField]) -> str:
    """Return the pages of all fields if they are few, or else of the first, followed by the paths of the
    others."""
    shown = found if len(found) <= MOST_PAGES else found[:1]
    text = "\n".join(render_field_reference(one) for one in shown)
    rest = found[len(shown) :]
    if rest:
        text += "\nalso:\n" + "".join(f"  {one.name}\n" for one in rest)
    return text


def render_field_reference(field: FormatField) -> str:
    """Return the page of a field for a terminal."""
    lines = [f"{field.name} ({FORMAT_FILES[field.kind]})", "", wrap_paragraph(field.facts["meaning"]), ""]
    lines += [f"{what}: {_strip_cell_markdown(field.facts[what])}" for what in _FACTS if field.facts[what]]
    lines += [format_name_list("fields", field.inner)] if field.inner else []
    about = find_rules_about(field)
    lines += [format_name_list("rules", about)] if about else []
    return "\n".join(lines) + "\n"


def _strip_cell_markdown(text: str) -> str:
    """Return a cell of docs/spec.md without its Markdown."""
    return text.replace("\\|", "|").replace("`", "")
