"""A finding that a patch causes is at the operation without which it is gone, never at a harmless one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.workspaces import CLUSTER, gangplan, stock, write

HEAD = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
KUSTOMIZATION = "overlays/lab/kustomization.yaml"
POD = "/spec/template/spec/replicatedJobs/1/template/spec/template"
INIT = f"{POD}/spec/initContainers"
DIGEST = "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
IMAGE = f"registry.example.com/training/openmpi@{DIGEST}"
SAFE = (
    "runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]},"
    " seccompProfile: {type: RuntimeDefault}"
)
SOUND = "{requests: {cpu: 500m, memory: 2Gi}, limits: {cpu: 500m, memory: 2Gi}}"
HUGE = '{requests: {cpu: "124", memory: 2Gi}, limits: {cpu: "124", memory: 2Gi}}'
WIDE = "{requests: {cpu: 1, memory: 2Gi}, limits: {cpu: 1, memory: 9000Gi}}"
BARE = "{requests: {cpu: 500m, memory: 2Gi}}"
PACK = "policies: {packs: [images]}\n"
OWN_POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small-or-marked}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [trainer.kubeflow.org]
      apiVersions: [v1alpha1]
      operations: [CREATE]
      resources: [trainjobs]
  validations:
  - expression: >-
      object.metadata.?annotations['site.example.com/size'].orValue('small') == 'small'
      && object.spec.trainer.numNodes < 4
    message: runs of this site are small
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small-or-marked}
spec: {policyName: small-or-marked, validationActions: [Deny]}
"""


def sidecar(name: str, resources: str = SOUND, image: str = IMAGE) -> str:
    """Return a native sidecar as one line of a flow mapping."""
    parts = f"name: {name}, image: {image}, restartPolicy: Always, securityContext: {{{SAFE}}}"
    return f"{{{parts}, resources: {resources}}}"


def patch(*operations: str, kind: str = "TrainingRuntime") -> str:
    """Return a patch inside the kustomization itself."""
    return f"- target: {{kind: {kind}}}\n  patch: |-\n" + "".join(f"    - {one}\n" for one in operations)


def add(path: str, value: str, op: str = "add") -> str:
    """Return one operation."""
    return f"{{op: {op}, path: {path}, value: {value}}}"


def note(name: str) -> str:
    """Return an operation that does no harm."""
    return add(f"{POD}/metadata/annotations/site.example.com~1{name}", "none")


@dataclass(frozen=True)
class Case:
    """Patches, and a text of the line where a rule must be reported; `files` are written with them."""

    patches: str
    guilty: str
    rule: str = "never-admitted"
    files: dict[str, str] = field(default_factory=dict)
    says: str = ""


