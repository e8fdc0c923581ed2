"""Hypothesis generates the same cases, whatever else this process has imported."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

#: Too odd to be drawn by chance; Hypothesis uses strings of at most 20 characters from modules.
MARK = "loaded elsewhere"


def _drawn() -> list[object]:
    found: list[object] = []

    @settings(max_examples=2000, database=None)
    @given(st.text() | st.integers())
    def collect(value: object) -> None:
        found.append(value)

    collect()
    return found


@pytest.mark.skipif(
    settings.get_current_profile_name() != "same", reason="another profile looks for new cases"
)
def test_the_cases_do_not_depend_on_loaded_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _drawn()
    file = tmp_path / "elsewhere.py"
    file.write_text("TEXTS = [" + ", ".join(repr(f"{MARK} {number}") for number in range(200)) + "]\n")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, file.stem, module)
    assert _drawn() == before
