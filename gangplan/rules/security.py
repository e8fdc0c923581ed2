"""Rules about security: secrets in Git, reserved labels, Pod Security, rights, regimes and scan reports."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Deduplication, Rule

SECRET_LITERAL = Rule(
    "secret-literal",
    ERROR,
    "A file contains a secret.",
    why=(
        "Everybody who can read the repository can read it, now and in every clone, and removing the "
        "line does not remove it from history. gangplan recognises tokens by their form and passwords by "
        "the name of their variable. The finding shows no character of the secret, nor its length."
    ),
    fix="Revoke it, and refer to a Kubernetes secret instead: secrets: {env: {NAME: SECRET/KEY}}.",
    is_verdict=True,
)

SECRET_SUSPECTED = Rule(
    "secret-suspected",
    WARNING,
    "A text looks like a key or a token, or a variable is named like one.",
    why=(
        "Either it has random letters of both cases and digits, which nobody writes by hand, under a name "
        "that says nothing; certificates, public keys, digests and checksums are recognised and not reported. "
        "Or a variable such as AUTH_TOKEN or DB_PASSWORD has its value in a spec: even a weak password is one. "
        "The finding shows no character of the text."
    ),
    fix=(
        "If it is a secret, refer to a Kubernetes secret instead: secrets: {env: {NAME: SECRET/KEY}}. If "
        "it is public, leave it."
    ),
)

LABEL_RESERVED = Rule(
    "label-reserved",
    ERROR,
    "A spec sets a label that belongs to the platform.",
    why=(
        "Runs are found, queued, isolated and counted by labels of gangplan, Kueue, JobSet and "
        "Kubernetes. With the label of another run or queue, network policies would let it through, and "
        "its usage would be charged elsewhere."
    ),
    fix="Use a prefix of your own, such as example.com/project.",
)

POD_SECURITY = Rule(
    "pod-security",
    ERROR,
    "The namespace refuses the pods of the run.",
    why=(
        "Namespaces of teams enforce a Pod Security level. The run is admitted and holds its quota, but "
        "a pod that uses its host's paths or network, extra capabilities or root is refused when it is "
        "created, and only an event says so. The checks are those of the level and version that the "
        "namespace enforces."
    ),
    fix="Remove what the message names from the overlay's patch.",
    is_verdict=True,
    echo=Deduplication.RUN,
)

HOST_ACCESS = Rule(
    "host-access",
    WARNING,
    "Pods of a run use what Pod Security's level restricted would refuse.",
    why=(
        "The platform raised the level of the team's namespace, so the API server lets these pods in: with "
        "folders of the node, its network, or capabilities. Access that a fabric of the cluster's file declares is a "
        "note, so that every report shows it. Access that only a patch adds is a warning: nobody declared it."
    ),
    fix=(
        'Declare what the runs need in a fabric of the cluster\'s file and remove the rest, or write rdma: "off"'
        " where TCP is enough."
    ),
    waivable=True,
)

RIGHTS_TOO_WIDE = Rule(
    "rights-too-wide",
    ERROR,
    "A patch gives more rights than anybody needs.",
    why=(
        "Wildcards, the verbs bind, escalate and impersonate, shells, pods past the queue, groups that "
        "contain everybody, and a namespace without its Pod Security level, or without the label by which "
        "policies and Kueue find it, undo the isolation of teams. No reviewer of a spec sees what an overlay gives away."
    ),
    fix="List only the rights that are needed, or remove the patch.",
    is_verdict=True,
    waivable=True,
)

COMPLIANCE_NOT_ENFORCED = Rule(
    "compliance-not-enforced",
    ERROR,
    "The data falls under a regime that the cluster does not enforce.",
    why=(
        "A regime (compliance) or a residency is enforced by the policies of the pack of that name, in "
        "the pull request and at the API server. On a cluster that does not list the pack, nothing would "
        "enforce it, and a pass would mean nothing."
    ),
    fix=(
        "Choose a cluster that lists the pack, or ask its owner to add it under policies: {packs: [...]} "
        "in the cluster's file."
    ),
)

SCAN_UNREADABLE = Rule(
    "scan-unreadable",
    ERROR,
    "A scan report says nothing about any image.",
    why=(
        "Reports of Trivy and Clair below images/scans/ are the evidence for the policy image-scan. "
        "People would mistake a file that is not such a report, or that names no digest, for evidence."
    ),
    fix=(
        "Write the report with `trivy image --format json IMAGE@DIGEST` or `clairctl report --out "
        "json IMAGE`, or remove the file."
    ),
)
