"""A cluster's kustomize component as it is written: its patches, what they are aimed at, their places."""

from gangplan.component.read import Component, Patch, load_component, no_match
from gangplan.component.undo import Undone

__all__ = ["Component", "Patch", "Undone", "load_component", "no_match"]
