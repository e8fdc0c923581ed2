"""Random workspaces rendered in whole by gangplan: cluster, teams and specs become a scene and its runs."""

from __future__ import annotations

import json
import re
import tempfile
import threading
from pathlib import Path
from random import Random
from typing import Any

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.validate.world import build_world_of_cluster
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e.admission import mistakes
from tests.e2e.admission.changes import EDIT_WITH, EDITS
from tests.e2e.admission.question import Question
from tests.e2e.admission.scene import HEAD, IMAGES, Entry, Scene
from tests.e2e.fidelity import features
from tests.e2e.fidelity.sides import versions_of
from tests.lab.profiles import Profile

Object = dict[str, Any]
#: The rendered kinds that matter to admission and pods; the others would only slow the lab down.
WANTED = (
    *("Namespace", "ServiceAccount", "LimitRange", "ResourceQuota", "WorkloadPriorityClass"),
    *("Topology", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "AdmissionCheck"),
)
LEVELS = re.compile(r'"training-(low|normal|high)"')
SHAPES = ((8, 32, 0), (16, 64, 0), (32, 128, 4), (64, 256, 8))
#: The pipeline's serial engine works on one workspace at a time.
RENDERING = threading.Lock()
#: Built objects are changed less often than those of scenes that were drawn object by object.
RARER = 0.4
#: How often a spec is a sweep, whose trials have a queue of their own.
SWEEPS = 0.15


def draw(name: str, random: Random, profile: Profile, count: int) -> tuple[Scene, list[Question]]:
    """Draw a scene with at most `count` runs; draw again if the platform's own checks refuse it."""
    for _ in range(20):
        cluster = _cluster(name, random, profile)
        specs = [_spec(name, random, cluster, number) for number in range(count)]
        found = _rendered(name, random, profile, cluster, specs)
        if found is not None:
            return found
    raise LookupError(f"no sound workspace for {name}")


