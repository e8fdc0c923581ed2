"""LocalQueues of a team, strict order, and order by past usage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.checks.queues import check_cluster_file_queues
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import plain, workspaces
from tests.resolve.test_workdir import SPEC, put
from tests.workspaces import gangplan, rendered

CLUSTER = "overlays/lab/cluster.yaml"
TEAM = "nlp: {queue: training}"
BY_USAGE = "admissionMode: UsageBasedAdmissionFairSharing"
SHARING = "kueue: {admissionFairSharing: {usageHalfLifeTime: 7d}}\n"


def state(root: Path, fields: str, more: str = "") -> None:
    """Give the team these fields in the cluster file, and add these lines to the file."""
    text = workspaces.CLUSTER.replace(TEAM, f"nlp: {{queue: training, {fields}}}")
    assert text != workspaces.CLUSTER
    workspaces.write(root, {CLUSTER: text + more})


def objects(root: Path, kind: str) -> list[Any]:
    """Render, and return the objects of a kind, sorted by name."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    bodies = [one for text in rendered(root).values() for one in load_objects(text)]
    found = {one["metadata"]["name"]: one for one in bodies if one["kind"] == kind}
    return [found[name] for name in sorted(found)]


def test_several_local_queues_share_one_quota(root: Path) -> None:
    state(root, f"localQueues: {{night: {{}}, training: {{weight: 3}}}}, {BY_USAGE}", SHARING)
    night, training = objects(root, "LocalQueue")
    assert (night["metadata"]["name"], training["metadata"]["name"]) == ("night", "training")
    assert night["spec"] == {"clusterQueue": "nlp", "stopPolicy": "None"}
    assert training["spec"]["fairSharing"] == {"weight": "3"}
    (queue,) = objects(root, "ClusterQueue")
    assert queue["spec"]["admissionScope"] == {"admissionMode": "UsageBasedAdmissionFairSharing"}
    assert gangplan("validate", "-C", root).findings == []


def test_a_spec_can_name_a_queue(root: Path) -> None:
    state(root, "localQueues: {night: {}}")
    labels = []
    for lines in ("", "queue: training\n", "queue: night\n"):
        put(root, lines)
        (run,) = objects(root, "TrainJob")
        labels.append(run["metadata"]["labels"]["kueue.x-k8s.io/queue-name"])
        assert gangplan("validate", "-C", root).findings == []
    assert labels == ["training", "training", "night"]


def test_strict_order_is_rendered(root: Path) -> None:
    (queue,) = objects(root, "ClusterQueue")
    assert queue["spec"]["queueingStrategy"] == "BestEffortFIFO"
    state(root, "queueingStrategy: StrictFIFO")
    (queue,) = objects(root, "ClusterQueue")
    assert queue["spec"]["queueingStrategy"] == "StrictFIFO"
    assert "admissionScope" not in queue["spec"]
    assert gangplan("validate", "-C", root).findings == []


