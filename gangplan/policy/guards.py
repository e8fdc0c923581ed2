"""What keeps policies out of the way of controllers: conditions that every applied policy begins with.

A policy that comes after an object must not keep the object from ending, nor Kueue from starting, suspending
or preempting a run that was admitted under other policies. Both only ever update. What controllers create,
such as the pods of a run, is judged like everything else, so that no template leads round a policy.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

# The accounts of the controllers as upstream installs them: kueue v0.15 to v0.19 and jobset v0.10 to v0.12
# (config/default), kubeflow trainer v2.1 to v2.3 (manifests/overlays/manager).
CONTROLLERS = (
    "jobset-system/jobset-controller-manager",
    "kubeflow-system/kubeflow-trainer-controller-manager",
    "kueue-system/kueue-controller-manager",
)
# Those of Kubernetes run as accounts of kube-system, or all under one name.
_KUBERNETES = "system:serviceaccount:kube-system:"
_MANAGER = "system:kube-controller-manager"
DELETING, BY_CONTROLLER = "gangplan-deleting", "gangplan-controllers"
MOST_CONDITIONS = 64  # validation.go of admissionregistration, v1.34


def guarded(spec: dict[str, Any], controllers: Collection[str] = ()) -> None:
    """Put the conditions before those of a policy that judges updates. `controllers` are further accounts, as
    NAMESPACE/NAME."""
    own = spec.get("matchConditions") or []
    if not judges_updates(spec) or len(own) + 2 > MOST_CONDITIONS:
        return
    spec["matchConditions"] = [*conditions(controllers), *own]


def judges_updates(spec: dict[str, Any]) -> bool:
    """Whether a policy is asked about changes of objects."""
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    return any({"UPDATE", "*"} & set(rule.get("operations") or ()) for rule in rules)


def conditions(controllers: Collection[str] = ()) -> list[dict[str, str]]:
    """The conditions, as matchConditions holds them."""
    named = sorted(
        f"system:serviceaccount:{one.replace('/', ':', 1)}" for one in {*CONTROLLERS, *controllers}
    )
    accounts = ", ".join(f'"{one}"' for one in (_MANAGER, *named))
    user = "request.userInfo.username"
    return [
        {
            "name": DELETING,
            "expression": 'request.operation != "UPDATE" || !has(object.metadata.deletionTimestamp)',
        },
        {
            "name": BY_CONTROLLER,
            "expression": f'request.operation != "UPDATE" || !({user}.startsWith("{_KUBERNETES}") ||'
            f" {user} in [{accounts}])",
        },
    ]
