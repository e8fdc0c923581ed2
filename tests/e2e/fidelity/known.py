"""Known and justified disagreements: the cause, and which side is right."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """One cause. `says` is searched for in the message of the side that refuses; `kind` may be several."""

    name: str
    refuses: str
    says: str
    cause: str
    right: str
    kind: str = ""
    at: str = ""

    def covers(self, kind: str, places: list[str], refuses: str, message: str) -> bool:
        """Return whether a disagreement has this cause."""
        if refuses != self.refuses or (self.kind and kind not in self.kind.split()):
            return False
        return any(re.search(self.at, place) for place in places) and bool(re.search(self.says, message))


GANGPLAN, SERVER = "gangplan", "control plane"
KNOWN: tuple[Known, ...] = (
    Known(
        name="flavor-of-nothing",
        refuses=GANGPLAN,
        says=r"an empty spec is refused",
        cause="taken when the flavor is new; refused as null when an earlier spec had fields",
        right=GANGPLAN,
        kind="ResourceFlavor",
    ),
    Known(
        name="quota-that-was-forgotten",
        refuses=GANGPLAN,
        says=r"required field 'nominalQuota' is missing",
        cause="the CRD asks for it, but Kueue's webhook writes 0 there before the CRD is asked (0.19.2)",
        right=GANGPLAN,
        kind="ClusterQueue",
        at=r"nominalQuota$",
    ),
    Known(
        name="names-that-the-operator-writes",
        refuses=GANGPLAN,
        says=r"expected: lower-case letters|at most 63 are allowed|is not one of: Always",
        cause="the MPI operator writes these fields of its pods itself, whatever is there (0.8.2)",
        right=GANGPLAN,
        kind="MPIJob",
        at=r"template\.spec\.(?:hostname|subdomain|restartPolicy)$",
    ),
    Known(
        name="priority-cut-to-32-bits",
        refuses=GANGPLAN,
        says=r"value is (214748364[89]|2147483[67]\d{2}|\d{11,}); the most is",
        cause="server-side apply cuts the number to 32 bits: 2147483648 is stored as -2147483648 (1.34.4)",
        right=GANGPLAN,
        kind="PriorityClass",
        at=r"^value$",
    ),
    Known(
        name="pod-security",
        refuses=SERVER,
        says=r"violates PodSecurity",
        cause="told by the proof of that name, which knows the namespace; the gate sees one object",
        right=SERVER,
    ),
    Known(
        name="generate-name",
        refuses=GANGPLAN,
        says=r"cannot begin a name",
        cause="the server does not look at the prefix of a custom resource; nothing in Git has one",
        right=GANGPLAN,
        at=r"metadata\.generateName",
    ),
    Known(
        name="label-of-an-alert",
        refuses=GANGPLAN,
        says=r"letters, digits and '_', not starting with a digit",
        cause="the CRD takes any key; Prometheus before 3.0 refuses the whole rule file",
        right=GANGPLAN,
        kind="PrometheusRule",
    ),
    Known(
        name="rule-of-nothing",
        refuses=GANGPLAN,
        says=r"either a record, .* or an alert",
        cause="the CRD takes a rule without record and alert, or with both; Prometheus refuses the rule file",
        right=GANGPLAN,
        kind="PrometheusRule",
    ),
    Known(
        name="quantity-with-spaces",
        refuses=GANGPLAN,
        says=r"is the text ' |is the text '[^']* '; expected: a quantity",
        cause="a built-in kind trims spaces around an amount, and Git shows drift",
        right=GANGPLAN,
        kind="LimitRange",
    ),
    Known(
        name="request-with-spaces",
        refuses=GANGPLAN,
        says=r"is the text ' |is the text '[^']* '; expected: a quantity",
        cause="the server trims spaces around an amount of a pod; nobody means them",
        right=GANGPLAN,
        kind="MPIJob",
        at=r"resources\.(?:requests|limits)",
    ),
    Known(
        name="quota-with-spaces",
        refuses=GANGPLAN,
        says=r"is the text ' |is the text '[^']* '; expected: a quantity",
        cause="a built-in kind trims spaces around an amount, and Git shows drift",
        right=GANGPLAN,
        kind="ResourceQuota",
    ),
    Known(
        name="queue-quota-with-spaces",
        refuses=GANGPLAN,
        says=r"is the text ' |is the text '[^']* '; expected: a quantity",
        cause="Kueue's webhook writes the amount without spaces before the CRD is asked: Git shows drift",
        right=GANGPLAN,
        kind="ClusterQueue",
    ),
    Known(
        name="name-from-the-address",
        refuses=GANGPLAN,
        says=r"required field 'metadata' is missing",
        cause="without metadata, the name comes from the address of the request; Git has no such address",
        right=GANGPLAN,
        at=r"^metadata$",
    ),
    Known(
        name="torch-without-fields",
        refuses=GANGPLAN,
        says=r"unknown field '\w+' in spec\.mlPolicy\.torch",
        cause="Trainer 2.2's CRD names no fields of torch, and the server drops them without a word",
        right=GANGPLAN,
        kind="TrainingRuntime",
        at=r"^spec\.mlPolicy\.torch",
    ),
    Known(
        name="fraction-as-a-number",
        refuses=GANGPLAN,
        says=r"is the number \d+\.\d+; a quantity",
        cause="a built-in kind takes 1.5 and stores 1500m, and Git shows drift; the CRDs take no fractions",
        right=GANGPLAN,
        kind="ResourceQuota",
    ),
    Known(
        name="record-of-other-letters",
        refuses=GANGPLAN,
        says=r"record is the text '.+'; expected: letters",
        cause="the CRD takes any text; Prometheus before 3.0 refuses the whole rule file",
        right=GANGPLAN,
        kind="PrometheusRule",
    ),
    Known(
        name="expression-of-nothing",
        refuses=GANGPLAN,
        says=r"expr is empty",
        cause="the CRD takes an empty expression; Prometheus refuses the whole rule file",
        right=GANGPLAN,
        kind="PrometheusRule",
    ),
    Known(
        name="priority-that-was-forgotten",
        refuses=GANGPLAN,
        says=r"required field 'value' is missing",
        cause="the server takes none for 0; a class without a value orders nothing and was forgotten",
        right=GANGPLAN,
        kind="PriorityClass",
        at=r"^value$",
    ),
    Known(
        name="range-of-nothing",
        refuses=GANGPLAN,
        says=r"required field '(spec|limits)' is missing",
        cause="the server takes a LimitRange without limits, which limits nothing",
        right=GANGPLAN,
        kind="LimitRange",
        at=r"^spec(\.limits)?$",
    ),
    Known(
        name="flavor-without-a-spec",
        refuses=GANGPLAN,
        says=r"required field 'spec' is missing",
        cause="a flavor that lost its labels sends runs to any node; gangplan writes them for every pool",
        right=GANGPLAN,
        kind="ResourceFlavor",
        at=r"^spec$",
    ),
    Known(
        name="expression-as-number",
        refuses=GANGPLAN,
        says=r"expr is the (number|truth value)",
        cause="the CRD takes a number for a constant; it is an expression that was forgotten",
        right=GANGPLAN,
        kind="PrometheusRule",
    ),
    Known(
        name="null",
        refuses=GANGPLAN,
        says=r"is empty \(null\)",
        cause="the server drops a null; gangplan never means one: it is a value that was forgotten",
        right=GANGPLAN,
    ),
    Known(
        name="no-workers",
        refuses=GANGPLAN,
        says=r"is (0|-\d+); the least is 1",
        cause="Trainer takes 0 or less and then makes no pod, or none that MPI could use",
        right=GANGPLAN,
        at=r"numNodes|numProcPerNode",
    ),
    Known(
        name="priority-beyond-int32",
        refuses=GANGPLAN,
        says=r"value is -?\d+; the (least|most) is",
        cause="the kind's schema has no bounds, but Kueue reads a 32-bit number and cannot list the object",
        right=GANGPLAN,
        kind="WorkloadPriorityClass",
    ),
    Known(
        name="negative-share",
        refuses=GANGPLAN,
        says=r"quantity that is not negative",
        cause="the server takes a negative weight, which has no meaning",
        right=GANGPLAN,
        kind="LocalQueue",
    ),
    Known(
        name="queue-name-in-a-label",
        refuses=GANGPLAN,
        says=r"metadata.name",
        cause="a queue's name becomes the value of a label, which has at most 63 characters",
        right=GANGPLAN,
        kind="LocalQueue",
        at=r"^metadata\.name$",
    ),
    Known(
        name="range-with-leading-zeros",
        refuses=GANGPLAN,
        says=r"an address range such as",
        cause="the server warns that a future release refuses it",
        right=GANGPLAN,
        kind="NetworkPolicy",
    ),
    Known(
        name="waits-for-itself",
        refuses=GANGPLAN,
        says=r"'(\w+)' is not a replicated job before '\1'",
        cause="JobSet's webhook lets a replicated job depend on itself, which then never starts",
        right=GANGPLAN,
        kind="TrainingRuntime",
    ),
    Known(
        name="environment-name",
        refuses=GANGPLAN,
        says=r"expected: letters, digits, '_', '-' and '\.', not starting with a digit",
        cause="Kubernetes takes more since 1.32; the supported minors before it do not, nor do shells",
        right=GANGPLAN,
    ),
    Known(
        name="policy-for-all",
        refuses=GANGPLAN,
        says=r"required field '(spec|podSelector)' is missing",
        cause="without a selector the policy is for every pod of the namespace, other runs' too",
        right=GANGPLAN,
        kind="NetworkPolicy",
    ),
    Known(
        name="no-namespace",
        refuses=GANGPLAN,
        says="the object has no namespace",
        cause="the server takes it into namespace default, which is not the team's",
        right=GANGPLAN,
    ),
    Known(
        name="feature-off",
        refuses=GANGPLAN,
        says=r"only initContainers have a restartPolicy|an initContainer restarts Always",
        cause="the server drops what belongs to a feature that is off, without a word",
        right=GANGPLAN,
    ),
    Known(
        name="feature-off-before-1.34",
        refuses=GANGPLAN,
        says=r"object-invalid",
        cause="before 1.34 the server drops the resources and claims of a whole pod, without a word",
        right=GANGPLAN,
        kind="TrainingRuntime",
        at=r"template\.spec\.resources|resourceClaims|resources\.claims",
    ),
    Known(
        name="claims-before-1.34",
        refuses=GANGPLAN,
        says=r"the pod has no resourceClaim",
        cause="before 1.34 the server drops claims of the containers that Trainer makes, without a word",
        right=GANGPLAN,
        kind="TrainJob",
        at=r"resourcesPerNode",
    ),
    Known(
        name="empty-text",
        refuses=GANGPLAN,
        says=r"is the text ''",
        cause="the server takes an empty text for none; gangplan leaves such a field out",
        right=GANGPLAN,
    ),
    Known(
        name="account-of-no-namespace",
        refuses=GANGPLAN,
        says=r"subjects\[\d+\]\.namespace is the text",
        cause="RBAC does not look at it, but no namespace has such a name: nobody is bound",
        right=GANGPLAN,
        kind="RoleBinding",
    ),
    Known(
        name="group-of-a-role",
        refuses=GANGPLAN,
        says="required field 'apiGroup' is missing in roleRef",
        cause="the server fills it in: what is live then differs from what Git says",
        right=GANGPLAN,
        kind="RoleBinding",
    ),
    Known(
        name="key-of-no-secret",
        refuses=GANGPLAN,
        says=r"items\[\d+\]\.key is the text",
        cause="the server does not look at it, but no secret has such a key: the pod never starts",
        right=GANGPLAN,
        kind="TrainingRuntime MPIJob",
    ),
    Known(
        name="label-of-no-node",
        refuses=GANGPLAN,
        says=r"topologyKey is the text",
        cause="the server does not look at it, but no node has such a label: the pod is never placed",
        right=GANGPLAN,
        kind="TrainingRuntime MPIJob",
    ),
    Known(
        name="negative-count",
        refuses=GANGPLAN,
        says=r"(replicas|maxRestarts|terminationGracePeriodSeconds) is -\d+",
        cause="the server takes a negative count, which has no meaning",
        right=GANGPLAN,
        kind="TrainingRuntime MPIJob",
    ),
    Known(
        name="medium-of-no-kubelet",
        refuses=GANGPLAN,
        says=r"emptyDir\.medium is the text",
        cause="the server does not look at it, but the kubelet knows no other: the pod never starts",
        right=GANGPLAN,
        kind="TrainingRuntime MPIJob",
    ),
    Known(
        name="claim-of-no-name",
        refuses=GANGPLAN,
        says=r"claimName is the text",
        cause="the server does not look at it, but no claim has such a name: the pod never starts",
        right=GANGPLAN,
        kind="TrainingRuntime MPIJob",
    ),
    Known(
        name="queue-of-nothing",
        refuses=GANGPLAN,
        says=r"required field '(clusterQueue|spec)' is missing",
        cause="Kueue takes a queue that leads nowhere, and admits nothing from it",
        right=GANGPLAN,
        kind="LocalQueue",
    ),
    Known(
        name="count-of-trainer",
        refuses=GANGPLAN,
        says=r"(parallelism|completions) is -\d+",
        cause="Trainer writes its own number over it; a negative one means nothing",
        right=GANGPLAN,
        kind="TrainingRuntime",
    ),
    Known(
        name="sysctl-of-nothing",
        refuses=GANGPLAN,
        says=r"required field 'value' is missing in .*sysctls",
        cause="the server takes a sysctl without a value; it was forgotten",
        right=GANGPLAN,
        kind="MPIJob",
        at=r"sysctls",
    ),
    Known(
        name="empty-choice",
        refuses=GANGPLAN,
        says=r"'' is not one of: ",
        cause="the server takes an empty text for the default; a choice is made, or was forgotten",
        right=GANGPLAN,
    ),
)


def known(kind: str, places: list[str], refuses: str, message: str) -> Known | None:
    """Return the cause of a disagreement, if it is in the table."""
    return next((one for one in KNOWN if one.covers(kind, places, refuses, message)), None)