# Line of the spec, fields of the team, lines of the cluster file, the only broken rule, and its place.
CASES = {
    "a queue of the team": ("queue: night\n", "localQueues: {night: {}}", "", "", ""),
    "a queue that nobody has": (
        *("queue: nite\n", "localQueues: {night: {}}", ""),
        *("queue-unknown", f"{SPEC}:9:8"),
    ),
    "the ClusterQueue's name": (
        *("queue: nlp\n", "localQueues: {night: {}}", ""),
        *("queue-unknown", f"{SPEC}:9:8"),
    ),
    "usage that nobody counts": (
        *("", BY_USAGE, ""),
        *("usage-sharing-off", f"{CLUSTER}:16:41"),
    ),
    "usage that is counted": ("", BY_USAGE, SHARING, "", ""),
    "a weight that nobody reads": (
        *("", "localQueues: {night: {weight: 2}}", SHARING),
        *("usage-sharing-off", f"{CLUSTER}:16:56"),
    ),
    "a weight where sharing is off": (
        *("", "localQueues: {night: {weight: 2}}, admissionMode: NoAdmissionFairSharing", SHARING),
        *("usage-sharing-off", f"{CLUSTER}:16:56"),
    ),
    "a weight of zero that waits": (
        *("", f"localQueues: {{night: {{weight: 0}}}}, {BY_USAGE}", SHARING),
        *("", ""),
    ),
    "sharing that is off": ("", "admissionMode: NoAdmissionFairSharing", "", "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_queue_breaks_one_rule(name: str, root: Path) -> None:
    line, fields, lines, rule, place = CASES[name]
    state(root, fields, lines)
    put(root, line)
    found = gangplan("validate", "-C", root).findings
    assert [(one.rule, one.place) for one in found] == ([(rule, place)] if rule else [])
    assert all(one.help for one in found)


# Kueue's version, the team's queues with weights, and the queues that go first though they weigh nothing.
WEIGHTLESS = {
    "the first line": ("0.15.8", "night: {weight: 0}", ["night"]),
    "a line that never had the fix": ("0.17.8", "night: {weight: 0}", ["night"]),
    "before the fix of 0.18": ("0.18.4", "night: {weight: 0}, training: {weight: 0}", ["night", "training"]),
    "with the fix of 0.18": ("0.18.5", "night: {weight: 0}", []),
    "before the fix of 0.19": ("0.19.0", "night: {weight: 0}", ["night"]),
    "with the fix of 0.19": ("0.19.1", "night: {weight: 0}", []),
    "a later line": ("0.20.0", "night: {weight: 0}", []),
    "a small weight": ("0.19.0", "night: {weight: 0.001}", []),
    "no other queue": ("0.19.0", "training: {weight: 0}", []),
}


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_an_idle_queue_of_weight_zero_goes_first_until_it_is_fixed(name: str, root: Path) -> None:
    kueue, queues, first = WEIGHTLESS[name]
    state(root, f"localQueues: {{{queues}}}, {BY_USAGE}", SHARING)
    text = (root / CLUSTER).read_text().replace('kueue: "0.19.2"', f'kueue: "{kueue}"')
    notes = ClusterCheck(load_workspace(workspaces.write(root, {CLUSTER: text})).clusters["lab"])
    check_cluster_file_queues(notes)
    found = [one for one in notes.findings if one.rule == "queue-weightless-first"]
    assert [one.message.split("'")[1] for one in found] == first


@pytest.mark.parametrize(
    "fields", ["queueingStrategy: Strict", "localQueues: [night]", "localQueues: {night: {weight: -1}}"]
)
def test_invalid_queues_are_refused(fields: str, root: Path) -> None:
    state(root, fields)
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2
    assert all(one.place.startswith(CLUSTER) and one.help for one in outcome.findings)


@pytest.mark.parametrize("interval", ["0s", "-1m"])
def test_a_sampling_interval_must_be_positive(interval: str, root: Path) -> None:
    times = f"usageHalfLifeTime: 1h, usageSamplingInterval: {interval}"
    state(root, BY_USAGE, f"kueue: {{admissionFairSharing: {{{times}}}}}\n")
    assert gangplan("validate", "-C", root).code == 2


def test_queue_fields_without_kueue_are_reported_as_unused(root: Path) -> None:
    state(root, f"localQueues: {{night: {{}}}}, {BY_USAGE}", f"gang: none\nenvironment: dev\n{SHARING}")
    text = (root / CLUSTER).read_text().replace(', kueue: "0.19.2"', "")
    workspaces.write(root, {CLUSTER: text})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "kueue-field-unused"]
    assert [one.place.split(":", 1)[1] for one in found] == ["16:26", "16:52", "19:1"]


def test_the_configuration_of_kueue_has_admission_fair_sharing(root: Path) -> None:
    assert "admissionFairSharing" not in gangplan("cluster", "kueue-config", "-C", root).out
    weights = "resourceWeights: {cpu: 0.5, nvidia.com/gpu: 10}"
    times = "usageHalfLifeTime: 7d, usageSamplingInterval: 90s"
    state(root, BY_USAGE, f"kueue: {{admissionFairSharing: {{{times}, {weights}}}}}\n")
    told = plain.load(gangplan("cluster", "kueue-config", "-C", root).out)
    assert told["admissionFairSharing"] == {
        "usageHalfLifeTime": "168h",
        "usageSamplingInterval": "1m30s",
        "resourceWeights": {"cpu": 0.5, "nvidia.com/gpu": 10},
    }


def test_list_queues_shows_the_local_queues(root: Path) -> None:
    state(root, "localQueues: {night: {}}")
    outcome = gangplan("list", "queues", "-C", root)
    assert [line.split()[0] for line in outcome.out.splitlines() if " nlp " in line] == ["training", "night"]


def test_a_new_job_takes_the_queue_from_its_flag(root: Path) -> None:
    state(root, "localQueues: {night: {}}")
    words = ("--image", "openmpi", "--command", "python train.py", "--queue", "night", "-n")
    outcome = gangplan("new", "job", "late", "-C", root, *words)
    assert outcome.code == 0, outcome.err
    assert "queue: night" in outcome.out


# --- admission checks -----------------------------------------------------------------------------------

BUDGET = "admissionChecks: {budget: {controller: budget.example.com/check, pools: [a100]}}\n"


def test_an_admission_check_of_gangplan_is_rendered(root: Path) -> None:
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER + BUDGET})
    (check,) = objects(root, "AdmissionCheck")
    assert check["spec"] == {"controllerName": "budget.example.com/check"}
    (queue,) = objects(root, "ClusterQueue")
    asked = queue["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert asked == [{"name": "budget", "onFlavors": ["a100"]}]
    assert gangplan("validate", "-C", root).findings == []


def test_an_external_admission_check_is_only_referenced(root: Path) -> None:
    lines = "admissionChecks: {budget: {external: true}}\n"
    workspaces.write(root, {CLUSTER: workspaces.CLUSTER + lines})
    assert objects(root, "AdmissionCheck") == []
    (queue,) = objects(root, "ClusterQueue")
    assert queue["spec"]["admissionChecksStrategy"]["admissionChecks"] == [{"name": "budget"}]
    assert gangplan("validate", "-C", root).findings == []


def test_admission_checks_are_added_to_that_of_a_growing_pool(root: Path) -> None:
    grows = "a100: {autoscale: {most: 8, provisioningClass: check-capacity.autoscaling.x-k8s.io}, "
    text = workspaces.CLUSTER.replace("a100: {", grows, 1)
    workspaces.write(root, {CLUSTER: text + BUDGET})
    (queue,) = objects(root, "ClusterQueue")
    asked = queue["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert [one["name"] for one in asked] == ["provision-a100", "budget"]


@pytest.mark.parametrize("autoscale", ["{most: 8}", "{most: 8, parameters: {}}"])
def test_a_pool_that_grows_for_waiting_pods_needs_no_check(autoscale: str, root: Path) -> None:
    """As with Karpenter, the quota covers all nodes that may come, and no provisioning request is made."""
    text = workspaces.CLUSTER.replace("a100: {", f"a100: {{autoscale: {autoscale}, ", 1)
    workspaces.write(root, {CLUSTER: text})
    assert objects(root, "AdmissionCheck") + objects(root, "ProvisioningRequestConfig") == []
    (queue,) = objects(root, "ClusterQueue")
    assert "admissionChecksStrategy" not in queue["spec"]
    (a100,) = [one for one in queue["spec"]["resourceGroups"][0]["flavors"] if one["name"] == "a100"]
    assert {"name": "nvidia.com/gpu", "nominalQuota": "64"} in a100["resources"]
    assert gangplan("validate", "-C", root).findings == []


@pytest.mark.parametrize(
    ("autoscale", "help"),
    [
        (
            "{most: 8, provisioningClass: karpenter.sh}",
            "Remove provisioningClass: Karpenter adds nodes once Kueue has admitted a run and its pods wait.",
        ),
        (
            "{most: 8, provisioningClass: karpenter.k8s.aws}",
            "Remove provisioningClass: Karpenter adds nodes once Kueue has admitted a run and its pods wait.",
        ),
        (
            '{most: 8, parameters: {ValidUntilSeconds: "60"}}',
            "Remove parameters, or add provisioningClass.",
        ),
    ],
)
def test_autoscaler_fields_without_a_provisioning_class_are_refused(
    autoscale: str, help: str, root: Path
) -> None:
    text = workspaces.CLUSTER.replace("a100: {", f"a100: {{autoscale: {autoscale}, ", 1)
    workspaces.write(root, {CLUSTER: text})
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.help) == ("spec-value", help)


# What the cluster file says, the only broken rule, and its place.
CHECKS = {
    "of no controller": ("budget: {}", "admission-check-owner", "17:19"),
    "of two owners": (
        "budget: {external: true, controller: a.example.com/b}",
        "admission-check-owner",
        "17:19",
    ),
    "of Kueue's own": ("nodes: {controller: kueue.x-k8s.io/multikueue}", "admission-check-owner", "17:19"),
    "with a name of gangplan's": ("multikueue: {external: true}", "admission-check-owner", "17:19"),
    "with a name of gangplan's elsewhere": ("provision-a100: {external: true}", "", ""),
    "of another pool": ("budget: {external: true, pools: [a1000]}", "pool-unknown", "17:52"),
    "of another team": ("budget: {external: true, teams: [nlpp]}", "admission-check-nobody", "17:52"),
    "of a team without the pool": ("budget: {external: true, teams: [nlp], pools: [cpu]}", "", ""),
}


@pytest.mark.parametrize("name", CHECKS)
def test_each_wrong_admission_check_breaks_one_rule(name: str, root: Path) -> None:
    lines, rule, place = CHECKS[name]
    workspaces.write(root, {CLUSTER: f"{workspaces.CLUSTER}admissionChecks: {{{lines}}}\n"})
    found = gangplan("validate", "-C", root).findings
    assert [(one.rule, one.place) for one in found] == ([(rule, f"{CLUSTER}:{place}")] if rule else [])
    assert all(one.help for one in found)


# --- several pools at once ------------------------------------------------------------------------------

FIRST = "concurrentAdmission: {migration: RetainFirstAdmission}"


def test_concurrent_admission_is_rendered_with_its_feature_gate(root: Path) -> None:
    state(root, "concurrentAdmission: {migration: TryPreferredFlavors, lastAcceptablePool: a100}")
    (queue,) = objects(root, "ClusterQueue")
    assert queue["spec"]["concurrentAdmissionPolicy"]["migration"] == {
        "mode": "TryPreferredFlavors",
        "constraints": {"lastAcceptableFlavorName": "a100"},
    }
    told = plain.load(gangplan("cluster", "kueue-config", "-C", root).out)
    assert told["featureGates"] == {"ConcurrentAdmission": True}


POOLS = "".join(f"  p{n}: {{count: 1, cpu: 8, memory: 8Gi, labels: {{pool: p{n}}}}}\n" for n in range(17))
ONCE = {
    "in strict order": (f"{FIRST}, queueingStrategy: StrictFIFO", "concurrent-admission-refused"),
    "in no strict order": (f"{FIRST}, queueingStrategy: BestEffortFIFO", ""),
    "with a last pool that is not used": (
        "concurrentAdmission: {migration: RetainFirstAdmission, lastAcceptablePool: a100}",
        "concurrent-admission-refused",
    ),
    "with a last pool of others": (
        "concurrentAdmission: {migration: TryPreferredFlavors, lastAcceptablePool: h100}",
        "concurrent-admission-refused",
    ),
    "with too many pools": (FIRST + POOLS, "concurrent-admission-refused"),
}


@pytest.mark.parametrize("name", ONCE)
def test_concurrent_admission_that_kueue_refuses_is_an_error(name: str, root: Path) -> None:
    fields, rule = ONCE[name]
    pools = POOLS if POOLS in fields else ""
    state(root, fields.replace(POOLS, ""))
    text = (root / CLUSTER).read_text().replace("topology:\n", f"{pools}topology:\n")
    workspaces.write(root, {CLUSTER: text})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule != "admitted-elsewhere"]
    assert [one.rule for one in found] == ([rule] if rule else [])
    assert all(one.help and one.place.startswith(CLUSTER) for one in found)


