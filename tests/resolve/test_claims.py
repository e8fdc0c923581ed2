"""RDMA devices by claims: what a run has, where claims are refused, and what patches may not do to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.resolve.checks import check_site
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import plain, workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered, write

CLUSTER = "overlays/lab/cluster.yaml"
PLAIN = "gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}"
SPOT = "gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}"
NIC = "resource: example.com/nic, count: 8"
CLAIMED = f"{PLAIN}, rdma: {{{NIC}, deviceClass: nic.example.com}}"
ASKED = "network: {rdma: required}\n"
RESOURCE = "example.com/nic"


def offer(root: Path, *changes: tuple[str, str], lines: str = "") -> None:
    """Create the small cluster whose pool a100 has network cards of a device class."""
    text = workspaces.CLUSTER.replace(PLAIN, CLAIMED, 1)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    write(root, {CLUSTER: text + lines})


def run(root: Path) -> tuple[str, list[dict[str, Any]]]:
    """Render, and return the name of the run and its objects."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    bodies = load_objects(text)
    return next(one["metadata"]["name"] for one in bodies if one["kind"] == "TrainJob"), bodies


def templates(bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the only request of each ResourceClaimTemplate, by its name."""
    found = {}
    for one in bodies:
        if one["kind"] == "ResourceClaimTemplate":
            (request,) = one["spec"]["spec"]["devices"]["requests"]
            found[one["metadata"]["name"]] = request["exactly"]
    return found


def request(count: int, device_class: str = "nic.example.com") -> dict[str, Any]:
    return {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}


def test_each_worker_claims_its_share(root: Path) -> None:
    """Two GPUs of eight are a quarter of the node's cards; the launcher has none."""
    put(root, ASKED)
    offer(root)
    name, bodies = run(root)
    assert templates(bodies) == {f"{name}-rdma": request(2)}
    found = pods(root)
    worker = found["node"]
    assert worker["resourceClaims"] == [{"name": "rdma", "resourceClaimTemplateName": f"{name}-rdma"}]
    resources = worker["containers"][0]["resources"]
    assert resources["claims"] == [{"name": "rdma"}]
    assert RESOURCE not in {**resources["requests"], **resources["limits"]}
    assert "resourceClaims" not in found["launcher"]


def test_each_entry_has_a_claim_of_its_own(root: Path) -> None:
    put(root, "network: {rdma: all}\n")
    rails = (
        f"[{{{NIC}, deviceClass: nic.example.com}}, {{resource: rdma/plain, count: 2}},"
        " {resource: example.com/other, count: 4, deviceClass: other.example.com}]"
    )
    offer(root, (CLAIMED, f"{PLAIN}, rdma: {rails}"))
    name, bodies = run(root)
    assert templates(bodies) == {
        f"{name}-rdma-0": request(8),
        f"{name}-rdma-2": request(4, "other.example.com"),
    }
    assert pods(root)["node"]["containers"][0]["resources"]["limits"]["rdma/plain"] == "2"


def test_a_run_without_rdma_has_no_claim(root: Path) -> None:
    put(root, "")
    offer(root)
    assert templates(run(root)[1]) == {}
    with_class = rendered(root)
    write(root, {CLUSTER: workspaces.CLUSTER})
    run(root)
    assert {path: text for path, text in with_class.items() if "/runs/" in path} == {
        path: text for path, text in rendered(root).items() if "/runs/" in path
    }


def test_another_number_of_devices_is_another_run(root: Path) -> None:
    """No update may change a template, and pods name only the template."""
    offer(root)
    names = []
    for count in (1, 2):
        put(root, f"network: {{rdma: {count}}}\n")
        names.append(run(root)[0])
    assert len(set(names)) == 2


def test_queues_and_namespaces_count_claims(root: Path) -> None:
    put(root, ASKED)
    offer(root)
    run(root)
    texts = {path: text.decode() for path, text in rendered(root).items()}
    queues = next(text for path, text in texts.items() if path.endswith("queues.yaml"))
    tenant = next(text for path, text in texts.items() if path.endswith("tenant.yaml"))
    assert '{name: example.com/nic, nominalQuota: "32"}' in queues
    assert 'nic.example.com.deviceclass.resource.k8s.io/devices: "32"' in tenant
    assert "requests.example.com/nic" not in tenant


def test_kueue_learns_the_classes(root: Path) -> None:
    offer(root)
    outcome = gangplan("cluster", "kueue-config", "-C", root)
    assert plain.load(outcome.out)["resources"] == {
        "deviceClassMappings": [{"name": RESOURCE, "deviceClassNames": ["nic.example.com"]}]
    }


def test_quotas_bound_claims(root: Path) -> None:
    """Five workers with all cards of a node do not fit on four nodes."""
    put(root, "network: {rdma: all}\n")
    offer(root)
    spec = (root / SPEC).read_text()
    write(root, {SPEC: spec.replace("workers: 4", "workers: 5")})
    found = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert any(RESOURCE in one.message for one in found)


def test_a_claim_gets_at_most_32_devices(root: Path) -> None:
    put(root, "network: {rdma: all}\n")
    offer(root, (f"{NIC}, dev", "resource: example.com/nic, count: 33, dev"))
    (found,) = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert found.rule == "rdma-devices"
    assert "33 devices of class nic.example.com per worker, but a claim gets at most 32" in found.message
    offer(root, (f"{NIC}, dev", "resource: example.com/nic, count: 32, dev"))
    assert gangplan("validate", "-C", root).errors() == []


def rails(*numbers: int) -> str:
    """Return the devices of a pool, each of a class of its own."""
    entries = (f"{{resource: example.com/n{at}, count: 1, deviceClass: n{at}.example.com}}" for at in numbers)
    return f"rdma: [{', '.join(entries)}]"


MANY = (CLAIMED, f"{PLAIN}, {rails(*range(16))}")
ONE_MORE = (SPOT, f"{SPOT}, {rails(15, 16)}")
TOPOLOGY = (CLAIMED, f"{CLAIMED}, topology: true")
HUB = "multiKueue: {clusters: {west: {kubeconfigSecret: west-kubeconfig}}}\n"
# Changes of the cluster and its further lines, the broken rule, and words of its message.
CASES: dict[str, tuple[tuple[tuple[str, str], ...], str, str, str]] = {
    "as it should be": ((), "", "", ""),
    "of an old Kubernetes": ((("1.34.4", "1.33.5"),), "", "device-class-version", "does not have resource.k8s.io/v1"),
    "of a new Kubernetes": ((("1.34.4", "1.36.0"),), "", "", ""),
    "of a Kueue that counts no claims": ((("0.19.2", "0.17.2"),), "", "device-class-version", "Kueue 0.17 does not count"),
    "of the first Kueue that counts claims": ((("0.19.2", "0.18.2"),), "", "", ""),
    "of another scheduler": ((("region:", "gang: volcano\nregion:"),), "", "device-class-unusable", "brings its own scheduler"),
    "without gangs": ((("region:", "gang: none\nenvironment: dev\nregion:"),), "", "", ""),
    "placed by topology": ((TOPOLOGY,), "", "device-class-unusable", "by topology"),
    "next to a pool with topology": (((SPOT, f"{SPOT}, topology: true"),), "", "", ""),
    "shared": (((f"{NIC}, dev", f"{NIC}, shared: true, dev"),), "", "device-class-unusable", "to one worker alone"),
    "of nodes that Kueue asks for": (
        ((CLAIMED, f"{CLAIMED}, autoscale: {{most: 8, provisioningClass: queued-provisioning.gke.io}}"),),
        "",
        "device-class-unusable",
        "finds none for pods with claims",
    ),
    "of nodes that pods make": (((CLAIMED, f"{CLAIMED}, autoscale: {{most: 8}}"),), "", "", ""),
    "handed to other clusters": ((), HUB, "device-class-unusable", "multiKueue"),
    "excluded by prefix": ((), "kueue: {resources: {excludeResourcePrefixes: [example.com/]}}\n", "device-class-unusable", "excludes"),
    "next to another prefix": ((), "kueue: {resources: {excludeResourcePrefixes: [nvidia.com/mig]}}\n", "", ""),
    "transformed": (
        (),
        "kueue: {resources: {transformations: {example.com/nic: {strategy: Retain, outputs: {example.com/credits: 1}}}}}\n",
        "device-class-unusable",
        "transforms",
    ),
    "of a plugin elsewhere": (((SPOT, f"{SPOT}, rdma: {{{NIC}}}"),), "", "device-class-twice", "of a device plugin in pool 'a100-spot'"),
    "next to a plugin with another resource": (((SPOT, f"{SPOT}, rdma: {{resource: rdma/ib, count: 8}}"),), "", "", ""),
    "of the same class elsewhere": (((SPOT, f"{SPOT}, rdma: {{{NIC}, deviceClass: nic.example.com}}"),), "", "", ""),
    "of two classes": (((SPOT, f"{SPOT}, rdma: {{{NIC}, deviceClass: b.example.com}}"),), "", "device-class-twice", "class b.example.com"),
    "a class with two resources": (
        ((SPOT, f"{SPOT}, rdma: {{resource: example.com/b, count: 8, deviceClass: nic.example.com}}"),),
        "",
        "device-class-twice",
        "counted as example.com/b",
    ),
    "the class of GPUs": (
        (("1.34.4", "1.36.0"), (SPOT, SPOT.replace("8}", "8, deviceClass: nic.example.com}"))),
        "",
        "device-class-twice",
        "that of the GPUs in pool 'a100-spot', which Kueue would count as example.com/nic",
    ),
    "next to GPUs of another class": (
        (("1.34.4", "1.36.0"), (SPOT, SPOT.replace("8}", "8, deviceClass: gpu.example.com}"))),
        "",
        "",
        "",
    ),
    "with the longest name": ((("nic.example.com}", f"{'n' * 63}}}"),), "", "", ""),
    "with a longer name": ((("nic.example.com}", f"{'n' * 64}}}"),), "", "device-class-unusable", "at most 63 characters"),
    "as many as Kueue maps": ((MANY, (SPOT, f"{SPOT}, {rails(15)}")), "", "", ""),
    "one more than Kueue maps": ((MANY, ONE_MORE), "", "device-class-unusable", "at most 16 resources, and class n16.example.com"),
    "one more without Kueue": ((("region:", "gang: none\nenvironment: dev\nregion:"), MANY, ONE_MORE), "", "", ""),
    "other devices elsewhere": (((SPOT, f"{SPOT}, devices: {{example.com/nic: 2}}"),), "", "device-class-twice", "containers request"),
    "GPUs elsewhere": (
        ((SPOT, SPOT.replace("8}", "8, resource: example.com/nic}")),),
        "",
        "device-class-twice",
        "containers request",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_claims_are_refused_where_they_do_not_work(name: str, root: Path) -> None:
    changes, lines, rule, words = CASES[name]
    offer(root, *changes, lines=lines)
    workspace = load_workspace(root)
    found = check_site(workspace, workspace.clusters["lab"])
    told = [one for one in found if one.rule.startswith("device-class")]
    assert {str(one.rule) for one in told} == ({rule} if rule else set()), [one.message for one in found]
    assert all(words in one.message and one.help and one.where.line > 1 for one in told)


WORKER = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
REQUEST = "/spec/spec/devices/requests/0/exactly"
QUOTA = "/spec/hard/nic.example.com.deviceclass.resource.k8s.io~1devices"
TEMPLATE = "ResourceClaimTemplate"
# The kind, operations, and the broken rule with words of its message.
PATCHES: dict[str, tuple[str, list[dict[str, Any]], str, str]] = {
    "no claim of the container": (
        "TrainingRuntime",
        [{"op": "remove", "path": f"{WORKER}/containers/0/resources/claims"}],
        "plan-broken",
        "each worker would claim 0 example.com/nic; the plan has 2",
    ),
    "a request that is not there": (
        "TrainingRuntime",
        [{"op": "add", "path": f"{WORKER}/containers/0/resources/claims/0/request", "value": "others"}],
        "plan-broken",
        "each worker would claim 0 example.com/nic; the plan has 2",
    ),
    "its request": (
        "TrainingRuntime",
        [{"op": "add", "path": f"{WORKER}/containers/0/resources/claims/0/request", "value": "devices"}],
        "",
        "",
    ),
    "no request": (TEMPLATE, [{"op": "remove", "path": REQUEST}], "schema", "exactly one of exactly, firstAvailable"),
    "more devices than a claim gets": (
        TEMPLATE,
        [{"op": "replace", "path": f"{REQUEST}/count", "value": 33}],
        "object-invalid",
        "a claim has at most 32 devices, and this one asks for 33",
    ),
    "fewer devices": (
        TEMPLATE,
        [{"op": "replace", "path": f"{REQUEST}/count", "value": 1}],
        "plan-broken",
        "each worker would claim 1 example.com/nic; the plan has 2",
    ),
    "another class": (
        TEMPLATE,
        [{"op": "replace", "path": f"{REQUEST}/deviceClassName", "value": "b.example.com"}],
        "never-admitted",
        "DeviceClass b.example.com is not mapped",
    ),
    "all devices": (
        TEMPLATE,
        [{"op": "replace", "path": f"{REQUEST}/allocationMode", "value": "All"}, {"op": "remove", "path": f"{REQUEST}/count"}],
        "never-admitted",
        "AllocationMode 'All' is not supported",
    ),
    "a request of the container": (
        "TrainingRuntime",
        [
            {"op": "add", "path": f"{WORKER}/containers/0/resources/{part}/example.com~1nic", "value": "1"}
            for part in ("requests", "limits")
        ],
        "no-node-fits",
        "Insufficient example.com/nic without a claim",
    ),
    "a lower bound of the namespace": (
        "ResourceQuota",
        [{"op": "test", "path": "/metadata/name", "value": "training"}, {"op": "replace", "path": QUOTA, "value": "4"}],
        "hard-quota-below-queue",
        "queue 'nlp' may admit",
    ),
    "a count that is not a number": (
        TEMPLATE,
        [{"op": "replace", "path": f"{REQUEST}/count", "value": "two"}],
        "schema",
        "count",
    ),
    "a selector": (
        TEMPLATE,
        [{"op": "add", "path": f"{REQUEST}/selectors", "value": [{"cel": {"expression": "true"}}]}],
        "",
        "",
    ),
    "more devices": (TEMPLATE, [{"op": "replace", "path": f"{REQUEST}/count", "value": 3}], "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PATCHES)
def test_patches_of_claims_are_judged(name: str, root: Path) -> None:
    kind, operations, rule, words = PATCHES[name]
    put(root, ASKED)
    offer(root)
    target = "{kind: ResourceQuota, name: training}" if kind == "ResourceQuota" else f"{{kind: {kind}}}"
    patch = "".join(f"    - {json.dumps(one)}\n" for one in operations)
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    write(root, {"overlays/lab/kustomization.yaml": f"{head}- target: {target}\n  patch: |-\n{patch}"})
    found = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert ({one.rule for one in found} >= {rule}) if rule else not found, [one.message for one in found]
    assert any(words in one.message for one in found) or not rule, [one.message for one in found]


@pytest.mark.parametrize(
    ("key", "kind"),
    [("resourceClaimTemplateName", "ResourceClaimTemplate"), ("resourceClaimName", "ResourceClaim")],
)
def test_claims_of_others_must_be_there(key: str, kind: str, root: Path) -> None:
    """A patch adds a claim by a name that no file has."""
    put(root, ASKED)
    offer(root)
    added = {"op": "add", "path": f"{WORKER}/resourceClaims/-", "value": {"name": "x", key: "theirs"}}
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    patch = f"- target: {{kind: TrainingRuntime}}\n  patch: |-\n    - {json.dumps(added)}\n"
    write(root, {"overlays/lab/kustomization.yaml": head + patch})
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.severity) == ("plan-weakened", "warning")
    assert f"would never start unless namespace nlp has a {kind} 'theirs'" in found.message


def test_a_kept_run_has_the_claims_of_its_time(root: Path) -> None:
    put(root, ASKED)
    offer(root)
    name, bodies = run(root)
    offer(root, (f"{NIC}, dev", "resource: example.com/nic, count: 4, dev"))
    outcome = gangplan("render", "-C", root, "--keep-runs")
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    assert templates(load_objects(text)) == templates(bodies) == {f"{name}-rdma": request(2)}


@pytest.mark.parametrize(
    ("old", "new"),
    [("count: 2", "count: 1"), ("deviceClassName: nic.", "deviceClassName: b."), ("-rdma\n", "-rdmb\n")],
)
def test_claims_of_a_kept_run_are_not_to_be_forged(old: str, new: str, root: Path) -> None:
    put(root, ASKED)
    offer(root)
    run(root)
    (path,) = (root / "rendered" / path for path in rendered(root) if is_run_file(path))
    before, mark, after = path.read_text().partition("kind: ResourceClaimTemplate")
    assert old in after
    path.write_text(before + mark + after.replace(old, new, 1))
    offer(root, (f"{NIC}, dev", "resource: example.com/nic, count: 4, dev"))
    outcome = gangplan("render", "-C", root, "--keep-runs")
    assert "run-forged" in {one.rule for one in outcome.findings}
