"""Random worlds by seed: node pools, flavors, cohort trees, queues, namespace limits, priorities."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from gangplan.validate.world import HOSTNAME_LABEL, NodeGroup, NodeGroupTaint
from tests.e2e.admission.scene import (
    ACCOUNT,
    BLOCK,
    GIB,
    GPU,
    KUEUE,
    POOL,
    PRIORITIES,
    RACK,
    WORLD,
    ZONE,
    Entry,
    Scene,
    kueue,
    meta,
)

Object = dict[str, Any]
#: Nodes of one shape: cores, GiB of memory, GPUs.
SHAPES = ((8, 32, 0), (16, 64, 0), (32, 128, 4), (64, 256, 8), (16, 128, 2), (4, 8, 0))


def draw(name: str, random: Random) -> Scene:
    """Draw a consistent world; mistakes are made later (see `mistakes`)."""
    scene = Scene(name, random)
    _nodes(scene)
    _flavors(scene)
    _cohorts(scene)
    _queues(scene)
    _tenants(scene)
    return scene


def _nodes(scene: Scene) -> None:
    random = scene.random
    wanted = random.random() < 0.65
    scene.levels = random.choice(
        [(BLOCK, RACK, HOSTNAME_LABEL), (RACK, HOSTNAME_LABEL), (BLOCK, RACK), (HOSTNAME_LABEL,)]
    )
    for index in range(random.randint(1, 4)):
        name = f"{scene.name}-{'abcd'[index]}"
        cores, memory, gpus = random.choice(SHAPES)
        free = {"cpu": Fraction(cores), "memory": Fraction(memory * GIB)}
        if gpus:
            free[GPU] = Fraction(gpus)
        labels = {WORLD: scene.name, POOL: name, "kubernetes.io/os": "linux"}
        if random.random() < 0.3:
            labels[ZONE] = random.choice(["east", "west"])
        taints = _taints(random, bool(gpus))
        sizes = {BLOCK: random.choice([4, 6]), RACK: random.choice([2, 3]), HOSTNAME_LABEL: 1}
        if BLOCK in scene.levels:  # racks fill blocks exactly
            sizes[BLOCK] = sizes[RACK] * 2
        domains = tuple((level, sizes[level]) for level in scene.levels) if wanted else ()
        scene.groups.append(NodeGroup(name, random.randint(1, 7), labels, taints, free, domains))


def _taints(random: Random, has_gpus: bool) -> tuple[NodeGroupTaint, ...]:
    found = []
    if has_gpus and random.random() < 0.6:
        found.append(NodeGroupTaint(GPU, "present", "NoSchedule"))
    if random.random() < 0.15:
        found.append(
            NodeGroupTaint("node.example.com/spot", "true", random.choice(["NoSchedule", "PreferNoSchedule"]))
        )
    if random.random() < 0.05:
        found.append(NodeGroupTaint("node.example.com/maintenance", "", "NoExecute"))
    return tuple(found)


def _flavors(scene: Scene) -> None:
    """Draw one flavor per pool, sometimes two, and sometimes a flavor for any node of the world."""
    random = scene.random
    topology = f"{scene.name}-layout"
    tas = random.choice(["all", "some", "none"])
    for group in scene.groups:
        copies = 2 if random.random() < 0.12 else 1
        for copy in range(copies):
            name = group.name if copy == 0 else f"{group.name}-too"
            spec: Object = {"nodeLabels": {POOL: group.labels[POOL]}}
            if ZONE in group.labels and random.random() < 0.5:
                spec["nodeLabels"][ZONE] = group.labels[ZONE]
            if random.random() < 0.8 and group.taints:
                spec["nodeTaints"] = [_taint(taint) for taint in group.taints]
            if group.taints and random.random() < 0.5:
                spec["tolerations"] = [_toleration(random, taint) for taint in group.taints]
            if group.domains and tas != "none" and (tas == "all" or random.random() < 0.5):
                spec["topologyName"] = topology
            scene.flavors[name] = kueue("ResourceFlavor", name, spec)
            scene.pool_of[name] = group
    if any("topologyName" in flavor["spec"] for flavor in scene.flavors.values()):
        levels = [{"nodeLabel": level} for level in scene.levels]
        scene.topologies.append(kueue("Topology", topology, {"levels": levels}))
    if random.random() < 0.3:
        name = f"{scene.name}-any"
        spec = {"nodeLabels": {WORLD: scene.name}} if random.random() < 0.5 else {}
        scene.flavors[name] = kueue("ResourceFlavor", name, spec)
        scene.pool_of[name] = random.choice(scene.groups)


def _taint(taint: NodeGroupTaint) -> Object:
    return {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}


def _toleration(random: Random, taint: NodeGroupTaint) -> Object:
    if taint.value and random.random() < 0.5:
        return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
    return {"key": taint.key, "operator": "Exists"}


def _cohorts(scene: Scene) -> None:
    """Draw no cohort, one that is only a name, one that is an object, or a tree."""
    random = scene.random
    shape = random.choice(["none", "implicit", "flat", "tree", "tree"])
    root = f"{scene.name}-root"
    if shape in ("none", "implicit"):
        scene.others.append({"shape": shape})  # removed again by _queues
        return
    names = [root]
    if shape == "tree":
        for index in range(random.randint(1, 3)):
            names.append(f"{scene.name}-part{index}")
    for index, name in enumerate(names):
        spec: Object = {}
        if index:
            spec["parentName"] = random.choice(names[:index])
        if random.random() < 0.35:
            spec["resourceGroups"] = [_group(scene, random.choice(list(scene.flavors)), bool(index))]
        if random.random() < 0.2:
            spec["fairSharing"] = {"weight": random.choice(["1", "2", "500m"])}
        scene.cohorts.append(kueue("Cohort", name, spec))


def _group(scene: Scene, flavor: str, has_parent: bool) -> Object:
    """Return a cohort's own quota of one flavor."""
    covered = ["cpu", "memory", *([GPU] if GPU in scene.pool_of[flavor].free else [])]
    resources = [quota(scene, flavor, resource, has_parent, True) for resource in covered]
    return {"coveredResources": covered, "flavors": [{"name": flavor, "resources": resources}]}


