"""Rules about patches that change a planned run (validate/promise/, tests/promise/cases.yaml)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Deduplication, Rule

PLAN_BROKEN = Rule(
    "plan-broken",
    ERROR,
    "A patch changes what was planned for a run.",
    why=(
        "Counts, ranks, images, start order, restarts, host names, keys, probes, user, command, "
        "deadline, queue and labels of a run are proved together with its quota, its nodes and its "
        "network. A patch that changes only one of them produces a run that does not start, starts twice "
        "or on other hosts, never ends, or is matched by no policy. You can still patch whatever does "
        "not touch the plan: volumes, sidecars, variables, tolerations, node selectors, affinity, "
        "runtime classes that exist, mirrors of the same digest, larger resources, labels and "
        "annotations of your own. gangplan reads the built objects as Trainer 2.1 to 2.3, JobSet 0.10 to "
        "0.12 and the kubelet do."
    ),
    fix="Remove the operation from the patch, and change the field that the help names.",
    is_verdict=True,
    echo=Deduplication.PATCH,
)

PLAN_WEAKENED = Rule(
    "plan-weakened",
    WARNING,
    "A patch gives a run less than was planned.",
    why=(
        "The run starts as planned, but with less memory, shared memory or time (to run, or to save) "
        "than its spec says, waits for a scheduler, a gate, a runtime class, a claim, a secret or a "
        "ConfigMap that the overlay does not mention, spends a retry on a drained node, is retried where "
        "no attempt can succeed, is killed by a probe unless its program listens where the probe asks, or "
        "has a container next to the program that may outlive it, so that the "
        "run completes later than the program. Nobody who reads the spec can see it."
    ),
    fix=("Change the field that the help names, so that the spec, the quota and the plan say the same."),
    echo=Deduplication.PATCH,
)
