"""Built objects: kustomize applies a cluster's last-mile patches to what was generated."""

from gangplan.overlay.build import Builder, PatchError

__all__ = ["Builder", "PatchError"]
