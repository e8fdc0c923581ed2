"""Realistic mistakes in a cluster's objects: each breaks a sound scene in one way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.admission.scene import POOL, Scene, kueue

Object = dict[str, Any]
#: The share of scenes with a mistake.
CHANCE = 0.35


def make(scene: Scene) -> None:
    """Make one random mistake, or none."""
    if scene.random.random() < CHANCE:
        names = list(MISTAKES)
        scene.random.shuffle(names)
        scene.mistake = next(name for name in names if MISTAKES[name](scene))


def _queue(scene: Scene) -> Object:
    spec: Object = scene.random.choice(scene.queues)["spec"]
    return spec


def _missing_flavor(scene: Scene) -> bool:
    group = scene.random.choice(_queue(scene)["resourceGroups"])
    group["flavors"][0]["name"] += "-typo"
    return True


def _cohort_typo(scene: Scene) -> bool:
    spec = _queue(scene)
    if "cohortName" not in spec:
        return False
    spec["cohortName"] += "-typo"
    return True


def _no_selector(scene: Scene) -> bool:
    del _queue(scene)["namespaceSelector"]
    return True


def _other_selector(scene: Scene) -> bool:
    _queue(scene)["namespaceSelector"] = {"matchLabels": {"example.com/team": "somebody"}}
    return True


def _selector_expression(scene: Scene) -> bool:
    wanted = {"key": "example.com/team", "operator": "NotIn", "values": [scene.entries[0].namespace]}
    _queue(scene)["namespaceSelector"] = {"matchExpressions": [wanted]}
    return True


def _local_to_nowhere(scene: Scene) -> bool:
    scene.random.choice(scene.locals)["spec"]["clusterQueue"] += "-typo"
    return True


def _local_held(scene: Scene) -> bool:
    policy = scene.random.choice(["Hold", "HoldAndDrain"])
    scene.random.choice(scene.locals)["spec"]["stopPolicy"] = policy
    return True


def _queue_held(scene: Scene) -> bool:
    _queue(scene)["stopPolicy"] = scene.random.choice(["Hold", "HoldAndDrain"])
    return True


def _uncovered(scene: Scene) -> bool:
    """Remove a resource from a queue's quotas."""
    group = scene.random.choice(_queue(scene)["resourceGroups"])
    if len(group["coveredResources"]) < 2:
        return False
    gone = scene.random.randrange(len(group["coveredResources"]))
    del group["coveredResources"][gone]
    for flavor in group["flavors"]:
        del flavor["resources"][gone]
    return True


def _taint_of_flavor(scene: Scene) -> bool:
    flavor = scene.random.choice(list(scene.flavors.values()))
    effect = scene.random.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
    taint = {"key": "example.com/reserved", "value": "yes", "effect": effect}
    flavor["spec"].setdefault("nodeTaints", []).append(taint)
    return True


def _no_topology(scene: Scene) -> bool:
    if not scene.topologies:
        return False
    scene.topologies.clear()
    return True


def _level_of_no_node(scene: Scene) -> bool:
    if not scene.topologies:
        return False
    scene.topologies[0]["spec"]["levels"].insert(0, {"nodeLabel": "topology.example.com/room"})
    return True


def _no_check(scene: Scene) -> bool:
    checks = {"admissionChecks": [{"name": f"{scene.name}-check"}]}
    _queue(scene)["admissionChecksStrategy"] = checks
    return True


def _check_without_controller(scene: Scene) -> bool:
    name = f"{scene.name}-check"
    scene.others.append(kueue("AdmissionCheck", name, {"controllerName": "example.com/nobody"}))
    return _no_check(scene)


def _circle(scene: Scene) -> bool:
    if len(scene.cohorts) < 2:
        return False
    scene.cohorts[0]["spec"]["parentName"] = scene.cohorts[-1]["metadata"]["name"]
    return True


def _labels_of_no_node(scene: Scene) -> bool:
    flavor = scene.random.choice(list(scene.flavors.values()))
    flavor["spec"]["nodeLabels"] = {**flavor["spec"].get("nodeLabels", {}), POOL: f"{scene.name}-gone"}
    return True


def _nothing_nominal(scene: Scene) -> bool:
    """Set the quota of one resource to zero where everything else has quota."""
    group = scene.random.choice(_queue(scene)["resourceGroups"])
    for flavor in group["flavors"]:
        flavor["resources"][0] = {"name": flavor["resources"][0]["name"], "nominalQuota": "0"}
    return True


def _tiny_pool(scene: Scene) -> bool:
    """Leave fewer nodes than the quotas were made for."""
    import dataclasses

    scene.groups[:] = [dataclasses.replace(group, count=1) for group in scene.groups]
    return True


Mistake = Callable[[Scene], bool]
MISTAKES: dict[str, Mistake] = {
    mistake.__name__[1:]: mistake
    for mistake in (
        _missing_flavor,
        _cohort_typo,
        _no_selector,
        _other_selector,
        _selector_expression,
        _local_to_nowhere,
        _local_held,
        _queue_held,
        _uncovered,
        _taint_of_flavor,
        _no_topology,
        _level_of_no_node,
        _no_check,
        _check_without_controller,
        _circle,
        _labels_of_no_node,
        _nothing_nominal,
        _tiny_pool,
    )
}
