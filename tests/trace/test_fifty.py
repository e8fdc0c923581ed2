"""Random mistakes in a good workspace: the line and column of each finding are those of the wrong value."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.rules.model import Severity
from tests import plain
from tests.trace import mutations, worlds
from tests.trace.mutations import Wrong, dumped, mutated
from tests.workspaces import write

SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: openmpi
command: [python, train.py]
workers: 2
gpus: 4
cpu: 8
memory: 32Gi
"""
SEED = int(os.environ.get("GANGPLAN_SEED", "7"))
SPECS, TEAMS, CLUSTERS = 50, 4, 6


def found(root: Path) -> list[Finding]:
    """Return the warnings and errors of a workspace, without the second opinion of kubeconform."""
    return [
        one for one in preview_render(Request(root, engine="serial")).findings if one.severity > Severity.NOTE
    ]


def at(root: Path, finding: Finding) -> str:
    """Return the text from the reported column to the end of the reported line."""
    assert finding.where.line
    assert finding.where.column
    line = (root / finding.where.file).read_text(encoding="utf-8").splitlines()[finding.where.line - 1]
    return line[finding.where.column - 1 :]


def holds(root: Path, finding: Finding, wrong: Wrong) -> bool:
    """Return whether the wrong text begins at the reported place, in quotes or not."""
    return at(root, finding).lstrip("'\"").startswith(wrong.text)


def test_mistakes_in_fifty_specs_are_reported_at_their_values(tmp_path: Path) -> None:
    """Fifty specs of one workspace have one mistake each, and are checked in one run."""
    root, chance = worlds.everything(tmp_path), random.Random(SEED)
    good = {(one.where, one.rule) for one in found(root)}
    wrongs: dict[str, Wrong] = {}
    for number in range(SPECS):
        wrong = mutations.SPEC[(number + SEED) % len(mutations.SPEC)]
        file = f"specs/cv/wrong-{number}.yaml"
        wrongs[file] = wrong
        write(root, {file: dumped(mutated(plain.load(SPEC), wrong), chance)})
    told = [one for one in found(root) if (one.where, one.rule) not in good]
    missed = set(wrongs) - {one.where.file for one in told}
    assert not missed, [wrongs[file] for file in missed]
    wide = [
        (one, wrongs[one.where.file].path) for one in told if not holds(root, one, wrongs[one.where.file])
    ]
    assert not wide
    assert len(told) >= 50


def _alone(
    tmp_path: Path, file: str, text: str, wrong: Wrong, chance: random.Random
) -> list[tuple[Any, ...]]:
    """Return the findings of a mistake in one file of the platform or a team that are not at the wrong
    value."""
    root = worlds.everything(tmp_path)
    good = {(one.where, one.rule) for one in found(root)}
    before = {(one.rule, one.message) for one in found(root)}
    write(root, {file: dumped(mutated(plain.load(text), wrong), chance)})
    told = [
        one
        for one in found(root)
        if (one.where, one.rule) not in good and (one.rule, one.message) not in before
    ]
    assert told, wrong
    return [(one, wrong) for one in told if not holds(root, one, wrong)]


@pytest.mark.parametrize("number", range(TEAMS))
def test_a_mistake_in_a_team_is_reported_at_its_value(number: int, tmp_path: Path) -> None:
    chance = random.Random(f"{SEED} team {number}")
    wrong = mutations.TEAM[(number * 5 + SEED) % len(mutations.TEAM)]
    assert not _alone(tmp_path, "specs/cv/team.yaml", worlds.TEAM, wrong, chance)


@pytest.mark.parametrize("number", range(CLUSTERS))
def test_a_mistake_in_a_cluster_is_reported_at_its_value(number: int, tmp_path: Path) -> None:
    chance = random.Random(f"{SEED} cluster {number}")
    wrong = mutations.CLUSTER[(number * 4 + SEED) % len(mutations.CLUSTER)]
    assert not _alone(tmp_path, "overlays/lab/cluster.yaml", worlds.CLUSTER, wrong, chance)


@pytest.mark.parametrize("is_own_file", [False, True], ids=["inline", "file"])
def test_a_mistake_in_a_patch_is_reported_at_its_value(is_own_file: bool, tmp_path: Path) -> None:
    """The finding is at the value in the patch, whether the patch is inline or in a file of its own."""
    chance = random.Random(f"{SEED} patch {is_own_file}")
    path, value = chance.choice(mutations.PATCH)
    operations = yaml.safe_dump([{"op": "replace", "path": path, "value": value}], sort_keys=False)
    root = worlds.everything(tmp_path)
    patch: dict[str, Any] = {"target": {"kind": "TrainingRuntime"}}
    patch |= {"path": "spoilt.yaml"} if is_own_file else {"patch": operations}
    whole = plain.load(worlds.PATCHES)
    whole["patches"].append(patch)
    write(root, {"overlays/lab/kustomization.yaml": _blocks(whole), "overlays/lab/spoilt.yaml": operations})
    for name in ("torch", "roles"):  # they have no launcher in addition to their workers
        (root / f"specs/cv/{name}.yaml").unlink()
    told = [one for one in found(root) if one.rule == "schema"]
    assert told
    for one in told:
        assert holds(root, one, Wrong((), value)), (one, at(root, one))


def _blocks(document: Any) -> str:
    """Return YAML with texts of several lines as literal blocks, as people write patches."""

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(
        str,
        lambda dumper, text: dumper.represent_scalar(
            "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
        ),
    )
    text: str = yaml.dump(document, Dumper=Dumper, sort_keys=False)
    return text
