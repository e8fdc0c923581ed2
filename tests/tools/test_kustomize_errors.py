"""What kustomize printed, and what a user reads: one case for each in kustomize_errors.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.tools.kustomize_errors import find_cause_in_kustomize_stderr
from tests import plain

CASES = plain.load((Path(__file__).parent / "kustomize_errors.yaml").read_text())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_innermost_cause_is_reported(case: dict[str, str]) -> None:
    assert find_cause_in_kustomize_stderr(case["printed"], Path("/w/site")) == case["read"]
