"""Traces are true: a changed field changes only rendered fields that name it, and those that name it change.

A few fields of each file by default; GANGPLAN_TRACE=0 tries every field there is, some 400 changes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path as FilePath
from typing import Any

import pytest
from pydantic import BaseModel

from gangplan.errors import UserError
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import TrainingJob
from gangplan.spec.team import Team
from gangplan.spec.waiver import Waiver
from gangplan.trace.files import find_value_at
from tests import plain
from tests.trace import worlds
from tests.trace.perturb import (
    Change,
    Path,
    Place,
    by_place,
    changed,
    changes,
    differences,
    names,
    rendered,
    write,
)

FEW = int(os.environ.get("GANGPLAN_TRACE", "3"))
# Some changes make the workspace invalid and show nothing: up to this many are tried until FEW show
# something.
MOST = 4 * FEW
SEED = int(os.environ.get("GANGPLAN_SEED", "11"))
FILES: dict[str, tuple[str, type[BaseModel]]] = {
    "specs/cv/full.yaml": (worlds.FULL, TrainingJob),
    "specs/cv/plain.yaml": (worlds.PLAIN, TrainingJob),
    "specs/cv/torch.yaml": (worlds.TORCH, TrainingJob),
    "specs/cv/roles.yaml": (worlds.ROLES, TrainingJob),
    "specs/cv/steps.yaml": (worlds.STEPS, TrainingJob),
    "specs/cv/team.yaml": (worlds.TEAM, Team),
    "overlays/lab/cluster.yaml": (worlds.CLUSTER, Cluster),
    "images/catalog.yaml": (worlds.CATALOG, ImageCatalog),
    "policies/waivers/bucket.yaml": (worlds.WAIVER, Waiver),
}


def tried(root: FilePath, change: Change, document: Any) -> dict[Place, Any] | None:
    """Render with a change; return None if the workspace has errors."""
    write(root, change.file, changed(document, change))
    try:
        after = rendered(root, change, ("lab",), "cv" if change.file.endswith("team.yaml") else "")
    except UserError:  # the file cannot be read
        return None
    finally:
        write(root, change.file, document)
    return None if after is None else by_place(after)


def unnamed(old: dict[Place, Any], new: dict[Place, Any], change: Change) -> tuple[list[Any], set[Any]]:
    """Return the fields that a change altered although their trace does not name it, and all altered
    fields."""
    wrong, different = [], set()
    for place in old.keys() & new.keys():
        (before, one), (after, other) = old[place], new[place]
        for was, is_now in differences(before.bodies[one], after.bodies[other]):
            different.add((place, was))
            trace = after.tracer(other, is_now) if is_now is not None else before.tracer(one, was)
            if not names(trace, change):
                wrong.append((str(change), place[1], is_now or was, trace.because))
    return wrong, different


def alone(old: dict[Place, Any]) -> dict[tuple[str, Path], list[tuple[Place, Path, Any]]]:
    """Map file and path of a written field to the rendered fields that name no other visible cause."""
    found: dict[tuple[str, Path], list[tuple[Place, Path, Any]]] = {}
    places = {(id(file), index): place for place, (file, index) in old.items()}
    for file in {id(file): file for file, _ in old.values()}.values():
        for number, path, value, trace in file.fields():
            shown = [cause for cause in trace.causes if cause.is_direct and cause.is_written and cause.where]
            if len(shown) == 1:
                entry = places[id(file), number], path, value
                found.setdefault((shown[0].file, shown[0].field), []).append(entry)
    return found


def unchanged(shown: list[tuple[Place, Path, Any]], different: set[Any], change: Change) -> list[Any]:
    """Return the fields that show only the changed one, and are as they were."""
    return [
        (str(change), place[1], path)
        for place, path, value in shown
        # Part of it, such as the minor of a version, may stay.
        if (place, path) not in different and str(value).lstrip("v") not in str(change.value)
    ]


@pytest.mark.parametrize("file", FILES)
def test_a_changed_field_changes_exactly_the_fields_that_name_it(file: str, tmp_path: FilePath) -> None:
    root, (text, model) = worlds.everything(tmp_path), FILES[file]
    document = plain.load(text)
    every = list(changes(file, document, model))
    chosen = random.Random(f"{SEED} {file}").sample(every, min(len(every), MOST)) if FEW else every
    write(root, file, document)
    base = rendered(root, Change(file, ("kind",), "x"), ("lab",), "cv" if file.endswith("team.yaml") else "")
    assert base is not None
    old = by_place(base)
    shown = alone(old)
    assert shown
    right, wrong, still = 0, [], []
    for change in chosen:
        if FEW and right == FEW:
            break
        new = tried(root, change, document)
        if new is None:
            continue
        right += 1
        found, different = unnamed(old, new, change)
        wrong += found
        is_word = isinstance(find_value_at(document, change.path), str) and change.path == ("command",)
        if change.value is not None and not is_word and old.keys() == new.keys():
            still += unchanged(shown.get((change.file, change.path), []), different, change)
    assert not wrong
    assert not still
    # Even in a small file, a quarter of the chosen changes must be valid.
    assert right >= min(FEW or len(chosen), len(chosen) // 4)
