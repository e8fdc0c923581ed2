"""`gangplan cost --measured`: valid and invalid exports of Prometheus, compared with what runs request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.errors import Exit, UserError
from gangplan.model.measured import read_measurements
from tests import workspaces
from tests.cost.test_budgets import PRICES
from tests.workspaces import Outcome, gangplan, render, write

GIB = 2**30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Render 4 workers with 8 GPUs in all, and 8 cores and 32Gi each, for 300.00."""
    root = workspaces.stock(tmp_path / "workspace")
    text = workspaces.CLUSTER
    for old, new in PRICES:
        text = text.replace(old, new, 1)
    write(root, {"overlays/lab/cluster.yaml": text})
    render(root)
    return root


def export(path: Path, *series: tuple[dict[str, str], str], kind: str = "vector") -> Path:
    """Write an answer of Prometheus."""
    result = [{"metric": labels, "value": [1793491200.5, value]} for labels, value in series]
    path.write_text(json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}))
    return path


def labels(root: Path, measured: str) -> dict[str, str]:
    """Return the labels of a series of the run."""
    (file,) = (root / "rendered/lab/runs/nlp").glob("*-*.yaml")
    return {"namespace": "nlp", "run": file.stem, "measured": measured}


def measure(root: Path, path: Path, *flags: str) -> Outcome:
    return gangplan("cost", "-C", root, "--measured", path, *flags)


def row(root: Path, path: Path) -> dict[str, Any]:
    """Return the only run of the report."""
    outcome = measure(root, path, "--format", "json")
    assert outcome.code == Exit.CLEAN, outcome.err
    (found,) = json.loads(outcome.out)["runs"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("view", "flags", "unread"),
    [
        ("--measured", ["--measured", "a.json", "--by", "team"], "--by"),
        ("--measured", ["--measured", "a.json", "--month", "2026-12"], "--month"),
        ("--measured", ["--measured", "a.json", "--durations", "a.yaml"], "--durations"),
        ("--measured", ["--measured", "a", "--by", "team", "--month", "2026"], "--by and --month"),
        ("--elsewhere", ["--elsewhere", "--by", "team"], "--by"),
        ("--elsewhere", ["--elsewhere", "--month", "2026"], "--month"),
        ("--history", ["--history", "--month", "2026"], "--month"),
        ("--history", ["--since", "2026-11-01", "--durations", "a.yaml"], "--durations"),
    ],
)
def test_a_flag_that_a_view_does_not_read_is_refused(
    view: str, flags: list[str], unread: str, root: Path
) -> None:
    outcome = gangplan("cost", "-C", root, *flags)
    assert outcome.code == Exit.INPUT
    assert f"{view} does not read {unread}" in outcome.err


def test_the_proposed_edit_fits_the_measurements(root: Path, tmp_path: Path) -> None:
    path = export(
        tmp_path / "a.json",
        (labels(root, "cpu"), "2.5"),
        (labels(root, "memory"), str(10 * GIB)),
        (labels(root, "gpu"), "40"),
    )
    found = row(root, path)
    assert found["edit"] == "cpu: 4, memory: 13Gi"
    assert (found["gpuIdlePercent"], found["idleCost"], found["currency"]) == ("60.00", "180.00", "USD")
    assert found["saves"] is None, "on pools with GPUs, only GPUs are paid for"
    out = measure(root, path).out
    assert "cpu: 4, memory: 13Gi" in out
    assert "2.50 of 8" in out
    assert measure(root, path, "--format", "csv").code == Exit.CLEAN


def test_fewer_cores_save_money_where_cores_have_a_price(root: Path, tmp_path: Path) -> None:
    path = root / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text().replace("perCpuHour: 0}", "perCpuHour: 0.04}"))
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("gpus: 2\n", "")})
    for file in (root / "rendered/lab/runs/nlp").glob("*-*.yaml"):
        file.unlink()
    render(root)
    found = row(root, export(tmp_path / "a.json", (labels(root, "cpu"), "1")))
    assert (found["edit"], found["saves"]) == ("cpu: 2", "23.04")  # 6 cores x 4 workers x 0.04 x 24 h


@pytest.mark.parametrize("used", ["6", "8", "12", "5.6"])
def test_no_edit_is_proposed_if_it_would_save_little(root: Path, tmp_path: Path, used: str) -> None:
    assert row(root, export(tmp_path / "a.json", (labels(root, "cpu"), used)))["edit"] is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e400", "", "many", "9" * 80])
def test_invalid_measurements_are_left_out(root: Path, tmp_path: Path, value: str) -> None:
    path = export(tmp_path / "a.json", (labels(root, "cpu"), value), (labels(root, "gpu"), "90"))
    found = row(root, path)
    assert (found["cpuUsed"], found["edit"], found["gpuIdlePercent"]) == (None, None, "10.00")


def answer(kind: str, result: str) -> str:
    """Return an answer that Prometheus might give."""
    return f'{{"data": {{"resultType": "{kind}", "result": {result}}}}}'


SURROGATE = '{"namespace": "nlp", "run": "\\ud800", "measured": "cpu"}'
WRONG = {
    "nothing": "",
    "no JSON": "up 1",
    "a list": "[]",
    "an error": '{"status": "error", "error": "query timed out"}',
    "a scalar": answer("scalar", '[1, "2"]'),
    "deep": "[" * 100_000,
    "odd results": answer("vector", '{"a": 1}'),
    "odd series": answer("vector", '[1, {}, {"metric": 1}, {"metric": {"run": 2}}]'),
    "odd values": answer("matrix", '[{"metric": {"run": "r"}, "values": [NaN, [1]]}]'),
    "a name of no letters": answer("vector", f'[{{"metric": {SURROGATE}, "value": [1, "1"]}}]'),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_are_not_exports_are_refused(name: str, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(WRONG[name])
    assert measure(root, path).code == Exit.INPUT
    assert measure(root, tmp_path / "none.json").code == Exit.INPUT


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.text(max_size=5), st.lists).map(repr).map(str.encode)
)
def test_any_bytes_are_refused_with_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("export") / "a.json"
    path.write_bytes(data)
    with pytest.raises(UserError):
        read_measurements(path)
