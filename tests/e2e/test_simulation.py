"""The stories of tests/simulate/stories.yaml on a real Kueue: every step must end as the simulation says.

Runs are suspended Jobs whose pods fit no node, so that they never end: Kueue admits by quota alone, and a
deleted Job releases its quota as a finished one does. All stories of a lab run at the same time, each with
queues of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.lab import fixtures
from tests.lab.client import Client, condition, poll
from tests.lab.lab import Lab
from tests.simulate.chance import draw
from tests.simulate.stories import CPU, FLAVOR, Story, all_stories, flavors_of

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
API = "kueue.x-k8s.io/v1beta2"
STRATEGIES = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
# Times in Kueue's conditions are whole seconds, and it batches news of free quota for one: steps keep this
# distance.
APART, QUIET, PATIENCE = 1.1, 2.2, 60
# Random stories in addition to the written ones, per lab: more with GANGPLAN_STORIES=50.
BY_CHANCE, SEED = int(os.environ.get("GANGPLAN_STORIES", "5")), int(os.environ.get("GANGPLAN_SEED", "1"))
AT_ONCE = 24


@contextmanager
def kueue(is_fair: bool) -> Iterator[Lab]:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if not profile.kueue.startswith("0.19"):
        pytest.skip("the stories were seen on Kueue 0.19")
    settings = {"fairSharing": {"preemptionStrategies": STRATEGIES}} if is_fair else {}
    with Lab(profile, settings={"kueue": settings}) as lab:
        yield lab


@pytest.mark.parametrize("is_fair", [False, True], ids=["classical", "fair"])
def test_each_step_of_a_story_ends_as_simulated(is_fair: bool) -> None:
    stories = [story for story in all_stories() if story.is_fair == is_fair]
    stories += draw(SEED, BY_CHANCE, is_fair)
    with kueue(is_fair) as lab:
        lab.client.apply_all(_standing(stories))
        for story in stories:
            for name in story.queues:
                lab.client.wait(
                    "ClusterQueue",
                    f"{story.key}-{name}",
                    until=lambda body: condition(body, "Active") == "True",
                )
        with ThreadPoolExecutor(AT_ONCE) as pool:
            told = list(pool.map(lambda story: Teller(lab.client, story).tell(), stories))
    wanted = [[sorted(step["then"]) for step in story.steps] for story in stories]
    assert {story.title: one for story, one in zip(stories, told, strict=True)} == {
        story.title: one for story, one in zip(stories, wanted, strict=True)
    }


class Teller:
    """One story on a lab."""

    def __init__(self, client: Client, story: Story) -> None:
        self.client, self.story = client, story
        self.admitted: set[str] = set()
        self.evicted: dict[str, int] = {}

    def tell(self) -> list[list[str]]:
        """Return what happened in each step, sorted."""
        return [self._play(step) for step in self.story.steps]

    def _play(self, step: Object) -> list[str]:
        for name, one in step.get("submit", {}).items():
            self.client.apply(_job(self.story, name, one))
        if "finish" in step:
            self.client.delete("Job", step["finish"], self.story.key)
            self.admitted.discard(step["finish"])
        wanted = sorted(step["then"])
        seen: list[str] = []

        def has_come() -> bool:
            seen[:] = self._news()
            return seen == wanted

        try:
            poll(has_come, PATIENCE, lambda: f"{self.story.title}: {seen} instead of {wanted}", every=0.4)
            time.sleep(QUIET)  # nothing more may happen
        except AssertionError:
            pass
        seen = self._news()
        self._remember(seen)
        time.sleep(APART)
        return seen

    def _workloads(self) -> dict[str, Object]:
        found = self.client.list("Workload", self.story.key)
        return {body["metadata"]["ownerReferences"][0]["name"]: body for body in found}

    def _news(self) -> list[str]:
        """Return what has changed since the end of the last step."""
        workloads = self._workloads()
        admitted = {name for name, body in workloads.items() if condition(body, "Admitted") == "True"}
        news = [f"admitted {name}" for name in admitted - self.admitted]
        for name, body in workloads.items():
            times = _preemptions(body) - self.evicted.get(name, 0)
            news += [f"preempted {name}"] * times
            if times and name in admitted and name in self.admitted:
                news.append(f"admitted {name}")
        return sorted(news)

    def _remember(self, news: list[str]) -> None:
        for line in news:
            what, _, name = line.partition(" ")
            if what == "preempted":
                self.evicted[name] = self.evicted.get(name, 0) + 1
                self.admitted.discard(name)
        self.admitted |= {
            name for name, body in self._workloads().items() if condition(body, "Admitted") == "True"
        }


def _preemptions(body: Object) -> int:
    stats = (body.get("status") or {}).get("schedulingStats") or {}
    return sum(one["count"] for one in stats.get("evictions") or () if one["reason"] == "Preempted")


def _standing(stories: list[Story]) -> list[Object]:
    flavors = {flavor for story in stories for queue in story.queues.values() for flavor in flavors_of(queue)}
    values = {one.get("priority", 0) for story in stories for one in _runs(story)}
    found: list[Object] = [_object("ResourceFlavor", flavor) for flavor in sorted(flavors | {FLAVOR})]
    found += [
        {**_object("WorkloadPriorityClass", f"p{value}"), "value": value, "description": "of a story"}
        for value in sorted(values)
    ]
    for story in stories:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": story.key}})
        found += [_cohort(story, name, one) for name, one in story.cohorts.items()]
        found += [_queue(story, name, one) for name, one in story.queues.items()]
        for name in story.queues:
            local = _object("LocalQueue", name, {"clusterQueue": f"{story.key}-{name}"})
            local["metadata"]["namespace"] = story.key
            found.append(local)
    return found


def _runs(story: Story) -> Iterator[Object]:
    for step in story.steps:
        yield from step.get("submit", {}).values()


def _object(kind: str, name: str, spec: Object | None = None) -> Object:
    body: Object = {"apiVersion": API, "kind": kind, "metadata": {"name": name}}
    return body if spec is None else {**body, "spec": spec}


def _cohort(story: Story, name: str, one: Object) -> Object:
    spec: Object = {}
    if "parent" in one:
        spec["parentName"] = f"{story.key}-{one['parent']}"
    if "cpu" in one:
        spec["resourceGroups"] = [_group({FLAVOR: one["cpu"]}, {})]
    return _object("Cohort", f"{story.key}-{name}", spec)


def _group(flavors: dict[str, int], limits: Object) -> Object:
    return {
        "coveredResources": [CPU],
        "flavors": [
            {"name": name, "resources": [{"name": CPU, "nominalQuota": str(amount), **limits}]}
            for name, amount in flavors.items()
        ],
    }


def _queue(story: Story, name: str, one: Object) -> Object:
    words = {"borrow": "borrowingLimit", "lend": "lendingLimit"}
    limits = {word: str(one[field]) for field, word in words.items() if field in one}
    within, reclaim, borrow = one.get("preempt", ("Never", "Never", "Never"))
    while_borrowing: Object = {"policy": borrow}
    if "threshold" in one:
        while_borrowing["maxPriorityThreshold"] = one["threshold"]
    spec: Object = {
        "namespaceSelector": {},
        "queueingStrategy": "StrictFIFO" if one.get("strict") else "BestEffortFIFO",
        "preemption": {
            "withinClusterQueue": within,
            "reclaimWithinCohort": reclaim,
            "borrowWithinCohort": while_borrowing,
        },
        "resourceGroups": [_group(flavors_of(one), limits)],
    }
    if "cohort" in one:
        spec["cohortName"] = f"{story.key}-{one['cohort']}"
    if "weight" in one:
        spec["fairSharing"] = {"weight": str(one["weight"])}
    return _object("ClusterQueue", f"{story.key}-{name}", spec)


def _job(story: Story, name: str, one: Object) -> Object:
    labels = {
        "kueue.x-k8s.io/queue-name": one["queue"],
        "kueue.x-k8s.io/priority-class": f"p{one.get('priority', 0)}",
    }
    container = {
        "name": "main",
        "image": "registry.example.com/none",
        "resources": {"requests": {CPU: str(one["cpu"])}},
    }
    nowhere = {"example.com/nowhere": "true"}
    pods = {"spec": {"restartPolicy": "Never", "nodeSelector": nowhere, "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": story.key, "labels": labels},
        "spec": {"suspend": True, "parallelism": 1, "completions": 1, "template": pods},
    }
