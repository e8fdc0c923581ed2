"""Rules about policies (ValidatingAdmissionPolicies of packs and in policies/), and about the rules of CRDs.

A breach of a policy is reported under the policy's name; its page is in policies/<pack>/pack.yaml.
"""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

POLICY_INVALID = Rule(
    "policy-invalid",
    ERROR,
    ("The API server would refuse a policy, a binding or a parameter object."),
    why=(
        "A sync would fail on it, and what it was meant to refuse would get in until somebody notices. "
        "The checks are those of Kubernetes 1.34, reported at the line of the field. ConfigMap data is "
        "text only."
    ),
    fix="Correct the field.",
)

POLICY_EXPRESSION = Rule(
    "policy-expression",
    ERROR,
    "An expression of a policy does not compile.",
    why=(
        "The API server type-checks expressions when a policy is created, and refuses the whole policy "
        "if one fails. An untyped check in CI would let it pass, and the policy would never be in force."
    ),
    fix=("Correct the expression; the message is the API server's, and the column is that of the mistake."),
)

POLICY_VERSION = Rule(
    "policy-version",
    ERROR,
    "A policy needs a newer Kubernetes than the cluster has.",
    why=(
        "Each Kubernetes minor adds functions, and a server accepts in new policies only those that the "
        "previous minor also has, so that it can be rolled back."
    ),
    fix=("Write the expression without the newer function, or keep the policy off this cluster."),
)

POLICY_INERT = Rule(
    "policy-inert",
    WARNING,
    ("A policy has no binding, a binding has no policy, or a policy matches resources that do not exist."),
    why=(
        "Kubernetes silently accepts all of these, and none of them does anything. Nearly always a name "
        "is misspelt, or was changed on only one side."
    ),
    fix=(
        "Make policyName and the policy's name agree, add the missing half, or write the resource "
        "in its plural."
    ),
)

POLICY_UNDECIDED = Rule(
    "policy-undecided",
    WARNING,
    "A policy cannot be judged without the cluster.",
    why=(
        "It asks for labels of a namespace that gangplan does not render, for what a user may do "
        "(authorizer), or for another version of the object. Assuming that it passes would be a guess."
    ),
    fix="Check it in the cluster, or rewrite it so that the objects in Git are enough.",
)

POLICY_OBSTRUCTS = Rule(
    "policy-obstructs",
    ERROR,
    "A policy judges the deletion or status of objects that make up a run.",
    why=(
        "Runs end by deletions, and controllers report by writing a status. Where the API server refuses either, "
        "runs keep their GPUs, and engines and controllers ask again forever."
    ),
    fix="Let the policy judge operations: [CREATE, UPDATE] of the resource itself.",
)

POLICY_PARAM_KIND = Rule(
    "policy-param-kind",
    ERROR,
    "The parameters of a policy are of a kind that does not exist.",
    why=(
        "Kubernetes accepts such a policy, and then refuses every request that it matches (with failurePolicy "
        'Ignore it lets every one through): "failed to find resource referenced by paramKind".'
    ),
    fix="Correct apiVersion and kind of paramKind, or import the CRD with gangplan schema import.",
)

POLICY_ENFORCED = Rule(
    "policy-enforced",
    WARNING,
    "The API server now responds differently to breaches of a policy.",
    why=(
        "validate judges what is in Git. The API server also judges what it is asked to create from elsewhere, "
        "and pods that controllers create for runs that left Git long ago: if a policy goes from Audit to Deny, "
        "those pods are refused from then on. It is a note if Deny is neither added nor removed."
    ),
    fix=(
        "Nothing needs to be done if that is meant. Write enforcement: Audit or Warn first, and look at what "
        "the API server reports."
    ),
)

POLICY_UNKNOWN = Rule(
    "policy-unknown",
    ERROR,
    "A cluster names a policy pack, a policy or a parameter that does not exist.",
    why=(
        "A misspelt pack would enforce nothing, and a misspelt parameter would leave the default in "
        "force. Both would look as if they were in effect."
    ),
    fix="Correct the name; gangplan policy list shows packs and policies.",
)

