"""What a real control plane reports of runs that wait or fail, and the cause that gangplan diagnose finds.

`--update` records it into tests/diagnose/recorded/cluster.yaml, with the names of the tests as titles. Pods
and their exit codes are simulated (docs/lab.md); conditions and events are those of the API server, its
controllers, the scheduler, Kueue, Trainer and JobSet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.diagnose.samples import Sample, keep, save, trimmed
from tests.diagnose.test_causes import judged
from tests.lab import fixtures, samples
from tests.lab.client import ApiError, Object, poll
from tests.lab.lab import Lab
from tests.lab.stages import PLOT, STAYS, Plot, Story

pytestmark = pytest.mark.e2e
PATIENCE = 60.0
TEAM = "nlp"
NODES = (
    {"name": "cpu", "count": 2, "labels": {"rack": "r1"}},
    {
        "name": "gpu",
        "allocatable": {"nvidia.com/gpu": "4"},
        "labels": {"rack": "r2", "topology.kubernetes.io/zone": "a"},
    },
)
CONTAINER = {"name": "node", "image": "registry.example.com/training/openmpi:5.0"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Run a lab with one team's queue, whose runs must be ready within 20 seconds and then run on."""
    profile = fixtures.chosen()
    if profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    fixtures.require(profile)
    ready = {"timeout": "20s", "blockAdmission": False, "requeuingStrategy": {"backoffLimitCount": 10}}
    with Lab(profile, nodes=NODES, settings={"kueue": {"waitForPodsReady": ready}}) as made:
        made.client.apply_all(samples.queue(made.client, TEAM))
        made.client.apply_patiently(samples.runtime(TEAM, TEAM), timeout=60)
        # One story for each run: of two that fit a pod, one would be chosen at random.
        made.tell(*(Story(Plot.RUN, namespace=TEAM, run=f"{name}-1a2b3c4d") for name in ("holds", "long")))
        yield made


def start(lab: Lab, name: str, change: Callable[[Object], object] = lambda body: None, **size: Any) -> None:
    """Start a run of the sample's runtime."""
    body = samples.run(TEAM, name, **size)
    change(body)
    lab.client.apply_patiently(body, timeout=60)


def runtime(lab: Lab, name: str, change: Callable[[Object], object]) -> None:
    """Create a runtime for one run; `change` gets its JobSet's spec."""
    body = samples.runtime(TEAM, TEAM)
    body["metadata"]["name"] = name
    change(body["spec"]["template"]["spec"])
    lab.client.apply_patiently(body, timeout=60)


def of_run(lab: Lab, name: str) -> list[Object]:
    """Return what `kubectl get trainjobs,jobsets,jobs,workloads,pods,events` has of a run."""
    found = [body for body in lab.client.list("TrainJob", TEAM) if body["metadata"]["name"] == name]
    for kind in ("JobSet", "Job", "Workload", "Pod"):
        for body in lab.client.list(kind, TEAM):
            owners = [one["name"] for one in body["metadata"].get("ownerReferences", ())]
            if body["metadata"]["name"] == name or any(
                one == name or one.startswith(f"{name}-") for one in owners
            ):
                found.append(
                    {
                        **body,
                        "kind": kind,
                        "apiVersion": body.get("apiVersion") or lab.client.resource(kind).api_version,
                    }
                )
    return [
        {
            **body,
            "apiVersion": body.get("apiVersion") or samples.TRAINER,
            "kind": body.get("kind") or "TrainJob",
        }
        for body in found
    ]


def of_namespace(lab: Lab, namespace: str) -> list[Object]:
    """Return the pods and events of a namespace."""
    pods = [{"apiVersion": "v1", "kind": "Pod", **body} for body in lab.client.list("Pod", namespace)]
    events = [{"apiVersion": "v1", "kind": "Event", **body} for body in lab.client.list("Event", namespace)]
    return [*pods, *(one for one in events if one["reason"] in ("FailedCreate", "FailedScheduling"))]


