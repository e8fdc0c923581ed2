"""Built objects: kustomize applies a cluster's last-mile patches to what was generated."""

from gangplan.overlay.build import OverlayBuilder, PatchError

__all__ = ["OverlayBuilder", "PatchError"]
