"""Built objects: kustomize applies a cluster's last-mile patches to what was generated."""

from gangplan.overlay.build import Builder, PatchError
from gangplan.overlay.component import Component, load_component, no_match

__all__ = ["Builder", "Component", "PatchError", "load_component", "no_match"]