@pytest.mark.parametrize(("trainer", "kueue", "rules"), [("2.1.0", "0.15.2", 1), ("2.2.1", "0.18.2", 0)])
def test_concurrent_admission_needs_a_recent_kueue(trainer: str, kueue: str, rules: int, root: Path) -> None:
    state(root, FIRST)
    text = (root / CLUSTER).read_text().replace("2.3.0", trainer).replace("0.19.2", kueue)
    workspaces.write(root, {CLUSTER: text})
    found = [one.rule for one in gangplan("validate", "-C", root).findings if one.rule.startswith("conc")]
    assert found == ["concurrent-admission-version"] * rules


def test_concurrent_admission_needs_one_pool_for_all_pods(root: Path) -> None:
    """Each pool is requested separately: a run whose launcher belongs in another pool is never admitted."""
    for fields in ("weight: 1", FIRST):
        state(root, fields)
        text = (root / CLUSTER).read_text().replace("240Gi}", "240Gi, labels: {pool: cpu}}")
        workspaces.write(root, {CLUSTER: text})
        found = gangplan("validate", "-C", root).findings
        assert len(found) == (fields == FIRST)
    assert (found[0].rule, found[0].place.startswith(SPEC)) == ("no-flavor", False)
    assert found[0].help.startswith("With concurrentAdmission all pods of a run use one pool")


