"""Random runs: what gangplan renders, in all sizes, sometimes changed as teams and overlays could."""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.validate.world import NodeGroup
from tests import workspaces
from tests.e2e.admission.changes import EDIT_WITH, EDITS
from tests.e2e.admission.question import PREFERRED, PRIORITY, QUEUE, REQUIRED, UNCONSTRAINED, Question
from tests.e2e.admission.scene import BLOCK, GIB, GPU, POOL, RACK, WORLD, ZONE, Entry, Scene
from tests.lab.profiles import Profile

Object = dict[str, Any]
SPEC = {"apiVersion": "gangplan.dev/v1", "kind": "TrainingJob", "command": ["python", "train.py"]}
SPEC |= {"cpu": 2, "memory": "4Gi", "workers": 3}
#: A dedicated launcher, a launcher that runs ranks, and no launcher.
SHAPES: dict[str, Object] = {
    "mpi": {"image": "openmpi"},
    "both": {"image": "openmpi", "launcher": {"runsRanks": True}},
    "torch": {"image": "pytorch"},
}


def rendered(profile: Profile) -> dict[str, list[Object]]:
    """Return one run of each shape, as gangplan renders it for the versions of a profile."""
    cluster = workspaces.CLUSTER.replace('trainer: "2.3.0"', f'trainer: "{profile.trainer}"')
    cluster = cluster.replace('kueue: "0.19.2"', f'kueue: "{profile.kueue}"')
    cluster = cluster.replace('kubernetes: "1.34.4"', f'kubernetes: "{profile.kubernetes}"')
    files = {
        f"specs/nlp/{name}.yaml": json.dumps({**SPEC, **extra, "name": name})
        for name, extra in SHAPES.items()
    }
    with tempfile.TemporaryDirectory(prefix="gangplan-admission-") as folder:
        root = workspaces.stock(Path(folder), "specs/nlp/filings.yaml")
        result = preview_render(
            Request(workspaces.write(root, {**files, "overlays/lab/cluster.yaml": cluster}))
        )
    assert not result.has_errors, result.findings
    return {run.unit.job.name: load_objects(result.texts[run.path]) for run in result.runs}


def draw(scene: Scene, shapes: dict[str, list[Object]], name: str) -> Question:
    """Draw a run of some shape and size in some queue of a world."""
    random = scene.random
    entry, shape = random.choice(scene.entries), random.choice(list(SHAPES))
    question = Question(scene, entry, name, shape, named(shapes[shape], name, entry))
    labels = question.train_job["metadata"]["labels"]
    labels[QUEUE] = entry.local
    labels[PRIORITY] = f"{scene.name}-{random.choice(['low', 'normal', 'high'])}"
    target = scene.pool_of[random.choice(_pools(question))]
    _place(question, target)
    _size(question, target)
    if scene.topologies and random.random() < 0.6:
        _topology(question)
    for edit, chance in EDITS.items():
        if random.random() < chance and EDIT_WITH[edit](question):
            question.edits.append(edit)
    return question


def named(bodies: list[Object], name: str, entry: Entry) -> list[Object]:
    """Return the runtime and TrainJob under a name, in a namespace of the world."""
    wanted = [body for body in bodies if body["kind"] in ("TrainingRuntime", "TrainJob")]
    old = wanted[0]["metadata"]["name"]
    found: list[Object] = json.loads(json.dumps(wanted).replace(old, name))
    for body in found:
        body["metadata"]["namespace"] = entry.namespace
    return found


def _pools(question: Question) -> list[str]:
    """Return the flavors of the run's queue."""
    queue = next(one for one in question.scene.queues if one["metadata"]["name"] == question.entry.queue)
    listed = [flavor["name"] for group in queue["spec"]["resourceGroups"] for flavor in group["flavors"]]
    return [name for name in listed if name in question.scene.pool_of] or list(question.scene.pool_of)


def _place(question: Question, target: NodeGroup) -> None:
    """Select the nodes of the world; often the pool of one flavor, tolerated or not."""
    random, scene = question.scene.random, question.scene
    for role in question.roles:
        spec = question.pod(role)["spec"]
        spec["nodeSelector"] = {"kubernetes.io/os": "linux", WORLD: scene.name}
        spec.pop("tolerations", None)
        pool = target if random.random() < 0.9 else random.choice(scene.groups)
        if random.random() < 0.4:
            spec["nodeSelector"][POOL] = pool.labels[POOL]
        if random.random() < 0.05:
            spec["nodeSelector"][ZONE] = random.choice(["east", "west"])
        if random.random() < 0.85:
            spec["tolerations"] = [
                {"key": taint.key, "operator": "Exists", "effect": taint.effect}
                for group in scene.groups
                for taint in group.taints
                if group is pool or random.random() < 0.7
            ]


def _size(question: Question, target: NodeGroup) -> None:
    """Size a run from tiny to impossible, relative to the nodes of a pool of its queue."""
    random, pool = question.scene.random, target
    share = random.choice(
        [Fraction(1, 8), Fraction(1, 8), *[Fraction(1, 4), Fraction(1, 2)] * 2, 1, Fraction(5, 4)]
    )
    some = max(1, pool.count // 2)
    workers = random.choice([1, 1, 2, some, some, pool.count, pool.count + 1, 2 * pool.count])
    if random.random() < 0.06:
        workers, share = random.choice([40, 100]), max(share, Fraction(1, 2))
    question.train_job["spec"]["trainer"]["numNodes"] = workers
    memory = max(1, int(pool.free["memory"] * share) // GIB)
    wanted = {"cpu": _cores(pool.free["cpu"] * share), "memory": f"{memory}Gi"}
    gpus = int(pool.free.get(GPU, Fraction(0)) * share)
    if gpus and random.random() < 0.7:
        wanted[GPU] = str(gpus)
    _resources(question, "node", wanted)
    if "launcher" in question.roles:
        small = {"cpu": random.choice(["500m", "1", "2"]), "memory": random.choice(["1Gi", "2Gi"])}
        _resources(question, "launcher", wanted if question.shape == "both" else small)


def _cores(amount: Fraction) -> str:
    return f"{int(amount * 1000)}m" if amount.denominator != 1 else str(int(amount))


def _resources(question: Question, role: str, wanted: Object) -> None:
    question.container(role)["resources"] = {"requests": dict(wanted), "limits": dict(wanted)}


def _topology(question: Question) -> None:
    """Annotate the workers with a topology, and sometimes the launcher too."""
    random, levels = question.scene.random, question.scene.levels
    level = random.choice([*levels * 4, BLOCK, RACK, "topology.example.com/room"])
    wanted = random.choice([REQUIRED, REQUIRED, PREFERRED, UNCONSTRAINED])
    value = "true" if wanted == UNCONSTRAINED else level
    roles = question.roles if random.random() < 0.6 else ["node"]
    for role in roles:
        question.pod(role)["metadata"].setdefault("annotations", {})[wanted] = value
    question.edits.append(f"{wanted.rpartition('/')[2]}={value}")
