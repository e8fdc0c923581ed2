"""A workspace's own policies, applied to what controllers create for runs: JobSets, Jobs, pods, Services."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.source import load_objects
from gangplan.validate.made import list_objects_made_by_controllers
from tests import workspaces
from tests.workspaces import gangplan

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: own}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [{group}], apiVersions: ["*"], operations: [CREATE], resources: [{resource}]}}
{more}  validations:
  - expression: {expression}
    message: not like this
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: own}}
spec: {{policyName: own, validationActions: [{action}]{bound}}}
"""
QUEUED = "\"object.metadata.?labels['kueue.x-k8s.io/queue-name'].orValue('') != ''\""
NOT_MADE = "  matchConditions: [{name: not-made, expression: '!has(object.metadata.ownerReferences)'}]\n"
EXEMPT = (
    "  matchConditions: [{name: not-made, expression: 'request.userInfo.username !="
    ' "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"\'}]\n'
)
JOBSETS = ("jobset.x-k8s.io", "jobsets")


def policy(
    group: str, resource: str, expression: str = QUEUED, more: str = "", action: str = "Deny", bound: str = ""
) -> str:
    return POLICY.format(
        group=group or '""', resource=resource, expression=expression, more=more, action=action, bound=bound
    )


def told(root: Path, text: str, **files: str) -> list[tuple[str, str, str]]:
    """Return severity, rule and message of the policy's findings."""
    workspaces.write(workspaces.stock(root), {"policies/own.yaml": text, **files})
    outcome = gangplan("validate", "-C", root)
    assert {one.rule for one in outcome.findings} <= {"own", "policy-undecided"}, outcome.err
    return [(one.severity, one.rule, one.message) for one in outcome.findings]


@pytest.mark.parametrize(
    ("group", "resource", "made"),
    [
        (*JOBSETS, "JobSet/nlp/filings"),
        ("batch", "jobs", "Job/nlp/filings-node-0"),
        ("", "pods", "Pod/nlp/filings-node-0-0-aaaaa"),
        ("", "services", "Service/nlp/filings"),
    ],
)
def test_a_label_that_only_the_run_has_is_missing_on_its_objects(
    group: str, resource: str, made: str, tmp_path: Path
) -> None:
    """Kueue's manual has this policy as an example: Trainer copies no label of a TrainJob."""
    assert told(tmp_path, policy(group, resource)) == [("error", "own", f"{made}: not like this")]
    assert "request.userInfo.username != " in gangplan("validate", "-C", tmp_path).findings[0].help


@pytest.mark.parametrize("resource", ["configmaps", "secrets", "workloads"])
def test_a_policy_that_only_the_cluster_can_decide_is_reported_once(resource: str, tmp_path: Path) -> None:
    group = "kueue.x-k8s.io" if resource == "workloads" else ""
    second = workspaces.SPEC.replace("train.py", "other.py")
    found = told(tmp_path, policy(group, resource), **{"specs/nlp/second.yaml": second})
    launch = [one for one in found if "ConfigMap/nlp/gangplan-launch-" in one[2]]  # in Git, so it is judged
    assert len(launch) == (resource == "configmaps")
    ((severity, rule, message),) = (one for one in found if one not in launch)
    assert (severity, rule) == ("warning", "policy-undecided")
    assert message.startswith("policy 'own' is about ")


@pytest.mark.parametrize(
    "text",
    [
        policy(*JOBSETS, more=NOT_MADE),
        policy(*JOBSETS, more=EXEMPT),
        policy(*JOBSETS, bound=", matchResources: {namespaceSelector: {matchLabels: {team: other}}}"),
        policy("", "pods", '"object.spec.containers.all(c, has(c.resources.limits))"'),
        policy("", "pods", "\"object.metadata.ownerReferences[0].kind == 'Job'\""),
        policy("batch", "jobs", "\"object.metadata.ownerReferences[0].kind == 'JobSet'\""),
        policy(
            "", "pods", "\"request.userInfo.username == 'system:serviceaccount:kube-system:job-controller'\""
        ),
        policy(
            *JOBSETS,
            "\"request.userInfo.username.endsWith(':kubeflow-trainer-controller-manager')\"",
        ),
        policy("apps", "deployments"),
    ],
    ids=[
        "not made",
        "as the help says",
        "other namespaces",
        "limits",
        "owner",
        "owner's owner",
        "user",
        "Trainer",
        "others",
    ],
)
def test_policies_that_created_objects_pass_are_silent(text: str, tmp_path: Path) -> None:
    assert told(tmp_path, text) == []


def test_a_field_of_the_spec_is_reported_at_the_spec(tmp_path: Path) -> None:
    workspaces.write(
        workspaces.stock(tmp_path),
        {
            "policies/own.yaml": policy(
                "", "pods", "\"object.spec.containers.all(c, c.image.startsWith('docker.io/'))\""
            )
        },
    )
    (found,) = gangplan("validate", "-C", tmp_path).findings
    assert found.place == "specs/nlp/filings.yaml:3:8"
    assert "Kubernetes makes this Pod of the run's template, and the run never starts." in found.help


def test_a_policy_that_warns_is_a_warning(tmp_path: Path) -> None:
    assert told(tmp_path, policy(*JOBSETS, action="Warn")) == [
        ("warning", "own", "JobSet/nlp/filings: not like this")
    ]


def test_a_patch_of_the_template_satisfies_the_policy(tmp_path: Path) -> None:
    label = "{labels: {kueue.x-k8s.io/queue-name: training}}"
    operation = f"{{op: add, path: /spec/template/metadata, value: {label}}}"
    patch = f"- target: {{kind: TrainingRuntime}}\n  patch: |-\n    - {operation}\n"
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    assert told(tmp_path, policy(*JOBSETS), **{"overlays/lab/kustomization.yaml": head + patch}) == []


def test_every_created_object_has_an_owner_and_a_place() -> None:
    """Each field of a created object is where the finding looks for it."""
    seen = set()
    for path in sorted((workspaces.REPOSITORY / "rendered").rglob("runs/**/*-*.yaml")):
        bodies = load_objects(path.read_bytes())
        for made in list_objects_made_by_controllers(bodies):
            seen.add(made.body["kind"])
            (owner,) = made.body["metadata"]["ownerReferences"]
            assert owner["controller"] is True
            assert made.maker
            if not made.is_whole or made.body["kind"] == "Service":
                continue
            there = bodies[made.index]
            for step in made.prefix:
                there = there[step]
            assert there["spec"].keys() == made.body["spec"].keys()
    assert {"JobSet", "Job", "Pod", "Service", "ConfigMap", "Secret", "Workload"} <= seen
