"""The worlds of stories: queues that share few cores, and small runs. Nodes have room for all.

A contended world has several flavors, an owner of most resources and guests that live on what it lends;
mostly the owner may take it back. A plain one is drawn without contention in mind.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from gangplan.validate.world import NodeGroup
from tests.e2e.admission.question import PRIORITY, QUEUE, Question
from tests.e2e.admission.runs import named
from tests.e2e.admission.scene import ACCOUNT, GIB, KUEUE, POOL, PRIORITIES, WORLD, Entry, Scene, kueue, meta

Object = dict[str, Any]
TRY = "TryNextFlavor"
#: A node label that no node has and no flavor mentions.
NOWHERE = "node.example.com/nowhere"
#: Cores by flavor of the queue that owns most, of its guests, and of queues in plain worlds.
OWNED, LIVED_ON, DRAWN = (4, 6, 8), (0, 0, 0, 2, 4), (0, 4, 6, 8)


def draw(name: str, random: Random, fair: bool, contended: bool = False) -> Scene:
    """Draw one to three flavors on nodes with room for all, and two to four queues in one cohort or a
    tree."""
    scene = Scene(name, random)
    for index in range(random.choice([2, 2, 3] if contended else [1, 1, 2])):
        pool = f"{name}-{'abc'[index]}"
        free = {"cpu": Fraction(200), "memory": Fraction(800 * GIB)}
        labels = {WORLD: name, POOL: pool, "kubernetes.io/os": "linux"}
        group = NodeGroup(pool, 2, labels, (), free)
        scene.groups.append(group)
        scene.pool_of[pool] = group
        scene.flavors[pool] = kueue("ResourceFlavor", pool, {"nodeLabels": {POOL: pool}})
    parents = [f"{name}-root", *(f"{name}-part{index}" for index in range(random.choice([0, 0, 2])))]
    for parent in parents:
        scene.cohorts.append(kueue("Cohort", parent, _cohort(scene, parent, parents[0], fair, contended)))
    for level, value in PRIORITIES.items():
        priority = {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": meta(f"{name}-{level}")}
        scene.others.append({**priority, "value": value})
    for index in range(random.randint(2, 4)):
        cores = (OWNED if index == 0 else LIVED_ON) if contended else DRAWN
        _queue(scene, index, random.choice(parents[1:] or parents), fair, contended, cores)
    return scene


def _cohort(scene: Scene, name: str, root: str, fair: bool, contended: bool) -> Object:
    """Return a cohort, sometimes with its own cores and with limits towards its parent."""
    random, spec = scene.random, dict[str, Any]()
    if name != root:
        spec["parentName"] = root
    if fair and random.random() < 0.5:
        spec["fairSharing"] = {"weight": random.choice(["1", "2"])}
    if contended and random.random() < 0.15:
        flavors = []
        for flavor in scene.flavors:
            cores: Object = {"name": "cpu", "nominalQuota": str(random.choice([0, 2, 4]))}
            if name != root and random.random() < 0.5:
                cores["borrowingLimit"] = str(random.choice([2, 6]))
            flavors.append({"name": flavor, "resources": [cores, {"name": "memory", "nominalQuota": "0"}]})
        spec["resourceGroups"] = [{"coveredResources": ["cpu", "memory"], "flavors": flavors}]
    return spec


def _queue(
    scene: Scene, index: int, cohort: str, fair: bool, contended: bool, cores: tuple[int, ...]
) -> None:
    """Add a queue with its namespace."""
    random, name, namespace = scene.random, f"{scene.name}-q{index}", f"{scene.name}-t{index}"
    flavors = [{"name": flavor, "resources": _quotas(random, cores)} for flavor in scene.flavors]
    fungibility = {"whenCanBorrow": random.choice(["MayStopSearch", TRY])}
    fungibility["whenCanPreempt"] = random.choice(["MayStopSearch", TRY])
    if contended and set(fungibility.values()) == {TRY} and random.random() < 0.3:
        fungibility["preference"] = random.choice(["BorrowingOverPreemption", "PreemptionOverBorrowing"])
    spec: Object = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "queueingStrategy": random.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
        "preemption": _preemption(random, fair),
        "flavorFungibility": fungibility,
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


def _preemption(random: Random, fair: bool) -> Object:
    reclaim = random.choice(["Never", "LowerPriority", "Any", "Any"])
    spec: Object = {
        "withinClusterQueue": random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": reclaim,
    }
    if not fair and reclaim != "Never" and random.random() < 0.25:
        spec["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if random.random() < 0.5:
            spec["borrowWithinCohort"]["maxPriorityThreshold"] = random.choice([-10, 0, 1000])
    return spec


def _quotas(random: Random, cores: tuple[int, ...]) -> list[Object]:
    """Return few cores and plenty of memory, sometimes with limits."""
    nominal = random.choice(cores)
    written: Object = {"name": "cpu", "nominalQuota": str(nominal)}
    if random.random() < 0.25:
        written["borrowingLimit"] = str(random.choice([0, 2, 6]))
    if nominal and random.random() < 0.25:
        written["lendingLimit"] = str(random.choice([0, 2, nominal]))
    return [written, {"name": "memory", "nominalQuota": "400Gi"}]


def draw_run(
    scene: Scene,
    shapes: dict[str, list[Object]],
    name: str,
    entries: list[Entry] | None = None,
    levels: list[str] | None = None,
) -> Question:
    """Draw a run of a few cores with one of the given queues and priorities, or with any if none are
    given."""
    random = scene.random
    question = Question(scene, random.choice(entries or scene.entries), name, "torch", [])
    question.bodies = named(shapes["torch"], name, question.entry)
    labels = question.train_job["metadata"]["labels"]
    labels[QUEUE] = question.entry.local
    labels[PRIORITY] = f"{scene.name}-{random.choice(levels or list(PRIORITIES))}"
    spec = question.pod()["spec"]
    spec["nodeSelector"] = {"kubernetes.io/os": "linux", WORLD: scene.name}
    if random.random() < 0.2:
        spec["nodeSelector"][POOL] = random.choice(list(scene.flavors))
    spec.pop("tolerations", None)
    wanted = {"cpu": random.choice(["1", "2", "3"]), "memory": "1Gi"}
    question.container()["resources"] = {"requests": wanted, "limits": dict(wanted)}
    question.train_job["spec"]["trainer"]["numNodes"] = random.choice([1, 2, 2, 3, 4])
    return question


def as_job(question: Question) -> Object:
    """Return the workers of a run as a plain Job: no node fits its pods, so that they neither run nor end."""
    labels = question.train_job["metadata"]["labels"]
    spec = question.pod()["spec"]
    container = {
        "name": "main",
        "image": "registry.example.com/none",
        "resources": question.container()["resources"],
    }
    pods = {
        "restartPolicy": "Never",
        "nodeSelector": {**spec["nodeSelector"], NOWHERE: "true"},
        "containers": [container],
    }
    count = question.train_job["spec"]["trainer"]["numNodes"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **meta(question.name, question.entry.namespace),
            "labels": {key: labels[key] for key in (QUEUE, PRIORITY)},
        },
        "spec": {
            "suspend": True,
            "parallelism": count,
            "completions": count,
            "template": {"spec": pods},
        },
    }
