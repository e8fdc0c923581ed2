"""Tests of the checks may use the real programs."""

from tests.tools.real import real_kubeconform

__all__ = ["real_kubeconform"]
