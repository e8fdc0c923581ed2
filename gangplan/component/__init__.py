"""A cluster's kustomize component as it is written: its patches, what they are aimed at, their places."""

from gangplan.component.read import Component, Patch, load_component, no_match

__all__ = ["Component", "Patch", "load_component", "no_match"]
