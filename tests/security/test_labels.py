"""Labels that teams may not set: controllers find pods by them, and webhooks grant identities by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces import SPEC, gangplan, render, write

FILE = "specs/nlp/filings.yaml"
RESERVED = (
    *("job-name", "controller-uid", "pod-template-hash", "controller-revision-hash"),
    *(
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
    ),
    *("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/job-index", "apps.kubernetes.io/pod-index"),
    *("statefulset.kubernetes.io/pod-name", "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"),
    *(
        "kueue.x-k8s.io/managed",
        "trainer.kubeflow.org/trainjob-ancestor-step",
        "pod-security.kubernetes.io/enforce",
    ),
    *("app.kubernetes.io/managed-by", "gangplan.dev/team", "gangplan.dev/hipaa", "sidecar.istio.io/inject"),
    *("argocd.argoproj.io/instance", "volcano.sh/queue-name", "scheduling.x-k8s.io/pod-group"),
)
INJECTING = (
    *(
        "azure.workload.identity/use",
        "aadpodidbinding",
        "iam.amazonaws.com/role",
        "eks.amazonaws.com/role-arn",
    ),
    *(
        "iam.gke.io/gcp-service-account",
        "vault.hashicorp.com/agent-inject",
        "consul.hashicorp.com/connect-inject",
    ),
    *("linkerd.io/inject", "config.linkerd.io/skip-outbound-ports", "admission.datadoghq.com/enabled"),
    *("sidecar.opentelemetry.io/inject", "spiffe.io/spire-managed-identity", "dapr.io/enabled"),
    *("policies.kyverno.io/ignore", "admission.gatekeeper.sh/ignore", "admission.stackrox.io/break-glass"),
    *("k8s.v1.cni.cncf.io/networks",),
)
FREE = ("project", "example.com/job-name", "team.example.com/use", "job", "name", "app", "my-job-name")


def labelled(root: Path, key: str) -> None:
    write(root, {FILE: f'{SPEC}labels: {{"{key}": "true"}}\n'})


@pytest.mark.parametrize(
    ("key", "rule"),
    [*((key, "label-reserved") for key in RESERVED), *((key, "label-injects") for key in INJECTING)],
)
def test_reserved_and_injecting_labels_are_refused(root: Path, key: str, rule: str) -> None:
    labelled(root, key)
    outcome = gangplan("validate", "-C", root)
    assert outcome.errors() == [(f"{FILE}:9:10", rule)]
    assert outcome.findings[0].help


@pytest.mark.parametrize("key", FREE)
def test_other_labels_are_accepted(root: Path, key: str) -> None:
    labelled(root, key)
    render(root)
