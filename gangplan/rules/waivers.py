"""Waivers: files in policies/waivers/ that excuse a breach of a rule for a time."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Example, Rule


def _waiver(*, expires: str = "2026-12-31", rule: str = "gpus-unusual", scope: str = "{team: nlp}") -> str:
    """A file that waives a rule for the team of the small workspace."""
    return (
        "apiVersion: gangplan.dev/v1\n"
        "kind: Waiver\n"
        f"rule: {rule}\n"
        f"scope: {scope}\n"
        "reason: The nodes of this lab have six GPUs each.\n"
        "approver: ml-platform@example.com\n"
        f'expires: "{expires}"\n'
    )


WAIVER_RULE_UNKNOWN = Rule(
    "waiver-rule-unknown",
    ERROR,
    "A waiver names a rule that does not exist.",
    why=(
        "It would excuse nothing, and its author would believe that it does. Renamed rules are "
        "announced; policies come and go with their pack."
    ),
    fix="Correct the id; findings show it in brackets, and gangplan explain lists them all.",
    example=Example(
        "policies/waivers/old.yaml",
        before=(_waiver(rule="gpus-unusal")),
        after=(_waiver()),
        whole=True,
        run="validate --today 2026-07-01",
    ),
)

WAIVER_NOT_ALLOWED = Rule(
    "waiver-not-allowed",
    ERROR,
    "A waiver names a rule that cannot be waived.",
    why=(
        "Most built-in rules report runs that would not work, such as a schema error or a claim that "
        "does not exist. Waiving one would only hide the failure until the cluster shows it."
    ),
    fix="Remove the waiver and follow the rule.",
    example=Example(
        "policies/waivers/fit.yaml",
        before=(
            "apiVersion: gangplan.dev/v1\n"
            "kind: Waiver\n"
            "rule: pool-no-fit\n"
            "scope: {team: nlp, job: filings}\n"
            "reason: Larger nodes will have arrived by the summer.\n"
            "approver: ml-platform@example.com\n"
            'expires: "2026-12-31"\n'
        ),
        after=None,
        whole=True,
        run="validate --today 2026-07-01",
    ),
)

WAIVER_SCOPE = Rule(
    "waiver-scope",
    ERROR,
    "A waiver names a cluster or team that does not exist.",
    why=(
        "A misspelt scope covers nothing. The breach is still reported, while the waiver looks as if it "
        "were in force."
    ),
    fix="Correct the name or pattern in scope.",
    example=Example(
        "policies/waivers/gpus.yaml",
        before=(_waiver(scope="{team: npl}")),
        after=(_waiver()),
        whole=True,
        run="validate --today 2026-07-01",
    ),
)

WAIVER_TOO_LONG = Rule(
    "waiver-too-long",
    ERROR,
    "A waiver lasts longer than a year.",
    why=(
        "A waiver that does not end soon is a change of the rule that nobody looks at again. A year is "
        "long enough for any fix, and renewing the waiver shows that somebody still needs it."
    ),
    fix="Write an earlier date, and renew the waiver when it ends.",
    is_verdict=True,
    example=Example(
        "policies/waivers/gpus.yaml",
        before=(_waiver(expires="2028-01-31")),
        after=(_waiver()),
        whole=True,
        run="validate --today 2026-07-01",
        changes=(("specs/nlp/filings.yaml", "gpus: 2", "gpus: 6"),),
        rest=("gpus-unusual",),
    ),
)

WAIVER_EXPIRED = Rule(
    "waiver-expired",
    ERROR,
    "A waiver has expired.",
    why=(
        "What it excused counts again. Nothing else would remind a team of a breach that was once "
        "allowed, so the check fails until the file is renewed or removed. Rendering ignores the date, "
        "so that a tag always renders the same."
    ),
    fix="Follow the rule and remove the file, or have it approved again with a later date.",
    is_verdict=True,
    example=Example(
        "policies/waivers/gpus.yaml",
        before=(_waiver(expires="2026-06-30")),
        after=(_waiver()),
        whole=True,
        run="validate --today 2026-07-01",
        changes=(("specs/nlp/filings.yaml", "gpus: 2", "gpus: 6"),),
        rest=("gpus-unusual",),
    ),
)

WAIVER_ENDS_SOON = Rule(
    "waiver-ends-soon",
    WARNING,
    "A waiver expires within thirty days.",
    why=(
        "The day after, every check of the repository fails, even for those who have nothing to do with "
        "it. A month is enough to fix what it excuses or to have it approved again."
    ),
    fix="Follow the rule before that day, or renew the waiver.",
    example=Example(
        "policies/waivers/gpus.yaml",
        before=(_waiver(expires="2026-07-15")),
        after=(_waiver()),
        whole=True,
        run="validate --today 2026-07-01",
    ),
)

WAIVER_UNUSED = Rule(
    "waiver-unused",
    NOTE,
    "A waiver excuses nothing.",
    why=(
        "The breach was fixed, or the scope or limit does not cover it. A waiver that is kept for no "
        "reason excuses the next breach without anybody deciding so."
    ),
    fix="Remove the file, or correct its scope or limit.",
    example=Example(
        "policies/waivers/gpus.yaml",
        before=(_waiver()),
        after=None,
        whole=True,
        run="validate --today 2026-07-01",
    ),
)

WAIVER_UNHEEDED = Rule(
    "waiver-unheeded",
    ERROR,
    "A waiver excuses what the API server would refuse.",
    why=(
        "gangplan labels what a waiver excuses, and the bindings that it writes for packs respect that "
        "label. A policy outside packs has its own bindings; one that ignores the label refuses the run "
        "when it is synced, although the check passed."
    ),
    fix="Exclude objects with the label in the binding's objectSelector.",
    example=Example(
        "policies/short-names.yaml",
        before=(
            "apiVersion: admissionregistration.k8s.io/v1\n"
            "kind: ValidatingAdmissionPolicy\n"
            "metadata: {name: short-names}\n"
            "spec:\n"
            "  matchConstraints:\n"
            "    resourceRules:\n"
            "    - {apiGroups: [trainer.kubeflow.org], apiVersions: [v1alpha1], operations: [CREATE], resources: [trainjobs]}\n"
            "  validations:\n"
            "  - {expression: object.metadata.name.size() <= 40, message: names have at most 40 characters}\n"
            "---\n"
            "apiVersion: admissionregistration.k8s.io/v1\n"
            "kind: ValidatingAdmissionPolicyBinding\n"
            "metadata: {name: short-names}\n"
            "spec: {policyName: short-names, validationActions: [Deny]}\n"
        ),
        after=(
            "apiVersion: admissionregistration.k8s.io/v1\n"
            "kind: ValidatingAdmissionPolicy\n"
            "metadata: {name: short-names}\n"
            "spec:\n"
            "  matchConstraints:\n"
            "    resourceRules:\n"
            "    - {apiGroups: [trainer.kubeflow.org], apiVersions: [v1alpha1], operations: [CREATE], resources: [trainjobs]}\n"
            "  validations:\n"
            "  - {expression: object.metadata.name.size() <= 40, message: names have at most 40 characters}\n"
            "---\n"
            "apiVersion: admissionregistration.k8s.io/v1\n"
            "kind: ValidatingAdmissionPolicyBinding\n"
            "metadata: {name: short-names}\n"
            "spec:\n"
            "  policyName: short-names\n"
            "  validationActions: [Deny]\n"
            "  matchResources:\n"
            "    objectSelector:\n"
            "      matchExpressions:\n"
            "      - {key: gangplan.dev/waived-short-names, operator: DoesNotExist}\n"
        ),
        whole=True,
        files={
            "policies/waivers/names.yaml": (
                "apiVersion: gangplan.dev/v1\n"
                "kind: Waiver\n"
                "rule: short-names\n"
                "scope: {team: nlp}\n"
                "reason: The name is in a contract until the year ends.\n"
                "approver: ml-platform@example.com\n"
                'expires: "2026-12-31"\n'
            )
        },
        run="validate --today 2026-07-01",
    ),
)
