"""Applying rendered/ to a cluster with gangplan itself, where neither Argo CD nor Flux does it."""
