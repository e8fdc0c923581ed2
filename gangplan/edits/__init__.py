"""Set and remove fields in the text of a YAML file: everything else stays the same, byte for byte."""

from gangplan.edits.change import FlagChange, parse_changes, parse_typed_path
from gangplan.edits.text import edit_field, read_value

__all__ = ["FlagChange", "edit_field", "parse_changes", "parse_typed_path", "read_value"]