def quota(scene: Scene, flavor: str, resource: str, has_cohort: bool, is_cohort: bool = False) -> Object:
    """Return the quota of a resource: some share of the flavor's pool."""
    random, pool = scene.random, scene.pool_of[flavor]
    if resource == "pods":
        return {"name": resource, "nominalQuota": str(random.choice([3, 8, 40]))}
    most = pool.free.get(resource, Fraction(0)) * pool.count
    share = random.choice([0, Fraction(1, 4), *[Fraction(1, 2)] * 2, *[1] * 4, Fraction(3, 2)])
    nominal = _round(resource, most * share)
    found = {"name": resource, "nominalQuota": _amount(resource, nominal)}
    if has_cohort and random.random() < 0.3:
        found["borrowingLimit"] = _amount(resource, _round(resource, most * random.choice([0, 1, 2]) / 4))
    if has_cohort and random.random() < 0.3:
        lent = _round(resource, most * random.choice([0, 1, 2]) / 4)
        found["lendingLimit"] = _amount(resource, lent if is_cohort else min(lent, nominal))
    return found


def _round(resource: str, amount: Fraction) -> int:
    return int(amount) // GIB * GIB if resource == "memory" else int(amount)


def _amount(resource: str, amount: int) -> str:
    if resource == "memory" and amount:
        return f"{amount // GIB}Gi"
    return str(amount)