TWO = f"[{sidecar('first')},\n      {sidecar('second', BARE)}]"
BAD = add(INIT, f"[{sidecar('shipper', BARE)}]")
GOOD = add(INIT, f"[{sidecar('shipper')}]")
FOREIGN = sidecar("other", image=IMAGE.replace("training/openmpi@", "training/other@"))
CASES = {
    "an innocent patch before it": Case(
        patch(note("a")) + patch(BAD),
        "shipper",
        says="container 'shipper' requests 2Gi of memory without a limit,"
        " and LimitRange training gives it a limit of 1Gi",
    ),
    "an innocent patch behind it": Case(patch(BAD) + patch(note("a")), "shipper"),
    "among other operations": Case(patch(note("a"), BAD, note("b")), "shipper"),
    "in a file, an innocent one inline": Case(
        "- {target: {kind: TrainingRuntime}, path: bad.yaml}\n" + patch(note("a")),
        "shipper",
        files={"overlays/lab/bad.yaml": f"- {note('b')}\n- {BAD}\n"},
    ),
    "inline, innocent ones in two files": Case(
        "- {target: {kind: TrainingRuntime}, path: a.yaml}\n"
        + patch(BAD)
        + "- {target: {kind: TrainingRuntime}, path: b.yaml}\n",
        "shipper",
        files={f"overlays/lab/{name}.yaml": f"- {note(name)}\n" for name in "ab"},
    ),
    "the second sidecar of one operation": Case(patch(note("a"), add(INIT, TWO)), "second"),
    "a limit that a later patch takes away": Case(
        patch(GOOD) + patch(note("a")) + patch(f"{{op: remove, path: {INIT}/0/resources/limits/memory}}"),
        "op: remove",
        says="container 'shipper' requests 2Gi of memory without a limit",
    ),
    "another sidecar put before it later": Case(
        patch(BAD) + patch(add(f"{INIT}/0", sidecar("first"))), "shipper"
    ),
    "two that each suffice: the one that is named": Case(
        patch(BAD) + patch(add(f"{INIT}/-", sidecar("second", BARE))), "shipper", says="container 'shipper'"
    ),
    "a patch of the TrainJob next to it": Case(
        patch(add("/metadata/annotations/site.example.com~1a", "none"), kind="TrainJob") + patch(BAD),
        "shipper",
    ),
    "more than any node has, and an innocent patch of the TrainJob": Case(
        patch(
            add(
                INIT,
                f"[{sidecar('shipper', HUGE)}]",
            )
        )
        + patch(add("/metadata/annotations/site.example.com~1a", "none"), kind="TrainJob"),
        "shipper",
        "no-node-fits",
    ),
    "the LimitRange itself, its other field innocent": Case(
        patch(
            add("/spec/limits/0/default/cpu", "2", "replace"),
            add("/spec/limits/0/max/memory", "16Gi", "replace"),
            add("/spec/limits/0/defaultRequest/cpu", "2", "replace"),
            kind="LimitRange",
        ),
        "max/memory",
        says="container 'node' requests 32Gi of memory, and LimitRange training allows at most 16Gi",
    ),
    "a maximum that a sidecar exceeds": Case(
        patch(note("a"))
        + patch(
            add(
                INIT,
                f"[{sidecar('shipper', WIDE)}]",
            )
        ),
        "shipper",
        says="container 'shipper' has a limit of 9000Gi of memory,"
        " and LimitRange training allows at most 1900Gi",
    ),
    "what a schema refuses, not what stands next to it": Case(
        patch(add("/spec/suspend", "true", "add"), kind="TrainJob")
        + patch(GOOD)
        + patch(add(f"{INIT}/0/restartPolicy", "Sometimes", "replace"))
        + patch(add(f"{INIT}/0", sidecar("first"))),
        "Sometimes",
        "schema",
    ),
    "an image that a policy refuses, not the one before it": Case(
        patch(add(INIT, f"[{sidecar('first')}]")) + patch(add(f"{INIT}/-", FOREIGN)) + patch(note("a")),
        "other",
        "image-catalog",
        files={"overlays/lab/cluster.yaml": CLUSTER + PACK},
    ),
    "an image that is replaced, not who made the entry": Case(
        patch(add(INIT, f"[{sidecar('first')}]"))
        + patch(add(f"{INIT}/0/image", "registry.example.com/training/other:1", "replace"))
        + patch(add(f"{INIT}/0", sidecar("second"))),
        "op: replace",
        "image-catalog",
        files={"overlays/lab/cluster.yaml": CLUSTER + PACK},
    ),
    "a policy that the spec breaks, whatever the patch": Case(
        patch(add("/metadata/annotations/site.example.com~1size", "small"), kind="TrainJob"),
        "workers: 4",
        "small-or-marked",
        files={"policies/own.yaml": OWN_POLICY},
    ),
    "a policy that the patch breaks": Case(
        patch(add("/metadata/annotations/site.example.com~1size", "large"), kind="TrainJob")
        + patch(note("a")),
        "large",
        "small-or-marked",
        files={
            "policies/own.yaml": OWN_POLICY.replace(
                "&& object.spec.trainer.numNodes < 4", "|| object.spec.trainer.numNodes < 4"
            )
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_operation_that_causes_the_finding_is_reported(name: str, tmp_path: Path, builder: None) -> None:
    case = CASES[name]
    root = write(stock(tmp_path / "w"), {**case.files, KUSTOMIZATION: HEAD + case.patches})
    errors = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    (found,) = [one for one in errors if one.rule == case.rule]
    file, line, _ = found.place.split(":")
    assert case.guilty in (root / file).read_text().splitlines()[int(line) - 1], found
    assert case.says in found.message


def test_patches_without_the_bad_operation_have_no_findings(tmp_path: Path, builder: None) -> None:
    """This is the control: similar patches, with a limit."""
    root = write(stock(tmp_path / "w"), {KUSTOMIZATION: HEAD + patch(note("a"), GOOD, note("b"))})
    assert gangplan("validate", "-C", root).errors() == []
