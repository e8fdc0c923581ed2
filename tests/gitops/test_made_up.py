"""An engine that does not exist: a row of annotations, and every object tells the engine what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.model import syncing
from gangplan.model.syncing import SyncEngine
from tests import plain
from tests.workspaces import SPEC, gangplan, stock, write

PREFIX = "sync.example.com/"
MADE_UP = SyncEngine(
    "Made-up Sync",
    PREFIX,
    skipping=((f"{PREFIX}apply", "never"),),
    guards=((f"{PREFIX}remove", "never"), (f"{PREFIX}remove", "asked")),
    run=((f"{PREFIX}remove", "never"),),
    archived=((f"{PREFIX}apply", "never"),),
    kept=((f"{PREFIX}data", "kept"),),
    home=((f"{PREFIX}remove", "never"),),
    confirmed=((f"{PREFIX}remove", "asked"),),
    wave=f"{PREFIX}order",
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(syncing.SYNC_ENGINES, "made-up", MADE_UP)
    return stock(tmp_path)


def told(root: Path, part: str) -> dict[str, dict[str, str]]:
    """Render, and return the annotations of objects for the engine, by kind."""
    outcome = gangplan("render", "-C", root, "--engine", "serial")
    assert outcome.code == 0, outcome.err
    bodies = [
        body
        for path in sorted(root.glob(f"rendered/lab/{part}"))
        for body in plain.load_all(path.read_text())
    ]
    return {
        body["kind"]: {
            name.removeprefix(PREFIX): value
            for name, value in body["metadata"]["annotations"].items()
            if name.startswith(PREFIX)
        }
        for body in bodies
    }


def test_runs_are_annotated_to_stay(root: Path) -> None:
    write(root, {"specs/nlp/job.yaml": SPEC})
    found = told(root, "runs/nlp/*-*.yaml")
    assert found["TrainJob"] == {"remove": "never", "order": "10"}
    assert found["NetworkPolicy"] == {"remove": "never", "order": "-20"}


def test_an_archived_run_is_annotated_not_to_be_applied(root: Path) -> None:
    write(root, {"specs/nlp/job.yaml": f"{SPEC}state: archived\n"})
    assert told(root, "runs/nlp/*-*.yaml")["TrainJob"] == {"remove": "never", "apply": "never", "order": "10"}


def test_guardrails_are_annotated_not_to_be_removed_unasked(root: Path) -> None:
    write(root, {"specs/nlp/job.yaml": SPEC})
    assert told(root, "tenants/nlp/*.yaml")["Namespace"] == {"remove": "never", "order": "-30"}
    assert told(root, "platform/queues.yaml")["ClusterQueue"] == {"remove": "asked", "order": "-12"}


def test_an_import_leaves_out_annotations_of_engines(root: Path) -> None:
    assert all(
        syncing.is_engine_annotation(f"{engine.prefix}x")
        for engine in (MADE_UP, *syncing.SYNC_ENGINES.values())
    )
    assert not syncing.is_engine_annotation("example.com/x")