def _queues(scene: Scene) -> None:
    random = scene.random
    shape = scene.others.pop()["shape"] if scene.others else ""
    for index in range(random.randint(1, 5)):
        name = f"{scene.name}-q{index}"
        cohort = ""
        if scene.cohorts:
            cohort = random.choice(scene.cohorts)["metadata"]["name"] if random.random() < 0.9 else ""
        elif shape == "implicit":
            cohort = f"{scene.name}-root"
        within = random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])
        spec: Object = {
            "namespaceSelector": {},
            "queueingStrategy": random.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
            "stopPolicy": "None",
            "flavorFungibility": {
                "whenCanBorrow": random.choice(["MayStopSearch", "MayStopSearch", "TryNextFlavor"]),
                "whenCanPreempt": random.choice(["TryNextFlavor", "TryNextFlavor", "MayStopSearch"]),
            },
            "preemption": {
                "withinClusterQueue": within,
                "reclaimWithinCohort": random.choice(["Never", "LowerPriority", "Any"]),
            },
            "resourceGroups": _groups(scene, bool(cohort)),
        }
        if cohort:
            spec["cohortName"] = cohort
        scene.queues.append(kueue("ClusterQueue", name, spec))


def _groups(scene: Scene, has_cohort: bool) -> list[Object]:
    """Return one resource group, or one for cpu and memory and another for GPUs."""
    random = scene.random
    names = list(scene.flavors)
    random.shuffle(names)
    covered = ["cpu", "memory", *(["pods"] if random.random() < 0.12 else [])]
    gpus = [name for name in names if GPU in scene.pool_of[name].free]
    rest = [name for name in names if name not in gpus]
    if gpus and rest and random.random() < 0.35:
        return [
            _flavored(scene, covered, rest[: random.randint(1, len(rest))], has_cohort),
            _flavored(scene, [GPU], gpus[: random.randint(1, len(gpus))], has_cohort),
        ]
    chosen = names[: random.randint(1, len(names))]
    if any(name in gpus for name in chosen) or random.random() < 0.3:
        covered.append(GPU)
    return [_flavored(scene, covered, chosen, has_cohort)]


def _flavored(scene: Scene, covered: list[str], names: list[str], has_cohort: bool) -> Object:
    flavors = [
        {"name": name, "resources": [quota(scene, name, resource, has_cohort) for resource in covered]}
        for name in names
    ]
    return {"coveredResources": covered, "flavors": flavors}


def _tenants(scene: Scene) -> None:
    """Add a namespace and a LocalQueue per queue, priorities, namespace limits and runtime classes."""
    random = scene.random
    for name, value in PRIORITIES.items():
        scene.others.append(
            {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": meta(f"{scene.name}-{name}")}
            | {"value": value}
        )
    overhead = {"cpu": "250m", "memory": "512Mi"}
    scene.others.append(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": meta(f"{scene.name}-kata")}
        | {"handler": "kata", "overhead": {"podFixed": overhead}}
    )
    for index, queue in enumerate(scene.queues):
        namespace = f"{scene.name}-t{index}"
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(namespace)}
        space["metadata"]["labels"] = {"example.com/team": namespace}
        scene.others.append(space)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(ACCOUNT, namespace)}
        scene.others.append(account)
        if random.random() < 0.4:
            queue["spec"]["namespaceSelector"] = {"matchLabels": {"example.com/team": namespace}}
        if random.random() < 0.25:
            scene.others.append(_limit_range(random, namespace))
        name = queue["metadata"]["name"]
        scene.locals.append(
            kueue("LocalQueue", "training", {"clusterQueue": name, "stopPolicy": "None"}, namespace)
        )
        scene.entries.append(Entry(namespace, "training", name))


def _limit_range(random: Random, namespace: str) -> Object:
    limit: Object = {"type": "Container"}
    if random.random() < 0.6:
        limit |= {"default": {"cpu": "2", "memory": "4Gi"}, "defaultRequest": {"cpu": "1", "memory": "2Gi"}}
    if random.random() < 0.5:
        limit["max"] = {"cpu": random.choice(["4", "16", "64"])}
    if random.random() < 0.3:
        limit["min"] = {"memory": "1Gi" if "default" in limit else "3Gi"}
    if "default" not in limit and not {"max", "min"} & limit.keys():
        limit["max"] = {"memory": "64Gi"}
    limits = [limit]
    if random.random() < 0.3:
        limits.append({"type": "Pod", "max": {"cpu": random.choice(["6", "32"])}})
    spec = {"limits": limits}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta("limits", namespace), "spec": spec}
