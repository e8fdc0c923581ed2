"""The worlds of stories: queues that share few cores, and runs of a few. Nodes have room for all."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from gangplan.validate.world import NodeGroup
from tests.e2e.admission.question import PRIORITY, QUEUE, Question
from tests.e2e.admission.runs import named
from tests.e2e.admission.scene import ACCOUNT, GIB, KUEUE, POOL, PRIORITIES, WORLD, Entry, Scene, kueue, meta

Object = dict[str, Any]


def draw(name: str, random: Random, fair: bool) -> Scene:
    """One or two flavors on nodes with room for everything, two to four queues of one cohort or a tree."""
    scene = Scene(name, random)
    for index in range(random.choice([1, 1, 2])):
        pool = f"{name}-{'ab'[index]}"
        free = {"cpu": Fraction(200), "memory": Fraction(800 * GIB)}
        labels = {WORLD: name, POOL: pool, "kubernetes.io/os": "linux"}
        group = NodeGroup(pool, 2, labels, (), free)
        scene.groups.append(group)
        scene.pool_of[pool] = group
        scene.flavors[pool] = kueue("ResourceFlavor", pool, {"nodeLabels": {POOL: pool}})
    parents = [f"{name}-root", *(f"{name}-part{index}" for index in range(random.choice([0, 0, 2])))]
    for parent in parents:
        spec: Object = {} if parent == parents[0] else {"parentName": parents[0]}
        if fair and random.random() < 0.5:
            spec["fairSharing"] = {"weight": random.choice(["1", "2"])}
        scene.cohorts.append(kueue("Cohort", parent, spec))
    for level, value in PRIORITIES.items():
        priority = {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": meta(f"{name}-{level}")}
        scene.others.append({**priority, "value": value})
    for index in range(random.randint(2, 4)):
        _queue(scene, index, random.choice(parents[1:] or parents), fair)
    return scene


def _queue(scene: Scene, index: int, cohort: str, fair: bool) -> None:
    """A queue with its namespace."""
    random, name, namespace = scene.random, f"{scene.name}-q{index}", f"{scene.name}-t{index}"
    reclaim = random.choice(["Never", "LowerPriority", "Any", "Any"])
    preemption: Object = {
        "withinClusterQueue": random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": reclaim,
    }
    if not fair and reclaim != "Never" and random.random() < 0.25:
        preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
    flavors = [{"name": flavor, "resources": _quotas(random)} for flavor in scene.flavors]
    spec: Object = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "queueingStrategy": random.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
        "preemption": preemption,
        "flavorFungibility": {
            "whenCanBorrow": random.choice(["MayStopSearch", "TryNextFlavor"]),
            "whenCanPreempt": random.choice(["MayStopSearch", "TryNextFlavor"]),
        },
        "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
    }
    if fair:
        spec["fairSharing"] = {"weight": random.choice(["1", "1", "2", "500m"])}
    scene.queues.append(kueue("ClusterQueue", name, spec))
    scene.others += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(namespace)},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(ACCOUNT, namespace)},
    ]
    scene.locals.append(kueue("LocalQueue", "training", {"clusterQueue": name}, namespace))
    scene.entries.append(Entry(namespace, "training", name))


def _quotas(random: Random) -> list[Object]:
    """Few cores, memory in plenty; sometimes limits."""
    nominal = random.choice([0, 4, 6, 8])
    cores: Object = {"name": "cpu", "nominalQuota": str(nominal)}
    if random.random() < 0.25:
        cores["borrowingLimit"] = str(random.choice([0, 2, 6]))
    if nominal and random.random() < 0.25:
        cores["lendingLimit"] = str(random.choice([0, 2, nominal]))
    return [cores, {"name": "memory", "nominalQuota": "400Gi"}]


def draw_run(scene: Scene, shapes: dict[str, list[Object]], name: str) -> Question:
    """A run of a few cores."""
    random = scene.random
    question = Question(scene, random.choice(scene.entries), name, "torch", [])
    question.bodies = named(shapes["torch"], name, question.entry)
    labels = question.train_job["metadata"]["labels"]
    labels[QUEUE] = question.entry.local
    labels[PRIORITY] = f"{scene.name}-{random.choice(list(PRIORITIES))}"
    spec = question.pod()["spec"]
    spec["nodeSelector"] = {"kubernetes.io/os": "linux", WORLD: scene.name}
    if random.random() < 0.2:
        spec["nodeSelector"][POOL] = random.choice(list(scene.flavors))
    spec.pop("tolerations", None)
    wanted = {"cpu": random.choice(["1", "2", "3"]), "memory": "1Gi"}
    question.container()["resources"] = {"requests": wanted, "limits": dict(wanted)}
    question.train_job["spec"]["trainer"]["numNodes"] = random.choice([1, 2, 2, 3, 4])
    return question
