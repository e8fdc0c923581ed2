"""Rules about live clusters: where they differ from their files, and what their API servers refuse."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

OBSERVED_VERSION = Rule(
    "observed-version",
    WARNING,
    "A version on the cluster differs from the one in its file.",
    why=(
        "Fields and behaviour are rendered and judged for the stated versions. A run that was rendered for "
        "another Trainer or Kueue is refused, or is admitted and never starts. This is an error if a minor version "
        "(Trainer, JobSet or Kueue) differs, and a note if only a patch version does."
    ),
    fix="Write the version that the snapshot saw into the cluster file.",
    is_verdict=True,
)

OBSERVED_KIND = Rule(
    "observed-kind",
    ERROR,
    "The cluster does not serve a kind, a version or a field that is rendered for it.",
    why=(
        "The API server refuses objects of kinds that it does not serve, so that a sync fails. A CRD without "
        "the field that Kueue writes into a TrainJob leaves admitted runs suspended forever."
    ),
    fix="Install the component on the cluster, or correct versions in the cluster file.",
    is_verdict=True,
)

OBSERVED_NODES = Rule(
    "observed-nodes",
    WARNING,
    "The nodes of a pool are not as the cluster file describes them.",
    why=(
        "Quotas, the fit of runs on nodes, tolerations and node selectors are worked out from the file. Where "
        "the nodes have less, or other labels and taints, runs are admitted whose pods stay pending."
    ),
    fix="Correct the pool in the cluster file, or the nodes.",
    is_verdict=True,
)

OBSERVED_TOPOLOGY = Rule(
    "observed-topology",
    WARNING,
    "Nodes lack a label of the stated topology, or share a domain with more nodes than stated.",
    why=(
        "Kueue places runs by these labels. A node without one of them belongs to no domain, and Kueue never "
        "uses it for a run that asks for a topology."
    ),
    fix="Label the nodes, or correct topology in the cluster file.",
    is_verdict=True,
)

OBSERVED_CLASS = Rule(
    "observed-class",
    WARNING,
    "A storage class or RuntimeClass that the cluster file names does not exist.",
    why=(
        "A claim of a class that does not exist is never bound, and a pod of an unknown RuntimeClass is "
        "refused, so that the run waits forever."
    ),
    fix="Correct the name in the cluster file, or create the class.",
    is_verdict=True,
)

_LAB = "A live API server decides this; tests/live/test_server.py has its answers, tests/e2e/test_live.py asks one."

SERVER_SCHEMA = Rule(
    "server-schema",
    ERROR,
    "The cluster's API server refuses a field of an object.",
    why=(
        "The server validates against its own version, its CRDs and their rules, and the live object: a change to "
        "an immutable field is refused, too. A sync would fail with the same message."
    ),
    fix="Correct the field, or the patch that writes it.",
    is_verdict=True,
    untested=_LAB,
)

SERVER_POLICY = Rule(
    "server-policy",
    ERROR,
    "An admission policy of the cluster refuses an object.",
    why=(
        "Policies on the cluster may differ from those in the workspace: they are other people's, or newer or older than "
        "what is rendered. A sync would fail with the same message."
    ),
    fix="Change what the policy objects to, or ask the owner of the policy.",
    is_verdict=True,
    untested=_LAB,
)

SERVER_WEBHOOK = Rule(
    "server-webhook",
    ERROR,
    "An admission webhook of the cluster refuses an object.",
    why=(
        "Webhooks of Trainer, JobSet, Kueue or a policy engine judge objects by code that is on the cluster alone. "
        "A sync would fail with the same message."
    ),
    fix="Change what the webhook objects to, or ask whoever runs the webhook.",
    is_verdict=True,
    untested=_LAB,
)

SERVER_QUOTA = Rule(
    "server-quota",
    WARNING,
    "A ResourceQuota of the cluster has no room for an object now.",
    why=(
        "A namespace may hold only so many objects, and ended runs count. Until some are removed, a sync of this object "
        "fails; Kueue's quotas are different, there a run waits."
    ),
    fix="Retire runs that have ended, wait, or have the quota raised.",
    is_verdict=True,
    untested=_LAB,
)

SERVER_ADVICE = Rule(
    "server-advice",
    NOTE,
    "The cluster's API server accepts an object with a warning.",
    why=(
        "It warns of fields and versions that will go, and of policies that only warn for now. A later version, or a "
        "policy set to Deny, refuses the same object."
    ),
    fix="Resolve the warning before it becomes a refusal.",
    is_verdict=True,
    untested=_LAB,
)

SERVER_UNASKED = Rule(
    "server-unasked",
    NOTE,
    "The cluster could not be asked about some objects.",
    why=(
        "A dry run needs the namespace, the kind, the right to apply, and webhooks that answer. If one is missing, "
        "the object is neither accepted nor refused; this is a warning where a sync would fail for the same reason."
    ),
    fix="Do what the message says, and ask again; or leave the verdict to the sync.",
    is_verdict=True,
    untested=_LAB,
)