@pytest.fixture
def told(lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a check that waits until the cluster's objects lead to a cause, and records them."""
    profile = lab.profile
    others = f"Trainer {profile.trainer}, JobSet {profile.jobset}, Kueue {profile.kueue}"
    versions = f"Kubernetes {profile.kubernetes}, {others}"

    def check(cause: str, look: Callable[[], list[Object]]) -> None:
        seen: list[Any] = []

        def leads() -> bool:
            seen[:] = [
                Sample(
                    request.node.name,
                    cause,
                    versions,
                    "tests/e2e/test_recorded.py",
                    "",
                    [trimmed(one) for one in look()],
                )
            ]
            (verdict,) = judged(save(tmp_path, seen[0])) or (None,)
            seen.append(verdict and [one.cause.id for one in verdict.found])
            return bool(seen[1]) and seen[1][0] == cause

        poll(leads, PATIENCE, lambda: f"not {cause}: {seen}", every=0.5)
        if request.config.getoption("--update"):
            name = request.node.name.removeprefix("test_").replace("_", " ")
            kept = seen[0]
            keep("cluster", Sample(name, cause, kept.by, kept.how, "", kept.objects))

    return check


# -- Kueue


def test_a_run_that_waits_for_quota(lab: Lab, told: Callable[..., None]) -> None:
    start(lab, "holds-1a2b3c4d", nodes=7)
    # The run whose Workload exists first is admitted first.
    poll(lambda: lab.client.find("JobSet", "holds-1a2b3c4d", TEAM), PATIENCE, lambda: "no JobSet")
    poll(
        lambda: not lab.client.get("JobSet", "holds-1a2b3c4d", TEAM)["spec"].get("suspend"),
        PATIENCE,
        lambda: "not admitted",
    )
    start(lab, "waits-1a2b3c4d", nodes=7)
    told("quota-wait", lambda: of_run(lab, "waits-1a2b3c4d"))
    for name in ("holds-1a2b3c4d", "waits-1a2b3c4d"):
        lab.client.delete("TrainJob", name, TEAM)


def test_a_run_that_no_quota_can_hold(lab: Lab, told: Callable[..., None]) -> None:
    start(lab, "huge-1a2b3c4d", nodes=100)
    told("quota-never", lambda: of_run(lab, "huge-1a2b3c4d"))


def test_a_run_in_a_queue_that_is_not_there(lab: Lab, told: Callable[..., None]) -> None:
    start(lab, "lost-1a2b3c4d", queue="nowhere")
    told("queue-inactive", lambda: of_run(lab, "lost-1a2b3c4d"))


def test_an_admission_check_that_does_not_answer(lab: Lab, told: Callable[..., None]) -> None:
    version = lab.client.resource("AdmissionCheck").api_version
    check = {"apiVersion": version, "kind": "AdmissionCheck", "metadata": {"name": "budget"}}
    lab.client.apply({**check, "spec": {"controllerName": "budget.example.com/check"}})
    state = {
        "conditions": [
            {
                "type": "Active",
                "status": "True",
                "reason": "Active",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    }
    lab.client.patch("AdmissionCheck", "budget", {"status": state}, part="status")
    cluster = next(deepcopy(one) for one in samples.queue(lab.client, TEAM) if one["kind"] == "ClusterQueue")
    local = next(deepcopy(one) for one in samples.queue(lab.client, TEAM) if one["kind"] == "LocalQueue")
    cluster["metadata"]["name"] = local["metadata"]["name"] = local["spec"]["clusterQueue"] = "checked"
    cluster["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "budget"}]}
    lab.client.apply_all([cluster, local])
    start(lab, "asks-1a2b3c4d", queue="checked")
    told("admission-check", lambda: of_run(lab, "asks-1a2b3c4d"))
    lab.client.patch("Workload", _workload(lab, "asks-1a2b3c4d"), {"spec": {"active": False}}, TEAM)


def test_a_rack_that_is_too_small(lab: Lab, told: Callable[..., None]) -> None:
    version = lab.client.resource("ResourceFlavor").api_version
    if lab.profile.name == "old":
        pytest.skip("TAS is alpha in Kueue 0.15")
    levels = {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}
    topology = {
        "apiVersion": lab.client.resource("Topology").api_version,
        "kind": "Topology",
        "metadata": {"name": "racks"},
        "spec": levels,
    }
    flavor = {
        "apiVersion": version,
        "kind": "ResourceFlavor",
        "metadata": {"name": "racked"},
        "spec": {"topologyName": "racks", "nodeLabels": {"kubernetes.io/os": "linux"}},
    }
    cluster = next(
        deepcopy(one)
        for one in samples.queue(lab.client, TEAM, "400", "4000Gi")
        if one["kind"] == "ClusterQueue"
    )
    local = next(deepcopy(one) for one in samples.queue(lab.client, TEAM) if one["kind"] == "LocalQueue")
    cluster["metadata"]["name"] = local["metadata"]["name"] = local["spec"]["clusterQueue"] = "racked"
    cluster["spec"]["resourceGroups"][0]["flavors"][0]["name"] = "racked"
    lab.client.apply_all([topology, flavor, cluster, local])

    def close(spec: Object) -> None:
        for job in spec["replicatedJobs"]:
            job["template"]["spec"]["template"].setdefault("metadata", {})["annotations"] = {
                "kueue.x-k8s.io/podset-required-topology": "rack"
            }

    runtime(lab, "close", close)
    start(
        lab,
        "close-1a2b3c4d",
        lambda body: body["spec"]["runtimeRef"].update(name="close"),
        nodes=12,
        queue="racked",
    )
    told("topology-full", lambda: of_run(lab, "close-1a2b3c4d"))
    lab.client.delete("TrainJob", "close-1a2b3c4d", TEAM)


def test_pods_that_are_not_ready_in_time(lab: Lab, told: Callable[..., None]) -> None:
    lab.tell(Story(Plot.NEVER_READY, namespace=TEAM, run="late-1a2b3c4d"))
    start(lab, "late-1a2b3c4d")
    told("not-ready-in-time", lambda: [one for one in of_run(lab, "late-1a2b3c4d") if one["kind"] != "Pod"])
    lab.client.delete("TrainJob", "late-1a2b3c4d", TEAM)


def _workload(lab: Lab, run: str) -> str:
    return next(
        str(one["metadata"]["name"])
        for one in lab.client.list("Workload", TEAM)
        if any(owner["name"] == run for owner in one["metadata"].get("ownerReferences", ()))
    )


# -- Trainer, JobSet, Jobs


def test_a_run_whose_time_is_over(lab: Lab, told: Callable[..., None]) -> None:
    if lab.profile.trainer < "2.2":
        pytest.skip("Trainer 2.1 has no deadline of its own")
    start(lab, "long-1a2b3c4d", lambda body: body["spec"].update(activeDeadlineSeconds=5))
    told("deadline", lambda: of_run(lab, "long-1a2b3c4d"))


def test_a_run_that_was_tried_often_enough(lab: Lab, told: Callable[..., None]) -> None:
    lab.tell(Story(Plot.FAIL, namespace=TEAM, run="again-1a2b3c4d"))

    def once_more(spec: Object) -> None:
        spec["failurePolicy"] = {"maxRestarts": 1}
        for job in spec["replicatedJobs"]:
            job["template"]["spec"]["backoffLimit"] = 0

    runtime(lab, "again", once_more)
    start(lab, "again-1a2b3c4d", lambda body: body["spec"]["runtimeRef"].update(name="again"))
    told(
        "retries-used-up",
        lambda: [one for one in of_run(lab, "again-1a2b3c4d") if one["kind"] in ("TrainJob", "JobSet")],
    )


def test_a_code_that_is_final(lab: Lab, told: Callable[..., None]) -> None:
    lab.tell(Story(Plot.FAIL, namespace=TEAM, run="final-1a2b3c4d"))

    def final(spec: Object) -> None:
        rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
        for job in spec["replicatedJobs"]:
            job["template"]["spec"]["podFailurePolicy"] = {"rules": [rule]}

    runtime(lab, "final", final)
    start(lab, "final-1a2b3c4d", lambda body: body["spec"]["runtimeRef"].update(name="final"))
    told("not-retried", lambda: [one for one in of_run(lab, "final-1a2b3c4d") if one["kind"] == "Job"])


# -- what the API server refuses


def job(namespace: str, **spec: Any) -> Object:
    """Return a Job of one pod."""
    container = {**CONTAINER, "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container], **spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train-1a2b3c4d-node-0", "namespace": namespace},
        "spec": {"template": {"spec": pod}},
    }


def namespace_of(lab: Lab, name: str, labels: Mapping[str, str] | None = None) -> str:
    """Create a namespace with its service account, and return its name."""
    lab.client.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
    )
    poll(lambda: lab.client.find("ServiceAccount", "default", name), PATIENCE, lambda: name)
    return name


def test_pods_that_pod_security_refuses(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "strict", {"pod-security.kubernetes.io/enforce": "restricted"})
    lab.client.apply(job(where))
    told("pods-refused", lambda: of_namespace(lab, where))


def test_pods_that_a_policy_refuses(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "ruled")
    admission = "admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    here = {"matchLabels": {"kubernetes.io/metadata.name": where}}
    checks = [
        {
            "expression": "object.spec.containers.all(c, c.image.contains('@sha256:'))",
            "message": "use a digest",
        }
    ]
    lab.client.apply_all(
        [
            {"apiVersion": admission, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-tags"},
             "spec": {"matchConstraints": {"resourceRules": rules, "namespaceSelector": here},
                      "validations": checks}},
            {"apiVersion": admission, "kind": "ValidatingAdmissionPolicyBinding",
             "metadata": {"name": "no-tags"},
             "spec": {"policyName": "no-tags", "validationActions": ["Deny"]}},
        ]
    )  # fmt: skip
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": where},
        "spec": {"containers": [CONTAINER]},
    }

    def refused() -> bool:
        try:
            lab.client.create(probe, dry_run=True)
        except Exception as error:  # noqa: BLE001  the API server's own refusal, by its words
            return "use a digest" in str(error)
        return False

    poll(refused, PATIENCE, lambda: "the policy does not refuse", every=0.5)
    lab.client.apply(job(where))
    told("pods-refused", lambda: of_namespace(lab, where))


def test_pods_beyond_the_quota_of_a_namespace(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "full")
    lab.client.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "hard", "namespace": where},
            "spec": {"hard": {"requests.cpu": "500m"}},
        }
    )
    poll(lambda: lab.client.get("ResourceQuota", "hard", where).get("status"), PATIENCE, lambda: "no status")
    lab.client.apply(job(where))
    told("object-quota", lambda: of_namespace(lab, where))


