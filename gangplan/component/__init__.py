"""A cluster's kustomize component as written: its patches, their targets and their places in files."""

from gangplan.component.read import Component, Patch, load_component, no_match
from gangplan.component.undo import Undone

__all__ = ["Component", "Patch", "Undone", "load_component", "no_match"]
