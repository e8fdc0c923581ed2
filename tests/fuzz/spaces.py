"""Random workspaces, right and wrong: no traceback, places that exist, the same bytes from every engine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from tests import workspaces
from tests.fuzz import documents
from tests.fuzz.base import Stories


def story(chance: random.Random, folder: Path) -> None:
    """Try teams, clusters and specs with any fields, some of them wrong."""
    root = folder / "workspace"
    wrong = chance.choice((0.0, 0.0, 0.0, 0.2, 1.0))
    names = {
        "team": ["nlp", "vision"][: chance.choice((1, 1, 2))],
        "cluster": ["lab", "far"][: chance.choice((1, 2))],
    }
    files: dict[str, Any] = {"images/catalog.yaml": _document("catalog", chance, wrong / 4)}
    for cluster in names["cluster"]:
        document = _document("cluster", chance, wrong / 3)
        if isinstance(document.get("teams"), dict):
            document["teams"] = {team: {"queue": "training"} for team in names["team"]}
        files[f"overlays/{cluster}/cluster.yaml"] = document
    for team in names["team"]:
        document = _document("team", chance, wrong / 3)
        files[f"specs/{team}/team.yaml"] = {**document, "clusters": names["cluster"]}
        for number in range(chance.choice((1, 2, 5))):
            files[f"specs/{team}/job-{number}.yaml"] = _document("spec", chance, wrong)
    if chance.random() < 0.3:
        files["policies/waivers/one.yaml"] = _document("waiver", chance, wrong)
    workspaces.write(root, {name: json.dumps(one, indent=1) + "\n" for name, one in files.items()})
    judged = workspaces.gangplan(
        "validate", "-C", root, "--format", "json", "--engine", "serial", "--no-cache"
    )
    _sound(judged, {0, 1, 2})
    if judged.out:
        for finding in json.loads(judged.out)["findings"]:
            _exists(root, finding)
    trees = []
    for number, flags in enumerate(
        (["--engine", "serial"], ["--engine", "serial"], ["--engine", "process", "--jobs", "2"])
    ):
        if number == 2 and chance.random() < 0.7:
            continue  # processes take a while to start
        outcome = workspaces.gangplan("render", "-C", root, *flags, *(["--no-cache"] if number else []))
        _sound(outcome, {0, 1, 2})
        trees.append((outcome.code, outcome.err, workspaces.rendered(root)))
    assert all(tree == trees[0] for tree in trees), "engines or repetitions differ"
    # render --check agrees with what was just rendered.
    if trees[0][0] == 0:
        again = workspaces.gangplan("render", "-C", root, "--check")
        assert again.code == 0, again.err


def _document(kind: str, chance: random.Random, wrong: float) -> dict[str, Any]:
    document = documents.grown(kind, chance, chance.choice((0, 1, 3)))
    while chance.random() < wrong:
        at = chance.choice(list(documents.leaves(document)))
        value = chance.choice(documents.WRONG)
        document = documents.put(document, at, value)
        wrong /= 2
    return document


def _sound(outcome: workspaces.Outcome, codes: set[int]) -> None:
    assert "Traceback" not in outcome.err, outcome.err[-900:]
    assert outcome.code in codes, outcome.err[-900:]


def _exists(root: Path, finding: dict[str, Any]) -> None:
    """Check that a finding's place exists in its file."""
    assert finding["message"], finding
    file, line = finding["file"], finding.get("line") or 0
    path = root / file
    assert path.exists() or file.endswith("cluster.yaml"), finding
    if path.is_file():
        lines = path.read_text().split("\n")
        assert 0 <= line <= len(lines), finding
        assert 0 <= (finding.get("column") or 0) <= len(lines[max(line, 1) - 1]) + 1, finding


WORKSPACES = Stories(story)