def _cluster(name: str, random: Random, profile: Profile) -> Object:
    pools: Object = {}
    topology = random.random() < 0.5
    for index in range(random.randint(1, 3)):
        cores, memory, gpus = random.choice(SHAPES)
        label = f"{name}-{'abc'[index]}"
        pool: Object = {"count": random.randint(2, 6), "cpu": cores, "memory": f"{memory}Gi"}
        pool["labels"] = {"node.example.com/pool": label}
        if gpus:
            pool["gpu"] = {"model": "a100-80gb", "count": gpus}
            if random.random() < 0.7:
                pool["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
        if random.random() < 0.3:
            pool["daemons"] = {"cpu": 1, "memory": "2Gi"}
        if topology and random.random() < 0.7:
            pool["topology"] = True
        pools[label] = pool
    cluster: Object = {
        **HEAD,
        "kind": "Cluster",
        "versions": {"kubernetes": profile.kubernetes, "trainer": profile.trainer, "kueue": profile.kueue},
        "region": "eu-central",
        "location": "on-prem",
        "nodePools": pools,
        "fairSharing": False,
        "defaults": {"cpu": 2, "memory": "8Gi"},
        "overcommit": random.random() < 0.5,
    }
    if topology:
        rack = {"name": "rack", "label": f"topology.example.com/{name}-rack", "nodes": random.choice([2, 3])}
        host = {"name": "host", "label": "kubernetes.io/hostname", "nodes": 1}
        cluster["topology"] = [rack, host]
    _shared(name, random, cluster)
    return cluster


def _shared(name: str, random: Random, cluster: Object) -> None:
    """Add cohorts, and teams with shares of the pools."""
    root = f"{name}-company"
    cluster["cohorts"] = {root: {}}
    if random.random() < 0.5:
        cluster["cohorts"][f"{name}-labs"] = {"parent": root}
    cluster["teams"] = {}
    for index in range(random.randint(1, 3)):
        team: Object = {"queue": "training", "cohort": random.choice(list(cluster["cohorts"]))}
        if random.random() < 0.8:
            team["quota"] = _shares(random, cluster)
        if "quota" in team and random.random() < 0.4:
            team["borrow"] = _shares(random, cluster)
        cluster["teams"][f"{name}-t{index}"] = team


def _shares(random: Random, cluster: Object) -> Object:
    """Return some of each pool. Together, teams must not be promised more than exists."""
    found: Object = {}
    for pool, spec in cluster["nodePools"].items():
        share = random.choice([0, 1, 2, 3])
        if "gpu" in spec:
            found[pool] = {"gpus": spec["count"] * spec["gpu"]["count"] * share // 9}
        else:
            found[pool] = {"cpu": max(1, spec["count"] * (spec["cpu"] - 1) * share // 9)}
    return found


def _spec(name: str, random: Random, cluster: Object, number: int) -> Object:
    pool, spec = random.choice(list(cluster["nodePools"].items()))
    part = random.choice([8, 4, 4, 2, 1])
    workers = random.choice([1, 1, 2, 2, spec["count"], spec["count"] + 1])
    found: Object = {**HEAD, "kind": "TrainingJob", "name": f"{name}-r{number}", "workers": workers}
    found |= {"command": ["python", "train.py"], "image": random.choice(IMAGES)}
    memory = int(spec["memory"].removesuffix("Gi"))
    found |= {"cpu": max(1, (spec["cpu"] - 1) // part), "memory": f"{max(1, (memory - 2) // part)}Gi"}
    if "gpu" in spec and random.random() < 0.8:
        found["gpus"] = max(1, spec["gpu"]["count"] // part)
    placement: Object = {}
    if random.random() < 0.6:
        placement["nodePool"] = pool
    if spec.get("topology") and random.random() < 0.6:
        placement["topology"] = {random.choice(["required", "preferred"]): random.choice(["rack", "host"])}
    if placement:
        found["placement"] = placement
    if found["image"] == "openmpi" and workers > 1 and random.random() < 0.4:
        found["launcher"] = {"runsRanks": True}
    if random.random() < 0.4:
        found["priority"] = random.choice(["low", "normal", "high"])
    if random.random() < 0.35:
        random.choice([_roles, _steps, _elastic, _containers])(random, found)
    return features.swept(found) if random.random() < SWEEPS else found


def _small(random: Random, found: Object) -> Object:
    """Return the amounts of a pod that is not a worker, sometimes those of a worker."""
    amounts = {"cpu": random.choice([1, "500m", 4]), "memory": random.choice(["1Gi", "4Gi"])}
    if "gpus" in found and random.random() < 0.3:
        amounts["gpus"] = 1
    return amounts if random.random() < 0.8 else {}


def _roles(random: Random, found: Object) -> None:
    found.pop("launcher", None)
    found |= {"image": "pytorch", "framework": "plain"}
    names = random.sample(["loader", "ps", "a"], random.randint(1, 2))
    found["roles"] = {name: {"workers": random.randint(1, 3), **_small(random, found)} for name in names}


def _steps(random: Random, found: Object) -> None:
    count = random.randint(1, 3)
    found["steps"] = [{"command": ["sort"], **_small(random, found)} for _ in range(count)]


def _elastic(random: Random, found: Object) -> None:
    found.pop("launcher", None)
    most = max(2, found.pop("workers"))
    found |= {"image": "pytorch", "elastic": {"min": random.randint(1, most - 1), "max": most}}


def _containers(random: Random, found: Object) -> None:
    found["setup"] = [{"command": ["fetch"], "cpu": random.choice([1, found["cpu"]])}]
    found["sidecars"] = [{"command": ["sync"], "cpu": random.choice(["250m", 1]), "memory": "512Mi"}]


def _rendered(
    name: str, random: Random, profile: Profile, cluster: Object, specs: list[Object]
) -> tuple[Scene, list[Question]] | None:
    """Return the scene, or None if the cluster file itself is refused. Specs without a run are left out."""
    teams = list(cluster["teams"])
    team = {**HEAD, "kind": "Team", "clusters": [name]}
    files: Object = {f"overlays/{name}/cluster.yaml": cluster}
    files |= {f"specs/{each}/team.yaml": team for each in teams}
    files |= {f"specs/{random.choice(teams)}/{spec['name']}.yaml": spec for spec in specs}
    texts: dict[str, str | bytes] = {path: json.dumps(content) for path, content in files.items()}
    with tempfile.TemporaryDirectory(prefix="gangplan-admission-") as folder:
        root = workspaces.write(Path(folder), {**texts, "images/catalog.yaml": workspaces.CATALOG})
        with RENDERING:
            result = preview_render(Request(root, engine="serial"))
        if not result.texts:
            return None
        spec = load_workspace(root).clusters[name].spec
    bodies = {path: _own(name, text) for path, text in sorted(result.texts.items())}
    runs = {run.path: run for run in result.runs}
    standing = [body for path, some in bodies.items() if path not in runs for body in some]
    scene = _scene(name, random, [body for body in standing if body["kind"] in WANTED])
    scene.groups = list(build_world_of_cluster(name, spec, versions_of(profile), ()).nodes)
    by_name = {group.name: group for group in scene.groups}
    for flavor, body in scene.flavors.items():
        label = body["spec"].get("nodeLabels", {}).get("node.example.com/pool", "")
        scene.pool_of[flavor] = by_name.get(label, scene.groups[0])
    scene.levels = tuple(level["label"] for level in cluster.get("topology", ()))
    questions = [_question(scene, bodies[path], run.name) for path, run in runs.items()]
    mistakes.make(scene)
    return scene, questions


def _own(name: str, text: str) -> list[Object]:
    """Return objects with priority classes of their own: those of the cluster are the same in every scene."""
    plain = json.dumps(load_objects(text))
    found: list[Object] = json.loads(LEVELS.sub(rf'"{name}-\1"', plain))
    return found


def _scene(name: str, random: Random, standing: list[Object]) -> Scene:
    scene = Scene(name, random)
    places = {
        "Topology": scene.topologies,
        "Cohort": scene.cohorts,
        "ClusterQueue": scene.queues,
        "LocalQueue": scene.locals,
    }
    for body in standing:
        if body["kind"] == "ResourceFlavor":
            scene.flavors[body["metadata"]["name"]] = body
        else:
            places.get(body["kind"], scene.others).append(body)
    for body in scene.locals:
        metadata = body["metadata"]
        scene.entries.append(Entry(metadata["namespace"], metadata["name"], body["spec"]["clusterQueue"]))
    kata = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"{name}-kata"}}
    scene.others.append({**kata, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}}})
    return scene


def _question(scene: Scene, bodies: list[Object], name: str) -> Question:
    job = next(body for body in bodies if body["kind"] == "TrainJob")
    entry = next(one for one in scene.entries if one.namespace == job["metadata"]["namespace"])
    question = Question(scene, entry, name, "site", bodies)
    for edit, chance in EDITS.items():
        if scene.random.random() < chance * RARER and EDIT_WITH[edit](question):
            question.edits.append(edit)
    return question
