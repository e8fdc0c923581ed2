"""The lab's fixture, made available to the tests of this folder."""

from .fixtures import lab, pytest_runtest_makereport

__all__ = ["lab", "pytest_runtest_makereport"]