HUB = workspaces.CLUSTER + "multiKueue: {clusters: {far: {kubeconfigSecret: far}}}\n"
FAR = "overlays/far/cluster.yaml"


def find_worker_queues(root: Path, hub: str, team: str) -> list[tuple[str, str]]:
    """Return place and help of `multikueue-queue` where the worker cluster has this entry of the team."""
    workspaces.write(root, {CLUSTER: hub, FAR: workspaces.CLUSTER.replace(TEAM, team)})
    found = gangplan("validate", "-C", root).findings
    return [(one.place, one.help) for one in found if one.rule == "multikueue-queue"]


@pytest.mark.parametrize(
    ("team", "fixed"),
    [
        ("nlp: {queue: other}", "nlp: {queue: other, localQueues: {training: {}}}"),
        (
            "nlp: {queue: other, localQueues: {night: {}}}",
            "nlp: {queue: other, localQueues: {night: {}, training: {}}}",
        ),
    ],
    ids=["alone", "with others"],
)
def test_another_queue_on_a_worker_cluster_is_fixed_in_either_file(team: str, fixed: str, root: Path) -> None:
    """The team is there already: adding it once more would be a second key of the same name."""
    ((place, help),) = find_worker_queues(root, HUB, team)
    assert place.startswith(f"{CLUSTER}:16:")
    assert help.startswith("Write queue: other here, or ")
    assert help.endswith(f" of nlp in {FAR}.")
    assert find_worker_queues(root, HUB.replace("queue: training", "queue: other"), team) == []
    assert find_worker_queues(root, HUB, fixed) == []


