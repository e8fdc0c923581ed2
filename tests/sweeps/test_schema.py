"""The schema of sweeps for editors: it accepts what gangplan accepts, and marks what gangplan refuses."""

from __future__ import annotations

import jsonschema
import pytest
import yaml

from gangplan.reference.schemas import build_editor_schema, build_editor_schema_of_format
from tests.sweeps.files import SWEEP, US_05


def wrong(text: str) -> list[str]:
    """Return the places that an editor marks."""
    validator = jsonschema.Draft202012Validator(build_editor_schema("sweep"))
    return [".".join(map(str, one.absolute_path)) for one in validator.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize(
    "text",
    [
        SWEEP,
        US_05,
        SWEEP.replace("workers: 2", "workers: ${{ parameters.batch }}"),
        SWEEP + "  priority: ${{ parameters.batch }}\n",
        SWEEP + "results: {file: ./rates.csv, metric: loss, keep: 2}\nstopped: [k7x2mq4a]\n",
    ],
)
def test_a_good_sweep_has_no_marks(text: str) -> None:
    assert wrong(text) == []


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("workers: 2", "workers: many", "template.workers"),
        ("workers: 2", "worker: 2", "template"),
        ("  image: openmpi", "  image: openmpi\n  queue: night", "template"),
        ("maxConcurrent: 2", "maxConcurrent: two", "maxConcurrent"),
        ("checkpoint: {to: filings}", "checkpoint: {at: filings}", "template.checkpoint"),
    ],
)
def test_a_mistake_is_marked_at_its_place(old: str, new: str, place: str) -> None:
    assert place in wrong(SWEEP.replace(old, new))


def test_the_schema_of_sweeps_does_not_repeat_the_fields_of_jobs() -> None:
    assert "properties" not in build_editor_schema_of_format("sweep")["properties"]["template"]
