"""Malicious specs, team files and patches: refused by a rule, or rendered as plain text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.errors import Exit
from gangplan.source import load_objects
from tests import plain, workspaces
from tests.rules.worlds import HEADERS
from tests.workspaces import gangplan

CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("hostile.yaml").read_text(encoding="utf-8")
)
SPEC, OVERLAY = "specs/nlp/filings.yaml", "overlays/lab/kustomization.yaml"


def spoil(root: Path, case: dict[str, Any]) -> None:
    """Put the case into the workspace."""
    if "patch" in case:
        target, operation = case["patch"]
        text = f"- target: {target}\n  patch: |-\n    - {operation}\n"
        workspaces.write(root, {OVERLAY: HEADERS["patch"] + text})
    elif "text" in case:
        workspaces.write(root, {OVERLAY: HEADERS["patch"] + case["text"] + "\n"})
    else:
        path = root / case.get("in", SPEC)
        text = path.read_text()
        if "change" in case:
            old, new = case["change"]
            assert old in text
            text = text.replace(old, new, 1)
        path.write_text(text + (case["add"] + "\n" if "add" in case else ""))


def shape(value: Any) -> Any:
    """Return the structure of an object: keys and types of values, without texts."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


@pytest.mark.parametrize("name", CASES)
def test_each_hostile_case_is_refused_or_rendered_as_text(name: str, root: Path, builder: str) -> None:
    case = CASES[name]
    assert ("finds" in case) != ("harmless" in case)
    spoil(root, case)
    outcome = gangplan("render", "-C", root)
    assert outcome.code != Exit.ENVIRONMENT, outcome.err
    if "finds" in case:
        wanted = case["finds"] if isinstance(case["finds"], list) else [case["finds"]]
        assert {shown.rule for shown in outcome.findings if shown.severity == "error"} == {*wanted}
        assert outcome.code in (Exit.INPUT, Exit.FINDINGS)
        assert not (root / "rendered").exists()
        return
    assert outcome.code == Exit.CLEAN, outcome.err
    assert_only_text(root)


def assert_only_text(root: Path) -> None:
    """Check that kinds, namespaces and labels are those of a harmless run."""
    files = workspaces.rendered(root)
    assert all(path.startswith("lab/") and ".." not in path for path in files)
    (run,) = (text for path, text in files.items() if is_run_file(path))
    bodies = load_objects(run)
    kinds = [body["kind"] for body in bodies]
    assert set(kinds) <= {"NetworkPolicy", "TrainingRuntime", "TrainJob"}
    assert kinds.count("TrainJob") == kinds.count("TrainingRuntime") == 1
    assert {body["metadata"]["namespace"] for body in bodies} == {"nlp"}
    for body in bodies:
        labels = body["metadata"]["labels"]
        assert labels["gangplan.dev/team"] == "nlp"
        assert labels["app.kubernetes.io/managed-by"] == "gangplan"
    (pod_labels,) = {
        tuple(sorted(entry["template"]["spec"]["template"]["metadata"]["labels"]))
        for body in bodies
        if body["kind"] == "TrainingRuntime"
        for entry in body["spec"]["template"]["spec"]["replicatedJobs"][:1]
    }
    assert not any(label.startswith(("jobset", "kueue", "batch")) for label in pod_labels)


def test_a_harmless_text_does_not_change_the_shape(tmp_path: Path) -> None:
    """A description that looks like YAML gives the same objects as one that does not."""
    shapes = []
    for number, text in enumerate(("a word", '"a\\n---\\nkind: Secret # {{ x }}"')):
        root = workspaces.stock(tmp_path / str(number))
        spec = root / SPEC
        spec.write_text(spec.read_text() + f"description: {text}\n")
        workspaces.render(root)
        (run,) = (text for path, text in workspaces.rendered(root).items() if is_run_file(path))
        shapes.append([shape(body) for body in load_objects(run)])
    assert shapes[0] == shapes[1]


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 60