def test_a_team_that_a_worker_cluster_lacks_is_added_there(root: Path) -> None:
    ((place, help),) = find_worker_queues(root, HUB, "vision: {queue: training}")
    assert (place.partition(":")[0], help) == (CLUSTER, "Add nlp: {queue: training} to the teams of far.")


def test_another_namespace_on_a_worker_cluster_is_fixed_in_either_file(root: Path) -> None:
    """Kueue creates the copy of a run in the run's own namespace."""
    team = "nlp: {queue: training, namespace: nlp-far}"
    ((place, help),) = find_worker_queues(root, HUB, team)
    assert place.startswith(f"{CLUSTER}:16:")
    assert help == f"Write namespace: nlp at nlp in {FAR}, or namespace: nlp-far here."
    assert find_worker_queues(root, HUB.replace(TEAM, team), team) == []


WORKER_STATES = {
    "gang: none": (
        ("location: on-prem\n", "location: on-prem\nenvironment: dev\ngang: none\n"),
        "starts runs",
    ),
    "no Trainer": (('trainer: "2.3.0"', 'mpiOperator: "0.8.2"'), "has no Kubeflow Trainer"),
    "Kueue and Trainer": (('trainer: "2.3.0"', 'trainer: "2.2.1"'), ""),
}


@pytest.mark.parametrize("state", WORKER_STATES)
def test_a_worker_cluster_needs_kueue_and_the_operator_of_the_runs(state: str, root: Path) -> None:
    """The copy of a run is an object of the same kind, in a queue of the same name."""
    (old, new), said = WORKER_STATES[state]
    assert old in workspaces.CLUSTER
    workspaces.write(root, {CLUSTER: HUB, FAR: workspaces.CLUSTER.replace(old, new)})
    found = [
        one
        for one in gangplan("validate", "-C", root).findings
        if one.rule == "multikueue-queue" and one.help
    ]
    assert [one.message.startswith(f"cluster 'far' {said}") for one in found] == [True] * bool(said)
    assert all(one.place.startswith(f"{CLUSTER}:") and FAR in one.help for one in found)