def test_an_account_that_is_not_there(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "nobody")
    lab.client.apply(job(where, serviceAccountName="training"))
    told("account-missing", lambda: of_namespace(lab, where))


def test_a_webhook_that_is_down(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "hooked")
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    hook = {
        "name": "pods.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/pods"},
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": where}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    admission = "admissionregistration.k8s.io/v1"
    lab.client.apply(
        {
            "apiVersion": admission,
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "down"},
            "webhooks": [hook],
        }
    )
    lab.client.apply(job(where))
    told("webhook-down", lambda: of_namespace(lab, where))


# -- the scheduler


def pending(lab: Lab, name: str, **spec: Any) -> Callable[[], list[Object]]:
    """Create a pod of a run in a new namespace, and return a function that reads its objects."""
    where = namespace_of(lab, name)
    requests = spec.pop("requests", {"cpu": "1"})
    container = {**CONTAINER, "resources": {"requests": requests, "limits": requests}}
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "train-1a2b3c4d",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
    }
    metadata = {"name": "train-1a2b3c4d-node-0-3-abcde", "namespace": where, "labels": labels}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }
    lab.client.apply_patiently(body, timeout=30)
    return lambda: of_namespace(lab, where)


def test_no_node_with_so_many_gpus(lab: Lab, told: Callable[..., None]) -> None:
    told("no-gpu", pending(lab, "gpus", requests={"cpu": "1", "nvidia.com/gpu": "8"}))


