"""The schemas of templates and of specs with a template: what an editor marks."""

from __future__ import annotations

import jsonschema
import pytest

from gangplan.reference.schemas import build_editor_schema
from tests import plain
from tests.templates.files import SPEC, TEMPLATE, WRITTEN


def marks(kind: str, text: str) -> list[str]:
    """Return the places that are marked."""
    validator = jsonschema.Draft202012Validator(build_editor_schema(kind))
    return [".".join(map(str, error.absolute_path)) for error in validator.iter_errors(plain.load(text))]


def test_good_files_have_no_marks() -> None:
    assert marks("template", TEMPLATE) == []
    assert marks("spec", SPEC) == []
    assert marks("spec", WRITTEN) == []


@pytest.mark.parametrize(
    ("kind", "text", "place"),
    [
        ("template", TEMPLATE.replace("gpus: 2", "gpus: many"), "job.gpus"),
        ("template", TEMPLATE.replace("gpus: 2", "state: stopped"), "job"),
        ("template", TEMPLATE.replace("type: number", "type: float"), "parameters.rate.type"),
        ("spec", SPEC.replace("template: wide\n", ""), ""),
    ],
)
def test_a_mistake_is_marked(kind: str, text: str, place: str) -> None:
    assert marks(kind, text) == [place]
