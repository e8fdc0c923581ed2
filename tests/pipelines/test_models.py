"""A job that registers a model: its variables, who else may register the model, and what plan shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipelines.worlds import PREPARE, US, findings, name_of, runs, stock, waits_for
from tests.schedules.worlds import one, template
from tests.workspaces import SPEC, gangplan, write

MODEL = 'after: [prepare]\nmodel: {name: filings, version: "1.10"}\n'
REGISTER = SPEC.replace("train.py", "register.py") + MODEL
JOBS = {"prepare": PREPARE, "filings": REGISTER}


def variables(bodies: list[dict[str, object]]) -> dict[str, str]:
    """Return the variables of the model, which the runtime or the TrainJob must have."""
    found: dict[str, str] = {}
    text = json.dumps([one(bodies, "TrainingRuntime"), template(bodies)])
    for name in ("GANGPLAN_MODEL_NAME", "GANGPLAN_MODEL_VERSION"):
        assert f'"name": "{name}"' in text
        found[name] = text.split(f'"name": "{name}", "value": "')[1].split('"')[0]
    return found


def test_the_command_gets_the_model_to_register_after_training(root: Path) -> None:
    stock(root, JOBS)
    found = runs(root)
    assert findings(root) == []
    assert variables(found["filings"]) == {"GANGPLAN_MODEL_NAME": "filings", "GANGPLAN_MODEL_VERSION": "1.10"}
    assert waits_for(found["filings"]) == [name_of(found["prepare"])]
    assert template(found["filings"])["metadata"]["annotations"]["gangplan.dev/model"] == "filings:1.10"
    assert "GANGPLAN_MODEL" not in json.dumps(found["prepare"])


def test_a_version_keeps_its_text_and_another_one_is_another_run(root: Path) -> None:
    stock(root, {**JOBS, "filings": REGISTER.replace('"1.10"', "1.10")})
    first = runs(root)["filings"]
    assert variables(first)["GANGPLAN_MODEL_VERSION"] == "1.10"
    stock(root, {**JOBS, "filings": REGISTER.replace("1.10", "1.11")})
    assert name_of(runs(root)["filings"]) != name_of(first)


def test_plan_says_what_is_registered_and_what_a_failure_leaves(root: Path) -> None:
    stock(root, JOBS)
    out = gangplan("plan", "-C", root, "specs/nlp/filings.yaml").out
    assert "registers filings 1.10; if that fails, prepare stays complete" in out
    (run,) = json.loads(gangplan("plan", "-C", root, "specs/nlp/filings.yaml", "--format", "json").out)[
        "runs"
    ]
    assert run["model"] == {"name": "filings", "version": "1.10"}


@pytest.mark.parametrize(
    ("other", "rule", "words"),
    [
        (
            {"filings": REGISTER.replace("after: [prepare]\n", "")},
            "model-alone",
            "comes after no job that trains it",
        ),
        ({"again": REGISTER}, "model-twice", "filings 1.10 is registered twice: specs/nlp/"),
        ({"again": REGISTER + "state: stopped\n"}, "model-twice", "registered twice: specs/nlp/again.yaml"),
        ({"filings": REGISTER.replace("name: filings, ", "")}, "spec-missing-field", "model.name"),
        ({"filings": REGISTER.replace("1.10", "1/10")}, "spec-value", "model.version"),
    ],
)
def test_invalid_models_are_reported(root: Path, other: dict[str, str], rule: str, words: str) -> None:
    stock(root, {**JOBS, **other})
    assert any(one[0] == rule and words in one[1] for one in findings(root)), findings(root)


def test_other_versions_and_other_models_are_accepted(root: Path) -> None:
    others = {
        "again": REGISTER.replace("1.10", "1.1"),
        "more": REGISTER.replace("name: filings", "name: other"),
    }
    stock(root, {**JOBS, **others})
    assert findings(root) == []


def test_two_clusters_cannot_register_the_same_version(root: Path) -> None:
    jobs = {name: text + "clusters: [lab, us]\n" for name, text in JOBS.items()}
    stock(root, jobs)
    write(root, {"overlays/us/cluster.yaml": US})
    found = [text for rule, text in findings(root) if rule == "model-twice"]
    assert found == ["filings 1.10 is registered twice: the job itself on lab registers it, too"]


def test_why_leads_from_the_spec_to_the_variable(root: Path) -> None:
    stock(root, JOBS)
    gangplan("render", "-C", root)
    out = gangplan("why", "-C", root, "specs/nlp/filings.yaml:10").out
    assert "GANGPLAN_MODEL_VERSION" in out or "gangplan.dev/model" in out
