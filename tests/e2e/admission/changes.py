"""Changes to a run that gangplan would never make: by an overlay patch, or by hand.

Each function takes a question and returns whether the change could be made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.admission.question import PREFERRED, PRIORITY, QUEUE, REQUIRED, SLICE, SLICE_SIZE, Question
from tests.e2e.admission.scene import BLOCK, GPU, POOL, RACK, ZONE

Object = dict[str, Any]
Edit = Callable[[Question], bool]


def _annotations(question: Question) -> Object:
    found: Object = question.pod()["metadata"].setdefault("annotations", {})
    return found


def _without_limits(question: Question) -> bool:
    container = question.container()
    limits = container["resources"]["limits"]
    container["resources"]["limits"] = {key: value for key, value in limits.items() if key == GPU}
    return True


def _without_requests(question: Question) -> bool:
    del question.container()["resources"]["requests"]
    return True


def _without_resources(question: Question) -> bool:
    question.container()["resources"] = {}
    return True


def _init_container(question: Question) -> bool:
    wanted = {"cpu": question.scene.random.choice(["250m", "9", "33"]), "memory": "1Gi"}
    body = {"name": "fetch", "image": "registry.example.com/fetch:1", "command": ["true"]}
    body["resources"] = {"requests": wanted, "limits": dict(wanted)}
    body["securityContext"] = question.container()["securityContext"]
    question.pod()["spec"]["initContainers"] = [body]
    return True


def _sidecar(question: Question) -> bool:
    _init_container(question)
    question.pod()["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    return True


def _second_container(question: Question) -> bool:
    wanted = {"cpu": "750m", "memory": "1536Mi"}
    body = {"name": "logs", "image": "registry.example.com/logs:1", "command": ["cat"]}
    body["securityContext"] = question.container()["securityContext"]
    question.pod()["spec"]["containers"].append({**body, "resources": {"requests": wanted}})
    return True


def _overhead(question: Question) -> bool:
    question.pod()["spec"]["runtimeClassName"] = f"{question.scene.name}-kata"
    return True


def _fpga(question: Question) -> bool:
    resources = question.container()["resources"]
    for part in ("requests", "limits"):
        resources.setdefault(part, {})["example.com/fpga"] = question.scene.random.choice(["1", "0"])
    return True


def _affinity(question: Question) -> bool:
    random, scene = question.scene.random, question.scene
    pool = random.choice(scene.groups).labels[POOL]
    expression = random.choice(
        [
            {"key": POOL, "operator": "In", "values": [pool, "elsewhere"]},
            {"key": POOL, "operator": "NotIn", "values": [pool]},
            {"key": ZONE, "operator": "Exists"},
            {"key": ZONE, "operator": "DoesNotExist"},
        ]
    )
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = question.pod()["spec"]
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return True


def _two_topologies(question: Question) -> bool:
    _annotations(question).update({REQUIRED: RACK, PREFERRED: BLOCK})
    return True


def _slices(question: Question) -> bool:
    if not question.scene.topologies:
        return False
    random = question.scene.random
    _annotations(question).update(
        {SLICE: random.choice(question.scene.levels), SLICE_SIZE: random.choice(["1", "2", "3", "0", "500"])}
    )
    return True


def _slice_without_size(question: Question) -> bool:
    _annotations(question)[SLICE] = RACK
    return True


def _other_queue(question: Question) -> bool:
    question.train_job["metadata"]["labels"][QUEUE] = "trainning"
    return True


def _other_priority(question: Question) -> bool:
    question.train_job["metadata"]["labels"][PRIORITY] = f"{question.scene.name}-urgent"
    return True


def _no_priority(question: Question) -> bool:
    del question.train_job["metadata"]["labels"][PRIORITY]
    return True


def _pod_priority(question: Question) -> bool:
    _no_priority(question)
    question.pod()["spec"]["priorityClassName"] = f"{question.scene.name}-missing"
    return True


def _no_runtime(question: Question) -> bool:
    question.is_synced_whole = False
    return True


def _above_limit(question: Question) -> bool:
    resources = question.container()["resources"]
    if "cpu" not in resources.get("limits", {}):
        return False
    resources.setdefault("requests", {})["cpu"] = "65"
    return True


def _gpu_without_limit(question: Question) -> bool:
    limits = question.container()["resources"].get("limits", {})
    if GPU not in limits or GPU not in question.container()["resources"].get("requests", {}):
        return False
    del limits[GPU]
    return True


def _request_pods(question: Question) -> bool:
    question.container()["resources"].setdefault("requests", {})["pods"] = "1"
    return True


def _long_time(question: Question) -> bool:
    value = question.scene.random.choice(["0", "3600", "soon"])
    question.train_job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = value
    return True


#: The probability of each edit.
EDITS: dict[str, float] = {}
EDIT_WITH: dict[str, Edit] = {}
for _edit, _chance in (
    (_without_limits, 0.04),
    (_without_requests, 0.04),
    (_without_resources, 0.03),
    (_init_container, 0.04),
    (_sidecar, 0.03),
    (_second_container, 0.04),
    (_overhead, 0.05),
    (_fpga, 0.03),
    (_affinity, 0.06),
    (_two_topologies, 0.01),
    (_slices, 0.06),
    (_slice_without_size, 0.01),
    (_other_queue, 0.02),
    (_other_priority, 0.015),
    (_no_priority, 0.02),
    (_pod_priority, 0.01),
    (_no_runtime, 0.01),
    (_above_limit, 0.015),
    (_gpu_without_limit, 0.015),
    (_request_pods, 0.01),
    (_long_time, 0.02),
):
    EDITS[_edit.__name__[1:]] = _chance
    EDIT_WITH[_edit.__name__[1:]] = _edit
