"""Set and remove fields in the text of a YAML file: everything else stays the same, byte for byte."""

from gangplan.edits.change import Change, changes_of, path_of
from gangplan.edits.text import edited, read_value

__all__ = ["Change", "changes_of", "edited", "path_of", "read_value"]
