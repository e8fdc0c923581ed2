"""Apply a cluster's last-mile patches to generated objects with kustomize."""

from gangplan.overlay.build import OverlayBuilder, PatchError

__all__ = ["OverlayBuilder", "PatchError"]
