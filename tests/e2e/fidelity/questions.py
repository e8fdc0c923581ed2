"""Questions by seed: objects that gangplan emitted, unchanged and changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.e2e.fidelity.edits import Edit, edited
from tests.e2e.fidelity.mutations import every, mutate
from tests.e2e.fidelity.worlds import PLAIN, Emitted, expand, random_world, workspace
from tests.lab.profiles import Profile

Object = dict[str, Any]
# Specs of one workspace: enough objects to be worth one start of the overlay's builder.
SPECS = 16
SWEPT = [
    {**PLAIN, "name": "mpi", "workers": 4, "network": {"posture": "restricted", "egress": ["s3"]}},
    {**PLAIN, "name": "torch", "image": "pytorch", "workers": 2, "gpus": 1, "memory": "64Gi"},
]
AS_EMITTED = "as-emitted"


@dataclass(frozen=True, slots=True)
class Question:
    """Whether object `index` of these is accepted once it is edited."""

    emitted: Emitted
    index: int
    mutation: str = AS_EMITTED
    edits: tuple[Edit, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the object before it was edited."""
        return str(self.emitted.bodies[self.index]["kind"])

    def bodies(self) -> list[Object]:
        """Return the objects of the file, with the edits made."""
        return [
            edited(body, self.edits) if index == self.index else body
            for index, body in enumerate(self.emitted.bodies)
        ]


@dataclass(slots=True)
class Batch:
    """The questions about one workspace, grouped by file, and the specs that gangplan refused."""

    groups: list[list[Question]]
    refused: list[str]


def batches(profile: Profile, seed: int, count: int, kind: str = "") -> Iterator[Batch]:
    """Yield batches of `count` questions in all; every second one is about a changed object.

    With a `kind`, they are about its objects alone.
    """
    seen: set[str] = set()
    left = count
    with workspace(profile) as root:
        number = 0
        while left > 0:
            batch = _batch(root, Random(f"{seed}/{number}"), seen, left, kind)
            left -= sum(len(group) for group in batch.groups)
            number += 1
            yield batch


def sweep(profile: Profile) -> Iterator[Batch]:
    """Yield every value of values.yaml once, for the objects of one run with MPI, one without, and their
    tenant."""
    with workspace(profile) as root:
        team = {"apiVersion": "gangplan.dev/v1", "kind": "Team"}
        world = expand(root, team, SWEPT)
        kinds: set[str] = set()
        groups = []
        for emitted in world.emitted:
            for index, body in enumerate(emitted.bodies):
                # The policies of a run differ little; of runtimes and runs, both specs' objects are used.
                if body["kind"] not in kinds or body["kind"] in ("TrainingRuntime", "TrainJob"):
                    kinds.add(body["kind"])
                    made = [Question(emitted, index, name, edits) for name, edits in every(body)]
                    # The questions about a run share its real runtime, so they stay together.
                    size = len(made) if body["kind"] == "TrainJob" else 25
                    groups += [made[at : at + size] for at in range(0, len(made), size)]
        yield Batch(groups, world.refused)


def _batch(root: Path, random: Random, seen: set[str], most: int, kind: str) -> Batch:
    # With a kind, too, patches of the cluster need a run of the others.
    world = random_world(root, random, SPECS, [{**PLAIN, "name": "patched"}] if kind else ())
    groups: list[list[Question]] = []
    for emitted in world.emitted:
        group: list[Question] = []
        for index, body in enumerate(emitted.bodies):
            if kind not in ("", body["kind"]):
                continue
            # Objects that are equal in all workspaces are worth one plain question.
            if str(body) not in seen:
                seen.add(str(body))
                group.append(Question(emitted, index))
            name, edits = mutate(random, body)
            group.append(Question(emitted, index, name, edits))
        groups.append(group[: max(most, 0)])
        most -= len(group)
    return Batch([group for group in groups if group], world.refused)
