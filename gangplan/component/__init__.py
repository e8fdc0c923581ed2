"""A cluster's kustomize component as written: its patches, their targets and their places in files."""

from gangplan.component.read import Component, Patch, build_no_match_finding, load_component
from gangplan.component.undo import OperationStates

__all__ = ["Component", "OperationStates", "Patch", "build_no_match_finding", "load_component"]