def test_no_node_with_so_much_memory(lab: Lab, told: Callable[..., None]) -> None:
    told("no-room", pending(lab, "memory", requests={"memory": "1900Gi"}))


def test_no_node_with_such_a_label(lab: Lab, told: Callable[..., None]) -> None:
    told("no-matching-node", pending(lab, "labels", nodeSelector={"pool": "h100"}))


def test_a_claim_that_is_not_there(lab: Lab, told: Callable[..., None]) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "corpora"}}]
    told("volume-pending", pending(lab, "claims", volumes=volumes))


def test_a_volume_in_another_zone(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "zones")
    size = {"storage": "1Gi"}
    zone = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": zone}]}}
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "far"}
    lab.client.apply_all(
        [
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "far"},
             "spec": {"capacity": size, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                      "nodeAffinity": affinity, "local": {"path": "/mnt/far"}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
             "metadata": {"name": "corpora", "namespace": where},
             "spec": {**shared, "resources": {"requests": size}}},
        ]
    )  # fmt: skip

    def bound() -> bool:
        return (
            lab.client.get("PersistentVolumeClaim", "corpora", where).get("status", {}).get("phase")
            == "Bound"
        )

    poll(bound, PATIENCE, lambda: "the claim is not bound")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "corpora"}}]
    told("volume-zone", pending(lab, "zones", volumes=volumes))


# -- lost


def test_a_pod_that_is_evicted_from_a_node(lab: Lab, told: Callable[..., None]) -> None:
    where = namespace_of(lab, "drained")
    body = job(where)
    keeps = {"finalizers": ["example.com/look"], "annotations": {PLOT: "run", STAYS: "yes"}}
    body["spec"]["template"]["metadata"] = keeps
    lab.client.apply(body)

    def running() -> list[Object]:
        return [
            one for one in lab.client.list("Pod", where) if one.get("status", {}).get("phase") == "Running"
        ]

    poll(running, PATIENCE, lambda: f"{of_namespace(lab, where)}")
    name = running()[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": where}}
    lab.client.request("POST", f"/api/v1/namespaces/{where}/pods/{name}/eviction", eviction)
    told("node-lost", lambda: of_namespace(lab, where))
    lab.client.delete("Job", body["metadata"]["name"], where)
    for one in lab.client.list("Pod", where):
        with suppress(ApiError):  # gone by now
            freed = {"metadata": {"finalizers": None, "annotations": {STAYS: None}}}
            lab.client.patch("Pod", one["metadata"]["name"], freed, where)