GPUS = "a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}"
OTHER_POOLS = {
    "arm64": (GPUS, GPUS.replace("count: 4", "arch: arm64, count: 4"), "multikueue-pool"),
    "no node": (GPUS, GPUS.replace("count: 4", "count: 0"), "never-dispatched"),
    "small nodes": (GPUS, GPUS.replace("count: 8", "count: 1"), "never-dispatched"),
    "other GPUs": (GPUS, GPUS.replace("count: 8", "count: 8, resource: example.com/gpu"), "never-dispatched"),
    "small quota": (TEAM, "nlp: {queue: training, quota: {a100: {gpus: 7}}, borrow: {}}", "never-dispatched"),
    "just enough": (GPUS, GPUS.replace("count: 4", "count: 1"), ""),
}


@pytest.mark.parametrize("state", OTHER_POOLS)
def test_a_run_that_no_worker_cluster_can_start_is_reported(state: str, root: Path) -> None:
    """The run has four workers with 2 GPUs each, and Kueue on the hub admits it."""
    old, new, rule = OTHER_POOLS[state]
    assert old in workspaces.CLUSTER
    workspaces.write(root, {CLUSTER: HUB, FAR: workspaces.CLUSTER.replace(old, new)})
    outcome = gangplan("validate", "-C", root)
    found = [one for one in outcome.findings if one.rule in ("never-dispatched", "multikueue-pool")]
    assert [one.rule for one in found][:1] == [rule] * bool(rule)
    if rule == "never-dispatched":
        assert found[0].place.startswith(SPEC)
        hub = HUB.replace("{far:", "{far: {kubeconfigSecret: far}, near:")
        workspaces.write(root, {CLUSTER: hub, "overlays/near/cluster.yaml": workspaces.CLUSTER})
        assert not gangplan("validate", "-C", root).errors()  # one of two is enough
        shutil.rmtree(root / "overlays/near")
        assert not gangplan("validate", "-C", root).errors()  # nor is what another workspace has known


GROWN = "autoscale: {most: 8}, "
READY = {
    "a second": ("1s", "", True),
    "just under a minute": ("59s", "", True),
    "a minute": ("60s", "", False),
    "nodes that come": ("299s", GROWN, True),
    "nodes that come in time": ("5m", GROWN, False),
    "nodes that Kueue asks for": ("60s", "autoscale: {most: 8, provisioningClass: check}, ", False),
}


@pytest.mark.parametrize("state", READY)
def test_pods_have_time_to_become_ready(state: str, root: Path) -> None:
    timeout, grown, is_early = READY[state]
    cluster = workspaces.CLUSTER.replace("cpu: {count: 4", f"cpu: {{{grown}count: 4")
    workspaces.write(root, {CLUSTER: f"{cluster}podsReadyTimeout: {timeout}\n"})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "pods-ready-early"]
    assert len(found) == is_early
    assert all(("nodes of pool 'cpu'" in one.message) == bool(grown) for one in found)
