"""Rules about what the platform grants to a team, and what it requires of it."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

NAMESPACE_NOT_GIVEN = Rule(
    "namespace-not-given",
    ERROR,
    "A team uses a namespace that the platform has not given it.",
    why=(
        "Runs share their namespace with its secrets and service accounts, and its roles go to groups "
        "that the team names. So only the platform can give a namespace. A team may use its own name or "
        "team-<name> without asking, and whatever a cluster file gives it."
    ),
    fix=("Remove the line, or ask the platform for namespace: at the team's entry in the cluster file."),
)

REGIME_NOT_EVERYWHERE = Rule(
    "regime-not-everywhere",
    ERROR,
    "A cluster does not hold a team to a regime that another cluster enforces.",
    why=(
        "Data falls under a regime wherever it is used. A team that is held to a regime on only one "
        "cluster could move its runs to another, where nobody looks."
    ),
    fix=(
        "Add the regime to the team's entry in every cluster file that lists the team, or take the "
        "team off that cluster."
    ),
)

LABEL_INJECTS = Rule(
    "label-injects",
    ERROR,
    "A label asks for an identity, an injected container or an exemption.",
    why=(
        "Webhooks read such labels on pods and hand out cloud identities (azure.workload.identity/use), "
        "secrets (vault.hashicorp.com) or sidecars; policy engines and network plugins use "
        "these labels to exempt pods. A team must not decide what its own pods may do."
    ),
    fix=(
        "Remove the label. If the run is meant to have it, the platform adds the label with a patch in "
        "the cluster's overlay."
    ),
)

POSTURE_TOO_WEAK = Rule(
    "posture-too-weak",
    ERROR,
    "A network posture is weaker than the platform requires of the team.",
    why=(
        "In the cluster file, the platform sets the weakest posture that a team's runs may have. "
        "A spec or a team default may close the network further, but never open it."
    ),
    fix=(
        "Leave posture out, or set one that is at least as strong; from weak to strong: default, "
        "restricted, isolated."
    ),
)


POD_SECURITY_RAISED = Rule(
    "pod-security-raised",
    WARNING,
    "A team's namespace admits more than Pod Security's level restricted.",
    why=(
        "With privileged, anyone who can create pods there can take over a node; with baseline, pods may run as "
        "root. The platform states the level with a reason and a last day, and reports show it until it is gone "
        "(for baseline as a note)."
    ),
    fix="Remove podSecurity from the team's entry as soon as the reason is gone.",
    waivable=True,
)

POD_SECURITY_EXPIRED = Rule(
    "pod-security-expired",
    ERROR,
    "A Pod Security level was allowed until a day that has passed.",
    why=(
        "Labels of a namespace have no expiry. A level that stays in Git stays in the cluster, and with it the "
        "right to create pods that take over a node."
    ),
    fix="Remove podSecurity and render, or set a later day.",
    is_verdict=True,
)

POD_SECURITY_UNNEEDED = Rule(
    "pod-security-unneeded",
    NOTE,
    "No run of the team needs the Pod Security level of its namespace.",
    why=(
        "A level is raised for what a fabric or a patch needs from the node. Once no run uses that, the level "
        "only lets others in. Only a check of the whole workspace shows this."
    ),
    fix="Remove podSecurity from the team's entry.",
)

RENDERED_FOREIGN = Rule(
    "rendered-foreign",
    ERROR,
    "rendered/ contains something that gangplan did not write.",
    why=(
        "The GitOps engine applies whatever is there with its own rights, and every pull request of a "
        "team changes files there. So a file without gangplan's mark, a link, a copy of the mark under "
        "another name, and an extra object in a rendered file are errors."
    ),
    fix=(
        "Remove it, or run gangplan render if it was rendered before. Anything else that a cluster needs "
        "goes into a folder and an Application of its own. README.md may stay."
    ),
    is_verdict=True,
)

RUN_FORGED = Rule(
    "run-forged",
    ERROR,
    "A kept run is not what was rendered.",
    why=(
        "keep: true, keepRuns: true or --keep-runs carries over an earlier run, and nobody looks at its file as closely as at a spec. "
        "Its name contains a hash of what it runs; when the two disagree, somebody changed it by hand."
    ),
    fix=(
        "Restore the file from an earlier commit, or render without --keep-runs, which starts the run again."
    ),
    is_verdict=True,
    untested="No example is rendered before it is judged. See tests/security/test_kept.py.",
)
