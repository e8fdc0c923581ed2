"""How a run is laid out, compared with the JobSets of a real Trainer, and with what a real Kueue counts."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.validate.expand import expand_train_job_into_pods
from gangplan.validate.jobset import list_replicated_jobs
from gangplan.validate.kueue.podsets import convert_to_pod_sets
from tests.lab import fixtures, samples
from tests.lab.client import Object, poll
from tests.lab.lab import Lab
from tests.layouts import LAYOUTS, layout

pytestmark = pytest.mark.e2e
# Parts of a template that a patch changes in these layouts.
SHOWN = (("metadata", "labels"), ("spec", "nodeSelector"))


def _part(template: Object, path: tuple[str, str]) -> Any:
    return (template.get(path[0]) or {}).get(path[1]) or {}


def _is_different(ours: Any, theirs: Any) -> bool:
    """Return whether theirs lacks or contradicts something of ours; the server and Trainer add defaults."""
    if isinstance(ours, dict):
        return not isinstance(theirs, dict) or any(_is_different(ours[key], theirs.get(key)) for key in ours)
    return bool(ours != theirs)


def test_expanded_pods_equal_those_of_trainer_and_kueue() -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("runtimePatches are those of profile new")
    wrong: list[str] = []
    with Lab(profile) as lab:
        for name in LAYOUTS:
            lab.client.apply_all(samples.queue(lab.client, name, cpu="0"))  # counted, and never admitted
            runtime, job, _ = layout(name)
            lab.client.apply(runtime)
            lab.client.apply_patiently(job)
            pods = expand_train_job_into_pods(job, runtime)
            poll(
                lambda name=name: lab.client.list("JobSet", name) and lab.client.list("Workload", name),
                60,
                lambda name=name: f"{name}: nothing was made of the run",
            )
            ((job_set,), (workload,)) = (lab.client.list(kind, name) for kind in ("JobSet", "Workload"))
            real = {
                entry["name"]: (
                    entry.get("replicas", 1),
                    entry["template"]["spec"].get("parallelism", 1),
                    entry["template"]["spec"]["template"],
                )
                for entry in list_replicated_jobs(job_set)
            }
            for one in pods:
                replicas, each, template = real[one.name]
                if (one.replicas, one.each) != (replicas, each):
                    wrong.append(f"{name}, {one.name}: {one.replicas} x {one.each}, not {replicas} x {each}")
                if any(_is_different(_part(one.template, part), _part(template, part)) for part in SHOWN):
                    wrong.append(f"{name}, {one.name}: another template")
            counted = {one["name"]: one.get("count", 1) for one in workload["spec"]["podSets"]}
            told = {one.name: one.count for one in convert_to_pod_sets(pods, [runtime, job])}
            if counted != told:
                wrong.append(f"{name}: Kueue counts {counted}, not {told}")
    assert wrong == []
