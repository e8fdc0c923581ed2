"""The objects of a tenant: quota, bounds, policies, claims, secrets, namespace, priorities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.generators.tenants import generate_external_secrets, generate_resource_quota_and_limit_range
from gangplan.model.quantity import parse_cpu, parse_memory_quantity, parse_quantity
from gangplan.model.site import ContainerBounds, ExternalSecretStore, StoredSecret, Tenant
from gangplan.model.version import parse_version
from gangplan.objects import Body
from gangplan.resolve import resolve_tenants
from gangplan.workspace import load_workspace
from tests import plain, workspaces

OPENSHIFT = 'kueue: "0.19.2", openshift: "4.21"'
STORAGE = """\
storageClasses:
  cephfs: {accessModes: [ReadWriteMany], default: true}
  block: {accessModes: [ReadWriteOnce]}
"""


def tenant(root: Path, **changes: Any) -> Tenant:
    """Return the tenant of the small workspace, with some of its values changed."""
    from dataclasses import replace

    workspace = load_workspace(root)

    findings = workspace.findings
    assert not findings
    (found,) = resolve_tenants(workspace, "lab")
    return replace(found, **changes)


def rendered(root: Path, cluster: str = "", team: str = "", part: str = "tenants/nlp/tenant") -> list[Body]:
    """Render the small workspace with more lines in its files, and return the objects of one file."""
    files = {
        "overlays/lab/cluster.yaml": workspaces.CLUSTER + cluster,
        "specs/nlp/team.yaml": workspaces.TEAM + team,
    }
    workspaces.write(root, files)
    workspaces.render(root)
    return [*plain.load_all(workspaces.rendered(root)[f"lab/{part}.yaml"])]


def of_kind(bodies: list[Body], kind: str) -> dict[str, Body]:
    """Return the objects of a kind, by name."""
    return {body["metadata"]["name"]: body for body in bodies if body["kind"] == kind}


# Quota and bounds


def test_the_quota_is_sorted_and_written_as_kubernetes_writes_it(root: Path) -> None:
    hard = (
        ("services.nodeports", parse_quantity("0")),
        ("pods", parse_quantity("250")),
        ("requests.nvidia.com/gpu", parse_quantity("32")),
        ("count/trainjobs.trainer.kubeflow.org", parse_quantity("500")),
        ("requests.memory", parse_memory_quantity("2048Gi")),
        ("requests.cpu", parse_cpu("0.5")),
    )
    bodies = generate_resource_quota_and_limit_range(
        tenant(root, hard=hard, bounds=None, forbidden_priorities=())
    )
    body, priorities = bodies
    assert (body["kind"], body["metadata"]["name"]) == ("ResourceQuota", "training")
    # Teams get none of the priorities that the cluster reserves for itself.
    (kept,) = priorities["spec"]["scopeSelector"]["matchExpressions"]
    assert kept["values"] == ["system-cluster-critical", "system-node-critical"]
    assert list(body["spec"]["hard"].items()) == [
        ("count/trainjobs.trainer.kubeflow.org", "500"),
        ("pods", "250"),
        ("requests.cpu", "500m"),
        ("requests.memory", "2Ti"),
        ("requests.nvidia.com/gpu", "32"),
        ("services.nodeports", "0"),
    ]


def test_the_quota_allows_no_pod_of_a_forbidden_priority(root: Path) -> None:
    bodies = generate_resource_quota_and_limit_range(
        tenant(root, hard=(), bounds=None, forbidden_priorities=("high", "critical"))
    )
    (body,) = bodies
    assert body["metadata"]["name"] == "priorities"
    assert body["spec"] == {
        "hard": {"pods": "0"},
        "scopeSelector": {
            "matchExpressions": [
                {
                    "scopeName": "PriorityClass",
                    "operator": "In",
                    "values": [
                        *("system-cluster-critical", "system-node-critical"),
                        *("training-high", "training-critical"),
                    ],
                }
            ]
        },
    }


def test_without_bounds_there_is_no_quota_object(root: Path) -> None:
    assert (
        generate_resource_quota_and_limit_range(tenant(root, hard=(), bounds=None, forbidden_priorities=()))
        == []
    )


def test_the_limit_range_states_every_default(root: Path) -> None:
    bounds = ContainerBounds(
        parse_cpu(1), parse_memory_quantity("1Gi"), parse_cpu(60), parse_memory_quantity("240Gi")
    )
    (body,) = generate_resource_quota_and_limit_range(
        tenant(root, hard=(), bounds=bounds, forbidden_priorities=())
    )
    assert body["spec"]["limits"] == [
        {
            "type": "Container",
            "max": {"cpu": "60", "memory": "240Gi"},
            "default": {"cpu": "1", "memory": "1Gi"},
            "defaultRequest": {"cpu": "1", "memory": "1Gi"},
        }
    ]


pools = st.fixed_dictionaries(
    {
        "count": st.integers(1, 64),
        "cpu": st.sampled_from(["250m", 1, 1.5, 8, 60, 256]),
        "memory": st.sampled_from(["256Mi", "1Gi", "1.5Gi", "240Gi", "2000G", "4Ti"]),
    },
    optional={"gpu": st.just({"model": "a100-80gb", "count": 8})},
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(pools=st.dictionaries(st.sampled_from(["a", "b", "c"]), pools, min_size=1))
def test_a_limit_range_never_hands_out_devices(pools: dict[str, Any], root: Path) -> None:
    """Kubernetes makes a maximum the default, and refuses a default above the maximum."""
    cluster = plain.load(workspaces.CLUSTER)
    cluster["nodePools"] = pools
    workspaces.write(root, {"overlays/lab/cluster.yaml": yaml.safe_dump(cluster)})
    (body,) = (
        one for one in generate_resource_quota_and_limit_range(tenant(root)) if one["kind"] == "LimitRange"
    )
    (limit,) = body["spec"]["limits"]
    assert {*limit} == {"type", "max", "default", "defaultRequest"}
    for amounts in (limit["max"], limit["default"], limit["defaultRequest"]):
        assert {*amounts} == {"cpu", "memory"}
    for resource, most in limit["max"].items():
        assert (
            parse_quantity(limit["defaultRequest"][resource])
            <= parse_quantity(limit["default"][resource])
            <= parse_quantity(most)
        )


# Isolation


@pytest.mark.parametrize(
    ("versions", "namespace", "labels", "port"),
    [
        ('kueue: "0.19.2"', "kube-system", {"k8s-app": "kube-dns"}, 53),
        (OPENSHIFT, "openshift-dns", {"dns.operator.openshift.io/daemonset-dns": "default"}, 5353),
    ],
)
def test_a_namespace_is_closed_except_for_dns(
    versions: str, namespace: str, labels: dict[str, str], port: int, root: Path
) -> None:
    cluster = workspaces.CLUSTER.replace('kueue: "0.19.2"', versions)
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.render(root)
    bodies = [*plain.load_all(workspaces.rendered(root)["lab/tenants/nlp/tenant.yaml"])]
    policies = {name: body["spec"] for name, body in of_kind(bodies, "NetworkPolicy").items()}
    assert policies == {
        "default-deny": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        "allow-dns": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [
                {
                    "to": [
                        {
                            "podSelector": {"matchLabels": labels},
                            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                        }
                    ],
                    "ports": [{"protocol": name, "port": port} for name in ("UDP", "TCP")],
                }
            ],
        },
    }


# Claims


def test_a_claim_with_a_size_is_rendered_and_never_pruned(root: Path) -> None:
    team = workspaces.TEAM.replace(
        "notes: {accessModes: [ReadWriteOnce]}",
        "notes: {accessModes: [ReadWriteMany], claimName: nlp-notes, size: 1024Gi}\n"
        "  disk: {accessModes: [ReadWriteOnce], size: 1.5Ti, storageClass: block}",
    )
    workspaces.write(root, {"specs/nlp/team.yaml": team})
    workspaces.write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + STORAGE})
    workspaces.render(root)
    bodies = [*plain.load_all(workspaces.rendered(root)["lab/tenants/nlp/tenant.yaml"])]
    claims = of_kind(bodies, "PersistentVolumeClaim")
    assert {name: body["spec"] for name, body in claims.items()} == {
        "disk": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1536Gi"}},
            "storageClassName": "block",
            "volumeMode": "Filesystem",
        },
        "nlp-notes": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Ti"}},
            "storageClassName": "cephfs",
            "volumeMode": "Filesystem",
        },
    }
    for body in claims.values():
        options = body["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
        assert options == "Prune=false,Delete=false"


# Secrets


def test_external_secrets_name_keys_and_hold_no_values(root: Path) -> None:
    store = 'secretStore: {name: vault, path: "kv/{namespace}/{team}/{secret}", refresh: 1h30m}\n'
    bodies = of_kind(rendered(root, store, "pullSecrets: [registry]\n"), "ExternalSecret")
    assert sorted(bodies) == ["huggingface", "lidar-s3", "registry"]
    assert bodies["lidar-s3"]["spec"] == {
        "secretStoreRef": {"name": "vault", "kind": "ClusterSecretStore"},
        "refreshPolicy": "Periodic",
        "refreshInterval": "1h30m0s",
        "target": {"name": "lidar-s3", "creationPolicy": "Owner", "deletionPolicy": "Retain"},
        "dataFrom": [
            {
                "extract": {
                    "key": "kv/nlp/nlp/lidar-s3",
                    "conversionStrategy": "Default",
                    "decodingStrategy": "None",
                    "metadataPolicy": "None",
                }
            }
        ],
    }
    assert bodies["registry"]["spec"]["target"]["template"] == {
        "type": "kubernetes.io/dockerconfigjson",
        "engineVersion": "v2",
        "mergePolicy": "Replace",
    }
    assert not {"data", "stringData", "Secret"} & {key for body in bodies.values() for key in body}


@pytest.mark.parametrize(
    ("version", "is_there"), [(None, False), ("2.2.0", False), ("2.3.0", True), ("3.0", True)]
)
def test_only_newer_operators_get_the_null_byte_policy(
    version: str | None, is_there: bool, root: Path
) -> None:
    known = parse_version(version) if version else None
    store = ExternalSecretStore("vault", "SecretStore", 45, (StoredSecret("hf", "a/hf", False),), known)
    (body,) = generate_external_secrets(tenant(root, store=store))
    assert ("nullBytePolicy" in body["spec"]["dataFrom"][0]["extract"]) == is_there
    assert body["spec"]["refreshInterval"] == "45s"


def test_without_a_store_there_are_no_external_secrets(root: Path) -> None:
    assert not of_kind(rendered(root), "ExternalSecret")


# Namespace and priorities


def test_a_namespace_on_openshift_has_its_labels_and_annotations(root: Path) -> None:
    cluster = workspaces.CLUSTER.replace('kueue: "0.19.2"', OPENSHIFT)
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.write(root, {"specs/nlp/team.yaml": workspaces.TEAM + "description: Language models\n"})
    workspaces.render(root)
    bodies = [*plain.load_all(workspaces.rendered(root)["lab/tenants/nlp/tenant.yaml"])]
    metadata = of_kind(bodies, "Namespace")["nlp"]["metadata"]
    assert metadata["labels"]["kueue.openshift.io/managed"] == "true"
    assert metadata["labels"]["opendatahub.io/dashboard"] == "true"
    assert metadata["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert metadata["annotations"]["openshift.io/display-name"] == "nlp"
    assert metadata["annotations"]["openshift.io/description"] == "Language models"


def test_other_clusters_have_nothing_of_openshift(root: Path) -> None:
    metadata = of_kind(rendered(root), "Namespace")["nlp"]["metadata"]
    assert "openshift" not in str(metadata)
    assert "opendatahub" not in str(metadata)


def test_pods_never_preempt_where_kueue_decides(root: Path) -> None:
    bodies = rendered(root, part="platform/priorities")
    pods, workloads = of_kind(bodies, "PriorityClass"), of_kind(bodies, "WorkloadPriorityClass")
    assert {name: body["value"] for name, body in pods.items()} == {
        "training-low": 100,
        "training-normal": 500,
        "training-high": 1000,
    }
    assert {name: body["value"] for name, body in workloads.items()} == {
        name: body["value"] for name, body in pods.items()
    }
    assert {body["preemptionPolicy"] for body in pods.values()} == {"Never"}
    assert not [body for body in pods.values() if "globalDefault" in body]


@pytest.mark.parametrize("gang", ["volcano", "coscheduling"])
def test_a_gang_scheduler_preempts_by_the_priority_of_pods(gang: str, root: Path) -> None:
    bodies = rendered(root, f"gang: {gang}\n", part="platform/priorities")
    assert {body["preemptionPolicy"] for body in of_kind(bodies, "PriorityClass").values()} == {
        "PreemptLowerPriority"
    }
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "priority: high\n"})
    text = workspaces.render(root, "-o", "-", "specs/nlp/filings.yaml").out
    runtime = next(body for body in plain.load_all(text) if body["kind"] == "TrainingRuntime")
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods = [job["template"]["spec"]["template"]["spec"] for job in jobs]
    assert [pod["priorityClassName"] for pod in pods] == ["training-high"] * 2
