"""Fields of a YAML file set and removed in its text: what is not named stays as it is, to the byte."""

from gangplan.edits.change import Change, changes_of, path_of
from gangplan.edits.text import edited, read_value

__all__ = ["Change", "changes_of", "edited", "path_of", "read_value"]