POLICY_PARAM = Rule(
    "policy-param",
    ERROR,
    "A parameter of a policy has a different type from its default.",
    why=(
        "Expressions turn parameters into numbers and lists. A word where a number belongs makes every "
        "evaluation fail, and a policy that fails refuses everything that it matches."
    ),
    fix="Write a value of the same type as the pack's default, which docs/policies.md shows.",
)

POLICY_FACT = Rule(
    "policy-fact",
    WARNING,
    "A parameter of a policy replaces a fact of the cluster.",
    why=(
        "Where a pack takes a parameter from the cluster's file (its location, its certifications, the waivers "
        "in force), the policy judges the cluster as it is. A value of its own makes it judge another one, and "
        "nothing that reads the cluster's file notices."
    ),
    fix="Remove the parameter; correct the fact where the cluster's file states it.",
)

POLICY_FILE_IGNORED = Rule(
    "policy-file-ignored",
    ERROR,
    "A file in policies/ would not be read.",
    why=(
        "Its author believes that it is in force. gangplan reads policies/*.yaml, packs (folders "
        "with a pack.yaml and their tests/), policies/tests/*.yaml and policies/waivers/*.yaml; nothing "
        "deeper, and no other extension."
    ),
    fix="Move the file to one of these places, or rename it to end in .yaml.",
)

PACK_INVALID = Rule(
    "pack-invalid",
    ERROR,
    "A policy pack and its files do not agree, or a name in it is taken.",
    why=(
        "A policy that pack.yaml does not list, or lists without a file, would not be in force on any "
        "cluster that asks for the pack. A policy or pack with the name of another would take its place, "
        "and a security rule would silently disappear."
    ),
    fix=(
        "List each file of the pack under policies in its pack.yaml, by the name of the policy in "
        "it, and choose names that no other rule, policy or pack has."
    ),
)

POLICY_CASE = Rule(
    "policy-case",
    ERROR,
    "A test case of a policy fails.",
    why=(
        "Cases record what a policy is for. When one fails, the policy has changed its "
        "meaning, or the case never meant what its name says."
    ),
    fix="Correct the policy, or the case with its message.",
    untested="only `gangplan policy test` tells it; tests/policy/test_commands.py shows it.",
)

POLICY_UNTESTED = Rule(
    "policy-untested",
    WARNING,
    "A policy has no test cases.",
    why=(
        "Nobody knows whether it refuses what it should and allows what it should, until it gets in "
        "somebody's way."
    ),
    fix="Add tests/<policy>.<case>.allow.yaml and .deny.yaml next to it.",
    untested="only `gangplan policy test` tells it; tests/policy/test_commands.py shows it.",
)

CRD_RULE = Rule(
    "crd-rule",
    ERROR,
    "An object breaks a rule of its CRD.",
    why=(
        "Trainer, JobSet and Kueue have rules in their CRDs that the API server evaluates at every "
        "write; a breach fails the sync. For changes (--base), there are also rules about what may never "
        "change."
    ),
    fix="Follow the rule that the help line shows; what may not change needs a new name.",
    is_verdict=True,
    untested=(
        "the schema or another rule tells nearly every breach first; "
        "tests/policy/test_crd_rules.py shows the rest."
    ),
)

CRD_UNREADABLE = Rule(
    "crd-unreadable",
    ERROR,
    "A file in schemas/ is not an imported CRD.",
    why=(
        "For the kinds in it, checks against the cluster's own CRDs would silently be skipped. gangplan "
        "writes these files; they are not meant to be edited."
    ),
    fix="Import the CRD again with gangplan schema import, or remove the file.",
)

POLICIES_OPEN = Rule(
    "policies-open",
    ERROR,
    "Policies leave an account of a team alone.",
    why=(
        "What policies.controllers lists may change runs past every policy. An account in the namespace of a team is at "
        "the command of everybody who may create pods there, so the policies would hold for nobody."
    ),
    fix="List controllers that the platform runs, in namespaces of their own.",
)

POLICIES_NONE = Rule(
    "policies-none",
    WARNING,
    "A production cluster has no policies.",
    why=(
        "Without packs, nothing holds runs to what a production cluster asks: restricted pods, images by digest, "
        "owners and deadlines. When somebody removes a pack, the cluster silently ends up in this state. "
        "The rule applies only to clusters whose file states environment: prod."
    ),
    fix="Add the packs that should hold, or write environment: dev.",
)
