"""The pods of a run are expanded once: the proofs of Kueue, the network and the plan count the same."""

from __future__ import annotations

import pytest

from gangplan.model.backend import TRAINJOB
from gangplan.validate.expand import MissingRuntimeError, expand_run_into_pods
from gangplan.validate.kueue.podsets import list_workload_pod_sets
from gangplan.validate.network.pods import build_roles_seen_by_network_policies
from gangplan.validate.network.relation import build_namespace_labels
from gangplan.validate.versions import SchemaVersions
from gangplan.validate.world import World
from tests.layouts import LAYOUTS, layout

WORLD = World("lab", SchemaVersions("1.34", "2.3", "0.19", "0.12"), (), ())


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_proofs_count_the_same_pods(name: str) -> None:
    """The network's proof once counted one launcher where Trainer creates four, and three workers for one."""
    runtime, job, pods = layout(name)
    bodies = [runtime, job]
    assert {one.name: one.count for one in expand_run_into_pods(WORLD, bodies)} == pods
    assert {one.name: one.count for one in list_workload_pod_sets(bodies, WORLD)} == pods
    roles = build_roles_seen_by_network_policies(TRAINJOB, job, runtime, build_namespace_labels(name, {}), {})
    assert {role.name: sum(part.count for part in role.parts) for role in roles} == pods


def test_a_patch_of_the_run_is_applied_to_the_template() -> None:
    runtime, job, _ = layout("patched")
    workers = next(one for one in expand_run_into_pods(WORLD, [runtime, job]) if one.name == "node")
    assert workers.labels["cost"] == "x"
    assert workers.template["spec"]["nodeSelector"] == {"pool": "a"}
    assert "nodeSelector" not in workers.entry["template"]["spec"]["template"]["spec"]


def test_a_missing_runtime_is_an_error() -> None:
    _, job, _ = layout("plain")
    with pytest.raises(MissingRuntimeError, match="runtime 'plain' not found"):
        expand_run_into_pods(WORLD, [job])
    assert expand_run_into_pods(WORLD, []) == []


def test_stages_and_phases_follow_the_dependencies() -> None:
    runtime, job, _ = layout("plain")
    assert [(one.name, one.stage, one.phase) for one in expand_run_into_pods(WORLD, [runtime, job])] == [
        ("node", 0, 0),
        ("launcher", 1, 0),
    ]
    (needed,) = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["dependsOn"]
    needed["status"] = "Complete"
    assert [(one.stage, one.phase) for one in expand_run_into_pods(WORLD, [runtime, job])] == [(0, 0), (0, 1)]
