"""Match conditions that keep policies out of the way of controllers; every applied policy begins with them.

A policy that is newer than an object must not keep the object from ending, nor keep Kueue from starting,
suspending or preempting a run that was admitted under other policies. Both only update objects. What
controllers create, such as the pods of a run, is judged like everything else, so that no template gets round
a policy.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

# The service accounts of the controllers in upstream's manifests: kueue v0.15 to v0.19 and jobset v0.10 to
# v0.12 (config/default), kubeflow trainer v2.1 to v2.3 (manifests/overlays/manager).
CONTROLLERS = (
    "jobset-system/jobset-controller-manager",
    "kubeflow-system/kubeflow-trainer-controller-manager",
    "kueue-system/kueue-controller-manager",
)
# The same as Red Hat's operators install them (bindata of openshift/kueue-operator
# and openshift/jobset-operator).
OPENSHIFT_CONTROLLERS = (
    "openshift-jobset-operator/jobset-controller-manager",
    "openshift-kueue-operator/kueue-controller-manager",
)
# Kubernetes' own controllers run as accounts of kube-system, or all under one name.
_KUBERNETES = "system:serviceaccount:kube-system:"
_MANAGER = "system:kube-controller-manager"
DELETION_CONDITION, CONTROLLER_CONDITION = "gangplan-deleting", "gangplan-controllers"
MOST_CONDITIONS = 64  # validation.go of admissionregistration, v1.34


def add_policy_guard_conditions(spec: dict[str, Any], controllers: Collection[str] = ()) -> None:
    """Put the conditions before those of a policy that judges updates.

    `controllers` are more service accounts, as NAMESPACE/NAME. A policy that would then have more than 64
    conditions is left as it is.
    """
    own = spec.get("matchConditions") or []
    if not judges_updates(spec) or len(own) + 2 > MOST_CONDITIONS:
        return
    spec["matchConditions"] = [*build_match_conditions(controllers), *own]


def judges_updates(spec: dict[str, Any]) -> bool:
    """Return whether a policy judges updates of objects."""
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    return any({"UPDATE", "*"} & set(rule.get("operations") or ()) for rule in rules)


def build_match_conditions(controllers: Collection[str] = ()) -> list[dict[str, str]]:
    """Return the conditions as entries of matchConditions."""
    named = sorted(
        f"system:serviceaccount:{one.replace('/', ':', 1)}" for one in {*CONTROLLERS, *controllers}
    )
    accounts = ", ".join(f'"{one}"' for one in (_MANAGER, *named))
    user = "request.userInfo.username"
    return [
        {
            "name": DELETION_CONDITION,
            "expression": 'request.operation != "UPDATE" || !has(object.metadata.deletionTimestamp)',
        },
        {
            "name": CONTROLLER_CONDITION,
            "expression": f'request.operation != "UPDATE" || !({user}.startsWith("{_KUBERNETES}") ||'
            f" {user} in [{accounts}])",
        },
    ]
